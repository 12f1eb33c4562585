"""The keys of quotas: unit, range and whom each one counts."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

MUTATION_RATE = "controller_mutation_rate"


class QuotaKey(Struct, frozen=True):
    """whole: fractions are refused; most: the largest value that the broker takes; ip: belongs to
    addresses, else to users and client ids; scope: who counts."""

    name: str
    unit: str
    whole: bool = False
    most: int | None = None
    ip: bool = False
    scope: str = "each broker"


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
"""The five keys as QuotaConfig of Kafka 4.3 types them."""
