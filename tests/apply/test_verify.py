"""After the last write every live broker is asked until it shows what was applied."""

from __future__ import annotations

import pytest

from kafkaform.apply.verify import Invisible
from kafkaform.core.change import OutcomeStatus
from tests.model.engine import apply, desired, house, topic

from .worlds import MS, built, complete, statuses


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_a_broker_that_stays_behind_is_named(broker: int) -> None:
    """What the controller committed is applied, whoever does not show it yet; broker and object
    are in the report and in the log."""
    where = house(brokers=3)
    where.cluster.lag(seconds=3600, broker=broker)
    done = apply(where, desired(topic("t")))
    assert complete(done)
    assert done.report is not None
    assert set(statuses(done).values()) == {OutcomeStatus.APPLIED}
    assert done.report.invisible == (Invisible("kafka_topic.t", str(broker)),)
    [record] = where.records("verify")
    assert record.body["invisible"] == ({"address": "kafka_topic.t", "node": str(broker)},)


def test_a_broker_that_needs_a_moment_is_waited_for() -> None:
    """Within the operation timeout; then nothing is said."""
    where = house(brokers=3)
    where.cluster.lag(seconds=1, broker=3)
    done = apply(where, desired(topic("t")))
    assert done.report is not None and done.report.invisible == ()


def test_a_change_and_a_deletion_are_looked_for_too() -> None:
    """The old value, and the topic that is still shown, are not what was applied."""
    where = built(desired(topic("t"), topic("u")), brokers=3)
    where.cluster.lag(seconds=3600, broker=2)
    done = apply(where, desired(topic("t", config=MS), topic("u")))
    assert done.report is not None
    assert done.report.invisible == (Invisible("kafka_topic.t", "2"),)
