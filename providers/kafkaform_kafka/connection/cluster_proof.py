"""Who must be at the other end of a connection, and who was found there.

A broker that dies may be followed by one of another cluster at the same address (a proxy, a DNS
name, a rebuilt test cluster), and both clients open connections on their own. So each connection
tells its cluster's id before it carries anything else, and is asked again where much depends on it.
"""

from __future__ import annotations

from kafkaform.core.errors import OtherSystem


class Proof:
    """The cluster that one session belongs to. answers: address -> the id that it gave last. Used
    from several threads; one foreign id is enough, and no later answer takes it back."""

    def __init__(self, instance: str, expected: str) -> None:
        self.instance = instance
        self.expected = expected
        self.answers: dict[str, str] = {}
        self._found: tuple[str, str] | None = None

    def hear(self, address: str, cluster_id: str) -> bool:
        """Note who answers there; True if it is the cluster of the session."""
        self.answers[address] = cluster_id
        if cluster_id != self.expected and self._found is None:
            self._found = address, cluster_id
        return cluster_id == self.expected

    def refuse(self) -> None:
        """Raises OtherSystem if another cluster has answered on any connection."""
        if self._found is None:
            return
        address, cluster_id = self._found
        raise OtherSystem(
            f"{address} answers as cluster {cluster_id}, and provider instance "
            f'"{self.instance}" was opened for cluster {self.expected}',
            "Nothing more is sent, and nothing that the other cluster says is believed. Find out "
            "what leads there (a proxy, a DNS name, a broker that was set up anew). When "
            f"{self.expected} answers again, run the same command again: an apply first finds out "
            "there what became of the requests under way.",
        )
