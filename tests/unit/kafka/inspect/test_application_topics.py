"""Topics that applications and services make for themselves are recognised, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.resource import Identity, Observed
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.inspect.application_topics import TOPIC, find_owner

COMPACT, ENDLESS = {"cleanup.policy": "compact"}, {"retention.ms": "-1"}
WINDOWS = {"cleanup.policy": "compact,delete"}
GROUPS = {"shop-app": "consumer", "workers": "connect", "orders": "consumer"}


def topic(name: str, config: dict[str, str]) -> Observed:
    attributes: Any = FrozenMap(name=name, partitions=1, config=FrozenMap(config))
    return Observed(Identity("kafka", TOPIC, name), attributes)


@pytest.mark.parametrize(
    ("name", "config", "owner"),
    [
        ("shop-app-totals-changelog", COMPACT, "Kafka Streams for the group shop-app"),
        ("shop-app-by-day-changelog", WINDOWS, "Kafka Streams for the group shop-app"),
        ("shop-app-by-user-repartition", ENDLESS, "Kafka Streams for the group shop-app"),
        (
            "old-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog",
            COMPACT,
            "Kafka Streams, as the name says",
        ),
        ("connect-configs", COMPACT, "Kafka Connect, as the name says"),
        ("_connect-offsets", COMPACT, "Kafka Connect, as the name says"),
        ("acme.connect.status", COMPACT, "Kafka Connect, as the name says"),
        ("docker-connect-configs", COMPACT, "Kafka Connect, as the name says"),
        ("workers-offsets", COMPACT, "Kafka Connect for the group workers"),
        ("heartbeats", {}, "MirrorMaker"),
        ("west.checkpoints.internal", COMPACT, "MirrorMaker"),
        ("mm2-offset-syncs.west.internal", COMPACT, "MirrorMaker"),
        ("_schemas", COMPACT, "a schema registry"),
        ("__amazon_msk_canary", {}, "Amazon MSK"),
        ("_confluent-command", {}, "Confluent"),
        ("__strimzi_store_topic", COMPACT, "Strimzi"),
        ("__CruiseControlMetrics", {}, "Cruise Control"),
    ],
)
def test_topics_of_others(name: str, config: dict[str, str], owner: str) -> None:
    """By the name, and by the group of the application where there is one."""
    found = find_owner(topic(name, config), GROUPS)
    assert found is not None
    assert found.startswith(owner)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("orders", {}),
        # The group exists, and the topic is not made as Streams makes its own.
        ("orders-audit-changelog", {}),
        ("orders-audit-repartition", COMPACT | {"cleanup.policy": "delete"}),
        # Made like one of Streams, without an application of this name.
        ("billing-totals-changelog", COMPACT),
        ("connect-status", {}),
        ("customer-status", COMPACT),
        ("reconnect-offsets", COMPACT),
        ("my_schemas", COMPACT),
        ("__debezium-heartbeat.inventory", {}),
        ("_internal", {}),
        ("server-heartbeats", {}),
    ],
)
def test_topics_like_others(name: str, config: dict[str, str]) -> None:
    """A name that only looks similar leaves a topic to its owner."""
    assert find_owner(topic(name, config), GROUPS) is None
