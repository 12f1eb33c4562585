"""Lists our own rights, which are those that the cluster reports (KIP-430), and the names of the
groups that we can see: each broker lists those that it coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap

from ...protocol import keys
from ...protocol.acl import (
    CLUSTER,
    HELD_OPERATIONS,
    LISTED_GROUPS,
    LISTED_RIGHTS,
    decode_operations,
)
from ...protocol.faults import fault_of, name_right
from ...wire.cluster import ClusterRow, describe_cluster
from ...wire.topics import list_topics
from ...wire.usage import GroupRows, list_groups
from ..context import ClusterContext, Reads, Requests, attempt, live_nodes


def sweep_rights(context: ClusterContext, depth: Depth) -> Sweep:
    """Our rights as far as the cluster reports them."""
    cluster = attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
    rows = attempt(
        "Metadata", lambda: list_topics(context.wire, None, context.timeout, operations=True)
    )
    for answer in (cluster, rows):
        if isinstance(answer, Fault):
            return Sweep(LISTED_RIGHTS, depth, (), Coverage(CoverageKind.FAILED, answer))
    assert isinstance(cluster, ClusterRow) and not isinstance(rows, Fault)
    items = [
        make_rights_item(
            context.instance, "Cluster", CLUSTER, decode_operations(cluster.operations)
        )
    ]
    items += [
        make_rights_item(
            context.instance, "Topic", row.name, decode_operations(row.operations or ())
        )
        for row in rows
        if row.code == 0
    ]
    return Sweep(LISTED_RIGHTS, depth, tuple(items), Coverage(CoverageKind.VISIBLE_ONLY))


def make_rights_item(instance: str, kind: str, name: str, operations: Iterable[str]) -> Observed:
    """Our operations on one resource."""
    identity = Identity(instance, LISTED_RIGHTS, keys.join((kind, name)))
    return Observed(identity, FrozenMap({HELD_OPERATIONS: tuple(operations)}))


def read_rights(
    context: ClusterContext, ids: Sequence[Identity], _: str | None
) -> Mapping[Identity, Reading]:
    """Our rights on some resources."""
    sweep = sweep_rights(context, Depth.FULL)
    if sweep.coverage.fault is not None:
        return {identity: Failed(identity, sweep.coverage.fault) for identity in ids}
    items = {item.identity: item for item in sweep.items}
    return {identity: items.get(identity, Absent(identity)) for identity in ids}


RIGHTS_REQUESTS = Requests(Reads(sweep_rights, read_rights))


_API = "ListGroups"


def sweep_groups(context: ClusterContext, depth: Depth) -> Sweep:
    """The names of the groups of all live brokers; the first fault if a broker does not answer."""
    names: set[str] = set()
    for node in live_nodes(context):
        rows = attempt(_API, partial(list_groups, context.wire, node, context.timeout), node)
        if isinstance(rows, GroupRows) and rows.code:
            rows = fault_of(_API, rows.code, "", None, node)
        if isinstance(rows, Fault):
            return Sweep(LISTED_GROUPS, depth, (), Coverage(CoverageKind.FAILED, rows))
        names |= {row.name for row in rows.groups}
    items = tuple(
        Observed(Identity(context.instance, LISTED_GROUPS, name), EMPTY) for name in sorted(names)
    )
    # Groups that we may not describe are left out without an error.
    return Sweep(LISTED_GROUPS, depth, items, Coverage(CoverageKind.VISIBLE_ONLY))


def read_groups(
    context: ClusterContext, ids: Sequence[Identity], _: str | None
) -> Mapping[Identity, Reading]:
    """Which of these groups can be seen."""
    sweep = sweep_groups(context, Depth.NAMES)
    if sweep.coverage.fault is not None:
        return {identity: Failed(identity, sweep.coverage.fault) for identity in ids}
    items: Mapping[Identity, Reading] = {item.identity: item for item in sweep.items}
    # A group that is missing from the listing may be there for others to see.
    return {
        identity: items.get(identity, Hidden(identity, name_right("DescribeGroups", identity.key)))
        for identity in ids
    }


GROUP_REQUESTS = Requests(Reads(sweep_groups, read_groups))
