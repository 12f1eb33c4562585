"""Read how a cluster is used, for snapshots: the offsets of its topics, what groups have read, and
the cluster itself.

Nobody declares these objects. They are listings like all others, with a coverage, under the kinds
that landing files have for them. A snapshot records an object that is missing from a complete
listing as deleted, so it is proved that listings are complete. Kafka omits topics that we are not
allowed to describe, without an error. Whether a name is hidden depends only on the ACL patterns
that it matches (StandardAuthorizer). So one made-up name for each pattern, and one name that
matches none, show what the answer for every other name would be.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import TypeVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kafkaform.core.landing import CLUSTER, DISK_USAGE, GROUP_USAGE, LOGIN, TOPIC_USAGE
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Fault,
    Identity,
    Observed,
    Sweep,
)
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.contract import Session

from ..capacity.readings import DiskReading, read_disks
from ..connection.certificates import read_own_certificate
from ..kinds.config import resource_type as config_kinds
from ..kinds.context import ClusterContext, attempt, find_answering_node
from ..kinds.topic import resource_type as topics
from ..kinds.topic.requests import UNKNOWN_TOPIC
from ..protocol import acl as acls
from ..protocol.cluster_facts import (
    FEATURE_MISSING,
    UNSUPPORTED_VERSION,
    KafkaFacts,
    find_release,
)
from ..protocol.faults import fault_of
from ..session import KafkaSession
from ..wire import usage as wire
from ..wire.cluster import describe_cluster, read_certificate, read_versions
from ..wire.configs import describe_configs
from ..wire.describe import describe_brokers
from ..wire.security import describe_tokens
from ..wire.topics import TopicRow, list_topics
from ..wire.usage import Place
from .source import DescribeSource

IN_FLIGHT = 4
TOPICS_AT_ONCE = 2_000
GROUPS_AT_ONCE = 500
_AUTHORIZER = {
    "authorizer": "authorizer.class.name",
    "allow_if_no_acl": "allow.everyone.if.no.acl.found",
}
"""Attribute of the cluster -> the brokers' setting, which most brokers do not report."""

Row = tuple[str, Mapping[str, Value]]
"""Key and attributes."""
T = TypeVar("T")
A = TypeVar("A")
_PAUSES = (0.0, 0.1, 0.4)
"""Seconds before each further read of topics on which the brokers do not agree yet."""
_GROUPS = "__consumer_offsets"
"""Kafka's topic of groups. The leader of one of its partitions coordinates the groups in it."""
_EMPTY, _DEAD = "Empty", "Dead"
"""States of groups without members."""
_COMPLETE, _VISIBLE = Coverage(CoverageKind.COMPLETE), Coverage(CoverageKind.VISIBLE_ONLY)


def read_usage(
    session: KafkaSession, topics: Sweep | None = None, listed_acls: Sweep | None = None
) -> tuple[Sweep, ...]:
    """The cluster, its disks, and the use of its topics and of its groups. topics: a listing of
    topics, whose coverage holds here, too; listed_acls: one of ACLs, as `sharpen_sweeps` returns
    it. If a request fails, the sweep of its kind fails. Disks are left out if no broker can tell
    them."""
    context = session.context
    rows = attempt("Metadata", lambda: list_topics(context.wire, None, context.timeout))
    coverage = _VISIBLE if topics is None else topics.coverage
    disks = read_disks(DescribeSource(context, session.sweep), map(int, context.facts.nodes))
    attributes = {
        **_read_cluster(context),
        "leaders": _count_leaders(context, rows)
        if not isinstance(rows, Fault) and coverage.kind is CoverageKind.COMPLETE
        else None,
        "has_authorizer": False
        if listed_acls is not None and _fault_code(listed_acls) == SWITCHED_OFF
        else None,
    }
    cluster = _make_sweep(context, CLUSTER, [(context.facts.scope_id, attributes)], _COMPLETE)
    if isinstance(rows, Fault):
        failed = (_make_failed_sweep(kind, rows) for kind in (TOPIC_USAGE, GROUP_USAGE))
        return (cluster, *_sweep_disks(context, disks), *failed)
    logs = _read_logs(context, [row for row in rows if row.code == 0])
    return (
        cluster,
        *_sweep_disks(context, disks),
        _sweep_topics(context, logs, disks, coverage),
        _sweep_groups(context, rows, logs.ends),
    )


