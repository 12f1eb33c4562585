"""Translate command lines that are typed as Kafka's own tools and Terraform want them.

Options of kafka-configs.sh, kafka-topics.sh, kafka-acls.sh and the like are understood (KIP-248 for
`describe` and `alter`); `advice` says what to type instead of the others. `-out=x`, `-var a=b` and
`-input=false` are Terraform's: a single dash before a long name means two; short flags (`-q`,
`-n5`) stay as they are. A flag with an opposite, such as --input and --no-input, can be given as
`=true` or `=false`.
"""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from typer.core import TyperGroup

from ...core.diagnostics import suggest
from ...core.errors import UsageError
from ...core.text import inline

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
ONLY = "--only"
"""The flag of `describe quotas` that leaves out the quotas of combinations."""

SCRAM_USER = "--username"
_SET = (
    "To set a password",
    "alter user {user} --add-config 'SCRAM-SHA-256=[iterations=8192,password=env:NAME]'",
)
SCRAM_TOOL: Mapping[str, tuple[tuple[str, str], ...]] = {
    "--describe": (("To see credentials", "describe users {user}"),),
    "--add": (_SET,),
    "--delete": (("To delete one", "alter user {user} --delete-config SCRAM-SHA-512"),),
}
"""Option of KIP-248's tool for SCRAM users -> what it does, and our command for that."""
SCRAM_BLOCK = "A kafka_user_scram_credential block declares a credential."

HOW_TO_NAME = (
    f"Write `kafkaform describe {TYPE} topics {NAME} NAME` or "
    f"`kafkaform alter {TYPE} topics {NAME} NAME --add-config K=V`."
)
NO_LOGGERS = (
    "Kafka does not keep the levels of loggers, so they cannot be declared; "
    "kafka-configs.sh changes them until the broker restarts."
)

LONG = 4
"""A name this long is not several short flags, so the error for it should name the long flag. A
name with a value, such as `-get=false`, is not either."""
SPLIT, FOLDERS = "--split", "folders"
"""A flag, and a word after it."""
DETAIL, FULL = "--detail", "full"
"""A flag, and the only value that somebody may give it."""

_SINGLE = re.compile(r"-(?P<name>[a-z][a-z0-9-]+)(?P<value>=.*)?", re.DOTALL)


def translate_words(words: Sequence[str], root: Any) -> Iterator[list[str]]:
    """The command lines that these words stand for: one in most cases, and two for users, who have
    quotas and credentials. Raises UsageError for an unknown entity type."""
    at = next((n for n, word in enumerate(words) if word in root.commands), len(words))
    end = words.index("--") if "--" in words else len(words)
    _refuse_scram_tool(words[:end])
    # What follows `--` are names, which can look like options.
    words = [*_spell_out(words[:end]), *words[end:]]
    before, command, tail = words[:at], words[at : at + 1], words[at + 1 :]
    does = command[0] if command else ""
    if does not in REDUNDANT:
        yield [*before, *command, *tail]
        return
    tail = list(_drop_redundant(tail, REDUNDANT[does]))
    options = bool(tail) and tail[0].startswith("-")
    if not options or not any(word.partition("=")[0] == TYPE for word in tail):
        yield [*before, *command, *tail]
        return
    types, names, remaining = _read_entities(tail)
    _refuse_unknown(types)
    for line in (_translate_describe if does == "describe" else _translate_alter)(
        types, names, remaining
    ):
        yield [*before, does, *line]


