"""Which cluster a connection must lead to, and which cluster was found there.

A broker of another cluster can take over an address (a proxy, a DNS name, a rebuilt test cluster),
and both clients open connections on their own. So the cluster id is checked on each connection
before it carries anything else, and again around each write.
"""

from __future__ import annotations

from msgspec import Struct, field

from kafkaform.core.errors import OtherSystem


class ClusterProof(Struct, eq=False):
    """The cluster that one session belongs to. Several threads use it."""

    instance: str = ""
    """The provider instance, for messages."""
    expected: str | None = None
    """Id of the cluster. None: any cluster is accepted, and no connection is checked."""
    answers: dict[str, str] = field(default_factory=dict)
    """Address -> the id in its last answer."""
    # One foreign answer is enough, and no later answer takes it back: nobody knows what the other
    # cluster received in between.
    foreign: tuple[str, str] | None = None
    """Address and id of the first other cluster."""

    def hear(self, address: str, cluster_id: str) -> bool:
        """Record which cluster answers there. True if it is the cluster of the session."""
        self.answers[address] = cluster_id
        if cluster_id != self.expected and self.foreign is None:
            self.foreign = address, cluster_id
        return cluster_id == self.expected

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
