"""Command lines as users of Kafka's own tools type them: what their options mean here, and what to
type where they mean nothing (kafka-configs.sh, kafka-topics.sh, kafka-acls.sh and the like;
KIP-248 for `describe` and `alter`).

The tables are the whole of it: `SAME` and `REDUNDANT` are understood, `INSTEAD` and `COMMANDS` are
answered.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.diagnostics import suggest
from ...core.errors import UsageError

ROOT = "kafkaform"
TYPE, NAME, DEFAULT = "--entity-type", "--entity-name", "--entity-default"

SAME: Mapping[str, str] = {
    "--adminclient.config": "--command-config",
    "--admin.config": "--command-config",
    "--command-property": "--client-property",
    "--bootstrap-servers": "--bootstrap-server",
}
"""An option of theirs -> ours that takes the same."""
LIST, ONE = "--adminclient-property", "--client-property"
"""KIP-248's option takes k1=v1,k2=v2; ours takes one of them."""
_BETWEEN = re.compile(r",(?=[\w.-]+=)")

REDUNDANT: Mapping[str, frozenset[str]] = {
    "describe": frozenset({"--describe", "--list", "--all"}),
    "alter": frozenset({"--alter"}),
}
"""Command -> what it does anyway."""

CONFIGURED = ("topics", "brokers", "groups", "client-metrics")
LIMITED: Mapping[str, str] = {"users": "--user", "clients": "--client-id", "ips": "--ip"}
"""Entity type -> the filter of `describe quotas` that names such an entity."""
ALTERED: Mapping[str, str] = {
    "topics": "topic",
    "brokers": "broker",
    "users": "user",
    "clients": "client",
    "ips": "ip",
    "groups": "group",
    "client-metrics": "client-metrics",
}
"""Entity type -> what follows `alter`."""
_PAIR = frozenset({"users", "clients"})

_BLOCK = 'by a block of the configuration, such as resource "kafka_topic", and `kafkaform apply`'
_MADE = f"Topics and ACLs are made, changed and deleted {_BLOCK}."
_ACL = (
    "ACLs are kafka_acl and kafka_access blocks; `kafkaform describe acls` lists those there are."
)
_SHAPE = (
    "Partitions and replicas are changed by the kafka_topic block (partitions, "
    "replication_factor, replica_assignment) and `kafkaform apply`."
)
_MOVES = f"{_SHAPE} `kafkaform alter topic NAME --cancel-move` stops a move."
_ALTER = "`kafkaform alter topic NAME --add-config K=V` changes configs, `--delete-config K` too."
_DESCRIBE = "`kafkaform describe topics`, `… configs`, `… acls` and others show what a cluster has."
_HEALTH = "`kafkaform describe topics` has it in the column Problems, `--json` in numbers."
_ELECT = "`kafkaform alter topic NAME --elect-preferred` lets the first replicas lead."
_THERE = "A plan does only what is not so yet; it needs no such option."
_ENTITY = (
    f"Write `kafkaform describe {TYPE} topics {NAME} NAME` or "
    f"`kafkaform alter {TYPE} topics {NAME} NAME --add-config K=V`."
)
_ENTITY_FLAG = f"Write {TYPE} and {NAME} or {DEFAULT}, or `kafkaform alter user NAME` and its like."
_ZOOKEEPER = "ZooKeeper is gone since Kafka 4.0; a cluster is reached by its brokers."
_CONTROLLER = "Controllers are not asked; brokers pass on what is for them."
CONNECTING = ("", _ZOOKEEPER, _CONTROLLER)
"""After these it is said how the command finds its brokers."""
_BROKERS = "Name brokers: `kafkaform describe topics --bootstrap-server HOST:PORT`, for instance."
_CONFIGURED = (
    "Brokers and login of this command stand in the provider block, or in the environment: "
    "KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS and its like."
)
_OFFSETS = "Members and offsets of groups are kafka-consumer-groups.sh's."
_LOGGERS = (
    "Kafka does not keep the levels of loggers, so they cannot be declared; "
    "kafka-configs.sh changes them until the broker restarts."
)

