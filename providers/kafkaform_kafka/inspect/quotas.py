"""Explain which quotas apply to a client: the document and the page of `explain quota`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

from kafkaform.core.resource import Facts, Sweep
from kafkaform.core.text.display import Cells, Grid, Page, inline
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.commands import cell

from ..kinds.quota.limits import (
    CLIENT_ID,
    QUOTA_KEYS,
    USER,
    LevelLimit,
    Quotas,
    list_levels,
    sharers_text,
)
from ..kinds.quota.resource_type import IP, index_quotas, make_exact
from ..protocol.cluster_facts import KafkaFacts
from .cells import entity_text, limit_text

UNNAMED = "\0"
"""Stands for a user or client id that no quota names; no real one has this character."""


class Client(Struct, frozen=True):
    """The client that is asked about."""

    user: str | None = None
    client_id: str | None = None
    """The user or the client id is None for all that no quota names."""
    ip: str | None = None
    """The address from which it connects."""


def explain_quotas(client: Client, sweep: Sweep, facts: Facts) -> FrozenMap:
    """The document: `levels` (each with its entity and settings) and `limits` (each key with the
    level that applies, None if nothing limits it)."""
    # A custom client.quota.callback.class decides by rules of its own (KIP-257). The document names
    # it, and the page says that these levels are Kafka's.
    quotas = index_quotas(sweep)
    levels, limits = [], []
    if client.user is not None or client.client_id is not None:
        user, client_id = [
            UNNAMED if name is None else name for name in (client.user, client.client_id)
        ]
        rungs = {key: list_levels(key, user, client_id, quotas) for key in _list_keys(ip=False)}
        if UNNAMED in (user, client_id):
            rungs = {
                key: tuple(level for level in rung_levels if UNNAMED not in level.entity.values())
                for key, rung_levels in rungs.items()
            }
        levels += _describe_levels(rungs)
        limits += [_describe_limit(key, rung_levels) for key, rung_levels in rungs.items()]
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
        others=_list_others(client, quotas),
        callback=KafkaFacts.of(facts).quota_callback,
        levels=tuple(levels),
        limits=tuple(limits),
    )


def _list_others(client: Client, quotas: Quotas) -> tuple[str, ...]:
    """If only the user is given: the client ids that quotas name for this user; if only the client
    id is given: the users with quotas of their own. They have other limits than the answer says."""
    if (client.user is None) == (client.client_id is None):
        return ()
    kind, named, default = (
        (USER, client.user, CLIENT_ID)
        if client.client_id is None
        else (CLIENT_ID, client.client_id, USER)
    )
    fits = (entity for entity in quotas if entity.get(default) is not None)
    return tuple(
        sorted({entity[default] for entity in fits if entity.get(kind, named) in (named, None)})
    )


def _list_keys(*, ip: bool) -> tuple[str, ...]:
    return tuple(name for name, key in QUOTA_KEYS.items() if key.ip == ip)


def _describe_levels(rungs: Mapping[str, tuple[LevelLimit, ...]]) -> list[FrozenMap]:
    """The eight levels. A level has the same entity for every key."""
    return [
        FrozenMap(
            level=step[0].level.number,
            entity=step[0].entity,
            config=FrozenMap(
                {
                    key: make_exact(rung.value)
                    for key, rung in zip(rungs, step, strict=True)
                    if rung.value is not None
                }
            ),
        )
        for step in zip(*rungs.values(), strict=True)
    ]


def _describe_limit(key: str, rungs: tuple[LevelLimit, ...]) -> FrozenMap:
    winner = next((rung for rung in rungs if rung.value is not None), None)
    if winner is None:
        return _make_row(key, None, None, None, None)
    return _make_row(
        key, winner.level.number, winner.entity, winner.value, _name_sharers(*winner.sharers)
    )


def _name_sharers(user: str | None, client_id: str | None) -> str:
    """Who shares a limit. Of those that no quota names, each has it alone."""
    if UNNAMED not in (user, client_id):
        return sharers_text(user, client_id)
    kind, default, named = (
        (USER, CLIENT_ID, client_id) if user == UNNAMED else (CLIENT_ID, USER, user)
    )
    return f"each {kind} alone" + (f", with {default} {named}" if named is not None else "")


def _describe_addresses(ip: str, quotas: Quotas) -> list[FrozenMap]:
    """The levels of addresses (KIP-612): the address itself and the default. They have no
    number."""
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
    winner = next((row for row in levels if key in row["config"]), None)
    if winner is None:
        return _make_row(key, None, None, None, None)
    value = Decimal(str(winner["config"][key]))
    return _make_row(key, None, winner["entity"], value, f"everybody who connects from {ip}")


def _make_row(
    key: str,
    level: int | None,
    entity: FrozenMap | None,
    value: Decimal | None,
    shared_by: str | None,
) -> FrozenMap:
    quota_key = QUOTA_KEYS[key]
    row: dict[str, Value] = {
        "key": key,
        "of": "ip" if quota_key.ip else "client",
        "unit": quota_key.unit,
        "scope": quota_key.scope,
        "value": None if value is None else make_exact(value),
        "level": level,
        "entity": entity,
        "shared_by": shared_by,
    }
    return FrozenMap(row)


WINS = "*"
_OTHERS_SHOWN = 10
"""Names that the page lists of those with limits of their own."""


def quota_page(document: FrozenMap) -> Page:
    """The page of a document of `explain quota`."""
    if document["callback"]:
        yield (
            f"The brokers have client.quota.callback.class = {document['callback']}. Only that "
            "class decides. The following shows what Kafka's own rules would do with these quotas."
        )
        yield ""
    if document["user"] is not None or document["client_id"] is not None:
        entity = {"user": document["user"], "client-id": document["client_id"]}
        yield ", ".join(
            f"any {kind} without a limit of its own" if name is None else _render_client(kind, name)
            for kind, name in entity.items()
        )
        if document["others"]:
            kind = "client-id" if document["client_id"] is None else "user"
            option = "client ID" if kind == "client-id" else "user NAME"
            names = ", ".join(inline(name) for name in document["others"][:_OTHERS_SHOWN])
            hidden_count = len(document["others"]) - _OTHERS_SHOWN
            tail = f" and {hidden_count:,} more" if hidden_count > 0 else ""
            yield f"Other limits can apply with {kind} {names}{tail}: add `{option}`."
        numbered = [row for row in document["levels"] if row["level"] is not None]
        yield _render_grid(numbered, _select_limits(document, "client"))
        yield ""
    if document["ip"] is not None:
        yield _render_client("ip", document["ip"])
        addresses = [row for row in document["levels"] if row["level"] is None]
        yield _render_grid(addresses, _select_limits(document, "ip"))
        yield ""
    yield "What applies (* above):"
    yield Grid(tuple(map(_render_limit, document["limits"])))


def _render_client(kind: str, name: str) -> str:
    return entity_text({kind: name})


def _select_limits(document: FrozenMap, whom: str) -> list[FrozenMap]:
    return [limit for limit in document["limits"] if limit["of"] == whom]


def _render_grid(levels: list[FrozenMap], limits: list[FrozenMap]) -> Grid:
    keys = [limit["key"] for limit in limits]
    rows: list[Cells] = [("Level", "Entity", *keys)]
    for level in levels:
        number = cell(level["level"]) if level["level"] is not None else ""
        values = (_render_value(level, limit) for limit in limits)
        rows.append((number, entity_text(level["entity"]), *values))
    return Grid(tuple(rows), frozenset({0}))


def _render_value(level: Mapping[str, Any], limit: FrozenMap) -> str:
    text = limit_text(limit["key"], level["config"].get(limit["key"]))
    return f"{text} {WINS}" if limit["entity"] == level["entity"] else text


def _render_limit(limit: FrozenMap) -> Cells:
    if limit["value"] is None:
        return limit["key"], "no limit", ""
    text = limit_text(limit["key"], limit["value"])
    counted = text if limit["unit"] == "bytes/s" else f"{text} {limit['unit']}"
    return limit["key"], f"{counted} at {limit['scope']}", f"shared by {limit['shared_by']}"
