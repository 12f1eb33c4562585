"""The limits of quotas: their keys, the level that applies, what none can have, and their text.

A user with a client id gets the strongest of eight levels, in the order of Kafka's
ClientQuotaManager (KIP-55, KIP-124, KIP-599), unless brokers have a
`client.quota.callback.class`. Quotas of `ip` are separate.

The schema of a block and the rules of quotas use the same sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import Enum
from ipaddress import ip_address

from msgspec import Struct

from kafkaform.core.change import Path
from kafkaform.core.diagnostics import suggest
from kafkaform.core.schema import KeySchema
from kafkaform.core.text import INT_MAX, LONG_MAX, render_quantity
from kafkaform.core.value import FrozenMap, Value

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


USER, CLIENT_ID = "user", "client-id"

Quotas = Mapping[FrozenMap, Mapping[str, Decimal]]
"""Entity -> quota key -> value. An entity maps `user`, `client-id` or `ip` to a name, or to None
for the default entity. What is not in the map is not part of the entity."""


class EntityPart(Enum):
    """How an entity names its user, or its client id."""

    NAMED = "named"
    DEFAULT = "default"
    NONE = "none"


class Level(Struct, frozen=True):
    """One kind of entity."""

    number: int
    """1 is the strongest level."""
    user: EntityPart
    client_id: EntityPart


# `<default user> + client id` (4) is stronger than `<default user>` (6), but weaker than a named
# user alone (3): the user decides first. KIP-248's QuotaSource has the same order, from 0 to 7.
LEVELS = (
    Level(1, EntityPart.NAMED, EntityPart.NAMED),
    Level(2, EntityPart.NAMED, EntityPart.DEFAULT),
    Level(3, EntityPart.NAMED, EntityPart.NONE),
    Level(4, EntityPart.DEFAULT, EntityPart.NAMED),
    Level(5, EntityPart.DEFAULT, EntityPart.DEFAULT),
    Level(6, EntityPart.DEFAULT, EntityPart.NONE),
    Level(7, EntityPart.NONE, EntityPart.NAMED),
    Level(8, EntityPart.NONE, EntityPart.DEFAULT),
)


class LevelLimit(Struct, frozen=True):
    """The limit of one level for one quota key."""

    level: Level
    entity: FrozenMap
    value: Decimal | None
    """None if the level has no limit for this key."""
    sharers: tuple[str | None, str | None]
    """The user and the client id that share this limit: a name, or None for all."""


def list_levels(key: str, user: str, client_id: str, quotas: Quotas) -> tuple[LevelLimit, ...]:
    """All eight levels in order; the first one with a value applies."""
    return tuple(_read_level(level, key, user, client_id, quotas) for level in LEVELS)


def find_applying(key: str, user: str, client_id: str, quotas: Quotas) -> LevelLimit | None:
    """The level that applies, or None if nothing limits this key."""
    # Key by key: one client can have its producer_byte_rate from level 1 and its
    # controller_mutation_rate from level 8.
    levels = list_levels(key, user, client_id, quotas)
    return next((level for level in levels if level.value is not None), None)


def list_weaker(entity: Mapping[str, str | None]) -> tuple[FrozenMap, ...]:
    """The entities whose limits apply where this one has none, the strongest first. Of an entity
    that covers several users or client ids, those that apply to all of these: some of them can have
    limits of their own."""
    if not entity.keys() & {USER, CLIENT_ID}:
        return tuple(
            FrozenMap({component: None}) for component, name in entity.items() if name is not None
        )
    entity_parts = [_find_part(entity, kind) for kind in (USER, CLIENT_ID)]
    own = next(level for level in LEVELS if [level.user, level.client_id] == entity_parts)
    names = (entity.get(USER), entity.get(CLIENT_ID))
    return tuple(
        _make_entity(level, *names)
        for level in LEVELS
        if level.number > own.number
        and (level.user is not EntityPart.NAMED or names[0] is not None)
        and (level.client_id is not EntityPart.NAMED or names[1] is not None)
    )


def _find_part(entity: Mapping[str, str | None], kind: str) -> EntityPart:
    if kind not in entity:
        return EntityPart.NONE
    return EntityPart.DEFAULT if entity[kind] is None else EntityPart.NAMED


def _make_entity(level: Level, user: str | None, client_id: str | None) -> FrozenMap:
    components = ((USER, level.user, user), (CLIENT_ID, level.client_id, client_id))
    return FrozenMap(
        {
            kind: name if level_part is EntityPart.NAMED else None
            for kind, level_part, name in components
            if level_part is not EntityPart.NONE
        }
    )


def entity_text(entity: Mapping[str, str | None]) -> str:
    """The entity in words: `user ci, default client-id`."""
    order = sorted(entity, reverse=True)
    return ", ".join(
        f"default {kind}" if entity[kind] is None else f"{kind} {entity[kind]}" for kind in order
    )


def sharers_text(user: str | None, client_id: str | None) -> str:
    """`LevelLimit.sharers` in words."""
    if user is None:
        return f"anybody with {CLIENT_ID} {client_id}"
    if client_id is None:
        return f"any client of {USER} {user}"
    return f"{USER} {user} with {CLIENT_ID} {client_id}"


def _read_level(level: Level, key: str, user: str, client_id: str, quotas: Quotas) -> LevelLimit:
    entity = _make_entity(level, user, client_id)
    # A default entity is a template: each user or client id that it covers gets its own bucket.
    sharers = (
        None if level.user is EntityPart.NONE else user,
        None if level.client_id is EntityPart.NONE else client_id,
    )
    return LevelLimit(level, entity, quotas.get(entity, {}).get(key), sharers)


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
