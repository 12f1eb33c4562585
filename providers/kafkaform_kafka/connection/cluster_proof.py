"""Who must be at the other end of a connection, and who was found there.

A broker that dies may be followed by one of another cluster at the same address (a proxy, a DNS
name, a rebuilt test cluster), and both clients open connections on their own. So each connection
tells its cluster's id before it carries anything else, and is asked again where much depends on it.
"""

from __future__ import annotations

from msgspec import Struct, field

from kafkaform.core.errors import OtherSystem


class Proof(Struct, eq=False):
    """The cluster that one session belongs to. Used from several threads; one foreign id is enough,
    and no later answer takes it back."""

    instance: str = ""
    expected: str | None = None
    """Id of the cluster. None: any cluster may answer, and nobody is asked."""
    answers: dict[str, str] = field(default_factory=dict)
    """Address -> the id that it gave last."""
    foreign: tuple[str, str] | None = None
    """Address and id of the first other cluster."""

    def hear(self, address: str, cluster_id: str) -> bool:
        """Note who answers there; True if it is the cluster of the session."""
        self.answers[address] = cluster_id
        if cluster_id != self.expected and self.foreign is None:
            self.foreign = address, cluster_id
        return cluster_id == self.expected

    def refuse(self) -> None:
        """Raises OtherSystem if another cluster has answered on any connection."""
        if self.foreign is None:
            return
        address, cluster_id = self.foreign
        raise OtherSystem(
            f"{address} answers as cluster {cluster_id}, and provider instance "
            f'"{self.instance}" was opened for cluster {self.expected}',
            "Nothing more is sent, and nothing that the other cluster says is believed. Find out "
            "what leads there (a proxy, a DNS name, a broker that was set up anew). When "
            f"{self.expected} answers again, run the same command again: an apply first finds out "
            "there what became of the requests under way.",
        )
