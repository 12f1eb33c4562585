"""Command lines as Terraform's users type them: `-out=x`, `-var a=b`, `-input=false`.

A single dash before a long name means two; short flags (`-q`, `-n5`) stay as they are. A flag
with an opposite, such as --input and --no-input, may be given as `=true` or `=false`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from typer.core import TyperGroup

LONG = 4
"""So long a name cannot be short flags in a row: the error should name it as it was meant."""

_SINGLE = re.compile(r"-(?P<name>[a-z][a-z0-9-]+)(?P<value>=.*)?", re.DOTALL)


def normalise_flags(arguments: Sequence[str], root: TyperGroup) -> list[str]:
    """The same arguments with `--` before every long flag that was typed with `-`."""
    named = (root, *(command for _, command in _find_commands(arguments, root)))
    known = {"--help", *(flag for command in named for flag in _list_flags(command))}
    result: list[str] = []
    for n, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[n:]]
        match = _SINGLE.fullmatch(argument)
        if match and (f"--{match['name']}" in known or len(match["name"]) >= LONG):
            argument = f"-{argument}"
        result.append(_switch_flag(argument, known))
    return result


def _switch_flag(argument: str, known: Collection[str]) -> str:
    """`--write=false` as `--no-write`, if there is such a flag."""
    flag, _, value = argument.partition("=")
    opposite = f"--no-{flag[2:]}"
    return {"true": flag, "false": opposite}.get(value, argument) if opposite in known else argument


def find_command_path(arguments: Sequence[str], root: TyperGroup) -> str:
    """The command that these arguments name, as one types it: `kafkaform state mv`."""
    return " ".join(("kafkaform", *(word for word, _ in _find_commands(arguments, root))))


def _find_commands(words: Sequence[str], root: TyperGroup) -> Iterator[tuple[str, Any]]:
    """The groups and the command that the words name. No other command is looked at, since that
    would load it."""
    group = root
    for word in words:
        command = group.commands.get(word)
        if command is not None:
            yield word, command
            if not isinstance(command, TyperGroup):
                return
            group = command


def _list_flags(command: Any) -> Iterator[str]:
    """Every long flag of one command or group."""
    for parameter in command.params:
        yield from (o for o in (*parameter.opts, *parameter.secondary_opts) if o[:2] == "--")