INSTEAD: Mapping[str, str] = {
    "--zookeeper": _ZOOKEEPER,
    "--zk-tls-config-file": _ZOOKEEPER,
    "--authorizer": _ZOOKEEPER,
    "--authorizer-properties": _ZOOKEEPER,
    "--bootstrap-controller": _CONTROLLER,
    "--bootstrap-server": "",
    "--command-config": "",
    "--client-property": "",
    "--alter": _ALTER,
    "--add-config": _ALTER,
    "--delete-config": _ALTER,
    "--config": _ALTER,
    "--add-config-file": "Write its lines as --add-config k1=v1,k2=[v2,v3].",
    "--describe": _DESCRIBE,
    "--list": _DESCRIBE,
    "--all": "`kafkaform describe configs` shows defaults, too.",
    TYPE: _ENTITY,
    NAME: _ENTITY,
    DEFAULT: "Only brokers, users, clients and ips have a default.",
    "--user-defaults": _ENTITY_FLAG,
    "--client-defaults": _ENTITY_FLAG,
    "--broker-defaults": _ENTITY_FLAG,
    "--ip-defaults": _ENTITY_FLAG,
    "--broker": _ENTITY_FLAG,
    "--client": _ENTITY_FLAG,
    "--user": _ENTITY_FLAG,
    "--client-metrics": _ENTITY_FLAG,
    "--broker-logger": _LOGGERS,
    "--topic": "Name topics without a flag: `kafkaform describe topics NAME`, "
    "`kafkaform alter topic NAME`; their configs are `kafkaform describe configs "
    "--entity-name NAME`.",
    "--topic-id": "`kafkaform describe topics` shows the ids of topics.",
    "--create": _MADE,
    "--delete": _MADE,
    "--if-exists": _THERE,
    "--if-not-exists": _THERE,
    "--partitions": _SHAPE,
    "--replication-factor": _SHAPE,
    "--replica-assignment": _SHAPE,
    "--topics-with-overrides": "`kafkaform describe configs` shows the source of each config.",
    "--under-replicated-partitions": _HEALTH,
    "--unavailable-partitions": _HEALTH,
    "--under-min-isr-partitions": _HEALTH,
    "--at-min-isr-partitions": _HEALTH,
    "--exclude-internal": "`kafkaform describe topics` says which are internal; --name chooses.",
    "--add": _ACL,
    "--remove": _ACL,
    "--allow-principal": _ACL,
    "--deny-principal": _ACL,
    "--allow-host": _ACL,
    "--deny-host": _ACL,
    "--producer": _ACL,
    "--consumer": _ACL,
    "--idempotent": _ACL,
    "--resource-pattern-type": _ACL,
    "--reassignment-json-file": _MOVES,
    "--topics-to-move-json-file": _MOVES,
    "--broker-list": _MOVES,
    "--generate": _MOVES,
    "--execute": _MOVES,
    "--verify": "`kafkaform plan` shows the moves that run, and every apply how they ended.",
    "--cancel": _MOVES,
    "--throttle": "The provider block has reassignment_throttle.",
    "--election-type": _ELECT,
    "--all-topic-partitions": _ELECT,
    "--path-to-json-file": _ELECT,
    "--validate-only": "The dry run of `kafkaform plan` and `kafkaform alter` is --validate.",
    "--reset-offsets": _OFFSETS,
    "--members": _OFFSETS,
}
"""An option of Kafka's tools that the typed command does not have -> what to do instead."""

_RESOURCE = "--resource-type and --resource-name choose, such as --resource-type Topic."
_FILTERS = "--user, --client-id and --ip choose; an empty name is the default."
HERE: Mapping[str, Mapping[str, str]] = {
    "kafkaform describe acls": dict.fromkeys(
        ("--topic", "--group", "--cluster", "--transactional-id", "--delegation-token"), _RESOURCE
    ),
    "kafkaform describe quotas": dict.fromkeys(("--client", TYPE, NAME, DEFAULT), _FILTERS),
}
"""Command -> options of which it is the right one, and what it calls them."""

OPERANDS: Mapping[str, str] = {
    "kafkaform describe users": "--name GLOB chooses.",
    "kafkaform describe brokers": "--name GLOB chooses among their ids.",
    "kafkaform describe acls": f"--principal chooses, such as User:ci. {_RESOURCE}",
    "kafkaform describe quotas": _FILTERS,
    "kafkaform explain access": "The resource is a flag, such as --topic NAME; so is --principal.",
    "kafkaform explain quota": "Whom it asks about are flags: --user and --client-id, or --ip.",
}
"""Command without operands -> what chooses there."""

