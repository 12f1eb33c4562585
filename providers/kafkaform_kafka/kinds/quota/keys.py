"""The quota keys: unit, range, and which entities they belong to."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kafkaform.core.schema import KeySchema
from kafkaform.core.text.quantity import INT_MAX, LONG_MAX

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
    unlimited: int = INT_MAX
    """What Kafka takes where nothing sets a limit (QuotaConfig)."""


# A quota of bytes or of CPU time applies per broker, so a client of three brokers may use three
# times as much (KIP-13, KIP-124). Only the controller counts mutations (KIP-599).
QUOTA_KEYS: Mapping[str, QuotaKey] = {
    key.name: key
    for key in (
        QuotaKey("producer_byte_rate", "bytes/s", whole=True, most=LONG_MAX, unlimited=LONG_MAX),
        QuotaKey("consumer_byte_rate", "bytes/s", whole=True, most=LONG_MAX, unlimited=LONG_MAX),
        QuotaKey("request_percentage", "% of one thread"),
        QuotaKey(MUTATION_RATE, "partitions/s", scope="the controller"),
        QuotaKey("connection_creation_rate", "connections/s", whole=True, most=INT_MAX, ip=True),
    )
}
"""The five keys, typed as in QuotaConfig of Kafka 4.3."""

_PAGES: Mapping[str, str] = {
    "producer_byte_rate": "How much can be written.",
    "consumer_byte_rate": "How much can be read.",
    "request_percentage": "How much time of the threads for requests and of the network can be "
    "used; 100 is one whole thread.",
    MUTATION_RATE: "How many partitions can be created or deleted.",
    "connection_creation_rate": "How many connections an IP address can open.",
}
"""Key -> its meaning."""


def list_quota_keys() -> tuple[KeySchema, ...]:
    """The keys for people."""
    return tuple(
        KeySchema(
            key.name,
            "int" if key.whole else "double",
            f"{_PAGES[key.name]} It counts for {key.scope}. Not set: no limit.",
            unit=key.unit,
            values=f"more than 0, in {key.unit}",
        )
        for key in QUOTA_KEYS.values()
    )
