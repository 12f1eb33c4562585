"""Builds changes the way the planner does, for tests of pure functions."""

from __future__ import annotations

from typing import Any

from kafkaform.core.change import Action, Change, PathChange
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.value import EMPTY, FrozenMap, freeze
from kafkaform_kafka.protocol.cluster_facts import KafkaFacts

FACTS = Facts("cluster", ("1", "2", "3"), "User:admin", EMPTY)


def frozen(attributes: dict[str, Any] | None) -> FrozenMap | None:
    """Frozen attributes; None stays None."""
    return None if attributes is None else FrozenMap(freeze(attributes))  # type: ignore[arg-type]


def facts(**values: Any) -> Facts:
    """Facts of a cluster with three brokers and these values."""
    return Facts("cluster", ("1", "2", "3"), "User:admin", KafkaFacts(**values))


def topic(name: str = "orders", **attributes: Any) -> dict[str, Any]:
    """A whole topic with usual attributes."""
    usual = {
        "name": name,
        "partitions": 3,
        "replication_factor": 2,
        "replica_assignment": None,
        "config": {},
    }
    return {**usual, **attributes}


def change(
    action: Action,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    *,
    kind: str = "kafka_topic",
    incarnation: str | None = "id-1",
    extra: tuple[PathChange, ...] = (),
) -> Change:
    """A change with the paths that differ, maps key by key. extra: bookkeeping paths."""
    old, new = frozen(before), frozen(after)
    whole = new or old or EMPTY
    return Change(
        Identity("kafka", kind, str(whole.get("name") or whole.get("topic"))),
        f"{kind}.x",
        action,
        old,
        new,
        (*_paths(old or EMPTY, new or EMPTY, action), *extra),
        incarnation=incarnation,
    )


def _paths(old: FrozenMap, new: FrozenMap, action: Action) -> list[PathChange]:
    found = []
    for name in {**old, **new}:
        one, two = old.get(name), new.get(name)
        if isinstance(one or two, FrozenMap):
            one, two = one or EMPTY, two or EMPTY
            found += [
                PathChange((name, key), one.get(key), two.get(key))
                for key in {**one, **two}
                if one.get(key) != two.get(key)
            ]
        elif one != two and (two is not None or action is Action.DELETE):
            found.append(PathChange((name,), one, two))
    return found
