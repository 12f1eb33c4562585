"""Single values of `describe` and `explain`, as people read them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from kafkaform.core.value import FrozenMap, freeze
from kafkaform.render.text import render_page
from kafkaform_kafka.inspect.cells import config_text, limit_text, size
from kafkaform_kafka.inspect.configs import config_page
from kafkaform_kafka.inspect.document_page import document_page
from kafkaform_kafka.inspect.explanations import quota_page


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("retention.ms", "2592000000", "30 d (2592000000)"),
        ("retention.ms", "-1", "no limit (-1)"),
        ("segment.bytes", "10485760", "10 MiB (10485760)"),
        ("flush.ms", "9223372036854775807", "no limit (9223372036854775807)"),
        ("local.retention.ms", "-2", "-2"),
        ("cleanup.policy", "compact", "compact"),
        ("preallocate", "false", "false"),
        ("log.retention.hours", "168", "7 d (168)"),
        ("log.retention.hours", "soon", "soon"),
        ("offsets.retention.minutes", "10080", "7 d (10080)"),
        ("quota.window.size.seconds", "1", "1 s (1)"),
        ("log.roll.hours", "0", "0"),
        ("leader.replication.throttled.rate", "1048576", "1 MiB/s (1048576)"),
        ("listener.name.sasl.connections.max.idle.ms", "600000", "10 min (600000)"),
        ("consumer.session.timeout.ms", "45000", "45 s (45000)"),
        ("interval.ms", "300000", "5 min (300000)"),
        # For a socket's buffer it means the system's default.
        ("socket.send.buffer.bytes", "-1", "-1"),
        ("num.partitions", "3", "3"),
        ("a.plugins.timeout.ms", "1000", "1000"),
    ],
)
def test_a_config_is_shown_as_people_say_it(name: str, value: str, shown: str) -> None:
    """A time or a size, with the exact value beside it, and all others as they are."""
    assert config_text(name, value) == shown


def test_limits_and_sizes() -> None:
    """A rate of bytes has its amount; a measured size is rounded."""
    assert limit_text("producer_byte_rate", Decimal(1048576)) == "1 MiB/s (1048576)"
    assert limit_text("request_percentage", Decimal(25)) == "25"
    assert limit_text("producer_byte_rate", None) == "-"
    assert size(1536) == "1.5 KiB"
    assert size(None) == "-"


def page(document: object) -> str:
    made = freeze(document)
    assert isinstance(made, FrozenMap)
    pages = {"config_explanation": config_page, "quota_explanation": quota_page}
    return "\n".join(render_page(pages.get(made["kind"], document_page)(made)))


def test_pages_show_amounts() -> None:
    """`describe configs` and `quotas`, `explain config` and `quota`; null and empty texts stay."""
    row = {"sensitive": False, "read_only": False, "source": "DEFAULT_CONFIG"}
    configs = [{"name": "segment.ms", "value": "604800000", **row}]
    entity = {"name": "t", "default": False, "configs": configs, "error": None}
    assert "= 7 d (604800000)" in page(
        {"kind": "configs", "entity_type": "topics", "entities": [entity]}
    )
    quota = {"entity": {"user": "a"}, "config": {"producer_byte_rate": 2097152}, "source": "User"}
    assert "= 2 MiB/s (2097152)" in page({"kind": "quotas", "quotas": [quota]})
    level = {"title": "Default config", "key": "log.retention.hours", "set": True, "wins": True}
    explained = {"kind": "config_explanation", "key": "retention.ms", "entity": "topic"}
    rest = {"name": "t", "sensitive": False, "type": None, "changed": "", "documentation": None}
    shown = page({**explained, **rest, "levels": [{**level, "value": "168"}]})
    assert "7 d (168)" in shown
    assert "null" in page({**explained, **rest, "levels": [{**level, "value": None}]})
    assert '""' in page({**explained, **rest, "levels": [{**level, "value": ""}]})
    limit = {"key": "consumer_byte_rate", "of": "client", "unit": "bytes/s", "value": 1024}
    who = {"scope": "each broker", "entity": {"user": "a"}, "shared_by": "all"}
    client = {"callback": None, "user": "a", "client_id": "b", "ip": None, "others": ()}
    levels = [{"level": 1, "entity": {"user": "a"}, "config": {"consumer_byte_rate": 1024}}]
    told = page(
        {"kind": "quota_explanation", **client, "levels": levels, "limits": [{**limit, **who}]}
    )
    assert "1 KiB/s (1024) *" in told
    assert "1 KiB/s (1024) at each broker" in told
