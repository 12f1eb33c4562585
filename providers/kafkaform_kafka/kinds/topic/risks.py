"""What a change of a topic can harm: its records, and the clients that use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafkaform.core.change import Action, Change, Path
from kafkaform.core.resource import Facts
from kafkaform.core.risk import Risk, RiskKind
from kafkaform.core.value import EMPTY, FrozenMap

from ...protocol.config_keys import TOPIC_KEYS
from .config_risks import find_config_risks


def find_topic_risks(change: Change, facts: Facts) -> Sequence[Risk]:
    """The risks of one change of a `kafka_topic`."""
    if change.action is Action.DELETE:
        return (Risk(RiskKind.DATA_LOSS, "the topic and all its records are deleted"),)
    if change.action is not Action.UPDATE:
        return ()
    before, after = change.before or EMPTY, change.after or EMPTY
    return (
        *find_config_risks(change, facts),
        *_find_growth_risks(before, after),
        *_find_replica_risks(before, after),
    )


def find_topic_config_risks(change: Change, facts: Facts) -> Sequence[Risk]:
    """The risks of one change of a `kafka_topic_config`, whose topic others declare."""
    return tuple(find_config_risks(change, facts))


def find_topic_unit(path: Path) -> str:
    """The unit of a topic's value: `ms` for `config.retention.ms`."""
    key = TOPIC_KEYS.get(path[1]) if len(path) == 2 and path[0] == "config" else None
    return key.unit if key is not None else ""


def _find_growth_risks(before: FrozenMap, after: FrozenMap) -> Iterator[Risk]:
    live, wanted = before.get("partitions"), after.get("partitions")
    if isinstance(live, int) and isinstance(wanted, int) and wanted > live:
        yield Risk(
            RiskKind.ORDERING,
            f"partitions grow from {live} to {wanted}: records of one key may go to another "
            "partition than before, and partitions cannot be removed again",
            ("partitions",),
        )


def _find_replica_risks(before: FrozenMap, after: FrozenMap) -> Iterator[Risk]:
    live, wanted = before.get("replication_factor"), after.get("replication_factor")
    if isinstance(live, int) and isinstance(wanted, int) and wanted < live:
        left = "1 replica is" if wanted == 1 else f"{wanted} replicas are"
        yield Risk(
            RiskKind.AVAILABILITY,
            f"{left} left of {live}: fewer brokers may fail",
            ("replication_factor",),
        )
