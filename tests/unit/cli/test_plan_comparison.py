"""Two plans compared: `show A B`, and why `apply --expect` refuses a plan."""

from __future__ import annotations

import json
import re

import pytest

from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here

CONFIGURATION = """
provider "kafka" { bootstrap_servers = ["localhost:9092"] }
resource "kafka_topic" "a" {
  name       = "a"
  partitions = 2
  config     = { "retention.ms" = "RETENTION" }
}
"""
MORE = """
resource "kafka_topic" "b" {
  name       = "b"
  partitions = 1
}
output "names" { value = ["a", "b"] }
"""


@pytest.fixture
def cluster(here: Here, monkeypatch: pytest.MonkeyPatch) -> SimulatedCluster:
    """An empty cluster that every command finds."""
    made = SimulatedCluster()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(made))
    return made


def plan(here: Here, name: str, retention: str, more: str = "") -> str:
    """Save a plan, and return its approval."""
    here.write("main.kf.hcl", CONFIGURATION.replace("RETENTION", retention) + more)
    said = here.done("plan", "--out", name)
    found = re.search(r"^Approval: (\S+)$", said.out, re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_paths_that_differ_are_named(here: Here, cluster: SimulatedCluster) -> None:
    """Values that differ stand path by path with people's units; whole changes and outputs by
    name."""
    plan(here, "one", "604800000")
    plan(here, "two", "1000", MORE)
    lines = here.done("show", "one", "two").out.splitlines()
    assert lines[0] == "What differs between one, the first plan, and two, the second:"
    assert "    ~ after.config.retention.ms = 7 d (604800000) → 1 s (1000)" in lines
    assert "+ kafka_topic.b: only in the second plan (create)" in lines
    assert "+ output names: only in the second plan" in lines
    assert "~ main.kf.hcl: has another content" in lines
    back = here.done("show", "two", "one").out
    assert "- kafka_topic.b: only in the first plan (create)" in back


def test_a_nested_output_is_shown_as_the_paths_that_changed(
    here: Here, cluster: SimulatedCluster
) -> None:
    """Not as two whole lists."""
    plan(here, "one", "1", MORE)
    plan(here, "two", "1", MORE.replace('"b"]', '"c", "d"]'))
    out = here.done("show", "one", "two").out
    assert '    ~ after.1 = "b" → "c"' in out
    assert '    + after.2 = "d"' in out
    assert "after.0" not in out


def test_equal_plans_do_the_same(here: Here, cluster: SimulatedCluster) -> None:
    """Two plans of one configuration differ in their times only, which need no approval."""
    plan(here, "one", "1")
    plan(here, "two", "1")
    assert here.done("show", "one", "two").out == "Both plans do the same.\n"


def test_a_plan_and_a_plans_json_are_compared_alike(here: Here, cluster: SimulatedCluster) -> None:
    """The JSON of `show --json` says as much as the saved plan; for programs the answer is JSON."""
    plan(here, "one", "1")
    plan(here, "two", "2")
    here.write("one.json", here.done("show", "--json", "one").out)
    here.write("two.json", here.done("show", "--json", "two").out)
    parts = json.loads(here.done("show", "--json", "one.json", "two.json").out)
    assert parts == json.loads(here.done("show", "--json", "one", "two").out)
    (topic,) = (part for part in parts if part["title"] == "kafka_topic.a")
    assert topic["differences"][0]["path"] == ["after", "config", "retention.ms"]


@pytest.mark.parametrize("named", [True, False])
def test_a_refused_apply_says_what_differs(
    here: Here, cluster: SimulatedCluster, named: bool
) -> None:
    """With the reviewed plan at hand the paths are told, without it how to have them told; nothing
    is sent in both cases."""
    approval = plan(here, "one", "604800000")
    plan(here, "two", "1000")
    more = ("--reviewed", "one") if named else ()
    text = here.fails("apply", "--expect", approval, *more, code=4)
    difference = "~ after.config.retention.ms = 7 d (604800000) → 1 s (1000)"
    assert (difference in text) is named
    assert ("--reviewed" in text) is not named
    assert cluster.topics == {}


def test_a_refused_apply_says_who_changed_the_object(here: Here, cluster: SimulatedCluster) -> None:
    """Somebody without kafkaform, or an earlier run of this state."""
    plan(here, "first", "604800000")
    here.done("apply", "first")
    approval = plan(here, "one", "1000")
    cluster.outside.alter("a", {"segment.ms": "60000"})
    text = here.fails("apply", "--expect", approval, "--reviewed", "one", code=4)
    assert "kafka_topic.a: changed outside kafkaform; never set here" in text
    plan(here, "two", "2000")
    here.done("apply", "two")
    plan(here, "three", "1000")
    text = here.fails("apply", "--expect", approval, "--reviewed", "one", code=4)
    assert re.search(r"kafka_topic\.a: changed 20\S+ \S+ UTC by \S+ \(run \w+\)", text)


def test_what_is_no_plan_is_refused(here: Here) -> None:
    """A clear error for a missing file, for what is no JSON, and for JSON of something else."""
    here.write("text", "hello")
    here.write("json", "{}")
    here.write("plan", "x")
    assert "cannot be read" in here.fails("show", "missing", "json")
    assert "text contains no plan" in here.fails("show", "text", "json")
    assert "json is not a kafkaform plan" in here.fails("show", "json", "text", code=4)
