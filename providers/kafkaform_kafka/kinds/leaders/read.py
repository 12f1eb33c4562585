"""Reads the leaders of partitions from Metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import FrozenMap

from ...cluster.context import ClusterContext
from ...wire.topics import TopicRow
from ..topic.read import read_topic_rows
from . import resource_type as leaders


def sweep_leaders(_: ClusterContext, depth: Depth) -> Sweep:
    """Always empty: leaders are only read by the name of their topic."""
    return Sweep(leaders.KIND, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def read_leaders(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """The leaders of these topics. node: the broker to ask, None for any."""
    rows, readings = read_topic_rows(context, ids, node)
    return {
        **readings,
        **{identity: _observe_leaders(identity, row) for identity, row in rows.items()},
    }


def _observe_leaders(identity: Identity, row: TopicRow) -> Observed:
    first = {str(n): replicas[0] for n, replicas in enumerate(row.replicas) if replicas}
    # A preferred election (KIP-460) fails with error 80 unless the first replica is in sync.
    ready = (n for n, broker in first.items() if broker in row.in_sync[int(n)])
    attributes = leaders.make_attributes(row.name, dict(enumerate(row.leaders)))
    return Observed(
        identity,
        attributes,
        row.topic_id,
        details=FrozenMap(preferred=FrozenMap(first), ready=tuple(ready)),
        foreign=leaders.find_foreign_paths(attributes),
    )
