"""The look at disks among the looks of a plan."""

from __future__ import annotations

from typing import Any

from kafkaform.core.resource import Identity
from kafkaform_kafka.impact.inquiry import Inquiry, Sighting, list_targets
from kafkaform_kafka.impact.looks import look_at_disks

from ....kit.kafka.changes import FACTS
from ..capacity.test_readings import LONGER, SILENT, make_cluster

ORDERS = Identity("kafka", "kafka_topic", "orders")


def look(asker: Any, *changes: Any) -> Sighting:
    return look_at_disks(Inquiry(asker, changes, (), 0, 500))


def test_a_change_that_does_not_fit_is_found() -> None:
    """35 GiB more on a disk with 20 GiB of room."""
    [(identity, finding)] = look(make_cluster("orders"), LONGER).findings
    assert identity == ORDERS
    assert finding.rule == "disk-too-small"
    assert finding.text == (
        "broker 1, /a: 980 GiB → 1015 GiB of 1000 GiB (102%; 35 GiB of it by this change); full in "
        "about 13 days at today's rate; and 1 disk more"
    )


def test_what_was_not_seen_is_a_gap() -> None:
    """It stands beside what the other looks could not see."""
    asker = make_cluster("orders")
    asker.answers["DescribeLogDirs"] = SILENT
    sighting = look(asker, LONGER)
    assert sighting.findings == ()
    assert sighting.gaps == ("the disks of broker 1, 2: it does not answer",)
    assert look(make_cluster("orders")) == Sighting(asked=False)


def test_nobody_looks_for_the_readers_of_a_longer_retention() -> None:
    """It takes nothing away from them."""
    assert list_targets([LONGER], FACTS) == []
