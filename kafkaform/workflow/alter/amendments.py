"""What `alter` makes of its flags: one draft for each object, with the edit that it wants.

Topics, brokers, groups and subscriptions have configs, users and clients limits, and users SCRAM
credentials, too. Everything that is not named stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kafkaform_kafka.kinds.config.resource_type import (
    BROKER,
    DEFAULTS,
    GROUP,
    METRICS,
    SET,
    ConfigScope,
)
from kafkaform_kafka.kinds.quota.resource_type import ENTITY_TYPES, entity_key
from kafkaform_kafka.kinds.user.resource_type import FEWEST, MECHANISMS, identity_key
from kafkaform_kafka.protocol.broker_rules import is_internal

from ...core.errors import UsageError
from ...core.value import EMPTY, FrozenMap, SecretRef, Value, freeze
from ...plan.amend import Edit
from ...render.text import inline
from .config_lists import Pair, parse_keys, parse_pairs

ADD, DELETE = "--add-config", "--delete-config"
TOPIC, TOPIC_CONFIG = "kafka_topic", "kafka_topic_config"
QUOTA, SCRAM = "kafka_quota", "kafka_user_scram_credential"
DEFAULTABLE = frozenset({"broker", "user", "client", "ip"})
"""What --entity-default can stand for."""
_ENV = re.compile(r"env:([A-Za-z_]\w*)", re.ASCII)


class Alteration(Struct, frozen=True):
    """What shall be different. entity: topic, broker, user, …; names: None is the default one;
    client_id: beside users, as in (True, "app"): given, and its name or None for the default;
    cancel_move: nothing but that the moves of these topics stop; elect_preferred: nothing but
    that their first replicas lead."""

    entity: str
    names: tuple[str | None, ...]
    add: tuple[Pair, ...]
    delete: tuple[str, ...]
    client_id: tuple[bool, str | None] = (False, None)
    cancel_move: bool = False
    elect_preferred: bool = False


class Draft(NamedTuple):
    """One object and what shall become of it. secret: its secrets are sent; gone: keys that are
    to be removed, for a note about those that are not set."""

    kind: str
    key: str
    edit: Edit
    secret: bool = False
    gone: tuple[str, ...] = ()


def read_alteration(
    entity: str,
    names: Sequence[str | None],
    add: Sequence[str],
    delete: Sequence[str],
    client_id: tuple[bool, str | None] = (False, None),
) -> Alteration:
    """The flags' texts, read. An empty name is the default one (KIP-248). Raises UsageError."""
    added = tuple(pair for text in add for pair in parse_pairs(text, ADD))
    deleted = tuple(key for text in delete for key in parse_keys(text, DELETE))
    given = [pair.key for pair in added]
    if not given and not deleted:
        raise UsageError("nothing is to be changed", f"Give {ADD} k=v or {DELETE} k.")
    twice = next((key for key in given if given.count(key) > 1 or key in deleted), None)
    if twice is not None:
        raise UsageError(f"{inline(twice)} is given twice", "Say once what shall become of it.")
    if not names:
        advice = "Name one, or give --entity-default." if entity in DEFAULTABLE else "Name one."
        raise UsageError(f"no {entity} is named", advice)
    return Alteration(entity, read_entity_names(entity, names), added, deleted, client_id)


def read_entity_names(entity: str, names: Sequence[str | None]) -> tuple[str | None, ...]:
    """The names, each once; None for an empty one, which means the default (KIP-248). Raises
    UsageError where there is none."""
    if "" in names and entity not in DEFAULTABLE:
        raise UsageError(
            f"no {entity} has an empty name",
            f"An empty name is the default, which only {', '.join(sorted(DEFAULTABLE))} have.",
        )
    return tuple(dict.fromkeys(name or None for name in names))


# ── what becomes of one object ──────────────────────────────────────────────────────────


def _make_config_edit(
    named: Mapping[str, Value],
    put: Mapping[str, Value],
    wanted: Alteration,
    *,
    always: bool = False,
) -> Edit:
    """Keys are set and removed, all others stay. named: attributes of an object that is not
    there yet; always: it stays even without a config."""

    def edit(before: FrozenMap | None) -> FrozenMap | None:
        attributes = before if before is not None else FrozenMap(named)
        config = FrozenMap(attributes.get("config") or EMPTY).without(wanted.delete)
        after = attributes.with_items({"config": config.with_items(put)})
        return after if always or after["config"] else None

    return edit


def _draft_topic(wanted: Alteration, name: str | None) -> Iterator[Draft]:
    assert name is not None  # the command has no default topic
    put = {pair.key: pair.value for pair in wanted.add}
    if is_internal(name):
        edit = _make_config_edit({"topic": name}, put, wanted)
        yield Draft(TOPIC_CONFIG, name, edit, gone=wanted.delete)
    else:
        yield Draft(
            TOPIC, name, _make_config_edit({}, put, wanted, always=True), gone=wanted.delete
        )


def _make_config_drafter(scope: ConfigScope) -> Callable[[Alteration, str | None], Iterator[Draft]]:
    """Drafts of one kind of dynamic configs."""

    def drafts(wanted: Alteration, name: str | None) -> Iterator[Draft]:
        real = DEFAULTS if scope is BROKER and name is None else scope
        key = _check_broker_id(name) if real is BROKER else name or "default"
        put, secrets = _split_secrets(wanted.add) if real.secrets else (_map_pairs(wanted.add), {})
        edit = _make_scoped_edit(real, key, put, secrets, wanted)
        yield Draft(real.kind, key, edit, bool(secrets), wanted.delete)

    return drafts


