"""Finds out what the deletion of topics destroys: records, bytes, and active consumer groups.

A figure that cannot be read is unknown, never estimated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kafkaform.core.change import Action, Change, Impact
from kafkaform.core.resource import Fault, Identity
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ..cluster.brokers import live_nodes
from ..cluster.context import ClusterContext
from ..cluster.exchange import attempt
from ..connection.native import Native
from ..kinds.topic import resource_type as topics
from ..protocol.sizes import render_size
from ..wire.cluster import read_log_sizes

MAX_GROUPS = 1_000
"""The most groups that are described; in larger clusters the consumer groups are unknown."""
PATIENCE = 5.0
"""Seconds to wait for a broker's log sizes."""


def assess(
    context: ClusterContext, native: Native, changes: Sequence[Change]
) -> Mapping[Identity, Impact]:
    """The impact of each topic deletion among the changes."""
    doomed = {
        change.identity: (change.before or EMPTY).get("partitions") or 0
        for change in changes
        if change.identity.kind == topics.KIND and change.action is Action.DELETE
    }
    if not doomed:
        return {}
    counts = {identity.key: count for identity, count in doomed.items()}
    # In parallel, because each of them can wait for a broker that died.
    with ThreadPoolExecutor(3, "impact") as pool:
        sizes = pool.submit(_read_sizes, context, counts)
        spans = pool.submit(native.read_offset_spans, counts)
        groups = pool.submit(native.list_live_groups, counts.keys(), MAX_GROUPS)
    figures = sizes.result(), spans.result(), groups.result()
    return {identity: _make_impact(identity.key, *figures) for identity in doomed}


def _read_sizes(context: ClusterContext, counts: Mapping[str, int]) -> Mapping[str, int] | None:
    """Topic -> bytes of one replica of each partition, for topics whose partitions are all on live
    brokers; None if a live broker does not answer."""
    timeout = min(context.timeout, PATIENCE)
    largest: dict[tuple[str, int], int] = defaultdict(int)
    for node in live_nodes(context):
        call = partial(read_log_sizes, context.wire, counts, node, timeout)
        logs = attempt("DescribeLogDirs", call, node)
        if isinstance(logs, Fault) or logs is None:
            return None
        for log in logs:
            place = (log.topic, log.partition)
            largest[place] = max(largest[place], log.size)
    return {
        topic: sum(largest[topic, number] for number in range(count))
        for topic, count in counts.items()
        if all((topic, number) in largest for number in range(count))
    }


def _make_impact(
    name: str,
    sizes: Mapping[str, int] | None,
    spans: Mapping[str, int],
    groups: Mapping[str, tuple[str, ...]] | None,
) -> Impact:
    size = None if sizes is None else sizes.get(name)
    span = spans.get(name)
    readers = None if groups is None else ", ".join(groups.get(name, ()))
    figures: dict[str, Value] = {
        "bytes": size,
        "offsets": span,
        "groups": "none" if readers == "" else readers,
    }
    known = {key: value for key, value in figures.items() if value is not None}
    return Impact(_render_impact(size, span, readers), FrozenMap(known))


def _render_impact(size: int | None, span: int | None, readers: str | None) -> str:
    """`Deletes up to 5,000 records (1.2 MB); no active consumer groups.`"""
    # Offsets also count transaction markers and records that compaction has removed.
    records = "an unknown number of" if span is None else f"up to {span:,}" if span else "no"
    volume = "size unknown" if size is None else render_size(size)
    groups = f"active consumer groups: {readers}" if readers else "no active consumer groups"
    if readers is None:
        groups = "active consumer groups unknown"
    return f"Deletes {records} records ({volume}); {groups}."
