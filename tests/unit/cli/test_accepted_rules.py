"""`--accept RULE[=ADDRESS]`, and waivers that name a rule: what they lift, and how long."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here
from .test_policies import set_day

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
TOPICS = """\
resource "kafka_topic" "many" {{
  for_each = toset([for n in range(12) : "t${{n}}"])
  name     = each.key
  config   = {{ "retention.ms" = retention("{}") }}
}}
"""
LONG, SHORT = PROVIDER + TOPICS.format("7d"), PROVIDER + TOPICS.format("1h")
SET = """\
policy_set "kafka" {{
  enable = ["max_partitions", "topic_names"]

  waiver {{
    rule      = "{rule}"
    addresses = ["{addresses}"]
    reason    = "agreed"
    until     = "2026-06-30"
  }}
}}
"""


@pytest.fixture
def at(here: Here) -> Here:
    """A folder with twelve topics on a simulated cluster, whose retention is to be cut."""
    cluster = SimulatedCluster()
    here.monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    here.write("main.kf.hcl", LONG)
    here.done("apply", "--auto-approve")
    here.write("main.kf.hcl", SHORT)
    return here


def waive(at: Here, rule: str = "guard-data-loss", addresses: str = "kafka_topic.*") -> None:
    at.write("policies.kf.hcl", SET.format(rule=rule, addresses=addresses))


def test_a_guard_blocks_until_it_is_accepted(at: Here) -> None:
    """The flag lifts it for all; the plan says so, and its command keeps the flag."""
    assert "[guard-data-loss]" in at.fails("plan", code=8)
    said = at.done("plan", "--accept", "guard-data-loss").text
    assert "(accepted: --accept guard-data-loss)" in said
    assert "--accept=guard-data-loss" in said.partition("Next: ")[2]
    assert "12 changed" in at.done("apply", "--auto-approve", "--accept=guard-data-loss").out


def test_a_rule_is_accepted_for_some_objects(at: Here) -> None:
    """The others stay blocked, and so does the plan."""
    said = at.fails("plan", '--accept=guard-data-loss=kafka_topic.many["t1"]', code=8)
    assert "11 changes cannot be made" in said
    at.done("plan", "--accept=guard-data-loss=kafka_topic.many*")


def test_a_misspelt_rule_or_address_is_told(at: Here) -> None:
    """A rule before anything is read, an address before the cluster is."""
    assert 'Did you mean "guard-data-loss"?' in at.fails("plan", "--accept=guard-data-los")
    said = at.fails("plan", "--accept=guard-data-loss=kafka_topic.mnay")
    assert "kafka_topic.mnay matches no object" in said
    assert "Reading kafka" not in said
    assert "cannot be accepted" in at.fails("destroy", "--accept=object-protected")


def test_a_waiver_lifts_a_rule_until_its_last_day(at: Here) -> None:
    """The plan shows its reason; after that day the guard blocks again."""
    waive(at)
    set_day(at, "2026-06-30")
    said = at.done("plan").text
    assert "(waived until 2026-06-30: agreed)" in said and "--accept" not in said
    set_day(at, "2026-07-01")
    assert "12 changes cannot be made" in at.fails("plan", code=8)


def test_a_saved_plan_ends_with_its_waiver(at: Here) -> None:
    """What the reviewer saw is not sent once the exception has ended; before, it is."""
    waive(at)
    set_day(at, "2026-06-30")
    at.done("plan", "--out", "p.kfplan")
    set_day(at, "2026-07-01")
    said = at.fails("apply", "p.kfplan", code=8)
    assert "the waivers of this plan have ended" in said and "Nothing was sent" in said
    set_day(at, "2026-06-30")
    assert "12 changed" in at.done("apply", "p.kfplan").out


def test_a_waiver_covers_its_addresses_only(at: Here) -> None:
    """Other objects stay blocked."""
    waive(at, addresses='kafka_topic.many[\\"t1\\"]')
    set_day(at, "2026-06-01")
    assert "11 changes cannot be made" in at.fails("plan", code=8)


def test_a_waiver_for_one_rule_of_a_set(at: Here) -> None:
    """The other rules of the set, and the guard, judge its objects as before."""
    name = 'resource "kafka_topic" "odd" {\n  name = "Odd"\n  partitions = 200\n}\n'
    at.write("main.kf.hcl", LONG + name)
    set_day(at, "2026-06-01")
    waive(at, "topic_names")
    said = at.fails("plan", code=8)
    assert "policy max_partitions" in said and "(waived until 2026-06-30: agreed)" in said
    waive(at, "max_partitions")
    assert "blocked: policy topic_names" in at.fails("plan", code=8)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("guard-data-los", 'Did you mean "guard-data-loss"?'),
        ("object-protected", 'No waiver can lift a rule "object-protected"'),
        ("min_replication_factor", "It can name max_partitions, topic_names, "),
        (" ", "A waiver names its rule as a plain string"),
    ],
)
def test_a_waiver_for_what_cannot_be_lifted(at: Here, rule: str, told: str) -> None:
    """A misspelt rule, one that nobody can accept, one that is not switched on, and none."""
    waive(at, rule)
    said = at.fails("validate")
    assert told in said and "policies.kf.hcl:5" in said
    assert not Path("p.kfplan").exists()
