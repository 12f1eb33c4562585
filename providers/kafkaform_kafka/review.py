"""What changes of one cluster do beyond themselves: the data that they destroy or copy, and the
rights that clients of their topics would lack.

Each request goes on a connection whose cluster is proven. Figures illustrate a plan, so what cannot
be read is unknown.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Impact
from kafkaform.core.finding import Harm
from kafkaform.core.resource import (
    CoverageKind,
    Depth,
    Facts,
    Fault,
    FaultClass,
    Identity,
    Sweep,
    Use,
)
from kafkaform.core.text import render_amount
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import MissingRight

from . import wire
from .authority.acl_changes import build_access, collect_acls, is_acl_change
from .authority.authorizer import AccessQuestion, AccessVerdict, Decision, Need, decide
from .kinds.context import ClusterContext, attempt, live_nodes
from .kinds.topic import configs, placement
from .kinds.topic import resource_type as topics
from .kinds.topic.configs import (
    BROKER_CONFIG,
    CLUSTER_CONFIG,
    RETENTION_KEYS,
    Retention,
    find_default_change,
    find_new_retention,
    read_retention,
)
from .protocol import acl as acls
from .protocol.acl import LISTED_GROUPS
from .wire.cluster import read_log_sizes
from .wire.topics import TopicRow, list_topics
from .wire.usage import CLASSIC, CONSUMER, EARLIEST, LATEST, GroupRow, list_groups, list_offsets

FIGURE_PATIENCE = 5.0
"""Seconds to wait for one broker. A dead one would delay the plan by the operation timeout."""
_LIVE = frozenset(
    {
        *("Stable", "PreparingRebalance", "CompletingRebalance"),
        *("Assigning", "Reconciling", "NotReady"),  # KIP-848, KIP-1071
    }
)
"""States of groups with members."""
_LATER = {14: "COORDINATOR_LOAD_IN_PROGRESS", 15: "COORDINATOR_NOT_AVAILABLE"}
"""Codes of a broker that will know its groups in a moment."""
_DEAD = "Dead"
"""What a broker says about a group that it does not know."""

Offsets = Mapping[tuple[str, int], int]
"""Topic and partition -> offset."""


class Spans(Struct, frozen=True):
    """The offsets of one topic, partition by partition."""

    counts: tuple[int, ...]
    """Between its first and its last record."""
    olds: tuple[int, ...]
    """Of these, how many are older than the time that was asked about."""

    @property
    def partitions(self) -> int:
        return len(self.counts)

    @property
    def all(self) -> int:
        return sum(self.counts)

    @property
    def old(self) -> int:
        return sum(self.olds)

    def share(self, number: int) -> float:
        """The old part of a partition's offsets, from 0 to 1."""
        return self.olds[number] / self.counts[number] if self.counts[number] else 0.0


def read_offset_spans(context: ClusterContext, topics: Mapping[str, int]) -> Mapping[str, int]:
    """Topic -> number of offsets between its first and its last record, over all partitions.
    topics: name -> number of partitions. A topic with a partition that does not answer is left
    out."""
    spans = read_old_spans(context, topics, dict.fromkeys(topics))
    return {name: span.all for name, span in spans.items()}


def read_old_spans(
    context: ClusterContext, counts: Mapping[str, int], cuts: Mapping[str, int | None]
) -> Mapping[str, Spans]:
    """Topic -> how many of its offsets are older than a time. counts: topic -> number of
    partitions; cuts: topic -> milliseconds since the epoch, None for no time. A topic with a
    partition that does not answer is left out."""
    call = partial(list_topics, context.wire, sorted(counts), _limit_time(context))
    rows = attempt("Metadata", call)
    if isinstance(rows, Fault):
        return {}
    topic_rows = {row.name: row for row in rows if not row.code}
    ends, starts = (_read_offsets(context, topic_rows, time) for time in (LATEST, EARLIEST))
    dated: dict[tuple[str, int], int] = {}
    # All topics with the same time in one request for each broker.
    for cut in {cuts[name] for name in counts}:
        if cut:
            dated_rows = {
                name: topic_rows[name]
                for name in counts
                if cuts[name] == cut and name in topic_rows
            }
            dated |= _read_offsets(context, dated_rows, cut)
    spans = {}
    for name, count in counts.items():
        cut = cuts[name]
        keys = [(name, number) for number in range(count)]
        if all(key in ends and key in starts and (not cut or key in dated) for key in keys):
            spans[name] = Spans(
                tuple(ends[key] - starts[key] for key in keys),
                tuple(_count_old(starts[key], ends[key], dated.get(key)) for key in keys),
            )
    return spans


