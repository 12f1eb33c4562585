"""What a deletion would destroy: bytes, records and the groups that read the topic right now.

A figure that we may not see is left out and said to be unknown: a guess would look like a promise.
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
from ..wire.cluster import read_log_sizes

MAX_GROUPS = 1_000
"""Groups that are looked into; a cluster with more of them gets no `groups` figure."""
PATIENCE = 5.0
"""Seconds for a broker to tell its sizes."""


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
    with ThreadPoolExecutor(3, "impact") as pool:  # each may wait in vain for a broker that died
        sizes = pool.submit(_read_sizes, context, counts)
        spans = pool.submit(native.read_offset_spans, counts)
        groups = pool.submit(native.list_live_groups, counts.keys(), MAX_GROUPS)
    figures = sizes.result(), spans.result(), groups.result()
    return {identity: _make_impact(identity.key, *figures) for identity in doomed}


def _read_sizes(context: ClusterContext, counts: Mapping[str, int]) -> Mapping[str, int] | None:
    """Topic -> size of its data, counted once however many replicas it has, if all partitions are
    on live brokers; None if one of those does not tell."""
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
    readers = None if groups is None else ", ".join(groups.get(name, ())) or "none"
    figures: dict[str, Value] = {
        "bytes": None if sizes is None else sizes.get(name),
        "offsets": spans.get(name),
        "groups": readers,
    }
    size, span = (
        "an unknown number of" if figures[key] is None else f"{figures[key]:,}"
        for key in ("bytes", "offsets")
    )
    text = f"destroys {size} bytes in {span} offsets; live groups: {readers or 'unknown'}"
    known = {key: value for key, value in figures.items() if value is not None}
    return Impact(text, FrozenMap(known))
