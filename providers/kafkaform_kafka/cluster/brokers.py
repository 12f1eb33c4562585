"""The cluster as its brokers describe it: which are live, and the data source `kafka_cluster`."""

from __future__ import annotations

from functools import partial

from kafkaform.core.resource import Fault
from kafkaform.core.value import FrozenMap

from ..protocol.faults import fault_of
from ..wire.cluster import ClusterRow, describe_cluster, find_quorum_leader
from .context import ClusterContext
from .exchange import attempt

LAG = 3.0
"""Seconds in which brokers normally show what the controller committed. Before Kafka 4.1, an idle
broker learns of it half a second later (KIP-1166)."""


def live_nodes(context: ClusterContext) -> tuple[str, ...]:
    """Ids of the brokers that are live now; those of the facts if no broker answers."""
    # A broker applies the metadata log later than the controller writes it, so that it may not know
    # yet that another one came back. A broker that was live before is left out only if no broker
    # that answers lists it.
    listed = _list_live_brokers(context)
    if listed is None:
        return context.facts.nodes
    gone = set(context.facts.nodes) - listed
    for node in sorted(listed) if gone else ():
        gone -= _list_live_brokers(context, node) or set()
    return tuple(sorted(listed | (set(context.facts.nodes) - gone), key=int))


def find_answering_node(context: ClusterContext) -> str:
    """The first live broker that answers, empty if there is none: for what a broker reports only
    about itself."""
    nodes = context.facts.nodes
    return next((node for node in nodes if _list_live_brokers(context, node) is not None), "")


def _list_live_brokers(context: ClusterContext, node: str | None = None) -> set[str] | None:
    """The live brokers that a broker knows, None without an answer."""
    call = partial(describe_cluster, context.wire, context.timeout, node)
    row = attempt("DescribeCluster", call, node)
    return set(row.brokers) if isinstance(row, ClusterRow) and not row.code else None


def read_cluster(context: ClusterContext) -> FrozenMap | Fault:
    """Id, live brokers and controller of the cluster. The controller is None without Describe on
    Cluster."""
    row = attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
    if isinstance(row, Fault):
        return row
    if row.code:
        return fault_of("DescribeCluster", row.code, "", row.message)
    return FrozenMap(
        {
            "cluster_id": row.cluster_id,
            "brokers": tuple(
                FrozenMap(id=int(node), host=row.hosts[node][0], port=row.hosts[node][1], rack=rack)
                for node, rack in row.brokers.items()
            ),
            "controller_id": find_controller(context),
        }
    )


def find_controller(context: ClusterContext) -> int | None:
    """Id of the active controller, None if the cluster does not say."""
    if context.facts.values.get("zookeeper"):
        row = attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
        return row.controller if isinstance(row, ClusterRow) and row.controller >= 0 else None
    leader = attempt("DescribeQuorum", lambda: find_quorum_leader(context.wire, context.timeout))
    return None if isinstance(leader, Fault) else leader
