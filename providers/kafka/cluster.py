"""The cluster as its brokers describe it, for the data source `kafka_cluster`."""

from __future__ import annotations

from kafkaform.core.resource import Fault
from kafkaform.core.value import FrozenMap

from .context import Context
from .exchange import attempt
from .faults import fault_of
from .wire.cluster import describe_cluster, quorum_leader


def read_cluster(context: Context) -> FrozenMap | Fault:
    """Id, live brokers and controller; the controller is None for those who may not see it."""
    row = attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
    if isinstance(row, Fault):
        return row
    if row.code:
        return fault_of("DescribeCluster", row.code, "", row.message)
    leader = attempt("DescribeQuorum", lambda: quorum_leader(context.wire, context.timeout))
    return FrozenMap(
        {
            "cluster_id": row.cluster_id,
            "brokers": tuple(
                FrozenMap(id=int(node), host=row.hosts[node][0], port=row.hosts[node][1], rack=rack)
                for node, rack in row.brokers.items()
            ),
            "controller_id": None if isinstance(leader, Fault) else leader,
        }
    )
