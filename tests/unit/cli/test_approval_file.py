"""`plan --approval-out FILE`: the approval for another job, of plans that can be applied only."""

from __future__ import annotations

import pytest

from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here

CONFIGURATION = """
provider "kafka" { bootstrap_servers = ["localhost:9092"] }
resource "kafka_topic" "a" {
  name       = "a"
  partitions = 2
}
"""


@pytest.fixture
def cluster(here: Here, monkeypatch: pytest.MonkeyPatch) -> SimulatedCluster:
    """An empty cluster that every command finds."""
    made = SimulatedCluster()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(made))
    return made


def test_the_approval_applies_exactly_this_plan(here: Here, cluster: SimulatedCluster) -> None:
    """The file has the token that the plan shows as its only line, everybody can read it, and an
    apply that expects it is done."""
    here.write("main.kf.hcl", CONFIGURATION)
    said = here.done("plan", "--approval-out", "approval")
    text = (here.path / "approval").read_text()
    assert text.endswith("\n") and f"Approval: {text}" in said.out
    assert (here.path / "approval").stat().st_mode & 0o044 == 0o044
    here.done("apply", "--expect", text.strip())


def test_a_plan_without_changes_has_an_approval(here: Here, cluster: SimulatedCluster) -> None:
    """An apply that expects it does nothing, and refuses what came in between."""
    here.write("main.kf.hcl", CONFIGURATION)
    here.done("apply", "--auto-approve")
    here.done("plan", "--approval-out", "approval")
    approval = (here.path / "approval").read_text().strip()
    assert "No changes" in here.done("apply", "--expect", approval).out
    here.write("main.kf.hcl", CONFIGURATION.replace("= 2", "= 3"))
    here.fails("apply", "--expect", approval, code=4)


@pytest.mark.parametrize(
    ("configuration", "flags", "code"),
    [
        (CONFIGURATION.replace("partitions", "partitons"), (), 1),
        (CONFIGURATION, ("--fail-on", "refused-writes,deletes"), 8),
        (CONFIGURATION.replace("= 2", "= 1"), (), 8),
    ],
    ids=["wrong", "refused by a condition", "blocked"],
)
def test_a_plan_that_cannot_be_applied_has_none(
    here: Here, cluster: SimulatedCluster, configuration: str, flags: tuple[str, ...], code: int
) -> None:
    """The approval of the plan before is gone, so that no later job takes it for this one."""
    here.write("main.kf.hcl", CONFIGURATION)
    here.done("apply", "--auto-approve")
    here.write("approval", "old.old")
    if flags:
        configuration = configuration.partition("resource")[0] + (
            "removed {\n  from = kafka_topic.a\n  lifecycle { destroy = true }\n}\n"
        )
    here.write("main.kf.hcl", configuration)
    here.fails("plan", "--approval-out", "approval", *flags, code=code)
    assert not (here.path / "approval").exists()


def test_a_place_that_is_no_file_is_refused(here: Here, cluster: SimulatedCluster) -> None:
    """A folder stays, and the error names it."""
    here.write("main.kf.hcl", CONFIGURATION)
    (here.path / "approval").mkdir()
    assert "approval" in here.fails("plan", "--approval-out", "approval", code=9)