def _make_sweep(
    context: ClusterContext,
    kind: str,
    rows: Iterable[Row],
    coverage: Coverage,
) -> Sweep:
    items = tuple(
        Observed(Identity(context.instance, kind, key), FrozenMap(values)) for key, values in rows
    )
    return Sweep(kind, Depth.FULL, items, coverage, whole=True)


def _make_failed_sweep(kind: str, fault: Fault) -> Sweep:
    return Sweep(kind, Depth.FULL, (), Coverage(CoverageKind.FAILED, fault), whole=True)


def _map_parallel(
    context: ClusterContext, call: Callable[[A], T], arguments: Iterable[A]
) -> list[T]:
    with ThreadPoolExecutor(IN_FLIGHT, "usage") as pool:
        return list(pool.map(call, arguments))


# ── the cluster ─────────────────────────────────────────────────────────────────────────


def _read_cluster(context: ClusterContext) -> Mapping[str, Value]:
    """Attributes of the cluster: number of live brokers, `nodes` with their ids, `racks` by id,
    …"""
    cluster = KafkaFacts.of(context.facts)
    return {
        "brokers": len(context.facts.nodes),
        "nodes": context.facts.nodes,
        "racks": cluster.racks,
        "quota_callback": cluster.quota_callback,
        "metadata_version": cluster.metadata_version,
        "default_replication_factor": cluster.default_replication_factor,
        "default_partitions": cluster.default_partitions,
        "versions": FrozenMap(zip(context.facts.nodes, _read_versions(context), strict=True)),
        "certificates": _read_certificates(context),
        "delegation_tokens": _read_tokens(context),
        **_read_authorizer(context),
    }


def _read_certificates(context: ClusterContext) -> FrozenMap:
    """Id of each broker that answers with TLS -> subject, begin and end of its certificate; and
    `login` -> those of our own, with the principal that we are."""
    answer = attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
    hosts = {} if isinstance(answer, Fault) or not context.settings.tls else answer.hosts
    certificates = _map_parallel(
        context, lambda address: read_certificate(context.settings, *address), hosts.values()
    )
    shown = {
        node: FrozenMap(to_builtins(certificate))
        for node, certificate in zip(hosts, certificates, strict=True)
        if certificate is not None
    }
    own = read_own_certificate(context.settings)
    if own is not None:
        shown[LOGIN] = FrozenMap({**to_builtins(own), "owner": context.settings.principal})
    return FrozenMap(shown)


def _read_tokens(context: ClusterContext) -> FrozenMap:
    """Id of each delegation token that we may see -> its owner and times, in milliseconds since
    1970. Its secret is not among them."""
    answer = attempt(
        "DescribeDelegationToken", lambda: describe_tokens(context.wire, context.timeout)
    )
    rows = () if isinstance(answer, Fault) or answer.code else answer.rows
    return FrozenMap(
        {
            row.token_id: FrozenMap(owner=row.owner, begins=row.issued, ends=row.expires)
            for row in rows
        }
    )


def _read_versions(context: ClusterContext) -> list[str | None]:
    """The release of each live broker; None if it does not answer or is no Apache Kafka."""

    def ask(node: str) -> str | None:
        call = partial(read_versions, context.wire, context.timeout, node)
        answer = attempt("ApiVersions", call, node)
        return None if isinstance(answer, Fault) else find_release(answer.apis, answer.level)

    return _map_parallel(context, ask, context.facts.nodes)


def _count_leaders(context: ClusterContext, rows: Iterable[TopicRow]) -> FrozenMap:
    """Id of each live broker -> how many partitions it leads."""
    counts = Counter(leader for row in rows for leader in row.leaders)
    return FrozenMap({node: counts[int(node)] for node in context.facts.nodes})


