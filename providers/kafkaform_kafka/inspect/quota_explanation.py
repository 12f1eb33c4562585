"""Which limits a client has, and why: every level with what is set on it, and the one that wins.

Each key is looked up on its own (see `quota_levels`), and connections by address alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct

from kafkaform.core.resource import Facts, Sweep
from kafkaform.core.value import FrozenMap, Value

from ..kinds.quota.keys import QUOTA_KEYS
from ..kinds.quota.levels import LevelLimit, Quotas, list_levels, sharers_text
from ..kinds.quota.resource_type import IP, index_quotas, make_exact


class Client(Struct, frozen=True):
    """Who is asked about. user and client_id: both or none; ip: where it connects from."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None


def explain_quotas(client: Client, sweep: Sweep, facts: Facts) -> FrozenMap:
    """The document: levels (each with its entity and all that is set on it) and limits (each key
    with the level that applies, None: nothing limits it)."""
    quotas = index_quotas(sweep)
    levels, limits = [], []
    if client.user is not None and client.client_id is not None:
        rungs = {
            k: list_levels(k, client.user, client.client_id, quotas) for k in _list_keys(ip=False)
        }
        levels += _describe_levels(rungs)
        limits += [_describe_limit(key, found) for key, found in rungs.items()]
    if client.ip is not None:
        addresses = _describe_addresses(client.ip, quotas)
        levels += addresses
        limits += [
            _describe_address_limit(key, addresses, client.ip) for key in _list_keys(ip=True)
        ]
    return FrozenMap(
        format_version="1.0",
        kind="quota_explanation",
        cluster_id=facts.scope_id,
        user=client.user,
        client_id=client.client_id,
        ip=client.ip,
        callback=facts.values.get("quota_callback"),
        levels=tuple(levels),
        limits=tuple(limits),
    )


def _list_keys(*, ip: bool) -> tuple[str, ...]:
    return tuple(name for name, key in QUOTA_KEYS.items() if key.ip == ip)


def _describe_levels(rungs: Mapping[str, tuple[LevelLimit, ...]]) -> list[FrozenMap]:
    """The eight levels; each has the same entity in every key's ladder."""
    return [
        FrozenMap(
            level=same[0].level.number,
            entity=same[0].entity,
            config=FrozenMap(
                {
                    key: make_exact(found.value)
                    for key, found in zip(rungs, same, strict=True)
                    if found.value is not None
                }
            ),
        )
        for same in zip(*rungs.values(), strict=True)
    ]


def _describe_limit(key: str, rungs: tuple[LevelLimit, ...]) -> FrozenMap:
    found = next((rung for rung in rungs if rung.value is not None), None)
    if found is None:
        return _make_row(key, None, None, None, None)
    return _make_row(
        key, found.level.number, found.entity, found.value, sharers_text(*found.sharers)
    )


def _describe_addresses(ip: str, quotas: Quotas) -> list[FrozenMap]:
    """The address itself, else the default one; they have no number."""
    entities = (FrozenMap({IP: ip}), FrozenMap({IP: None}))
    return [
        FrozenMap(
            level=None,
            entity=entity,
            config=FrozenMap({key: make_exact(v) for key, v in quotas.get(entity, {}).items()}),
        )
        for entity in entities
    ]


def _describe_address_limit(key: str, levels: list[FrozenMap], ip: str) -> FrozenMap:
    found = next((row for row in levels if key in row["config"]), None)
    if found is None:
        return _make_row(key, None, None, None, None)
    value = Decimal(str(found["config"][key]))
    return _make_row(key, None, found["entity"], value, f"everybody who connects from {ip}")


def _make_row(
    key: str,
    level: int | None,
    entity: FrozenMap | None,
    value: Decimal | None,
    shared_by: str | None,
) -> FrozenMap:
    known = QUOTA_KEYS[key]
    row: dict[str, Value] = {
        "key": key,
        "of": "ip" if known.ip else "client",
        "unit": known.unit,
        "scope": known.scope,
        "value": None if value is None else make_exact(value),
        "level": level,
        "entity": entity,
        "shared_by": shared_by,
    }
    return FrozenMap(row)
