"""What no quota can have, and how limits are written for people.

The schema of a block and the rules of quotas use the same sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from ipaddress import ip_address

from kafkaform.core.change import Path
from kafkaform.core.diagnostics import suggest
from kafkaform.core.text.quantity import render_quantity
from kafkaform.core.value import Value

from .keys import MUTATION_RATE, QUOTA_KEYS
from .levels import CLIENT_ID, USER

Faults = Iterable[tuple[str, str]]
"""Summary and advice of each fault."""

_OF_ADDRESSES = frozenset("0123456789.:/*")
_SCOPES: Mapping[str, str] = {"each broker": " on each broker", "the controller": ""}


def find_unknown_faults(key: str) -> Faults:
    """A limit that Kafka does not have."""
    if key not in QUOTA_KEYS:
        names = [name for name, item in QUOTA_KEYS.items() if not item.ip]
        addresses = [name for name, item in QUOTA_KEYS.items() if item.ip]
        yield (
            f"{key} is not a quota",
            suggest(key, QUOTA_KEYS)
            or f"Use one of {', '.join(names)}; for an ip {', '.join(addresses)}.",
        )


def find_value_faults(key: str, value: Value) -> Faults:
    """A value that no broker accepts for this limit, or that would not be a limit."""
    limit = QUOTA_KEYS.get(key)
    if limit is None:
        return
    # Neither NaN nor a negative number removes a limit, as KIP-248 had it: the broker would store
    # NaN. Modern requests have a `remove` flag (KIP-546).
    number = value if isinstance(value, int | Decimal) else None
    if number is None or not Decimal(number).is_finite() or number <= 0:
        yield (
            f"{key} = {value}: a limit must be a number above 0",
            f"To remove the limit, remove {key} from config.",
        )
        return
    if limit.whole and number != int(number):
        yield f"{key} = {value} is not a whole number", f"Write {key} in whole {limit.unit}."
    if limit.most is not None and number > limit.most:
        yield f"{key} = {value} is more than brokers accept", f"Write at most {limit.most}."


def find_address_faults(name: str) -> Faults:
    """Text that looks like an IP address and is not one; other text can be a host name."""
    if not name or not set(name) <= _OF_ADDRESSES or is_address(name):
        return
    if "/" in name or "*" in name:
        yield (
            f"'{name}' is not an IP address: a quota is for one address, or for each",
            'Write one kafka_quota for each address, or ip = "default" for all others.',
        )
    else:
        yield (
            f"'{name}' is not an IP address",
            "Write four numbers from 0 to 255, such as 192.0.2.7.",
        )


def is_address(name: str) -> bool:
    """True for an IP address, in any spelling."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def find_quota_unit(path: Path) -> str:
    """The unit of a limit; empty for what is none."""
    key = QUOTA_KEYS.get(path[1]) if len(path) == 2 and path[0] == "config" else None
    return key.unit if key is not None else ""


def render_limit(key: str, value: Value) -> str:
    """`10 MiB/s`, `5 partitions/s`, `1 partition/s`: a limit with its unit."""
    limit = QUOTA_KEYS.get(key)
    unit = limit.unit if limit is not None else ""
    amount = render_quantity(value, unit) if isinstance(value, int | Decimal) else ""
    if value == 1:
        unit = unit.replace("s/s", "/s")
    return amount or f"{value} {unit}".rstrip()


def describe_clients(entity: Mapping[str, str | None], key: str) -> str:
    """Whom a limit slows down: `producers of user ci`, `every user without a quota of its own`."""
    noun = _NOUNS.get(key, "clients")
    if "ip" in entity:
        name = entity["ip"]
        return f"connections from {name or 'every address without a quota of its own'}"
    if USER not in entity:
        return f"{noun} of {_describe_part('client id', entity[CLIENT_ID])}"
    users = f"{noun} of {_describe_part('user', entity[USER])}"
    if CLIENT_ID not in entity:
        return users
    name = entity[CLIENT_ID]
    return f"{users} with {'any other client id' if name is None else f'client id {name}'}"


def _describe_part(word: str, name: str | None) -> str:
    return f"every {word} without a quota of its own" if name is None else f"{word} {name}"


_NOUNS: Mapping[str, str] = {
    "producer_byte_rate": "producers",
    "consumer_byte_rate": "consumers",
    MUTATION_RATE: "admin clients",
}
"""Limit -> whom it limits; any other: all clients."""


def describe_scope(key: str) -> str:
    """` on each broker` for a limit that every broker counts for itself."""
    return _SCOPES[QUOTA_KEYS[key].scope] if key in QUOTA_KEYS else ""
