"""Which cluster a connection must lead to, and which cluster was found there.

A broker of another cluster can take over an address (a proxy, a DNS name, a rebuilt test cluster),
and clients open connections on their own. So the cluster id is checked on each connection before it
carries anything else, and again around each write.
"""

from __future__ import annotations

from msgspec import Struct, field

from kafkaform.core.errors import ConnectError, OtherSystem
from kafkaform.core.resource import Fault

_NEEDED = "kafkaform has to know which cluster answers before it sends anything."
_ADVICE = {
    "UNSUPPORTED_VERSION": f"{_NEEDED} Upgrade brokers older than Kafka 2.8. If a proxy or another "
    "system answers at this address, it has to support DescribeCluster (API key 60).",
    # KIP-700: a broker of Apache Kafka answers without any right.
    "CLUSTER_AUTHORIZATION_FAILED": f"{_NEEDED} Kafka's own brokers answer DescribeCluster without "
    "any right, so a proxy or another system refuses it: allow it there for this principal.",
}
"""Code of the fault -> what to do."""


class ClusterProof(Struct, eq=False):
    """The cluster that one session belongs to. Several threads use it."""

    instance: str = ""
    """The provider instance, for messages."""
    expected: str | None = None
    """Id of the cluster; None before the first broker has answered, which sets it."""
    answers: dict[str, str] = field(default_factory=dict)
    """Address -> the id in its last answer."""
    # One foreign answer is enough, and no later answer takes it back: nobody knows what the other
    # cluster received in between.
    foreign: tuple[str, str] | None = None
    """Address and id of the first other cluster."""
    unproven: ConnectError | None = None
    """Why the last broker that did not say its cluster's id did not."""

    def hear(self, address: str, cluster_id: str) -> bool:
        """Record which cluster answers there. True if it is the cluster of the session."""
        self.answers[address] = cluster_id
        if self.expected is None:
            self.expected = cluster_id
        if cluster_id != self.expected and self.foreign is None:
            self.foreign = address, cluster_id
        return cluster_id == self.expected

    def miss(self, address: str, fault: Fault) -> None:
        """Record why a broker does not say its cluster's id."""
        self.unproven = make_unproven_error(address, fault)

    def refuse(self) -> None:
        """Raise OtherSystem if another cluster has answered on any connection."""
        if self.foreign is None:
            return
        address, cluster_id = self.foreign
        raise OtherSystem(
            f"{address} answers as cluster {cluster_id}, and provider instance "
            f'"{self.instance}" was opened for cluster {self.expected}',
            "Nothing more is sent, and the answers of the other cluster are ignored. Find out why "
            "this address leads there (a proxy, a DNS name, a broker that was set up again). When "
            f"cluster {self.expected} answers again, run the same command again: an apply first "
            "finds out what happened to the requests that were under way.",
        )


def make_unproven_error(address: str, fault: Fault) -> ConnectError:
    """The error for an address that does not say its cluster's id."""
    return ConnectError(
        f"{address} does not say which cluster it belongs to: {fault.message}",
        _ADVICE.get(fault.code, fault.advice),
    )