def _read_authorizer(context: ClusterContext) -> Mapping[str, Value]:
    node = find_answering_node(context)
    rows = attempt(
        "DescribeConfigs",
        lambda: describe_configs(
            context.wire,
            "broker",
            [node],
            context.timeout,
            keys=tuple(_AUTHORIZER.values()),
            node=node,
        ),
        node,
    )
    if isinstance(rows, Fault) or node not in rows:
        return {}
    settings = {e.name: e.value for e in rows[node].configs or () if not e.sensitive and e.value}
    return {name: settings.get(key) for name, key in _AUTHORIZER.items()}


# ── disks ───────────────────────────────────────────────────────────────────────────────


def _sweep_disks(context: ClusterContext, reading: DiskReading) -> Iterator[Sweep]:
    """One row for each volume with log directories, and for each log directory that failed."""
    if reading.faults and not reading.disks:
        fault = next(iter(reading.faults.values()))
        # Other systems that speak the protocol have no disks to show, which is no failure.
        if fault.code not in TOO_OLD:
            yield _make_failed_sweep(DISK_USAGE, fault)
        return
    rows: list[Row] = [
        (
            f"{disk.broker} {','.join(disk.directories)}",
            {
                "broker": disk.broker,
                "log_dirs": disk.directories,
                "total_bytes": disk.total,
                "usable_bytes": disk.usable,
                "log_bytes": disk.stored,
                "replicas": len(disk.replicas),
                "failed": False,
            },
        )
        for disk in reading.disks
    ]
    rows += [
        (f"{broker} {path}", {"broker": broker, "log_dirs": (path,), "failed": True})
        for broker, paths in reading.failed.items()
        for path in paths
    ]
    yield _make_sweep(context, DISK_USAGE, rows, _VISIBLE if reading.faults else _COMPLETE)


# ── topics ──────────────────────────────────────────────────────────────────────────────


class _Logs(Struct, frozen=True):
    """The topics that exist, and where the logs of their partitions end and begin."""

    topics: Sequence[TopicRow]
    ends: Mapping[Place, int]
    """The next offset. Partitions without an answer are missing, here and below."""
    starts: Mapping[Place, int]
    faults: Sequence[Fault]

    def has_all(self, row: TopicRow) -> bool:
        """Whether all partitions of the topic answered."""
        partitions = [(row.name, number) for number in range(len(row.leaders))]
        return all(partition in self.ends and partition in self.starts for partition in partitions)


def _read_logs(context: ClusterContext, rows: Sequence[TopicRow]) -> _Logs:
    # Between the listing and these requests topics are created, moved and deleted. They are read
    # again, or a busy cluster would never be seen whole.
    faults: list[Fault] = []
    logs = _Logs(rows, *_read_ends_and_starts(context, rows, faults), faults)
    for pause in _PAUSES:
        incomplete = [row.name for row in logs.topics if not logs.has_all(row)]
        if not incomplete or (pause and faults):
            break
        time.sleep(pause)
        second_rows = _reread_topics(context, incomplete)
        gone = {row.name for row in second_rows if row.code == UNKNOWN_TOPIC}
        living = [row for row in logs.topics if row.name not in gone]
        ends, starts = _read_ends_and_starts(
            context, [row for row in second_rows if row.code == 0], faults
        )
        logs = _Logs(living, {**logs.ends, **ends}, {**logs.starts, **starts}, faults)
    return logs


def _sweep_topics(
    context: ClusterContext, logs: _Logs, disks: DiskReading, coverage: Coverage
) -> Sweep:
    """Topics with the sums of their first and next offsets, and the bytes of all replicas on disk.
    The sums are unknown if a partition has no leader."""
    if logs.faults and not logs.ends and logs.topics:
        return _make_failed_sweep(TOPIC_USAGE, logs.faults[0])
    sizes = _measure_topics(context, logs.topics, disks)
    whole = all(map(logs.has_all, logs.topics))
    values = ((row.name, _describe_log(row, logs, sizes.get(row.name))) for row in logs.topics)
    return _make_sweep(context, TOPIC_USAGE, values, coverage if whole else _VISIBLE)