def list_live_groups(
    context: ClusterContext, topics: Set[str], limit: int
) -> Mapping[str, tuple[str, ...]] | Fault | None:
    """Topic -> groups with a member that reads it now. None if a right to see groups is missing, or
    if there are more than `limit`; a fault if a broker could not be asked."""
    live: list[tuple[str, GroupRow]] = []
    for node in live_nodes(context):
        call = partial(list_groups, context.wire, node, _limit_time(context))
        rows = attempt("ListGroups", call, node)
        if isinstance(rows, Fault):
            return _choose_fault(rows)
        if rows.code in _LATER:
            return Fault(
                _LATER[rows.code],
                f"broker {node} cannot list its groups yet",
                FaultClass.NOT_APPLIED,
            )
        if rows.code:
            return None
        # Groups of the classic protocol also divide other work, such as that of Kafka Connect.
        live += [
            (node, row)
            for row in rows.groups
            if row.state in _LIVE and (row.protocol == CONSUMER or _find_type(row) != CLASSIC)
        ]
    return _find_readers(context, live, topics) if len(live) <= limit else None


def _choose_fault(fault: Fault) -> Fault | None:
    """The fault, None if it says that a right is missing, which no waiting would mend."""
    return None if fault.kind is FaultClass.PERMISSION else fault


def _find_type(row: GroupRow) -> str:
    return (row.type or CLASSIC).lower()


def _find_readers(
    context: ClusterContext, live: Sequence[tuple[str, GroupRow]], topics: Set[str]
) -> Mapping[str, tuple[str, ...]] | Fault | None:
    """Topic -> its groups. live: groups, each with the broker that coordinates it."""
    if not live:
        return {}
    groups_by_node: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node, row in live:
        groups_by_node[node, _find_type(row)].append(row.name)
    readers: dict[str, set[str]] = defaultdict(set)
    for (node, kind), names in groups_by_node.items():
        if kind not in wire.groups.DESCRIBERS:
            return None
        api, describe = wire.groups.DESCRIBERS[kind]
        call = partial(describe, context.wire, names, node, _limit_time(context))
        described = attempt(api, call, node)
        if isinstance(described, Fault):
            return _choose_fault(described)
        for name in names:
            group = described.get(name)
            if group is None or group.code or group.state == _DEAD:
                return None
            for topic in wire.groups.list_read_topics(group, kind) & topics:
                readers[topic].add(name)
    return {topic: tuple(sorted(groups)) for topic, groups in readers.items()}


def _read_offsets(context: ClusterContext, rows: Mapping[str, TopicRow], time: int) -> Offsets:
    """The offsets at a time, from the leaders of these topics."""
    led: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for name, row in rows.items():
        for number, leader in enumerate(row.leaders):
            if leader >= 0:
                led[str(leader)][name].append(number)
    offsets: dict[tuple[str, int], int] = {}
    for node, partitions in led.items():
        call = partial(list_offsets, context.wire, partitions, time, node, _limit_time(context))
        answer = attempt("ListOffsets", call, node)
        offsets |= {} if isinstance(answer, Fault) else answer
    return offsets


def _limit_time(context: ClusterContext) -> float:
    return min(context.timeout, FIGURE_PATIENCE)


def _count_old(start: int, end: int, first: int | None) -> int:
    """Offsets before the first record that is not older; -1 says that all are older."""
    if first is None:
        return 0
    return end - start if first < 0 else max(0, first - start)


MAX_GROUPS = 1_000
"""The most groups that are described; in larger clusters the consumer groups are unknown."""
PATIENCE = 5.0
"""Seconds to wait for a broker's log sizes."""

Sizes = Mapping[tuple[str, int], int]
"""Topic and partition -> bytes of its largest replica. The replicas of a partition differ by what
followers have not fetched, or leaders have not deleted yet."""


