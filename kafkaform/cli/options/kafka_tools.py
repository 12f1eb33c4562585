"""Options of Kafka's own tools that kafkaform understands (kafka-configs.sh, kafka-topics.sh,
kafka-acls.sh and the like; KIP-248 for `describe` and `alter`).

`kafka_advice` says what to type instead of the others.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.diagnostics import suggest
from ...core.errors import UsageError

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

HOW_TO_NAME = (
    f"Write `kafkaform describe {TYPE} topics {NAME} NAME` or "
    f"`kafkaform alter {TYPE} topics {NAME} NAME --add-config K=V`."
)
NO_LOGGERS = (
    "Kafka does not keep the levels of loggers, so they cannot be declared; "
    "kafka-configs.sh changes them until the broker restarts."
)


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
                raise UsageError(f"{flag} has no value", HOW_TO_NAME)
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
            raise UsageError(f"{TYPE} broker-loggers is not managed", NO_LOGGERS)
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
