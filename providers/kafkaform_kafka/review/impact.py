"""Finds out how much data a change destroys or copies, and which consumer groups it affects.

A figure that cannot be read is unknown, never estimated.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kafkaform.core.change import Action, Change, Impact
from kafkaform.core.finding import Harm
from kafkaform.core.resource import Fault, Identity
from kafkaform.core.text.quantity import render_amount
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ..cluster.brokers import live_nodes
from ..cluster.context import ClusterContext
from ..cluster.exchange import attempt
from ..cluster.figures import Spans, list_live_groups, read_offset_spans, read_old_spans
from ..kinds.topic import configs, moves
from ..kinds.topic import resource_type as topics
from ..kinds.topic.configs import Retention, find_new_retention
from ..protocol.config_values import parse_integer
from ..wire.cluster import read_log_sizes
from ..wire.topics import list_topics

MAX_GROUPS = 1_000
"""The most groups that are described; in larger clusters the consumer groups are unknown."""
PATIENCE = 5.0
"""Seconds to wait for a broker's log sizes."""

Sizes = Mapping[tuple[str, int], int]
"""Topic and partition -> bytes of its largest replica. The replicas of a partition differ by what
followers have not fetched, or leaders have not deleted yet."""


def assess(context: ClusterContext, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
    """What deletions and cuts of retention destroy, and what moves copy, for topics."""
    mine = [change for change in changes if change.identity.kind in (topics.KIND, configs.KIND)]
    found = _assess_deletions(context, mine)
    cuts, defaults = _assess_cuts(context, mine), _assess_defaults(context, changes)
    for more in (cuts, defaults, _assess_moves(context, mine)):
        found |= {i: _join_impacts(found[i], one) if i in found else one for i, one in more.items()}
    return found


def _join_impacts(one: Impact, other: Impact) -> Impact:
    figures = FrozenMap({**one.figures, **other.figures})
    return Impact(f"{one.text} {other.text}", figures)


# ── deletions ───────────────────────────────────────────────────────────────────────────


def _assess_deletions(context: ClusterContext, changes: Iterable[Change]) -> dict[Identity, Impact]:
    doomed = {
        change.identity: (change.before or EMPTY).get("partitions") or 0
        for change in changes
        if _is_deletion(change)
    }
    if not doomed:
        return {}
    counts = {identity.key: count for identity, count in doomed.items()}
    # In parallel, because each of them can wait for a broker that died.
    with ThreadPoolExecutor(3, "impact") as pool:
        sizes = pool.submit(_read_sizes, context, counts)
        spans = pool.submit(read_offset_spans, context, counts)
        groups = pool.submit(list_live_groups, context, counts.keys(), MAX_GROUPS)
    figures = _add_up(sizes.result(), counts), spans.result(), groups.result()
    return {identity: _make_impact(identity.key, *figures) for identity in doomed}


def _is_deletion(change: Change) -> bool:
    # A `kafka_topic_config` that is deleted leaves its topic, perhaps with a shorter retention.
    return change.identity.kind == topics.KIND and change.action is Action.DELETE


def _read_sizes(context: ClusterContext, counts: Mapping[str, int]) -> Sizes | None:
    """The size of each partition; None if a live broker does not report its sizes."""
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
    return dict(largest)


def _add_up(sizes: Sizes | None, counts: Mapping[str, int]) -> Mapping[str, int] | None:
    """Topic -> bytes, for topics with all partitions on live brokers."""
    if sizes is None:
        return None
    return {
        topic: sum(sizes[topic, number] for number in range(count))
        for topic, count in counts.items()
        if all((topic, number) in sizes for number in range(count))
    }


def _make_impact(
    name: str,
    sizes: Mapping[str, int] | None,
    spans: Mapping[str, int],
    groups: Mapping[str, tuple[str, ...]] | Fault | None,
) -> Impact:
    size = None if sizes is None else sizes.get(name)
    span = spans.get(name)
    unasked = groups.message if isinstance(groups, Fault) else ""
    known_groups = None if isinstance(groups, Fault) else groups
    readers = None if known_groups is None else ", ".join(known_groups.get(name, ()))
    figures: dict[str, Value] = {
        "bytes": size,
        "offsets": span,
        "groups": "none" if readers == "" else readers,
    }
    known = {key: value for key, value in figures.items() if value is not None}
    return Impact(_render_impact(size, span, readers), FrozenMap(known), unasked)


def _render_impact(size: int | None, span: int | None, readers: str | None) -> str:
    """`Deletes up to 5,000 records (1.2 MiB); no active consumer groups.`"""
    # Offsets also count transaction markers and records that compaction has removed.
    records = "an unknown number of" if span is None else f"up to {span:,}" if span else "no"
    volume = "size unknown" if size is None else render_amount(size, "bytes")
    groups = f"active consumer groups: {readers}" if readers else "no active consumer groups"
    if readers is None:
        groups = "active consumer groups unknown"
    return f"Deletes {records} records ({volume}); {groups}."


# ── less retention ──────────────────────────────────────────────────────────────────────


def _assess_cuts(context: ClusterContext, changes: Iterable[Change]) -> Mapping[Identity, Impact]:
    """How much is older or larger than the new limits now."""
    # An upper bound: a broker deletes whole segments, so a part of it stays for a while.
    limits = {
        change.identity: find_new_retention(change, context.facts)
        for change in changes
        if change.has_harm(Harm.DATA_LOSS) and not _is_deletion(change)
    }
    measured = _measure_cuts(context, {i.key: limit for i, limit in limits.items()})
    return {identity: measured[identity.key] for identity in limits if identity.key in measured}


def _assess_defaults(
    context: ClusterContext, changes: Iterable[Change]
) -> Mapping[Identity, Impact]:
    """How much of the topics that follow a lowered default goes."""
    impacts: dict[Identity, Impact] = {}
    for change in changes:
        limits: dict[str, Retention] = {}
        for finding in change.findings:
            names = finding.figures.get("topics")
            if finding.harm is not Harm.DATA_LOSS or not isinstance(names, tuple):
                continue
            value = next((item.after for item in change.paths if item.path == finding.path), None)
            number = parse_integer(str(value))
            if number is None or number < 0:
                continue
            ms = number if finding.rule == "topic-retention-cut" else None
            size = number if finding.rule == "topic-size-cut" else None
            for name in map(str, names):
                limit = limits.get(name, Retention(None, None))
                limits[name] = Retention(ms or limit.ms, size or limit.bytes)
        if limits:
            impacts[change.identity] = _add_impacts(_measure_cuts(context, limits))
    return impacts


def _add_impacts(impacts: Mapping[str, Impact]) -> Impact:
    """What goes of several topics together; an unknown part makes it a lower bound."""
    figures: dict[str, int] = defaultdict(int)
    for impact in impacts.values():
        for name, value in impact.figures.items():
            if isinstance(value, int):
                figures[name] += value
    if not figures:
        return Impact("Deletes an unknown amount: the brokers do not report sizes and offsets.")
    least = "" if all(impact.figures for impact in impacts.values()) else "at least "
    lost, whole = (render_amount(figures[name], "bytes") for name in ("bytes", "of_bytes"))
    text = f"Deletes about {least}{lost} of {whole}"
    if figures.get("of_offsets"):
        text += f" ({figures['offsets']:,} of {figures['of_offsets']:,} offsets)"
    return Impact(f"{text}.", FrozenMap(dict(figures)))


def _measure_cuts(context: ClusterContext, limits: Mapping[str, Retention]) -> Mapping[str, Impact]:
    """Topic -> how much of it is older or larger than its new limits now."""
    limits = {name: limit for name, limit in limits.items() if limit != Retention(None, None)}
    if not limits:
        return {}
    now = int(time.time() * 1000)
    cuts = {name: None if one.ms is None else now - one.ms for name, one in limits.items()}
    call = partial(list_topics, context.wire, sorted(cuts), context.timeout)
    rows = attempt("Metadata", call)
    if isinstance(rows, Fault):
        rows = ()
    counts = {row.name: len(row.replicas) for row in rows if row.code == 0}
    spans = read_old_spans(context, counts, cuts) if counts else {}
    sizes = _read_sizes(context, counts) if counts else None
    return {
        name: _make_cut_impact(name, limit, spans.get(name), sizes)
        for name, limit in limits.items()
    }


def _make_cut_impact(
    name: str, limit: Retention, span: Spans | None, sizes: Sizes | None
) -> Impact:
    if span is None or sizes is None:
        return Impact("Deletes an unknown amount: the brokers do not report sizes and offsets.")
    parts = {number: sizes.get((name, number), 0) for number in range(span.partitions)}
    by_age = {n: size * span.share(n) for n, size in parts.items()}
    over = {
        n: 0 if limit.bytes is None else max(0, size - limit.bytes) for n, size in parts.items()
    }
    lost = round(sum(max(by_age[n], over[n]) for n in parts))
    whole = sum(parts.values())
    figures: dict[str, Value] = {"bytes": lost, "of_bytes": whole}
    text = f"Deletes about {render_amount(lost, 'bytes')} of {render_amount(whole, 'bytes')}"
    # Offsets are counted by age. How many a size makes go is unknown.
    if limit.ms is not None and all(over[n] <= by_age[n] for n in parts):
        figures |= {"offsets": span.old, "of_offsets": span.all}
        text += f" ({span.old:,} of {span.all:,} offsets)"
    return Impact(f"{text}.", FrozenMap(figures))


# ── moves ───────────────────────────────────────────────────────────────────────────────


def _assess_moves(context: ClusterContext, changes: Iterable[Change]) -> Mapping[Identity, Impact]:
    """How much the moves copy, and how long that takes at most with the throttle of the provider
    block."""
    copies = {
        change.identity: moves.count_copies(change, context.facts)
        for change in changes
        if change.action is Action.UPDATE and change.has_harm(Harm.MOVE)
    }
    copies = {identity: one for identity, one in copies.items() if one}
    if not copies:
        return {}
    counts = {identity.key: max(one) + 1 for identity, one in copies.items()}
    sizes, rate = _read_sizes(context, counts), context.settings.reassignment_throttle
    return {i: _make_move_impact(i.key, one, sizes, rate) for i, one in copies.items()}


def _make_move_impact(
    name: str, copies: Mapping[int, int], sizes: Sizes | None, rate: int | None
) -> Impact:
    if sizes is None:
        return Impact("Copies an unknown amount: the brokers do not report sizes.")
    copied = sum(sizes.get((name, number), 0) * count for number, count in copies.items())
    text = f"Copies {render_amount(copied, 'bytes')}"
    if rate is None:
        return Impact(f"{text}, without a throttle.", FrozenMap(copied_bytes=copied))
    # The rate applies to each broker (KIP-73). If one broker copies everything, it takes this long;
    # if several share the work, less.
    seconds = -(-copied // rate)
    took = render_amount(seconds, "s") if seconds else "seconds"
    throttle = render_amount(rate, "bytes/s")
    return Impact(
        f"{text}, which takes at most {took} at the throttle of {throttle}.",
        FrozenMap(copied_bytes=copied, seconds=seconds),
    )