def _describe_log(
    row: TopicRow, logs: _Logs, sizes: Mapping[int, Sequence[int]] | None
) -> Mapping[str, Value]:
    """The attributes of a topic. sizes: partition -> bytes of each replica; None: unknown."""
    partitions = [(row.name, number) for number in range(len(row.leaders))]
    whole = bool(partitions) and logs.has_all(row)
    ends = [logs.ends[partition] for partition in partitions] if whole else []
    starts = [logs.starts[partition] for partition in partitions] if whole else []
    records = [end - start for end, start in zip(ends, starts, strict=True)]
    # The largest replica of a partition is the one that has all of it.
    largest = [max(replicas, default=0) for replicas in (sizes or {}).values()]
    return {
        "end_offsets_sum": sum(ends) if whole else None,
        "start_offsets_sum": sum(starts) if whole else None,
        "bytes": None if sizes is None else sum(map(sum, sizes.values())),
        "partition_bytes_max": max(largest, default=None),
        "partition_bytes_min": min(largest, default=None),
        "partition_records_max": max(records, default=None),
        "partition_records_min": min(records, default=None),
    }


def _reread_topics(context: ClusterContext, names: Sequence[str]) -> Sequence[TopicRow]:
    """These topics as they are now, missing ones with their error code; none without an answer."""
    topics: list[TopicRow] = []
    for start in range(0, len(names), TOPICS_AT_ONCE):
        chunk = names[start : start + TOPICS_AT_ONCE]
        call = partial(list_topics, context.wire, chunk, context.timeout)
        rows = attempt("Metadata", call)
        if isinstance(rows, Fault):
            return ()
        topics += rows
    return topics


def _read_ends_and_starts(
    context: ClusterContext, rows: Sequence[TopicRow], faults: list[Fault]
) -> tuple[Mapping[Place, int], Mapping[Place, int]]:
    return (
        _read_offsets(context, rows, wire.LATEST, faults),
        _read_offsets(context, rows, wire.EARLIEST, faults),
    )


def _read_offsets(
    context: ClusterContext, rows: Sequence[TopicRow], at: int, faults: list[Fault]
) -> Mapping[Place, int]:
    """Partition -> its offset at that time, if it is known."""
    # ListOffsets is answered only by the leader of each partition.
    requests = list(wire.group_by_leader(rows))
    offsets: dict[Place, int] = {}

    def ask(item: tuple[str, Mapping[str, Sequence[int]]]) -> Mapping[Place, int] | Fault:
        node, partitions = item
        call = partial(wire.list_offsets, context.wire, partitions, at, node, context.timeout)
        return attempt("ListOffsets", call, node)

    for answer in _map_parallel(context, ask, requests):
        if isinstance(answer, Fault):
            faults.append(answer)
        else:
            offsets.update(answer)
    return offsets


def _measure_topics(
    context: ClusterContext, rows: Sequence[TopicRow], reading: DiskReading
) -> Mapping[str, Mapping[int, Sequence[int]]]:
    """Topic -> partition -> bytes of each replica, for topics whose replicas are all on live
    brokers; nothing if a broker does not answer or a disk failed."""
    # A sum without a replica would look like a topic that has shrunk.
    if reading.faults or reading.failed:
        return {}
    live = {int(node) for node in context.facts.nodes}
    sizes: dict[str, dict[int, list[int]]] = {
        row.name: {number: [] for number in range(len(row.leaders))}
        for row in rows
        if live.issuperset(chain(*row.replicas))
    }
    for disk in reading.disks:
        for (topic, number), size in chain(disk.replicas.items(), disk.future.items()):
            if topic in sizes:
                sizes[topic].setdefault(number, []).append(size)
    return sizes


# ── groups ──────────────────────────────────────────────────────────────────────────────