def _refuse_scram_tool(words: Sequence[str]) -> None:
    """Raises UsageError for the SCRAM tool of KIP-248, with the command that does the same. What
    was typed can hold a password, so only the name is repeated."""
    flags = [word.partition("=") for word in words]
    at = next((n for n, (flag, _, _) in enumerate(flags) if flag == SCRAM_USER), None)
    if at is None:
        return
    _, sign, value = flags[at]
    value_typed = value if sign else next(iter(words[at + 1 :]), "")
    user = (
        inline(shlex.quote(value_typed))
        if value_typed and not value_typed.startswith("-")
        else "NAME"
    )
    replacements = [line for flag, _, _ in flags for line in SCRAM_TOOL.get(flag, ())]
    lines = replacements or [line for group in SCRAM_TOOL.values() for line in group]
    named = " ".join(f"{text}: `kafkaform {line.format(user=user)}`." for text, line in lines)
    raise UsageError(
        f"kafkaform has no option {SCRAM_USER}, which is that of KIP-248's tool for SCRAM users",
        f"{named} {SCRAM_BLOCK} ZooKeeper is gone since Kafka 4.0: brokers store credentials.",
    )


def _spell_out(words: Sequence[str]) -> Iterator[str]:
    """The words, with the options of Kafka's tools under our names."""
    remaining = iter(words)
    for word in remaining:
        flag, sign, value = word.partition("=")
        listed = (value if sign else next(remaining, "")) if flag == LIST else ""
        if flag == LIST:
            yield from (f"{ONE}={item}" for item in _BETWEEN.split(listed))
        else:
            yield f"{SAME[flag]}{sign}{value}" if flag in SAME else word


def _drop_redundant(words: Sequence[str], redundant: frozenset[str]) -> Iterator[str]:
    """The words without options for what the command does anyway; no option follows `--`."""
    end = words.index("--") if "--" in words else len(words)
    yield from (word for word in words[:end] if word not in redundant)
    yield from words[end:]


def _read_entities(words: Sequence[str]) -> tuple[list[str], list[str | None], list[str]]:
    """Entity types, names (None for the default), and the other words."""
    types: list[str] = []
    names: list[str | None] = []
    remaining: list[str] = []
    stream = iter(words)
    for word in stream:
        flag, sign, value = word.partition("=")
        if flag == DEFAULT:
            names.append(None)
        elif flag in (TYPE, NAME):
            text = value if sign else next(stream, None)
            if text is None:
                raise UsageError(f"{flag} has no value", HOW_TO_NAME)
            if flag == TYPE:
                types.append(text)
            else:
                names.append(text or None)  # in KIP-248 an empty name is the default
        else:
            remaining.append(word)
    return types, names, remaining


def _refuse_unknown(types: Sequence[str]) -> None:
    """Raises UsageError for unknown types, and for types that do not go together."""
    for name in types:
        if name == "broker-loggers":
            raise UsageError(f"{TYPE} broker-loggers is not managed", NO_LOGGERS)
        if name not in ALTERED:
            listed = f"It is one of {', '.join(ALTERED)}."
            raise UsageError(
                f"{TYPE} {name!r} is not an entity type", suggest(name, ALTERED) or listed
            )
    if len(types) > 1 and (len(types) != len(_PAIR) or set(types) != _PAIR):
        raise UsageError(
            f"{TYPE} is given {len(types)} times: {', '.join(types)}",
            "Only users and clients go together: the clients of a user.",
        )


def _pair_entities(types: Sequence[str], names: Sequence[str | None]) -> Mapping[str, str | None]:
    """Entity type -> its name, paired in the order of the command line. Raises UsageError."""
    if len(names) != len(types):
        raise UsageError(
            f"{' and '.join(types)} need {len(types)} names, and there are {len(names)}",
            f"Give {NAME} or {DEFAULT} after each {TYPE}.",
        )
    return dict(zip(types, names, strict=True))


