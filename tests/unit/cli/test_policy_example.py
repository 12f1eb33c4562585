"""examples/policies does what its README says; its Rego policy reads the JSON of a plan unchanged.
The cluster is simulated."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here

EXAMPLE = Path(__file__).parents[3] / "examples/policies"
Verdicts = Mapping[str, list[str]]
"""Kind of rule (`deny`, `warn`) -> its messages, sorted."""


@pytest.fixture
def example(here: Here) -> Here:
    """A copy of the example, with an empty cluster."""
    cluster = SimulatedCluster(brokers=3)
    here.monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    here.monkeypatch.setenv("KF_VAR_bootstrap", "localhost:9092")
    here.monkeypatch.setenv("KAFKAFORM_SANDBOX_PASSWORD", "secret")
    shutil.copytree(EXAMPLE, here.path, dirs_exist_ok=True)
    return here


def edit(example: Here, old: str, new: str) -> None:
    file = Path("main.kf.hcl")
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


def test_the_example_is_sound(example: Here) -> None:
    """Formatted and valid, and what the README says of its plan is true."""
    example.done("fmt", "--check", "--recursive")
    example.done("validate")
    said = example.done("plan", "--policy", "organisation").text
    assert "policy max_partitions: web.views would have 60 partitions" in said
    assert "(waived until 2099-12-31: measured:" in said
    assert '! policy tiers: web.views has no label "tier"' in said
    example.done("apply", "--policy", "organisation", "--auto-approve")
    assert "No changes." in example.done("plan", "--policy", "organisation").out


def test_the_organisation_needs_a_week(example: Here) -> None:
    """The team's own rule and the one outside both block it."""
    example.done("apply", "--auto-approve")
    edit(example, 'retention("7d")', 'retention("3d")')
    said = example.fails("plan", "--policy", "organisation", code=8)
    assert "policy week: billing needs the orders of the last week" in said
    assert "policy no_data_loss: " in said


# ── Rego ────────────────────────────────────────────────────────────────────────────────


def evaluate_in_process(plan: Path) -> Verdicts:
    """The verdicts by an interpreter of Rego that pip brings."""
    regopy = pytest.importorskip("regopy", reason="pip install -e '.[rego]' brings it")
    rego = regopy.Interpreter()
    rego.add_module("topics", Path("rego/topics.rego").read_text("utf-8"))
    rego.set_input(json.loads(plan.read_text("utf-8")))
    names = ("deny", "warn")
    found = rego.query("; ".join(f"{name} = data.main.{name}" for name in names))
    return {name: sorted(json.loads(str(found))["bindings"][name]) for name in names}


def evaluate_with_conftest(plan: Path) -> Verdicts:
    """The verdicts of conftest."""
    if shutil.which("conftest") is None:
        pytest.skip("conftest is not on the PATH")
    command = ["conftest", "test", str(plan), "--policy", "rego", "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    (found,) = json.loads(done.stdout)
    failures, warnings = found.get("failures", ()), found.get("warnings", ())
    assert done.returncode == bool(failures), done.stderr
    return {
        "deny": sorted(one["msg"] for one in failures),
        "warn": sorted(one["msg"] for one in warnings),
    }


@pytest.mark.parametrize("evaluate", [evaluate_in_process, evaluate_with_conftest])
def test_a_policy_in_rego_reads_a_plan(example: Here, evaluate: Callable[[Path], Verdicts]) -> None:
    """It counts what an apply would do: creates, updates and deletions, and no blocked change."""

    def judge() -> Verdicts:
        example.done("plan", "--out", "p.kfplan")
        example.write("plan.json", example.done("show", "p.kfplan", "--json").out)
        return evaluate(Path("plan.json"))

    large = "kafka_topic.clicks would have 60 partitions"
    assert judge() == {"deny": [large], "warn": []}
    example.done("apply", "--auto-approve")
    assert judge() == {"deny": [], "warn": []}
    edit(example, "partitions = 12", "partitions = 24")
    text = Path("main.kf.hcl").read_text("utf-8")
    first, second = text.index('resource "kafka_topic" "clicks"'), text.index("# Rules that come")
    gone = "removed {\n  from = kafka_topic.clicks\n  lifecycle {\n    destroy = true\n  }\n}\n\n"
    example.write("main.kf.hcl", text[:first] + gone + text[second:])
    verdicts = judge()
    assert verdicts["deny"] == ["kafka_topic.clicks would be deleted"]
    assert [text.partition(":")[0] for text in verdicts["warn"]] == [
        "kafka_topic.clicks",
        "kafka_topic.orders",
    ]
    example.write("main.kf.hcl", text[:first] + text[second:])  # protected, so it stays
    assert judge()["deny"] == []