def _sweep_groups(
    context: ClusterContext, topics: Sequence[TopicRow], ends: Mapping[Place, int]
) -> Sweep:
    """One row for each topic of which a group has committed offsets or is assigned partitions."""
    # The key is `group topic`: no name of a topic has a blank. Groups in a partition of Kafka's own
    # topic without a leader are listed by no broker, so that the listing is not complete then.
    rows: list[Row] = []
    hidden = any(row.name == _GROUPS and min(row.leaders, default=0) < 0 for row in topics)
    for node in context.facts.nodes:
        listed = attempt(
            "ListGroups", partial(wire.list_groups, context.wire, node, context.timeout), node
        )
        if isinstance(listed, wire.GroupRows) and listed.code:
            listed = fault_of("ListGroups", listed.code, "", None, node)
        if isinstance(listed, Fault):
            return _make_failed_sweep(GROUP_USAGE, listed)
        groups = [group for group in listed.groups if group.protocol in ("", wire.CONSUMER)]
        for start in range(0, len(groups), GROUPS_AT_ONCE):
            details = _read_groups(context, groups[start : start + GROUPS_AT_ONCE], node, ends)
            if isinstance(details, Fault):
                return _make_failed_sweep(GROUP_USAGE, details)
            rows += details[0]
            hidden = hidden or details[1]
    listed_all = "Describe" in KafkaFacts.of(context.facts).rights
    coverage = _COMPLETE if listed_all and not hidden else _VISIBLE
    return _make_sweep(context, GROUP_USAGE, sorted(rows, key=lambda row: row[0]), coverage)


def _read_groups(
    context: ClusterContext,
    groups: Sequence[wire.GroupRow],
    node: str,
    ends: Mapping[Place, int],
) -> tuple[list[Row], bool] | Fault:
    """The rows of these groups, and whether the offsets of one of them are hidden."""
    names, timeout = [group.name for group in groups], context.timeout
    offsets = attempt(
        "OffsetFetch", partial(wire.fetch_offsets, context.wire, names, node, timeout), node
    )
    if isinstance(offsets, Fault):
        return offsets
    described = attempt(
        "DescribeGroups", partial(wire.describe_members, context.wire, names, node, timeout), node
    )
    members = {} if isinstance(described, Fault) else described
    nothing, nobody = wire.GroupOffsets(-1, {}), wire.GroupMembers(-1, _DEAD, 0, frozenset())
    rows: list[Row] = []
    for group in groups:
        committed: dict[str, dict[Place, int]] = defaultdict(dict)
        for partition, row in offsets.get(group.name, nothing).offsets.items():
            committed[partition[0]][partition] = row.offset
        joined = members.get(group.name, nobody)
        for topic in sorted({*committed, *joined.topics}):
            values: Mapping[str, Value] = {
                "committed_sum": sum(committed[topic].values()) if topic in committed else None,
                "lag": _sum_lag(committed[topic], ends) if topic in committed else None,
                "members": _count_members(group, joined),
                "state": group.state,
            }
            rows.append((f"{group.name} {topic}", values))
    return rows, any(offsets.get(name, nothing).code for name in names)


def _sum_lag(committed: Mapping[Place, int], ends: Mapping[Place, int]) -> int | None:
    """How many records are after the committed offsets; None if the end of a log is unknown."""
    if not committed.keys() <= ends.keys():
        return None
    # The ends were read first, so a group that reads may be ahead of them.
    return sum(max(0, ends[partition] - offset) for partition, offset in committed.items())


def _count_members(group: wire.GroupRow, joined: wire.GroupMembers) -> int | None:
    """Number of members, None if it is unknown; 1 for a group of the new protocol that has any."""
    # Of groups of the new protocol (KIP-848) only the state is read, which says whether they have
    # members.
    if not joined.code and joined.state != _DEAD:
        return joined.count
    if group.state is None:
        return None
    return 0 if group.state in (_EMPTY, _DEAD) else 1


SWITCHED_OFF = "SECURITY_DISABLED"
"""The cluster has no authorizer, so it has no ACLs and hides nothing."""
TOO_OLD = (UNSUPPORTED_VERSION, FEATURE_MISSING)
"""The brokers are too old to list this kind."""
_ALLOWED = re.compile(r"[A-Za-z0-9._-]*", re.ASCII)
_LONGEST = 249
"""Characters in the name of a topic."""
_TOPIC, _LITERAL, _ANY = "Topic", "Literal", "*"