def assess(context: ClusterContext, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
    """What deletions and cuts of retention destroy, and what moves copy, for topics, and for the
    topics that follow a changed default."""
    of_topics = [
        change for change in changes if change.identity.kind in (topics.KIND, configs.KIND)
    ]
    impacts = _assess_deletions(context, of_topics)
    for group in (_assess_cuts(context, of_topics), _assess_moves(context, of_topics)):
        impacts |= {
            identity: _join_impacts(impacts[identity], impact) if identity in impacts else impact
            for identity, impact in group.items()
        }
    return {**impacts, **_assess_defaults(context, changes)}


def _join_impacts(first: Impact, second: Impact) -> Impact:
    figures = FrozenMap({**first.figures, **second.figures})
    return Impact(f"{first.text} {second.text}", figures)


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
        sizes = pool.submit(read_sizes, context, counts)
        spans = pool.submit(read_offset_spans, context, counts)
        groups = pool.submit(list_live_groups, context, counts.keys(), MAX_GROUPS)
    figures = _add_up(sizes.result(), counts), spans.result(), groups.result()
    return {identity: _make_impact(identity.key, *figures) for identity in doomed}


def _is_deletion(change: Change) -> bool:
    # A `kafka_topic_config` that is deleted leaves its topic, perhaps with a shorter retention.
    return change.identity.kind == topics.KIND and change.action is Action.DELETE


def read_sizes(
    context: ClusterContext, counts: Mapping[str, int], nodes: Sequence[str] = ()
) -> Sizes | None:
    """The size of each partition; None if a live broker does not report its sizes. nodes: only the
    replicas of these brokers."""
    timeout = min(context.timeout, PATIENCE)
    largest: dict[tuple[str, int], int] = defaultdict(int)
    for node in nodes or live_nodes(context):
        call = partial(read_log_sizes, context.wire, counts, node, timeout)
        logs = attempt("DescribeLogDirs", call, node)
        if isinstance(logs, Fault) or logs is None:
            return None
        for log in logs:
            partition = (log.topic, log.partition)
            largest[partition] = max(largest[partition], log.size)
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
    measured = {key: value for key, value in figures.items() if value is not None}
    return Impact(_render_impact(size, span, readers), FrozenMap(measured), unasked)


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
    limits = {
        identity: retention
        for identity, retention in limits.items()
        if retention != Retention(None, None)
    }
    if not limits:
        return {}
    lots = _measure_cuts(context, {identity.key: limit for identity, limit in limits.items()})
    return {identity: _make_cut_impact((lots.get(identity.key),)) for identity in limits}


class _Cut(Struct, frozen=True):
    """What new limits delete of one topic."""

    bytes: int
    of_bytes: int
    offsets: int | None
    """None if unknown: offsets are counted by age, and not how many of them a size makes go."""
    of_offsets: int


def _measure_cuts(
    context: ClusterContext, limits: Mapping[str, Retention], nodes: Sequence[str] = ()
) -> Mapping[str, _Cut]:
    """Topic -> what goes; without topics whose brokers do not answer. nodes: only the replicas of
    these brokers."""
    now = int(time.time() * 1000)
    cuts = {name: None if limit.ms is None else now - limit.ms for name, limit in limits.items()}
    call = partial(list_topics, context.wire, sorted(cuts), context.timeout)
    rows = attempt("Metadata", call)
    if isinstance(rows, Fault):
        return {}
    counts = {row.name: len(row.replicas) for row in rows if row.code == 0}
    spans = read_old_spans(context, counts, cuts) if counts else {}
    sizes = read_sizes(context, counts, nodes) if counts else None
    if sizes is None:
        return {}
    lots = {name: _measure_cut(name, limits[name], span, sizes) for name, span in spans.items()}
    if not nodes:
        return lots
    # The offsets are those of all partitions, also of those that these brokers do not have.
    return {name: replace(lot, offsets=None) for name, lot in lots.items()}


def _measure_cut(name: str, limit: Retention, span: Spans, sizes: Sizes) -> _Cut:
    partition_sizes = {number: sizes.get((name, number), 0) for number in range(span.partitions)}
    by_age = {number: size * span.share(number) for number, size in partition_sizes.items()}
    over = {
        number: 0 if limit.bytes is None else max(0, size - limit.bytes)
        for number, size in partition_sizes.items()
    }
    counted = limit.ms is not None and all(
        over[number] <= by_age[number] for number in partition_sizes
    )
    return _Cut(
        round(sum(max(by_age[number], over[number]) for number in partition_sizes)),
        sum(partition_sizes.values()),
        span.old if counted else None,
        span.all,
    )


def _make_cut_impact(lots: Sequence[_Cut | None]) -> Impact:
    """What is deleted of these topics together; None for a topic that could not be measured."""
    cuts = [lot for lot in lots if lot is not None]
    if not cuts or len(cuts) < len(lots):
        return Impact("Deletes an unknown amount: the brokers do not report sizes and offsets.")
    cut_bytes, whole = sum(cut.bytes for cut in cuts), sum(cut.of_bytes for cut in cuts)
    figures: dict[str, Value] = {"bytes": cut_bytes, "of_bytes": whole}
    text = f"Deletes about {render_amount(cut_bytes, 'bytes')} of {render_amount(whole, 'bytes')}"
    offsets = [cut.offsets for cut in cuts if cut.offsets is not None]
    if len(offsets) == len(cuts):
        old, every = sum(offsets), sum(cut.of_offsets for cut in cuts)
        figures |= {"offsets": old, "of_offsets": every}
        text += f" ({old:,} of {every:,} offsets)"
    return Impact(f"{text}.", FrozenMap(figures))


# ── less retention for all topics that follow a default ─────────────────────────────────


def _assess_defaults(
    context: ClusterContext, changes: Iterable[Change]
) -> Mapping[Identity, Impact]:
    """How much a lower default deletes of the topics that follow it."""
    impacts: dict[Identity, Impact] = {}
    for change in changes:
        if change.identity.kind in (CLUSTER_CONFIG, BROKER_CONFIG):
            limits = list_follower_limits(change, context.facts)
            nodes = (change.identity.key,) if change.identity.kind == BROKER_CONFIG else ()
            if limits:
                lots = _measure_cuts(context, limits, nodes)
                impacts[change.identity] = _make_cut_impact([lots.get(name) for name in limits])
    return impacts


def list_follower_limits(change: Change, facts: Facts) -> Mapping[str, Retention]:
    """Topic -> its new limits, of the topics that findings about retention name."""
    defaults = find_default_change(change, facts)
    keys = {defaults.paths[key]: key for key in RETENTION_KEYS if key in defaults.paths}
    values: dict[str, dict[str, str]] = defaultdict(dict)
    for finding in change.findings:
        if finding.harm is not Harm.DATA_LOSS:
            continue
        # What begins to expire does so by the limits of each topic, others by the new default.
        own = dict(text.split("=", 1) for text in finding.figures.get("limits", ()))
        if not own and finding.path in keys:
            own = {keys[finding.path]: defaults.after[keys[finding.path]]}
        for name in finding.figures.get("topics", ()):
            values[name] |= own
    limits = {name: read_retention(own) for name, own in values.items()}
    return {name: limit for name, limit in limits.items() if limit != Retention(None, None)}


# ── moves ───────────────────────────────────────────────────────────────────────────────


def _assess_moves(context: ClusterContext, changes: Iterable[Change]) -> Mapping[Identity, Impact]:
    """How much the moves copy, and how long that takes at most with the throttle of the provider
    block."""
    copies = {
        change.identity: placement.count_copies(change, context.facts)
        for change in changes
        if change.action is Action.UPDATE and change.has_harm(Harm.MOVE)
    }
    copies = {identity: copied for identity, copied in copies.items() if copied}
    if not copies:
        return {}
    counts = {identity.key: max(copied) + 1 for identity, copied in copies.items()}
    sizes, rate = read_sizes(context, counts), context.settings.reassignment_throttle
    return {i: _make_move_impact(i.key, copied, sizes, rate) for i, copied in copies.items()}


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


NEEDS: Mapping[str, Depth] = {acls.KIND: Depth.FULL}
"""All ACLs of the cluster."""
_RESOURCE_TYPES = {topics.KIND: "Topic", LISTED_GROUPS: "Group"}
"""What is used -> its resource type in ACLs."""
_DOUBTS: Mapping[Need, str] = {
    Need.SUPER_USERS: "it is a super user (authorizer { super_users } in the provider block)",
    Need.ALLOW_IF_NO_ACL: "resources without ACLs are open (authorizer { allow_if_no_acl } in the "
    "provider block)",
    Need.HOST: "an ACL for single hosts permits it",
}
"""Missing fact -> what would permit it."""


def find_missing_rights(
    principal: str,
    uses: Sequence[Use],
    changes: Sequence[Change],
    sweeps: Mapping[str, Sweep],
    facts: Facts,
) -> Sequence[MissingRight]:
    """See `kafkaform.provider.contract.Provider`."""
    sweep = sweeps.get(acls.KIND)
    if sweep is None or sweep.coverage.kind is not CoverageKind.COMPLETE:
        return ()
    plan = collect_acls([change for change in changes if is_acl_change(change)], sweep)
    access = build_access(plan.after, facts)
    decisions = [
        (use, inquiry, decide(access, inquiry)) for use, inquiry in _list_questions(principal, uses)
    ]
    return [
        MissingRight(
            use,
            f"{question.operation} on {question.resource_type} {question.resource_name}",
            _describe_doubt(decision),
        )
        for use, question, decision in decisions
        if decision.verdict is not AccessVerdict.ALLOWED
    ]


def _list_questions(principal: str, uses: Sequence[Use]) -> Iterator[tuple[Use, AccessQuestion]]:
    for use in uses:
        kind = _RESOURCE_TYPES.get(use.kind)
        for right in use.rights if kind else ():
            yield use, AccessQuestion(principal, None, right, str(kind), use.key)


def _describe_doubt(decision: Decision) -> str:
    if decision.verdict is AccessVerdict.DENIED:
        return ""
    return " or ".join(_DOUBTS[need] for need in decision.needs if need in _DOUBTS)
