"""Amounts with units on command lines, as configurations have them."""

from __future__ import annotations

import pytest

from kafkaform.core.errors import UsageError
from kafkaform_kafka.commands.drafts import make_drafts, read_edit


@pytest.mark.parametrize(
    ("entity", "typed", "value"),
    [
        ("topic", "retention.ms=7d", "604800000"),
        ("topic", "retention.ms=1d12h", "129600000"),
        ("topic", "retention.ms=forever", "-1"),
        ("topic", "retention.ms=604800000", "604800000"),
        ("topic", "max.message.bytes=1MiB", "1048576"),
        ("topic", "cleanup.policy=delete", "delete"),
        ("topic", "retention.ms=7x", "7x"),
        ("topic", "min.insync.replicas=2", "2"),
        ("topic", "made.up=7d", "7d"),
        ("broker", "log.retention.ms=2h", "7200000"),
        ("broker", "log.segment.bytes=1GiB", "1073741824"),
        ("group", "consumer.session.timeout.ms=45s", "45000"),
        ("client-metrics", "interval.ms=5m", "300000"),
        ("user", "producer_byte_rate=1KiB", "1024"),
        ("client", "consumer_byte_rate=500kB/s", "500000"),
        ("user", "request_percentage=50", "50"),
        ("ip", "connection_creation_rate=10", "10"),
    ],
)
def test_amounts_are_read(entity: str, typed: str, value: str) -> None:
    """Of each kind of entity; what has no unit, or is no amount, stays as it is typed."""
    edit = read_edit(entity, ["1"], [typed], ())
    assert [pair.value for pair in edit.add] == [value]


def test_a_limit_that_is_no_amount_is_refused() -> None:
    """With an example of one that is."""
    with pytest.raises(UsageError) as caught:
        make_drafts(read_edit("user", ["ci"], ["producer_byte_rate=1 KiBs"], ()))
    assert "such as 1MiB" in caught.value.advice