def sharpen_sweeps(session: Session, sweeps: Sequence[Sweep]) -> tuple[Sweep, ...]:
    """The sweeps with everything that can be proven: complete ones where nothing is hidden, and no
    ACLs where there is no authorizer. Kinds for which the brokers are too old are left out."""
    sweep_by_kind = {sweep.kind: sweep for sweep in sweeps if _fault_code(sweep) not in TOO_OLD}
    listed = sweep_by_kind.get(acls.KIND)
    open_to_all = listed is not None and _fault_code(listed) == SWITCHED_OFF
    if listed is not None and open_to_all:
        # The fault stays, for `read_usage`: it alone tells this cluster from one without ACLs.
        sweep_by_kind[acls.KIND] = replace(
            listed, coverage=replace(_COMPLETE, fault=listed.coverage.fault)
        )
    proofs: Mapping[str, Callable[[], bool]] = {
        topics.KIND: lambda: (
            _has_all_named(session, sweep_by_kind[topics.KIND])
            and (open_to_all or _sees_all_topics(session, listed))
        ),
        config_kinds.BROKER.kind: lambda: _are_all_live(session),
    }
    for kind, proof in proofs.items():
        sweep = sweep_by_kind.get(kind)
        if sweep is not None and sweep.coverage.kind is CoverageKind.VISIBLE_ONLY and proof():
            sweep_by_kind[kind] = replace(sweep, coverage=_COMPLETE)
    return tuple(sweep_by_kind.values())


def _fault_code(sweep: Sweep) -> str:
    return sweep.coverage.fault.code if sweep.coverage.fault is not None else ""


def _has_all_named(session: Session, listed: Sweep) -> bool:
    """Whether no topic was left out because we cannot read its configs."""
    # A topic that was created or deleted meanwhile is missing from one of the listings, too.
    # Reading it by name distinguishes that: it is there, or it is absent, but not hidden.
    named = session.sweep(topics.KIND, Depth.NAMES)
    read_identities = {item.identity for item in listed.items}
    unread = [item.identity for item in named.items if item.identity not in read_identities]
    readings = session.read(unread).values() if unread else ()
    return named.coverage.fault is None and all(isinstance(r, Absent | Observed) for r in readings)


def _sees_all_topics(session: Session, listed: Sweep | None) -> bool:
    if listed is None or listed.coverage.kind is not CoverageKind.COMPLETE:
        return False
    instance = next((item.identity.instance for item in listed.items), "")
    names = dict.fromkeys(
        _make_probe_names(acls.parse_acl(item.attributes) for item in listed.items)
    )
    probes = [Identity(instance, topics.KIND, name) for name in names]
    return all(isinstance(r, Absent | Observed) for r in session.read(probes).values())


def _make_probe_names(rules: Iterable[acls.Acl]) -> Iterator[str]:
    """A name for each way in which ACLs can apply to topics."""
    # The random part makes it certain that no topic has such a name, and that no literal ACL fits.
    made_up = secrets.token_hex(8)
    yield made_up
    for acl in rules:
        name, literal = acl.resource_name, acl.pattern_type == _LITERAL
        fits = _ALLOWED.fullmatch(name) and 0 < len(name) <= _LONGEST
        if acl.resource_type == _TOPIC and fits and (not literal or name != _ANY):
            yield name if literal else f"{name}{made_up}"[:_LONGEST]


def _are_all_live(session: Session) -> bool:
    """Whether all registered brokers are live, if the cluster says so."""
    # Brokers that are down are in no listing of brokers, so their configs would count as deleted.
    context = getattr(session, "context", None)
    if not isinstance(context, ClusterContext):
        return False
    rows = attempt("DescribeCluster", lambda: describe_brokers(context.wire, context.timeout))
    return isinstance(rows, tuple) and all(row.fenced is False for row in rows)
