"""What cannot be avoided: everything that a plan has to learn, asked of the broker with bare
requests and thrown away. `python -m tests.bench.limit BOOTSTRAP` (password in PROOF_PASSWORD).

Every key of every topic: which overrides a topic has is known only once all its keys are read.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kafka import KafkaAdminClient
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
)
from kafka.protocol.metadata import MetadataRequest

AT_ONCE, IN_FLIGHT, TIMEOUT = 250, 4, 60_000
TOPIC, ANY = 2, 1


class Bare:
    """One connection, and nothing done with the answers."""

    def __init__(self, bootstrap: str, password: str) -> None:
        self._client = KafkaAdminClient(
            bootstrap_servers=bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="admin",
            sasl_plain_password=password,
            bootstrap_timeout_ms=10_000,
        )

    def close(self) -> None:
        self._client.close()

    def sweep(self, topics: bool = True, acls: bool = True) -> tuple[int, int]:
        """How many topics (with all their configs) and ACLs were told."""
        found = self._topics() if topics else 0
        return found, self.count_acls() if acls else 0

    def list_brokers(self) -> list[int]:
        return [row.node_id for row in self._read_metadata().brokers]

    def read_leaders(self, node: int) -> dict[str, int]:
        """How many partitions of each topic have a leader, as this broker shows it."""
        rows = self._read_metadata(node).topics
        return {r.name: sum(p.leader_id >= 0 for p in r.partitions) for r in rows}

    def count_quotas(self) -> int:
        """Entities with quotas."""
        request = DescribeClientQuotasRequest(components=[], strict=False, min_version=0)
        return len(self._send(request).entries or ())

    def set_quotas(self, rates: Mapping[str, int | None]) -> None:
        """The producer's rate of each user; None: no limit any more."""
        row = AlterClientQuotasRequest.EntryData
        entries = [
            row(
                entity=[row.EntityData(entity_type="user", entity_name=user)],
                ops=[row.OpData(key="producer_byte_rate", value=rate or 0.0, remove=rate is None)],
            )
            for user, rate in rates.items()
        ]
        answer = self._send(AlterClientQuotasRequest(entries=entries, validate_only=False))
        assert not any(entry.error_code for entry in answer.entries)

    def _topics(self) -> int:
        names = [row.name for row in self._read_metadata().topics if not row.is_internal]
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            return sum(pool.map(self._configs, _chunks(names)))

    def _configs(self, names: Sequence[str]) -> int:
        row = DescribeConfigsRequest.DescribeConfigsResource
        request = DescribeConfigsRequest(
            resources=[
                row(resource_type=TOPIC, resource_name=name, configuration_keys=None)
                for name in names
            ],
            include_synonyms=False,
            include_documentation=False,
            min_version=1,
        )
        return len(self._send(request).results)

    def _read_metadata(self, node: int | None = None) -> Any:
        return self._send(MetadataRequest(topics=None, min_version=10), node)

    def count_acls(self, node: int | None = None) -> int:
        request = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
            min_version=1,
        )
        return sum(len(row.acls) for row in self._send(request, node).resources)

    def _send(self, request: Any, node: int | None = None) -> Any:
        """node: which broker is asked; None: any."""
        manager = self._client._manager

        async def exchange() -> Any:
            asked = manager.least_loaded_node() if node is None else node
            connection = manager.get_connection(asked)
            await manager.wait_for(connection.init_future, TIMEOUT)
            return await connection.send_request(request, request_timeout_ms=TIMEOUT)

        return manager.run(exchange)


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + AT_ONCE] for start in range(0, len(names), AT_ONCE))


def main() -> None:
    bare = Bare(sys.argv[1], os.environ["PROOF_PASSWORD"])
    begun = time.perf_counter()
    topics, acls = bare.sweep()
    print(f"{topics} topics, {acls} ACLs: {time.perf_counter() - begun:.2f} s")
    bare.close()


if __name__ == "__main__":
    main()
