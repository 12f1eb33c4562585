"""Lists our own rights on the cluster and on every topic that we may describe (KIP-430).

Reviews list them together with the ACLs, so that both are of the same moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import FrozenMap

from ...cluster.context import ClusterContext, Reads, Requests, attempt
from ...protocol import keys, listings
from ...protocol.acl import CLUSTER
from ...wire.cluster import ClusterRow, describe_cluster
from ...wire.topics import list_topics


def sweep_rights(context: ClusterContext, depth: Depth) -> Sweep:
    """Our rights as far as the cluster reports them."""
    cluster = attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
    rows = attempt(
        "Metadata", lambda: list_topics(context.wire, None, context.timeout, operations=True)
    )
    for answer in (cluster, rows):
        if isinstance(answer, Fault):
            return Sweep(listings.RIGHTS, depth, (), Coverage(CoverageKind.FAILED, answer))
    assert isinstance(cluster, ClusterRow) and not isinstance(rows, Fault)
    items = [
        make_rights_item(
            context.instance, "Cluster", CLUSTER, listings.decode_operations(cluster.operations)
        )
    ]
    items += [
        make_rights_item(
            context.instance, "Topic", row.name, listings.decode_operations(row.operations or ())
        )
        for row in rows
        if row.code == 0
    ]
    return Sweep(listings.RIGHTS, depth, tuple(items), Coverage(CoverageKind.VISIBLE_ONLY))


def make_rights_item(instance: str, kind: str, name: str, operations: Iterable[str]) -> Observed:
    """Our operations on one resource."""
    identity = Identity(instance, listings.RIGHTS, keys.join((kind, name)))
    return Observed(identity, FrozenMap({listings.HELD: tuple(operations)}))


def read_rights(
    context: ClusterContext, ids: Sequence[Identity], _: str | None
) -> Mapping[Identity, Reading]:
    """Our rights on some resources."""
    sweep = sweep_rights(context, Depth.FULL)
    if sweep.coverage.fault is not None:
        return {identity: Failed(identity, sweep.coverage.fault) for identity in ids}
    items = {item.identity: item for item in sweep.items}
    return {identity: items.get(identity, Absent(identity)) for identity in ids}


REQUESTS = Requests(Reads(sweep_rights, read_rights))
