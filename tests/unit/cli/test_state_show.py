"""What `state show` tells of one object."""

from __future__ import annotations

from msgspec.structs import replace

from kafkaform.cli.commands.state import make_state_document, render_row
from kafkaform.core.resource import Identity
from kafkaform.core.value import FrozenMap
from kafkaform.state.model import Row, State
from kafkaform.workflow.plan_documents import read_words_of
from kafkaform_kafka.protocol.acl import parse_acl_key

USER = Row(
    Identity("kafka", "kafka_user_scram_credential", "ci|SCRAM-SHA-256"),
    ("kafka_user_scram_credential.ci",),
    7,
    FrozenMap(username="ci"),
    secret_version="3",
)


def test_the_version_of_a_secret_is_shown() -> None:
    """Which password was sent last, for people and for programs; nothing where there is none."""
    assert '  secret version = "3"' in list(render_row(USER))
    assert "secret" not in "".join(render_row(replace(USER, secret_version=None)))
    state = replace(State("lineage"), objects={USER.identity: USER})
    assert make_state_document(state)["resources"][0]["secret_version"] == "3"


def test_an_acl_is_one_line() -> None:
    """Its sentence stands for its seven attributes, which --detail and JSON have."""
    key = "User:app|*|Write|Allow|Topic|shop.orders|Literal"
    row = Row(
        Identity("kafka", "kafka_acl", key), ("kafka_acl.app",), None, parse_acl_key(key).attributes
    )
    assert list(render_row(row, read_words_of(["kafka"]))) == [
        "# kafka_acl.app",
        'kafka_acl Allow User:app Write on topic "shop.orders" from any host (kafka)',
        "",
    ]
    assert '  acl_operation = "Write"' in list(render_row(row))


WORDS = read_words_of(["kafka", "kafka.eu", "ldap"])


def test_amounts_have_units() -> None:
    """As a plan shows them, beside the exact number; an object whose provider is not here has
    none."""
    config = FrozenMap({"retention.ms": "604800000", "cleanup.policy": "delete"})
    topic = Row(
        Identity("kafka.eu", "kafka_topic", "orders"),
        ("kafka_topic.orders",),
        7,
        FrozenMap(name="orders", partitions=604800000, config=config),
    )
    lines = list(render_row(topic, WORDS))
    assert "    retention.ms = 7 d (604800000)" in lines
    assert '    cleanup.policy = "delete"' in lines
    assert "  partitions = 604800000" in lines
    quota = replace(
        topic,
        identity=Identity("kafka", "kafka_quota", "user=ci"),
        attributes=FrozenMap(config=FrozenMap(producer_byte_rate=1048576)),
    )
    assert "    producer_byte_rate = 1 MiB/s (1048576)" in list(render_row(quota, WORDS))
    stranger = replace(topic, identity=Identity("ldap", "kafka_topic", "orders"))
    assert '    retention.ms = "604800000"' in list(render_row(stranger, WORDS))
