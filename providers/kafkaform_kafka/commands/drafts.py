"""Make drafts of the configs that a command line names: one for each object to change.

Topics, brokers, groups and subscriptions have configs. Users, clients and addresses have limits,
and users also have SCRAM credentials. Everything that is not named stays as it is.

Lists of configs have the form of KIP-248, `k1=v1,k2=[v1,v2],k3=v3`: commas separate configs, and a
value in square brackets can contain commas. Errors repeat nothing of a value, which can be a
password. They say its position instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Change, add_findings
from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Absent, Hidden, Identity, Reading
from kafkaform.core.text import WRITTEN, inline, parse_amount, parse_whole
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value, freeze
from kafkaform.provider.commands import Draft

from ..kinds.config.resource_type import BROKER, DEFAULTS, GROUP, METRICS, SET, ConfigScope
from ..kinds.quota.resource_type import ENTITY_TYPES, entity_key
from ..kinds.quota.resource_type import KIND as QUOTA
from ..kinds.topic.configs import KIND as TOPIC_CONFIG
from ..kinds.topic.resource_type import KIND as TOPIC
from ..kinds.user.resource_type import FEWEST, MECHANISMS, identity_key
from ..kinds.user.resource_type import KIND as SCRAM
from ..protocol.broker_rules import INTERNAL_TOPICS
from ..resource_kinds import WORDS
from ..rules.commanded import NOTHING_TO_REMOVE

FORM = "Write it as k1=v1,k2=[v1,v2]."


class Pair(NamedTuple):
    """One config of a list."""

    key: str
    value: str
    at: int
    """The position of the key in the text, from 1."""


def parse_pairs(text: str, flag: str) -> tuple[Pair, ...]:
    """The configs in the text of a flag. Raises UsageError with the position of the fault."""
    pairs: dict[str, Pair] = {}
    for start, item in _split_parts(text, flag):
        key, sign, value = item.partition("=")
        at = start + len(key) - len(key.lstrip())
        if not sign:
            raise _make_usage_error(flag, at, "a config without `=`")
        pair = Pair(key.strip(), _drop_brackets(value.strip(), flag, start + len(key) + 1), at + 1)
        if not pair.key:
            raise _make_usage_error(flag, at, "a value without a name")
        if pair.key in pairs:
            raise _make_usage_error(
                flag, at, f"{pair.key} again, which is at {pairs[pair.key].at}, too"
            )
        pairs[pair.key] = pair
    return tuple(pairs.values())


def parse_keys(text: str, flag: str) -> tuple[str, ...]:
    """The names in the text of a flag, each of them once. Raises UsageError."""
    keys = []
    for start, item in _split_parts(text, flag):
        if not item.strip() or "=" in item:
            raise _make_usage_error(
                flag, start, "only a name is allowed here", "Write it as k1,k2."
            )
        keys.append(item.strip())
    return tuple(dict.fromkeys(keys))


def _split_parts(text: str, flag: str) -> Iterator[tuple[int, str]]:
    """Position and text of each part between commas outside of brackets."""
    # A bracket counts only right after `=`: values such as PLAINTEXT://[::1]:9092 contain some.
    depth, start, opened = 0, 0, 0
    for at, char in enumerate(text):
        if char == "[" and (depth or text[start:at].rstrip().endswith("=")):
            opened = at if not depth else opened
            depth += 1
        elif char == "]" and depth:
            depth -= 1
        elif char == "," and not depth:
            yield start, text[start:at]
            start = at + 1
    if depth:
        raise _make_usage_error(flag, opened, "a [ that is never closed")
    if text[start:].strip() or start:
        yield start, text[start:]


def _drop_brackets(value: str, flag: str, at: int) -> str:
    """A value without the brackets around it."""
    if not value.startswith("["):
        return value
    if not value.endswith("]"):
        raise _make_usage_error(flag, at, "text after the ] of a value")
    return value[1:-1]


def _make_usage_error(flag: str, at: int, fault: str, advice: str = FORM) -> UsageError:
    return UsageError(f"{flag}, character {at + 1}: {fault}", advice)


Edit = Callable[[FrozenMap | None, Reading], FrozenMap | None]
"""See `Draft.edit`."""
ADD, DELETE = "--add-config", "--delete-config"
DEFAULTABLE = frozenset({"broker", "user", "client", "ip"})
"""Entities with a default one (--entity-default)."""
_KINDS = {
    "topic": TOPIC_CONFIG,
    "broker": BROKER.kind,
    "group": GROUP.kind,
    "client-metrics": METRICS.kind,
    **dict.fromkeys(("user", "client", "ip"), QUOTA),
}
"""Entity -> the type of the objects that have its configs."""
_ENV = re.compile(r"env:([A-Za-z_]\w*)", re.ASCII)


class ConfigEdit(Struct, frozen=True):
    """The configs that a command line sets and removes."""

    entity: str
    """topic, broker, user, …"""
    names: tuple[str | None, ...]
    """None is the default entity."""
    add: tuple[Pair, ...]
    delete: tuple[str, ...]
    client_id: tuple[bool, str | None] = (False, None)
    """Beside users: whether a client is given, and its name or None for the default one."""


def read_edit(
    entity: str,
    names: Sequence[str | None],
    add: Sequence[str],
    delete: Sequence[str],
    client_id: tuple[bool, str | None] = (False, None),
) -> ConfigEdit:
    """The edit that the texts of the flags mean. Raises UsageError."""
    pairs = (pair for text in add for pair in parse_pairs(text, ADD))
    added = tuple(_read_amount(entity, pair) for pair in pairs)
    deleted = tuple(key for text in delete for key in parse_keys(text, DELETE))
    keys = [pair.key for pair in added]
    if not keys and not deleted:
        raise UsageError("there is nothing to change", f"Give {ADD} k=v or {DELETE} k.")
    twice = next((key for key in keys if keys.count(key) > 1 or key in deleted), None)
    if twice is not None:
        raise UsageError(f"{inline(twice)} is given twice", "Name each config only once.")
    if not names:
        advice = "Name one, or give --entity-default." if entity in DEFAULTABLE else "Name one."
        raise UsageError(f"no {entity} is named", advice)
    return ConfigEdit(entity, read_entity_names(entity, names), added, deleted, client_id)


def _read_amount(entity: str, pair: Pair) -> Pair:
    """The config with a number instead of `7d` or `1KiB`, if its values have such a unit."""
    find_unit = WORDS.kinds[_KINDS[entity]].unit if entity in _KINDS else None
    unit = find_unit(("config", pair.key)) if find_unit is not None else ""
    if unit not in WRITTEN or pair.value.lstrip("-").isdecimal():
        return pair
    try:
        return pair._replace(value=str(parse_amount(pair.value, unit)))
    except ValueError:
        return pair  # the rules of the config say what is wrong


def read_entity_names(entity: str, names: Sequence[str | None]) -> tuple[str | None, ...]:
    """The names, each of them once, and None for an empty one, which means the default (KIP-248).
    Raises UsageError for an entity without a default."""
    if "" in names and entity not in DEFAULTABLE:
        raise UsageError(
            f"no {entity} has an empty name",
            f"An empty name is the default, which only {', '.join(sorted(DEFAULTABLE))} have.",
        )
    return tuple(dict.fromkeys(name or None for name in names))


def make_drafts(edit: ConfigEdit) -> tuple[Draft, ...]:
    """The objects that an edit changes. Raises UsageError for an impossible name or value."""
    return tuple(draft for name in edit.names for draft in DRAFTS[edit.entity](edit, name))


def refuse_missing(readings: Mapping[Identity, Reading]) -> None:
    """Raise UsageError for a topic that is not there, because `alter` never creates one."""
    for identity, reading in readings.items():
        if isinstance(reading, Absent):
            raise UsageError(
                f'there is no topic "{inline(identity.key)}"',
                "Correct the name; `kafkaform describe topics` lists the topics.",
            )
        if isinstance(reading, Hidden):
            raise UsageError(
                f'topic "{inline(identity.key)}" does not exist or is hidden: '
                f"{reading.right} is missing",
                f"Grant {reading.right}, or run as a principal that has it.",
            )


# ── one object ──────────────────────────────────────────────────────────


def _make_config_edit(
    named: Mapping[str, Value],
    put: Mapping[str, Value],
    config_edit: ConfigEdit,
    *,
    always: bool = False,
) -> Edit:
    """An edit that sets and removes keys; all others stay. named: attributes of an object that does
    not exist yet; always: it stays even without a config."""

    def edit(before: FrozenMap | None, _: Reading) -> FrozenMap | None:
        attributes = before if before is not None else FrozenMap(named)
        config = FrozenMap(attributes.get("config") or EMPTY).without(config_edit.delete)
        after = attributes.with_items({"config": config.with_items(put)})
        return after if always or after["config"] else None

    return edit


def _draft_topic(config_edit: ConfigEdit, name: str | None) -> Iterator[Draft]:
    assert name is not None  # the command has no default topic
    # Internal topics are created by Kafka and never declared as topics: only their configs can be
    # managed.
    put = {pair.key: pair.value for pair in config_edit.add}
    if name in INTERNAL_TOPICS:
        edit = _make_config_edit({"topic": name}, put, config_edit)
        yield Draft(TOPIC_CONFIG, name, edit, _make_note(config_edit))
    else:
        edit = _make_config_edit({}, put, config_edit, always=True)
        yield Draft(TOPIC, name, edit, _make_note(config_edit))


def _make_note(edit: ConfigEdit) -> Callable[[Change, Reading], Change]:
    return partial(_note_idle_keys, deleted=edit.delete)


def _note_idle_keys(change: Change, _: Reading, *, deleted: Sequence[str]) -> Change:
    """The change with a note about keys that are not set and so cannot be removed."""
    before = change.before or EMPTY
    live_keys = {*(before.get("config") or EMPTY), *(before.get("secret_keys") or EMPTY)}
    idle = [key for key in deleted if key not in live_keys and change.blocked is None]
    findings = (
        NOTHING_TO_REMOVE.find(
            f"{inline(key)} is not set here, so there is nothing to remove",
            fix=suggest(key, live_keys) or None,
        )
        for key in idle
    )
    return add_findings(change, *findings)


def _make_config_drafter(scope: ConfigScope) -> Callable[[ConfigEdit, str | None], Iterator[Draft]]:
    """A function that makes drafts of one kind of dynamic configs."""

    def drafts(config_edit: ConfigEdit, name: str | None) -> Iterator[Draft]:
        real = DEFAULTS if scope is BROKER and name is None else scope
        key = _check_broker_id(name) if real is BROKER else name or "default"
        put, secrets = (
            _split_secrets(config_edit.add)
            if real.secrets
            else ({pair.key: pair.value for pair in config_edit.add}, {})
        )
        edit = _make_scoped_edit(real, key, put, secrets, config_edit)
        yield Draft(real.kind, key, edit, _make_note(config_edit), secret=bool(secrets))

    return drafts


def _check_broker_id(name: str | None) -> str:
    number = parse_whole(name or "")
    if number is None:
        raise UsageError(
            f"{inline(name or '')!r} is not the id of a broker",
            "Give a number, or --entity-default for the configs that all brokers share.",
        )
    return str(number)  # 007 is broker 7, and keys have one spelling


def _split_secrets(added: tuple[Pair, ...]) -> tuple[Mapping[str, Value], Mapping[str, Value]]:
    """Values and references to secrets, which are written env:NAME."""
    matches = {pair.key: (pair.value, _ENV.fullmatch(pair.value)) for pair in added}
    plain: dict[str, Value] = {key: text for key, (text, ref) in matches.items() if ref is None}
    hidden: dict[str, Value] = {
        key: SecretRef("env", ref[1]) for key, (_, ref) in matches.items() if ref is not None
    }
    return plain, hidden


def _make_scoped_edit(
    scope: ConfigScope,
    key: str,
    put: Mapping[str, Value],
    secrets: Mapping[str, Value],
    config_edit: ConfigEdit,
) -> Edit:
    inner = _make_config_edit(
        scope.make_attributes(key, EMPTY, EMPTY), put, config_edit, always=True
    )

    def edit(before: FrozenMap | None, reading: Reading) -> FrozenMap | None:
        after = inner(before, reading)
        assert after is not None  # always
        # Brokers never report the values of secret configs. `secret_keys` says which are set, and a
        # new secret_version sends them.
        remaining = FrozenMap(after.get("secret_keys") or EMPTY).without(config_edit.delete)
        secret_keys = remaining.with_items(dict.fromkeys(secrets, SET))
        hidden: dict[str, Value] = {}
        if secret_keys or after.get("secret_keys"):
            hidden["secret_keys"] = secret_keys
        if secrets:
            hidden["secret_config"] = FrozenMap(secrets)
        return after.with_items(hidden) if after["config"] or secret_keys else None

    return edit


def _make_quota_drafter(component: str) -> Callable[[ConfigEdit, str | None], Iterator[Draft]]:
    """A function that makes drafts of limits and, for users, of SCRAM credentials."""

    def drafts(config_edit: ConfigEdit, name: str | None) -> Iterator[Draft]:
        entity: dict[str, str | None] = {component: name}
        with_client, client = config_edit.client_id
        if with_client:
            entity["client-id"] = client
        # kafka-configs.sh has credentials among the configs of users, under the name of the
        # mechanism (KIP-84), although they have an API of their own (KIP-554).
        scram = [pair for pair in config_edit.add if pair.key in MECHANISMS]
        removed = [key for key in config_edit.delete if key in MECHANISMS]
        if component == "user" and (scram or removed):
            yield from _draft_credentials(name, with_client, scram, removed)
        limits = replace(
            config_edit,
            add=tuple(pair for pair in config_edit.add if pair not in scram),
            delete=tuple(key for key in config_edit.delete if key not in removed),
        )
        if limits.add or limits.delete:
            ordered = FrozenMap({p: entity[p] for p in ENTITY_TYPES if p in entity})
            put = {pair.key: _parse_limit(pair) for pair in limits.add}
            edit = _make_config_edit({"entity": ordered}, put, limits)
            yield Draft(QUOTA, entity_key(ordered), edit, _make_note(limits))

    return drafts


def _parse_limit(pair: Pair) -> Value:
    """The number of a limit. Raises UsageError for anything else."""
    # NaN and infinity would be stored, and limit nobody: KIP-248 removed a limit with NaN.
    try:
        number = Decimal(pair.value)
    except InvalidOperation:
        number = Decimal("NaN")
    if number.is_finite() and number > 0:
        return freeze(number)
    raise UsageError(
        f"{ADD}, character {pair.at}: {inline(pair.key)} is not a number above 0",
        "A limit is a number above 0; limits in bytes can have a unit, such as 1MiB. "
        f"{DELETE} {inline(pair.key)} removes it.",
    )


def _draft_credentials(
    name: str | None, with_client: bool, scram: list[Pair], removed: list[str]
) -> Iterator[Draft]:
    if name is None or with_client:
        raise UsageError(
            "SCRAM credentials belong to one user", "Name the user, without a client id."
        )
    for pair in scram:
        yield Draft(SCRAM, identity_key(name, pair.key), _make_upsert(name, pair), secret=True)
    for mechanism in removed:
        yield Draft(SCRAM, identity_key(name, mechanism), lambda *_: None)


def _make_upsert(name: str, pair: Pair) -> Edit:
    """The edit of a credential such as `SCRAM-SHA-256=[iterations=8192,password=env:NAME]`."""
    values = {item.key: item.value for item in parse_pairs(pair.value, f"{ADD} {pair.key}")}
    unknown = next((key for key in values if key not in ("iterations", "password")), None)
    if unknown is not None:
        raise UsageError(
            f"{pair.key} has no {inline(unknown)}", "Write [iterations=8192,password=env:NAME]."
        )
    password = _ENV.fullmatch(values.get("password", ""))
    if password is None:
        raise UsageError(
            f"{pair.key}: the password is only accepted from the environment, because others can "
            "see a command line, and shells record it",
            "Write password=env:NAME and set the environment variable NAME.",
        )
    rounds = values.get("iterations")
    if rounds is not None and parse_whole(rounds) is None:
        raise UsageError(f"{pair.key}: iterations is not a number", "Write 8192, for example.")

    def edit(before: FrozenMap | None, _: Reading) -> FrozenMap | None:
        # Brokers refuse fewer than 4096 iterations, and more than 16384 (error 93).
        iterations = before["scram_iterations"] if before is not None else FEWEST
        return FrozenMap(
            username=name,
            scram_mechanism=pair.key,
            scram_iterations=iterations if rounds is None else int(rounds),
            password=SecretRef("env", password[1]),
        )

    return edit


DRAFTS: Mapping[str, Callable[[ConfigEdit, str | None], Iterator[Draft]]] = {
    "topic": _draft_topic,
    "broker": _make_config_drafter(BROKER),
    "group": _make_config_drafter(GROUP),
    "client-metrics": _make_config_drafter(METRICS),
    "user": _make_quota_drafter("user"),
    "client": _make_quota_drafter("client-id"),
    "ip": _make_quota_drafter("ip"),
}
"""What is typed after `alter` -> the function that makes its drafts."""
