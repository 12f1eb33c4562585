"""What the cluster says we may do, by the names that ACLs use."""

from __future__ import annotations

from collections.abc import Iterable

KIND = "kafka_rights"
"""A listing for reviews, no kind of object: what we may do with the cluster and with topics, by
`Cluster|kafka-cluster` and `Topic|NAME`."""
HELD = "operations"
"""The attribute that holds the operations' names."""

OPERATIONS = {
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    7: "Alter",
    8: "Describe",
    9: "ClusterAction",
    10: "DescribeConfigs",
    11: "AlterConfigs",
    12: "IdempotentWrite",
    13: "CreateTokens",
    14: "DescribeTokens",
    15: "TwoPhaseCommit",
}


def decode_operations(codes: Iterable[int]) -> tuple[str, ...]:
    """The operations' names in the order of their codes; unknown ones are left out."""
    return tuple(OPERATIONS[code] for code in sorted(codes) if code in OPERATIONS)