def _check_broker_id(name: str | None) -> str:
    if name is None or not (name.isascii() and name.isdigit()):
        raise UsageError(
            f"{inline(name or '')!r} is not the id of a broker",
            "Give a number, or --entity-default for what all brokers share.",
        )
    return str(int(name))


def _map_pairs(added: tuple[Pair, ...]) -> Mapping[str, Value]:
    return {pair.key: pair.value for pair in added}


def _split_secrets(added: tuple[Pair, ...]) -> tuple[Mapping[str, Value], Mapping[str, Value]]:
    """Values, and references to secrets: those that are written env:NAME."""
    found = {pair.key: (pair.value, _ENV.fullmatch(pair.value)) for pair in added}
    plain: dict[str, Value] = {key: text for key, (text, ref) in found.items() if ref is None}
    hidden: dict[str, Value] = {
        key: SecretRef("env", ref[1]) for key, (_, ref) in found.items() if ref is not None
    }
    return plain, hidden


def _make_scoped_edit(
    scope: ConfigScope,
    key: str,
    put: Mapping[str, Value],
    secrets: Mapping[str, Value],
    wanted: Alteration,
) -> Edit:
    inner = _make_config_edit(scope.make_attributes(key, EMPTY, EMPTY), put, wanted, always=True)

    def edit(before: FrozenMap | None) -> FrozenMap | None:
        after = inner(before)
        assert after is not None  # always
        kept = FrozenMap(after.get("secret_keys") or EMPTY).without(wanted.delete)
        there = kept.with_items(dict.fromkeys(secrets, SET))
        hidden: dict[str, Value] = {}
        if there or after.get("secret_keys"):
            hidden["secret_keys"] = there
        if secrets:
            hidden["secret_config"] = FrozenMap(secrets)
        return after.with_items(hidden) if after["config"] or there else None

    return edit


def _make_quota_drafter(part: str) -> Callable[[Alteration, str | None], Iterator[Draft]]:
    """Drafts of limits; those of a user may come with SCRAM credentials."""

    def drafts(wanted: Alteration, name: str | None) -> Iterator[Draft]:
        entity: dict[str, str | None] = {part: name}
        with_client, client = wanted.client_id
        if with_client:
            entity["client-id"] = client
        scram = [pair for pair in wanted.add if pair.key in MECHANISMS]
        lost = [key for key in wanted.delete if key in MECHANISMS]
        if part == "user" and (scram or lost):
            yield from _draft_credentials(name, with_client, scram, lost)
        limits = replace(
            wanted,
            add=tuple(pair for pair in wanted.add if pair not in scram),
            delete=tuple(key for key in wanted.delete if key not in lost),
        )
        if limits.add or limits.delete:
            ordered = FrozenMap({p: entity[p] for p in ENTITY_TYPES if p in entity})
            put = {pair.key: _parse_limit(pair) for pair in limits.add}
            edit = _make_config_edit({"entity": ordered}, put, limits)
            yield Draft(QUOTA, entity_key(ordered), edit, gone=limits.delete)

    return drafts


def _parse_limit(pair: Pair) -> Value:
    """A limit. Raises UsageError for what is none."""
    try:
        number = Decimal(pair.value)
    except InvalidOperation:
        number = Decimal("NaN")
    if number.is_finite() and number > 0:
        return freeze(number)
    raise UsageError(
        f"{ADD}, character {pair.at}: {inline(pair.key)} is not a number above 0",
        f"A limit is a number above 0. {DELETE} {inline(pair.key)} lifts it.",
    )


def _draft_credentials(
    name: str | None, with_client: bool, scram: list[Pair], lost: list[str]
) -> Iterator[Draft]:
    if name is None or with_client:
        raise UsageError(
            "SCRAM credentials belong to one user", "Name the user, without client ids."
        )
    for pair in scram:
        yield Draft(SCRAM, identity_key(name, pair.key), _make_upsert(name, pair), secret=True)
    for mechanism in lost:
        yield Draft(SCRAM, identity_key(name, mechanism), lambda _: None)


def _make_upsert(name: str, pair: Pair) -> Edit:
    """`SCRAM-SHA-256=[iterations=8192,password=env:NAME]`."""
    given = {item.key: item.value for item in parse_pairs(pair.value, f"{ADD} {pair.key}")}
    unknown = next((key for key in given if key not in ("iterations", "password")), None)
    if unknown is not None:
        raise UsageError(
            f"{pair.key} has no {inline(unknown)}", "Write [iterations=8192,password=env:NAME]."
        )
    password = _ENV.fullmatch(given.get("password", ""))
    if password is None:
        raise UsageError(
            f"{pair.key}: the password is taken from the environment only, because a command "
            "line is visible to others and kept in histories",
            "Write password=env:NAME and set the environment variable NAME.",
        )
    rounds = given.get("iterations")
    if rounds is not None and not (rounds.isascii() and rounds.isdigit()):
        raise UsageError(f"{pair.key}: iterations is not a number", "Write 8192, for instance.")

    def edit(before: FrozenMap | None) -> FrozenMap | None:
        kept = before["scram_iterations"] if before is not None else FEWEST
        return FrozenMap(
            username=name,
            scram_mechanism=pair.key,
            scram_iterations=kept if rounds is None else int(rounds),
            password=SecretRef("env", password[1]),
        )

    return edit


DRAFTS: Mapping[str, Callable[[Alteration, str | None], Iterator[Draft]]] = {
    "topic": _draft_topic,
    "broker": _make_config_drafter(BROKER),
    "group": _make_config_drafter(GROUP),
    "client-metrics": _make_config_drafter(METRICS),
    "user": _make_quota_drafter("user"),
    "client": _make_quota_drafter("client-id"),
    "ip": _make_quota_drafter("ip"),
}
"""What is typed after `alter` -> what it changes."""
