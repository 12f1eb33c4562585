"""`kafka_topic` with the attributes of Terraform's Mongey provider, on both kinds of cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaform.core.change import Action, OutcomeStatus
from kafkaform.core.value import FrozenMap
from kafkaform.provider.testing.workbench import Bench
from kafkaform_kafka.kinds.topic import resource_type as topics

from ....kit.kafka.terraform import BLOCK, desired
from ....kit.kafka.topic_systems import RealSystem, SimulatedSystem, real_system
from ....kit.needs import BROKER

TERRAFORM = """
resource "kafka_topic" "syslog" {
  name               = "NAME"
  replication_factor = FACTOR
  partitions         = "2"
  MORE

  config = {
    "retention.ms"        = "86400000"
    "segment.ms"          = 43200000
    "min.insync.replicas" = "1"
    "preallocate"         = true
  }
}
"""


@pytest.fixture(params=["memory", BROKER])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """An administrator's session on each kind of cluster; a new topic gets one replica."""
    if request.param == "memory":
        system: RealSystem | SimulatedSystem = SimulatedSystem(brokers=3)
    else:
        system = real_system(*map(request.getfixturevalue, ("broker", "stranger")))
    with Bench(system) as bench:
        yield bench


def declared(name: str, factor: str = "1", more: str = "") -> FrozenMap:
    """The attributes of the block above."""
    text = TERRAFORM.replace("NAME", name).replace("FACTOR", factor).replace("MORE", more)
    (item,) = desired(BLOCK + text).declared
    return item.attributes


def fresh_name(bench: Bench) -> str:
    return str(bench.fixture.fresh(FrozenMap())["name"])


def unchanged(bench: Bench, attributes: FrozenMap) -> bool:
    """True if the live topic is as declared, so that a plan has nothing to do."""
    seen = bench.wait_seen(attributes)
    after = bench.compute_target(attributes, seen)
    return not bench.list_steps(bench.make_change(Action.UPDATE, attributes, seen, after))


def test_a_topic_applies_as_it_is_written(bench: Bench) -> None:
    """Numbers as texts and texts as numbers; a second plan has nothing to do."""
    attributes = declared(fresh_name(bench))
    assert bench.create(attributes).status is OutcomeStatus.APPLIED
    seen = bench.wait_seen(attributes).attributes
    assert (seen["partitions"], seen["replication_factor"]) == (2, 1)
    assert seen["config"]["segment.ms"] == "43200000"
    assert seen["config"]["preallocate"] == "true"
    assert unchanged(bench, attributes)


@pytest.mark.parametrize(
    ("factor", "more"),
    [("-1", ""), ("3", "managed_replication_factor = true")],
    ids=["minus one", "managed"],
)
def test_a_factor_that_the_cluster_chooses(bench: Bench, factor: str, more: str) -> None:
    """The plan shows the broker's default, and whatever is live counts as declared."""
    attributes = declared(fresh_name(bench), factor, more)
    assert bench.compute_target(attributes, None)["replication_factor"] == 1
    assert bench.create(attributes).status is OutcomeStatus.APPLIED
    assert bench.wait_seen(attributes).attributes["replication_factor"] == 1
    assert unchanged(bench, attributes)


def test_a_managed_factor_keeps_more_replicas_than_the_default() -> None:
    """Replicas that somebody added stay, though the block names another number."""
    with Bench(SimulatedSystem(brokers=3)) as bench:
        attributes = declared("orders", "1", "managed_replication_factor = true")
        bench.fixture.make(attributes.with_items({"replication_factor": 3}))
        assert unchanged(bench, attributes)
        plain = attributes.with_items({"managed_replication_factor": False})
        seen = bench.wait_seen(attributes)
        assert bench.compute_target(plain, seen)["replication_factor"] == 1


def test_the_import_id_is_the_name() -> None:
    """`import` blocks of the other provider work as they are."""
    assert topics.TYPE.import_key("billing.invoices") == "billing.invoices"
