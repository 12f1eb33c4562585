"""Commands that answer before typer would be loaded: their flags as a table.

What this does not understand to the last word, such as `--help`, a wrong flag or `--chdir`, it
leaves to typer, which says what is wrong; a test holds the table to what typer knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple


class Flag(NamedTuple):
    """to: the parameter that it sets; takes: makes the value of the text after it, None for a
    flag without one; value: what it sets then; many: it can be given again and again."""

    to: str
    takes: Callable[[str], object] | None = None
    value: bool = True
    many: bool = False


class Quick(NamedTuple):
    """function: `module:name` in this package; operand: what words without a dash set."""

    function: str
    flags: Mapping[str, Flag]
    operand: Flag | None = None


_JSON, _NO_COLOR = Flag("json"), Flag("no_color")
_VAR, _VAR_FILE = Flag("var", str, many=True), Flag("var", Path, many=True)

QUICK: Mapping[str, Quick] = {
    "validate": Quick(
        "terminal.validation:validate",
        {
            "untrusted": Flag("untrusted"),
            "json": _JSON,
            "no-color": _NO_COLOR,
            "var": _VAR,
            "var-file": _VAR_FILE,
        },
    ),
    "fmt": Quick(
        "terminal.formatting:fmt",
        {
            "check": Flag("check"),
            "diff": Flag("diff"),
            "recursive": Flag("recursive"),
            "list": Flag("names"),
            "no-list": Flag("names", value=False),
            "write": Flag("write"),
            "no-write": Flag("write", value=False),
            "no-color": _NO_COLOR,
        },
        Flag("targets", Path, many=True),
    ),
    "output": Quick(
        "terminal.outputs:output",
        {"json": _JSON, "raw": Flag("raw"), "state": Flag("state", str)},
        Flag("name", str),
    ),
}
_FLAG = re.compile(r"--?(?P<name>[a-z][a-z-]+)(?:=(?P<text>.*))?", re.DOTALL)


def find_quick_command(arguments: Sequence[str]) -> Callable[[], int] | None:
    """The call that a command line means, or None if it is for typer."""
    command = QUICK.get(arguments[0]) if arguments else None
    values = _parse_words(command, iter(arguments[1:])) if command else None
    if command is None or values is None:
        return None
    module, _, name = command.function.partition(":")
    return partial(getattr(import_module(f".{module}", __package__), name), **values)


def _parse_words(command: Quick, words: Iterator[str]) -> dict[str, Any] | None:
    """parameter -> value, or None at the first word that is not plain."""
    values: dict[str, Any] = {}
    for word in words:
        meant = _parse_word(command, word, words)
        if meant is None:
            return None
        flag, value = meant
        if flag.many:
            values.setdefault(flag.to, []).append(value)
        elif flag is command.operand and flag.to in values:
            return None
        else:
            values[flag.to] = value
    return values


def _parse_word(command: Quick, word: str, words: Iterator[str]) -> tuple[Flag, object] | None:
    """The flag and the value of a word, and of the next one if it takes that."""
    if word == "-" or word[:1] != "-":
        operand = command.operand
        return (operand, operand.takes(word)) if operand and operand.takes else None
    match = _FLAG.fullmatch(word)
    flag = command.flags.get(match["name"]) if match else None
    if match is None or flag is None:
        return None
    text: str | None = match["text"]
    if flag.takes is None:
        return None if text is not None else (flag, flag.value)
    if text is None:
        text = next(words, "-")
        if text[:1] == "-":
            return None
    return flag, flag.takes(text)