_HOW = "`kafkaform describe {0}` shows them."
_CONFIGS = (
    "`kafkaform describe configs` shows configs, `kafkaform alter` changes them; "
    "`kafkaform describe quotas` and `kafkaform describe users` tell of clients and users."
)
_GROUPS = (
    "`kafkaform describe configs --entity-type groups` lists groups with their configs, "
    f"`kafkaform alter group NAME` changes these. {_OFFSETS}"
)
_TOPICS = f"{_HOW.format('topics')} {_MADE}"

COMMANDS: Mapping[str, str] = {
    "config": _CONFIGS,
    "configs": _CONFIGS,
    "kafka-configs": _CONFIGS,
    "topic": _TOPICS,
    "topics": _TOPICS,
    "kafka-topics": _TOPICS,
    "acl": _ACL,
    "acls": _ACL,
    "kafka-acls": _ACL,
    "quota": _HOW.format("quotas"),
    "quotas": _HOW.format("quotas"),
    "client": _HOW.format("quotas"),
    "clients": _HOW.format("quotas"),
    "ips": _HOW.format("quotas"),
    "user": _HOW.format("users"),
    "users": _HOW.format("users"),
    "broker": _HOW.format("brokers"),
    "brokers": _HOW.format("brokers"),
    "cluster": "`kafkaform describe cluster` shows it.",
    "kafka-cluster": "`kafkaform describe cluster` shows it.",
    "group": _GROUPS,
    "groups": _GROUPS,
    "client-metrics": "`kafkaform describe configs --entity-type client-metrics` lists them.",
    "kafka-groups": _GROUPS,
    "kafka-consumer-groups": _GROUPS,
    "kafka-reassign-partitions": _MOVES,
    "kafka-leader-election": _ELECT,
    "list": _DESCRIBE,
    "ls": _DESCRIBE,
    "get": _DESCRIBE,
    "create": _MADE,
    "delete": _MADE,
}
"""A word that is no command -> what to do instead."""


# ── what is understood ──────────────────────────────────────────────────────────────────


def translate_words(words: Sequence[str], root: Any) -> Iterator[list[str]]:
    """The command lines that these words stand for: mostly one, the same; users have limits and
    credentials, which are described by two. Raises UsageError for an entity type that is none."""
    at = next((n for n, word in enumerate(words) if word in root.commands), len(words))
    end = words.index("--") if "--" in words else len(words)
    words = [*_spell_out(words[:end]), *words[end:]]
    before, command, rest = words[:at], words[at : at + 1], words[at + 1 :]
    does = command[0] if command else ""
    if does not in REDUNDANT:
        yield [*before, *command, *rest]
        return
    rest = list(_drop_redundant(rest, REDUNDANT[does]))
    options = bool(rest) and rest[0].startswith("-")
    if not options or not any(word.partition("=")[0] == TYPE for word in rest):
        yield [*before, *command, *rest]
        return
    types, names, others = _read_entities(rest)
    _refuse_unknown(types)
    for line in (_translate_describe if does == "describe" else _translate_alter)(
        types, names, others
    ):
        yield [*before, does, *line]


def _spell_out(words: Sequence[str]) -> Iterator[str]:
    """The words with our names for their options."""
    rest = iter(words)
    for word in rest:
        flag, sign, value = word.partition("=")
        listed = (value if sign else next(rest, "")) if flag == LIST else ""
        if flag == LIST:
            yield from (f"{ONE}={item}" for item in _BETWEEN.split(listed))
        else:
            yield f"{SAME[flag]}{sign}{value}" if flag in SAME else word


def _drop_redundant(words: Sequence[str], redundant: frozenset[str]) -> Iterator[str]:
    """The words without what the command does anyway; what follows `--` is no option."""
    end = words.index("--") if "--" in words else len(words)
    yield from (word for word in words[:end] if word not in redundant)
    yield from words[end:]


def _read_entities(words: Sequence[str]) -> tuple[list[str], list[str | None], list[str]]:
    """Entity types, names (None is the default, as an empty one in KIP-248), and other words."""
    types: list[str] = []
    names: list[str | None] = []
    others: list[str] = []
    rest = iter(words)
    for word in rest:
        flag, sign, value = word.partition("=")
        if flag == DEFAULT:
            names.append(None)
        elif flag in (TYPE, NAME):
            text = value if sign else next(rest, None)
            if text is None:
                raise UsageError(f"{flag} has no value", _ENTITY)
            if flag == TYPE:
                types.append(text)
            else:
                names.append(text or None)
        else:
            others.append(word)
    return types, names, others


