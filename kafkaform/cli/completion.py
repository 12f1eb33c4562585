"""Completion in the shell: commands, flags, and names that the system has now."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

from msgspec import Struct, field
from typer.core import TyperGroup

from ..core.errors import KafkaformError
from ..provider.commands import NameListing
from ..provider.contract import Session
from .command_tree import get_commands
from .commands import COMMANDS
from .offers.commands import find_completions
from .options.connection import ShellContext, Way
from .options.kafka_tools import ALTERED, DEFAULT, NAME, REDUNDANT, TYPE
from .terminal.console import Console

OFFERED = tuple(
    name for name in ("describe", "explain", "plan", "alter", "version") if name in COMMANDS
)
"""The commands of the shell."""
LEAVE = ("exit", "quit")

FRESH_SECONDS = 15.0
_EDITS = ("--add-config", "--delete-config")
_PLAIN = re.compile(r"[!%+,./:=@^\w-]+")
"""Names that need no quotes in a line. Others are not offered."""


class Completer(Struct):
    """Completes the lines of one shell."""

    kept: ShellContext
    """The connection of the shell."""
    known: dict[NameListing, tuple[float, tuple[str, ...]]] = field(default_factory=dict)
    """Listing -> when it was asked (`time.monotonic`), and its names."""

    @contextmanager
    def install(self) -> Iterator[None]:
        """Complete at the tab key inside the block, if this Python has readline."""
        try:
            import readline  # noqa: PLC0415  # not every Python has it
        except ImportError:  # a Python without it
            yield
            return
        names: list[str] = []

        def complete(text: str, number: int) -> str | None:
            if number == 0:
                line = readline.get_line_buffer()[: readline.get_begidx()]
                with suppress(Exception):  # a fault here must not end the line
                    names[:] = self.list_candidates(line, text)
            return names[number] if number < len(names) else None

        readline.set_auto_history(False)  # the shell adds lines itself, without those with secrets
        readline.set_completer_delims(" \t\n")
        readline.set_completer(complete)
        # macOS has libedit under the name of readline, with another syntax for keys.
        libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
        try:
            yield
        finally:
            readline.set_completer(None)
            readline.set_auto_history(True)

    def list_candidates(self, before: str, text: str) -> list[str]:
        """What `text` can be completed to, each with the blank after it. before: the line up to
        there.
        """
        offered = (
            name for name in self._list_offers(_split_words(before), text) if name.startswith(text)
        )
        return [name if name.endswith("=") else f"{name} " for name in sorted(set(offered))]

    def _list_offers(self, words: list[str], text: str) -> Iterable[str]:
        if not words:
            return (*OFFERED, "help", *LEAVE)
        if words[0] == "help":
            return OFFERED
        if words[0] not in OFFERED:
            return ()
        group = get_commands().commands[words[0]]
        if isinstance(group, TyperGroup):
            if words[0] in REDUNDANT and (words[1:] or [text])[0].startswith("-"):
                return self._complete_kafka_options(words)
            if len(words) == 1:
                return tuple(group.commands)
            command, name, typed = group.commands.get(words[1]), words[1], words[2:]
        else:
            command, name, typed = group, "", words[1:]
        if command is None:
            return ()
        if text.startswith("-"):
            return _list_flags(command)
        completions = find_completions(words[0], name)
        takes_value = _has_value(command, words[-1])
        complete = completions.get(words[-1] if takes_value else "")
        if complete:
            offers = tuple(complete(words, self.list_names))
        else:
            offers = _complete_in_command(command, typed, text)
        return offers if takes_value else offers or _list_flags(command)

    def _complete_kafka_options(self, words: Sequence[str]) -> Sequence[str]:
        """What can follow in a line with the options of Kafka's own tools."""
        kinds = [kind for flag, kind in pairwise(words) if flag == TYPE]
        if words[-1] == TYPE:
            return tuple(ALTERED)
        if words[-1] == NAME:
            kind = ALTERED.get(kinds[-1], "") if kinds else ""
            complete = find_completions("alter", kind).get("")
            return tuple(complete(("alter", kind), self.list_names)) if complete else ()
        return (TYPE, NAME, DEFAULT, *(_EDITS if words[0] == "alter" else ()))

    def list_names(self, listing: NameListing) -> tuple[str, ...]:
        """The names that a listing finds, without those that need quotes."""
        # Kept for some seconds, also if it failed: otherwise each press of the key would wait for a
        # system that does not answer.
        since, names = self.known.get(listing, (0.0, ()))
        now = time.monotonic()
        if listing not in self.known or now - since > FRESH_SECONDS:
            with suppress(KafkaformError):
                session = self._get_session()
                names = tuple(name for name in listing(session) if _PLAIN.fullmatch(name))
            self.known[listing] = (now, names)
        return names

    def _get_session(self) -> Session:
        way = Way(self.kept.flags, Console.make_standard(), self.kept)
        return self.kept.get_session(way.resolve_connection())


def _complete_in_command(command: Any, words: Sequence[str], text: str) -> tuple[str, ...]:
    """What the user's own shell completes there, with the functions of the command's parameters.
    words: those after the names of the command."""
    context = command.make_context("", list(words), resilient_parsing=True)
    last = words[-1] if words else ""
    flags = [one for one in command.params if last in one.opts and not one.is_flag]
    operands = [
        one
        for one in command.params
        if one.param_type_name == "argument" and (one.nargs < 0 or not context.params.get(one.name))
    ]
    return tuple(
        item.value
        for parameter in (flags or operands)[:1]
        for item in parameter.shell_complete(context, text)
    )


def _has_value(command: Any, flag: str) -> bool:
    return any(flag in parameter.opts and not parameter.is_flag for parameter in command.params)


def _split_words(text: str) -> list[str]:
    """The words before the one that is typed. Inside quotes nothing is offered."""
    try:
        words = shlex.split(text)
    except ValueError:
        return ["exit"]
    return words[1:] if words[:1] == ["kafkaform"] else words


def _list_flags(command: Any) -> tuple[str, ...]:
    return tuple(
        flag
        for parameter in command.params
        for flag in (*parameter.opts, *parameter.secondary_opts)
        if flag.startswith("--")
    )
