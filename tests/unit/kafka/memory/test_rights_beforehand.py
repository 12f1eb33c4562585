"""Rights are looked at for the whole plan, so that nobody meets a missing one half way through."""

from __future__ import annotations

import pytest

from kafkaform.core.errors import DryRunRefused
from kafkaform_kafka.memory import MemoryProvider

from ....kit.simulated.engine import KAFKA, House, apply, desired, house, topic


def deployer(*rights: tuple[str, str]) -> House:
    """A house with one topic, in which everything is done by a user with these rights."""
    where = house()
    apply(where, desired(topic("b")))
    user = (("Create", "cluster"), ("Describe", "topic:*"), ("DescribeConfigs", "topic:*"))
    where.cluster.grant("deployer", *user, *rights)
    where.providers = {KAFKA: MemoryProvider(where.cluster, "deployer")}
    return where


GROWS = desired(topic("a"), topic("b", 5, depends_on=("kafka_topic.a",)))


def test_a_right_that_a_later_step_lacks_stops_everything() -> None:
    """The create could go, the step behind it could not: nothing is sent."""
    where = deployer()
    with pytest.raises(DryRunRefused) as caught:
        apply(where, GROWS)
    (found,) = caught.value.diagnostics
    assert found.address == "kafka_topic.b"
    assert "lacks Alter on Topic b" in found.detail
    assert "grant Alter on Topic b" in found.advice
    assert sorted(where.cluster.topics) == ["b"]


def test_with_the_right_it_goes_through() -> None:
    """The same plan, the same user, one right more."""
    done = apply(deployer(("Alter", "topic:b")), GROWS)
    assert done.report is not None and done.report.complete