def _translate_describe(
    types: Sequence[str], names: Sequence[str | None], remaining: Sequence[str]
) -> Iterator[list[str]]:
    kind = types[0]
    if kind in CONFIGURED:
        named = [DEFAULT if name is None else f"{NAME}={name}" for name in names]
        yield ["configs", f"{TYPE}={kind}", *named, *remaining]
        return
    # Two types are one entity, a client of a user. Kafka's tool gives the names to the types in
    # their order, and a type without a name stands for all.
    if len(types) > 1:
        if len(names) > len(types):
            _pair_entities(types, names)
        globs = [*map(_escape_glob, names), "*", "*"]
        pairs = zip(types, globs, strict=False)
        yield [
            "quotas",
            *(f"{LIMITED[entity_type]}={glob}" for entity_type, glob in pairs),
            *remaining,
        ]
        return
    for name in names or ["*"]:
        only = "*" if not names else _escape_glob(name)
        yield ["quotas", f"{LIMITED[kind]}={only}", ONLY, *remaining]
    for name in names or ["*"]:
        if types == ["users"] and name is not None:
            yield ["users", f"--name={'*' if not names else _escape_glob(name)}", *remaining]


def _escape_glob(name: str | None) -> str:
    """A glob that matches this name only; the one of the default entity is empty."""
    if name is None:
        return ""
    # The word alone stands for the default entity.
    return "[d]efault" if name == "default" else glob.escape(name)


def _translate_alter(
    types: Sequence[str], names: Sequence[str | None], remaining: Sequence[str]
) -> Iterator[list[str]]:
    if len(types) > 1:
        pair = _pair_entities(types, names)
        client = pair["clients"]
        beside = "--client-default" if client is None else f"--client-id={client}"
        types, names, remaining = ["users"], [pair["users"]], [beside, *remaining]
    default = [DEFAULT] if None in names else []
    named = [name for name in names if name is not None]
    # A name can begin with a dash, so names come last.
    yield [ALTERED[types[0]], *default, *remaining, *(["--", *named] if named else [])]


def normalise_flags(arguments: Sequence[str], root: TyperGroup) -> list[str]:
    """The arguments with `--` before every long flag that was typed with `-`."""
    # Only the flags of the named command count, so that no other command is loaded for this.
    named = (root, *(command for _, command in _find_commands(arguments, root)))
    flags = {"--help"}
    for command in named:
        for parameter in command.params:
            flags.update(o for o in (*parameter.opts, *parameter.secondary_opts) if o[:2] == "--")
    result: list[str] = []
    for n, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[n:]]
        match = _SINGLE.fullmatch(argument)
        if match and (
            f"--{match['name']}" in flags or match["value"] or len(match["name"]) >= LONG
        ):
            argument = f"-{argument}"
        flag, _, value = argument.partition("=")
        opposite = f"--no-{flag[2:]}"
        if opposite in flags:
            # Terraform's users write `-write=false`; typer knows only `--no-write`.
            argument = {"true": flag, "false": opposite}.get(value, argument)
        if argument == f"{DETAIL}={FULL}":
            argument = DETAIL
        if argument == f"{SPLIT}={FOLDERS}":
            result.append(SPLIT)
            argument = FOLDERS
        if argument != FULL or result[-1:] != [DETAIL]:
            result.append(argument)
    return result


def move_color(arguments: Sequence[str]) -> list[str]:
    """The arguments with --color, which belongs to all commands, in front of the command."""
    ending = arguments.index("--") if "--" in arguments else len(arguments)
    front: list[str] = []
    remaining: list[str] = []
    words = iter(arguments[:ending])
    for word in words:
        flag, equal, _ = word.partition("=")
        if flag not in ("--color", "-color"):
            remaining.append(word)
        elif equal:
            front.append(word)
        else:
            front += (word, *(value for value in [next(words, None)] if value is not None))
    return [*front, *remaining, *arguments[ending:]]


def find_command_path(arguments: Sequence[str], root: TyperGroup) -> str:
    """The command that these arguments name, as it is typed: `kafkaform state mv`."""
    return " ".join(("kafkaform", *(word for word, _ in _find_commands(arguments, root))))


def _find_commands(words: Sequence[str], root: TyperGroup) -> Iterator[tuple[str, Any]]:
    """The groups and the command that the words name. No other command is looked up, because that
    would load it."""
    group = root
    for word in words:
        command = group.commands.get(word)
        if command is not None:
            yield word, command
            if not isinstance(command, TyperGroup):
                return
            group = command
