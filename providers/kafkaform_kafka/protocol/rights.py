"""Our own rights as the cluster reports them, by the operation names that ACLs use."""

from __future__ import annotations

from collections.abc import Iterable

KIND = "kafka_rights"
"""A listing for reviews, not a kind of object: our rights on the cluster and on topics, with keys
`Cluster|kafka-cluster` and `Topic|NAME`."""
HELD = "operations"
"""The attribute that holds the operations' names."""

# The codes of AclOperation. 13 and 14 came with KIP-373, 15 with KIP-939.
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
    """The names of these operations in the order of their codes, without unknown ones."""
    return tuple(OPERATIONS[code] for code in sorted(codes) if code in OPERATIONS)
