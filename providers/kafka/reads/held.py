"""Asks the cluster what we may do: with itself, and with topics by name."""

from __future__ import annotations

from collections.abc import Sequence, Set

from kafkaform.core.change import Step
from kafkaform.core.resource import Fault

from ..context import Context
from ..exchange import attempt
from ..preflight import Held, named, topics_of
from ..wire.cluster import cluster_operations
from ..wire.topics import list_topics


def read_held(context: Context, steps: Sequence[Step]) -> Held:
    """Our rights as far as these steps need them and the cluster tells them. Never raises."""
    operations = attempt(
        "DescribeCluster", lambda: cluster_operations(context.wire, context.timeout)
    )
    cluster = None if isinstance(operations, Fault) else named(operations)
    names = topics_of(steps)
    if not names:
        return Held(cluster, {})
    rows = attempt(
        "Metadata", lambda: list_topics(context.wire, names, context.timeout, operations=True)
    )
    if isinstance(rows, Fault):
        return Held(cluster, {})
    # A topic without any operation tells nothing: it is not there, or hidden.
    known: dict[str, Set[str]] = {
        row.name: frozenset(named(row.operations) or ())
        for row in rows
        if row.code == 0 and row.operations
    }
    return Held(cluster, known)
