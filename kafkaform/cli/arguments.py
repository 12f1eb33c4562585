"""Command lines as Terraform's users type them: `-out=x`, `-var a=b`, `-auto-approve`.

A single dash before a long name means two; short flags (`-q`, `-n5`) stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from typer.core import TyperGroup

LONG = 4
"""So long a name cannot be short flags in a row: the error should name it as it was meant."""

_SINGLE = re.compile(r"-(?P<name>[a-z][a-z0-9-]+)(?P<value>=.*)?", re.DOTALL)


def normalise(arguments: Sequence[str], root: TyperGroup) -> list[str]:
    """The same arguments with `--` before every long flag that was typed with `-`."""
    known = {"--help", *long_flags(root)}
    result: list[str] = []
    for n, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[n:]]
        match = _SINGLE.fullmatch(argument)
        if match and (f"--{match['name']}" in known or len(match["name"]) >= LONG):
            argument = f"-{argument}"
        result.append(argument)
    return result


def command_path(arguments: Sequence[str], root: TyperGroup) -> str:
    """The command that these arguments name, as one types it: `kafkaform state mv`."""
    path, group = ["kafkaform"], root
    for word in arguments:
        command = group.commands.get(word)
        if command is None:
            continue
        path.append(word)
        if not isinstance(command, TyperGroup):
            break
        group = command
    return " ".join(path)


def long_flags(group: TyperGroup) -> Iterator[str]:
    """Every long flag of the commands below a group."""
    for command in (group, *group.commands.values()):
        for parameter in command.params:
            yield from (o for o in (*parameter.opts, *parameter.secondary_opts) if o[:2] == "--")
        if isinstance(command, TyperGroup) and command is not group:
            yield from long_flags(command)
