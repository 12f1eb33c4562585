"""The defaults of topics that cluster and brokers set, before and after a change of these.

What takes effect for a topic is its own override, else the broker's value, else that of all
brokers, else what server.properties say, else Kafka's default (KIP-226).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from msgspec import Struct

from kafkaform.core.change import Action, Change, Path, PathChange
from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY

from ...protocol.broker_keys import UpdateMode, find_broker_key
from ...protocol.config_keys import ALL_TOPIC_KEYS, TOPIC_COUNTERPARTS
from .configs import list_kafka_defaults

CLUSTER_CONFIG, BROKER_CONFIG = "kafka_cluster_config", "kafka_broker_config"
_WRITES = (Action.CREATE, Action.UPDATE, Action.DELETE)


class DefaultChange(Struct, frozen=True):
    """What becomes of the defaults of topics."""

    before: Mapping[str, str]
    """All topic configs without an override, before the change."""
    after: Mapping[str, str]
    """The same after the change."""
    paths: Mapping[str, Path]
    """Topic config -> the path of the broker config that changes its default."""
    unset_before: frozenset[str]
    """Topic configs whose default neither cluster nor broker sets before the change."""
    unset_after: frozenset[str]
    """The same after the change."""


@cache
def list_default_keys() -> Mapping[str, str]:
    """Broker config -> the topic config whose default it sets, of those that can be changed
    without a restart."""
    return {
        name: topic_key
        for name, topic_key in TOPIC_COUNTERPARTS.items()
        if topic_key in ALL_TOPIC_KEYS
        and (row := find_broker_key(name)) is not None
        and row.mode is UpdateMode.CLUSTER
    }


def list_default_paths(change: Change) -> Mapping[str, PathChange]:
    """Topic config -> what changes its default."""
    if change.action not in _WRITES or change.identity.kind not in (CLUSTER_CONFIG, BROKER_CONFIG):
        return {}
    keys = list_default_keys()
    return {
        keys[item.path[1]]: item
        for item in change.paths
        if len(item.path) == 2 and item.path[0] == "config" and item.path[1] in keys
    }


def find_default_change(
    change: Change, facts: Facts, overridden: Iterable[str] = ()
) -> DefaultChange:
    """The defaults on both sides of a change of the configs of cluster or broker.

    overridden: topic configs whose default some broker overrides, so that the default of one broker
    says nothing about that of the others.
    """
    kafka = list_kafka_defaults(facts)
    current = {**kafka, **(facts.values.get("topic_defaults") or EMPTY)}
    current |= {key: kafka[key] for key in overridden}
    items = list_default_paths(change)
    before = {k: str(item.before) for k, item in items.items() if item.before is not None}
    after = {k: str(item.after) for k, item in items.items() if item.after is not None}
    below = {
        key: kafka[key] if item.effective is None else str(item.effective)
        for key, item in items.items()
        # Without a value of its own before, what takes effect now is what takes effect below it.
        if item.before is not None
    }
    return DefaultChange(
        {**current, **before},
        {**current, **below, **after},
        {key: item.path for key, item in items.items()},
        frozenset(items.keys() - before.keys()),
        frozenset(items.keys() - after.keys()),
    )
