"""The keys of quotas: unit, range and whom each one counts."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

MUTATION_RATE = "controller_mutation_rate"


class QuotaKey(Struct, frozen=True):
    """One kind of limit."""

    name: str
    unit: str
    whole: bool = False
    """True if fractions are refused."""
    most: int | None = None
    """The largest value that a broker accepts."""
    ip: bool = False
    """True for a limit of IP addresses, False for one of users and client ids."""
    scope: str = "each broker"
    """Which node counts."""


# A quota of bytes or of CPU time applies per broker, so a client of three brokers may use three
# times as much (KIP-13, KIP-124). Only the controller counts mutations (KIP-599).
QUOTA_KEYS: Mapping[str, QuotaKey] = {
    key.name: key
    for key in (
        QuotaKey("producer_byte_rate", "bytes/s", whole=True, most=2**63 - 1),
        QuotaKey("consumer_byte_rate", "bytes/s", whole=True, most=2**63 - 1),
        QuotaKey("request_percentage", "% of one thread"),
        QuotaKey(MUTATION_RATE, "partitions/s", scope="the controller"),
        QuotaKey("connection_creation_rate", "connections/s", whole=True, most=2**31 - 1, ip=True),
    )
}
"""The five keys, typed as in QuotaConfig of Kafka 4.3."""
