"""Makes the rows of `describe quotas` (KIP-248)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from kafkaform.core.resource import Observed
from kafkaform.core.value import FrozenMap

from ..documents import sort_by_fields
from .levels import CLIENT_ID, USER
from .resource_type import DEFAULT

QUOTA_SOURCES: Mapping[tuple[bool | None, bool | None], str] = {
    (True, True): "Client of user",
    (True, False): "Default client of user",
    (True, None): "User",
    (False, True): "Client of default user",
    (False, False): "Default client of default user",
    (False, None): "Default user",
    (None, True): "Client",
    (None, False): "Default client",
}
"""Whether the user and the client id have names (None: not part of the entity) -> KIP-248's
QuotaSource."""


def list_quotas(
    items: Sequence[Observed], _: str, fields: Mapping[str, str | None]
) -> tuple[FrozenMap, ...]:
    """The quotas that fit. fields: entity part -> glob for its name, None for entities without that
    part; the default entity has the name `default`, or the empty name (KIP-248)."""
    return tuple(
        FrozenMap(
            entity=item.attributes["entity"],
            config=item.attributes["config"],
            source=name_quota_source(item.attributes["entity"]),
        )
        for item in sort_by_fields(items)
        if all(_fits_glob(item.attributes["entity"], *field) for field in fields.items())
    )


def _fits_glob(entity: Mapping[str, str | None], kind: str, glob: str | None) -> bool:
    if kind not in entity or glob is None:
        return kind not in entity and glob is None
    name = entity[kind]
    if name is not None:
        return fnmatchcase(name, glob)
    # A name that only looks like the word is the name of a user or a client.
    return glob == DEFAULT or fnmatchcase("", glob)


def name_quota_source(entity: Mapping[str, str | None]) -> str:
    """KIP-248's name for the level of a quota."""
    if "ip" in entity:
        return "Default IP" if entity["ip"] is None else "IP"
    user, client = (
        entity[kind] is not None if kind in entity else None for kind in (USER, CLIENT_ID)
    )
    return QUOTA_SOURCES[user, client]
