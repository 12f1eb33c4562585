"""Read command lines as Terraform's users type them: `-out=x`, `-var a=b`, `-input=false`.

A single dash before a long name means two; short flags (`-q`, `-n5`) stay as they are. A flag
with an opposite, such as --input and --no-input, can be given as `=true` or `=false`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from typer.core import TyperGroup

LONG = 4
"""A name this long is not several short flags, so the error for it should name the long flag. A
name with a value, such as `-get=false`, is not either."""

DETAIL, FULL = "--detail", "full"
"""A flag, and the only value that somebody may give it."""

_SINGLE = re.compile(r"-(?P<name>[a-z][a-z0-9-]+)(?P<value>=.*)?", re.DOTALL)


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
