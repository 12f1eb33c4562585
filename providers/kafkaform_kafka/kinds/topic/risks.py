"""Finds the risks of topic changes, for records and for clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import Risk, RiskKind
from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY, FrozenMap

from . import moves
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
        *moves.find_risks(change, facts),
    )


def _find_growth_risks(before: FrozenMap, after: FrozenMap) -> Iterator[Risk]:
    live, wanted = before.get("partitions"), after.get("partitions")
    if isinstance(live, int) and isinstance(wanted, int) and wanted > live:
        yield Risk(
            RiskKind.ORDERING,
            f"partitions grow from {live} to {wanted}: new records of a key can go to another "
            "partition than older ones, and the partitions cannot be removed again",
            ("partitions",),
        )


def _find_replica_risks(before: FrozenMap, after: FrozenMap) -> Iterator[Risk]:
    live, wanted = before.get("replication_factor"), after.get("replication_factor")
    if isinstance(live, int) and isinstance(wanted, int) and wanted < live:
        # In Kafka a replication factor of N survives the loss of N - 1 brokers.
        yield Risk(
            RiskKind.AVAILABILITY,
            f"only {wanted} of {live} replicas {'stays' if wanted == 1 else 'stay'}: fewer brokers "
            "can fail without loss",
            ("replication_factor",),
        )