def _refuse_unknown(types: Sequence[str]) -> None:
    """Raises UsageError for types that are none, or do not go together."""
    for name in types:
        if name == "broker-loggers":
            raise UsageError(f"{TYPE} broker-loggers is not managed", _LOGGERS)
        if name not in ALTERED:
            listed = f"It is one of {', '.join(ALTERED)}."
            raise UsageError(
                f"{TYPE} {name!r} is no type of entity", suggest(name, ALTERED) or listed
            )
    if len(types) > 1 and (len(types) != len(_PAIR) or set(types) != _PAIR):
        raise UsageError(
            f"{TYPE} is given {len(types)} times: {', '.join(types)}",
            "Only users and clients go together: the clients of a user.",
        )


def _pair_entities(types: Sequence[str], names: Sequence[str | None]) -> Mapping[str, str | None]:
    """Entity type -> its name, in the order in which they are typed. Raises UsageError."""
    if len(names) != len(types):
        raise UsageError(
            f"{' and '.join(types)} need {len(types)} names, and there are {len(names)}",
            f"Give {NAME} or {DEFAULT} after each {TYPE}.",
        )
    return dict(zip(types, names, strict=True))


def _translate_describe(
    types: Sequence[str], names: Sequence[str | None], others: Sequence[str]
) -> Iterator[list[str]]:
    kind = types[0]
    if kind in CONFIGURED:
        named = [DEFAULT if name is None else f"{NAME}={name}" for name in names]
        yield ["configs", f"{TYPE}={kind}", *named, *others]
        return
    if len(types) > 1 and names:
        parts = [
            f"{LIMITED[part]}={_escape_glob(n)}" for part, n in _pair_entities(types, names).items()
        ]
        yield ["quotas", *parts, *others]
        return
    for name in names or ["*"]:
        only = "*" if not names else _escape_glob(name)
        yield ["quotas", *(f"{LIMITED[part]}={only}" for part in types), *others]
    for name in names or ["*"]:
        if types == ["users"] and name is not None:
            yield ["users", f"--name={'*' if not names else _escape_glob(name)}", *others]


def _escape_glob(name: str | None) -> str:
    """A glob that fits this name alone; the default entity has an empty one."""
    return "" if name is None else glob.escape(name)


def _translate_alter(
    types: Sequence[str], names: Sequence[str | None], others: Sequence[str]
) -> Iterator[list[str]]:
    if len(types) > 1:
        pair = _pair_entities(types, names)
        client = pair["clients"]
        beside = "--client-default" if client is None else f"--client-id={client}"
        types, names, others = ["users"], [pair["users"]], [beside, *others]
    default = [DEFAULT] if None in names else []
    named = [name for name in names if name is not None]
    yield [ALTERED[types[0]], *default, *others, *(["--", *named] if named else [])]


# ── what is answered ────────────────────────────────────────────────────────────────────


def advise_option(flag: str, command: Any, path: str) -> str | None:
    """What to do in place of an option that the command does not have; None if it is nobody's.
    command: the group or the command that refused it; path: how it is typed."""
    below = {} if path == ROOT else getattr(command, "commands", {})
    able = [name for name in below if flag in _list_flags(below[name])]
    if able:
        return f"It stands after what it is for: `{path} {able[0]} {flag}`."
    if flag in HERE.get(path, {}):
        return HERE[path][flag]
    if flag not in INSTEAD:
        return None
    reach = any("--bootstrap-server" in _list_flags(one) for one in (command, *below.values()))
    if INSTEAD[flag] not in CONNECTING:
        return INSTEAD[flag]
    return f"{INSTEAD[flag]} {_BROKERS if reach or path == ROOT else _CONFIGURED}".lstrip()


def advise_command(word: str) -> str | None:
    """What to do in place of a command that there is not; None if nobody has it."""
    return COMMANDS.get(word.removesuffix(".sh").removesuffix(".bat"))


def _list_flags(command: Any) -> frozenset[str]:
    return frozenset(opt for one in command.params for opt in (*one.opts, *one.secondary_opts))
