"""What people read about configs while they write them: meaning, default, unit and valid values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

from kafkaform.core.schema import KeySchema

from .broker_keys import UpdateMode, broker_keys
from .config_keys import (
    BROKER_DEFAULTS,
    BROKER_TIMES,
    GROUP_KEYS,
    METRICS_KEYS,
    TOPIC_KEYS,
    ConfigKey,
)

_MODES: Mapping[UpdateMode, str] = {
    UpdateMode.CLUSTER: "It can be set for one broker or for all brokers.",
    UpdateMode.BROKER: "It can be set for one broker only.",
    UpdateMode.LISTENER: "It can be set for a listener of one broker, with the prefix "
    "listener.name.NAME.",
}


def render_range(key: ConfigKey) -> str:
    """The valid numbers with their unit: `from 0 ms`; empty for other types."""
    if key.kind not in ("int", "long", "double"):
        return ""
    low = "" if key.low is None else f"from {key.low}"
    high = "" if key.high is None else f"to {key.high}"
    also = "".join(f"or {number}" for number in key.also)
    return " ".join(phrase for phrase in (low, high, also, key.unit) if phrase)


def make_key_schema(key: ConfigKey, doc: str) -> KeySchema:
    """A config for people."""
    choices = ("true", "false") if key.kind == "boolean" else key.choices
    since = f"Since Kafka {key.since}." if key.since else ""
    text = " ".join(sentence for sentence in (doc, since) if sentence)
    return KeySchema(key.name, key.kind, text, key.default, key.unit, render_range(key), choices)


def list_topic_keys() -> tuple[KeySchema, ...]:
    """The configs of topics."""
    return tuple(make_key_schema(key, key.meaning) for key in TOPIC_KEYS.values())


def list_group_keys() -> tuple[KeySchema, ...]:
    """The configs of groups."""
    return tuple(make_key_schema(key, key.meaning) for key in GROUP_KEYS.values())


def list_metrics_keys() -> tuple[KeySchema, ...]:
    """The configs of subscriptions to client metrics."""
    return tuple(make_key_schema(key, key.meaning) for key in METRICS_KEYS.values())


@cache
def _list_broker_keys(modes: frozenset[UpdateMode], secret: bool) -> tuple[KeySchema, ...]:
    return tuple(
        make_key_schema(broker_key.key, _find_broker_page(name, broker_key.mode))
        for name, broker_key in broker_keys().items()
        if broker_key.mode in modes and broker_key.secret is secret
    )


_CLUSTER = frozenset({UpdateMode.CLUSTER})
_BROKER = frozenset({UpdateMode.CLUSTER, UpdateMode.BROKER, UpdateMode.LISTENER})
list_cluster_keys = partial(_list_broker_keys, _CLUSTER, False)
"""The configs of all brokers."""
list_broker_keys = partial(_list_broker_keys, _BROKER, False)
"""The configs of one broker."""
list_broker_secrets = partial(_list_broker_keys, _BROKER, True)
"""The configs of one broker whose values it never reveals."""


@cache
def _get_default_setters() -> Mapping[str, str]:
    """Config of brokers -> the config of topics whose default it is."""
    times = {
        broker_config: topic
        for topic, sources in BROKER_TIMES.items()
        for broker_config, _ in sources
    }
    return {**{broker: topic for topic, broker in BROKER_DEFAULTS.items()}, **times}


def _find_broker_page(name: str, mode: UpdateMode) -> str:
    topic = _get_default_setters().get(name)
    doc = f"The default of the topics' {topic}. {TOPIC_KEYS[topic].meaning} " if topic else ""
    return doc + _MODES[mode]
