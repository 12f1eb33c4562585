"""The look at disks among the looks of a plan."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kafkaform.core.finding import Level
from kafkaform.core.resource import Identity
from kafkaform_kafka.impact.inquiry import Inquiry, Sighting, list_targets
from kafkaform_kafka.impact.looks import look_at_disks
from kafkaform_kafka.wire.cluster import LogDirectories

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


def test_what_is_added_to_a_disk_of_unknown_size_is_told() -> None:
    """Brokers before Kafka 3.3 say no size: nothing is guessed about what fits."""
    asker = make_cluster("orders")
    (directory,) = asker.answers["DescribeLogDirs"].rows
    old = replace(directory, total=None, usable=None)
    asker.answers["DescribeLogDirs"] = LogDirectories(0, (old,))
    [(identity, finding)] = look(asker, LONGER).findings
    assert (identity, finding.rule, finding.level) == (ORDERS, "disk-room-unknown", Level.NOTE)
    assert finding.text == (
        "adds up to 70 GiB to broker 1, /a; broker 2, /a: how much fits there is unknown, because "
        "the broker does not say how large its disk is"
    )
    assert "total_bytes" not in finding.figures


def test_what_was_not_seen_is_a_gap() -> None:
    """It stands beside what the other looks could not see."""
    asker = make_cluster("orders")
    asker.answers["DescribeLogDirs"] = SILENT
    sighting = look(asker, LONGER)
    assert sighting.findings == ()
    assert sighting.gaps == ("the disks of broker 1, 2: it does not answer",)
    assert look(make_cluster("orders")) == Sighting(is_blank=True)


def test_nobody_looks_for_the_readers_of_a_longer_retention() -> None:
    """It takes nothing away from them."""
    assert list_targets([LONGER], FACTS) == []
