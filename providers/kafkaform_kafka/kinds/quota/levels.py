"""Finds the client quota that applies to a user with a client id, among eight levels.

The order is that of Kafka's ClientQuotaManager (KIP-55, KIP-124, KIP-599), unless brokers have a
`client.quota.callback.class`. Quotas of `ip` are separate.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import Enum

from msgspec import Struct

from kafkaform.core.value import FrozenMap

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
