"""What editors say about configs: each that the provider knows has a meaning."""

from __future__ import annotations

import pytest

from kafkaform.core.schema import AttributeSchema, KeySchema
from kafkaform_kafka.protocol.config_keys import (
    GROUP_KEYS,
    METRICS_KEYS,
    TOPIC_KEYS,
    UpdateMode,
    broker_keys,
)
from kafkaform_kafka.provider import TYPES

KEYED = [
    (kind, attribute)
    for kind, found in TYPES.items()
    for attribute in found.schema.attributes.values()
    if attribute.keys is not None
]


def list_keys(attribute: AttributeSchema) -> dict[str, KeySchema]:
    assert attribute.keys is not None
    make = attribute.keys
    return {key.name: key for key in make()}


@pytest.mark.parametrize(("kind", "attribute"), KEYED, ids=lambda one: getattr(one, "name", one))
def test_each_key_has_a_meaning(kind: str, attribute: AttributeSchema) -> None:
    """And a type; times and sizes have their unit."""
    for name, key in list_keys(attribute).items():
        assert key.doc.endswith("."), name
        assert key.type, name
        if name.endswith((".ms", ".bytes")):
            assert key.unit in name, name


def test_all_configs_are_offered_where_they_can_be_set() -> None:
    """Every config of topics, groups and metrics; of brokers, those that can change while they
    run, and secrets only in the argument for secrets."""
    found = {(kind, one.name): set(list_keys(one)) for kind, one in KEYED}
    assert found["kafka_topic", "config"] == set(TOPIC_KEYS)
    assert found["kafka_topic_config", "config"] == set(TOPIC_KEYS)
    assert found["kafka_group_config", "config"] == set(GROUP_KEYS)
    assert found["kafka_client_metrics", "config"] == set(METRICS_KEYS)
    dynamic = {n: k for n, k in broker_keys().items() if k.mode is not UpdateMode.READ_ONLY}
    broker = found["kafka_broker_config", "config"]
    assert broker == {name for name, key in dynamic.items() if not key.secret}
    assert found["kafka_broker_config", "secret_config"] == set(dynamic) - broker
    assert found["kafka_cluster_config", "config"] < broker
