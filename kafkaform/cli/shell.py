"""The shell (KIP-4): type commands one after another over one connection. Tab completes commands,
flags, and names that the system has now.
"""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import Annotated, Any

import typer
from msgspec import Struct, field
from typer.core import TyperGroup

from ..core.diagnostics import suggest
from ..core.errors import KafkaformError, UsageError, exit_code
from ..core.secret import holds_secret
from ..provider.commands import NameListing
from ..provider.contract import Session
from ..provider.registry import Registry
from ..workflow.connection import KAFKA, ConnectionInputs
from .command_tree import get_commands, run_typed
from .commands import COMMANDS
from .commands.console import keep_history, locate_history, raise_interrupts
from .options.advice import advise_command
from .options.provider_commands import Opener, ShellContext, connects, find_completions
from .options.translation import ALTERED, DEFAULT, NAME, REDUNDANT, TYPE
from .terminal.bug_report import explain_error
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

PROMPT = "kafkaform> "
# A reference (env:NAME, file:PATH) is no secret, and such a line is recorded.
_SECRET = re.compile(
    r"(?:passw|passphrase|secret|token|jaas|\.key\b)[^\s=]*\s*=(?!\s*\[?\s*(?:env|file):)|"
    r"://[^\s/@]+:[^\s/@]+@",
    re.IGNORECASE,
)
"""What a secret can follow. Such lines are not recorded in the history."""


class Completer(Struct):
    """Completes the lines of one shell."""

    context: ShellContext
    """The connection of the shell."""
    names: dict[NameListing, tuple[float, tuple[str, ...]]] = field(default_factory=dict)
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
            name
            for name in self._list_offers(_split_typed_words(before), text)
            if name.startswith(text)
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
        takes_value = any(
            words[-1] in parameter.opts and not getattr(parameter, "is_flag", False)
            for parameter in command.params
        )
        complete = completions.get(words[-1] if takes_value else "")
        if complete:
            provider = Registry().find_provider(words[0], name)
            offers = tuple(complete(words, partial(self.list_names, provider=provider)))
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

    def list_names(self, listing: NameListing, provider: str = KAFKA) -> tuple[str, ...]:
        """The names that a listing finds, without those that need quotes. provider: the one that
        the listing asks."""
        # Kept for some seconds, also if it failed: otherwise each press of the key would wait for a
        # system that does not answer.
        since, names = self.names.get(listing, (0.0, ()))
        now = time.monotonic()
        if listing not in self.names or now - since > FRESH_SECONDS:
            # A listing that fails offers nothing; the command that is typed says why.
            with suppress(KafkaformError):
                session = self._get_session(provider)
                names = tuple(name for name in listing(session) if _PLAIN.fullmatch(name))
            self.names[listing] = (now, names)
        return names

    def _get_session(self, provider: str) -> Session:
        opener = Opener(ConnectionInputs(), Console.make_standard(), self.context, provider)
        return self.context.get_session(opener.resolve_connection())


def _complete_in_command(command: Any, words: Sequence[str], text: str) -> tuple[str, ...]:
    """What the user's own shell completes there, with the functions of the command's parameters.
    words: those after the names of the command."""
    context = command.make_context("", list(words), resilient_parsing=True)
    last = words[-1] if words else ""
    flags = [option for option in command.params if last in option.opts and not option.is_flag]
    operands = [
        option
        for option in command.params
        if option.param_type_name == "argument"
        and (option.nargs < 0 or not context.params.get(option.name))
    ]
    return tuple(
        item.value
        for parameter in (flags or operands)[:1]
        for item in parameter.shell_complete(context, text)
    )


def _split_typed_words(text: str) -> list[str]:
    """The words before the one that is typed. Inside quotes nothing is offered."""
    try:
        words = shlex.split(text)
    except ValueError:
        # `exit` takes no words, so nothing is offered behind it.
        return ["exit"]
    return words[1:] if words[:1] == ["kafkaform"] else words


def _list_flags(command: Any) -> tuple[str, ...]:
    return tuple(
        flag
        for parameter in command.params
        for flag in (*parameter.opts, *parameter.secondary_opts)
        if flag.startswith("--")
    )


class Shell(Struct, frozen=True):
    """One run of the shell."""

    context: ShellContext
    """Its connection, for the commands."""
    console: Console
    """Where errors are shown."""

    def run(self) -> int:
        """Read lines until the end of input. The exit code is 1 if a line of a script failed."""
        # A script from a pipe must show by its exit code that a line failed; at a terminal the
        # message is enough.
        if sys.stdin.isatty():
            self._hold_conversation()
            return 0
        went_well = [self.answer(line) for line in _read_until_exit(sys.stdin)]
        return int(not all(went_well))

    def _hold_conversation(self) -> None:
        with (
            raise_interrupts(),
            keep_history(locate_history("shell")),
            Completer(self.context).install(),
        ):
            while True:
                try:
                    line = input(PROMPT)
                    if line.strip() in LEAVE:
                        return
                    remember_line(line)
                    self.answer(line)
                except KeyboardInterrupt:
                    self.console.note("")
                except EOFError:
                    self.console.note("")
                    return

    def answer(self, line: str) -> bool:
        """Carry out one line. True if it succeeded."""
        try:
            return self._carry_out(line) == 0
        except KeyboardInterrupt:
            self.console.note("Interrupted.")
            self.context.close()
            return False
        except KafkaformError as error:
            self.console.show_diagnostics(error.diagnostics)
            if not isinstance(error, UsageError):
                self.context.close()  # the next line connects again, because the broker may be back
            return exit_code(error) == 0
        except Exception as error:  # noqa: BLE001  # a bug of ours does not end the shell
            self.console.show_diagnostics((explain_error(error),))
            self.context.close()
            return False

    def _carry_out(self, line: str) -> int:
        words = _split_words(line)
        if not words:
            return 0
        if words[0] == "help":
            return self._show_help(words[1:])
        if words[0] not in OFFERED:
            raise UsageError(
                f"{words[0]!r} is not a command of the shell",
                advise_command(words[0])
                or suggest(words[0], (*OFFERED, "help", *LEAVE))
                or "`help` lists the commands.",
            )
        return run_typed(words, self.console, self.context)

    def _show_help(self, words: Sequence[str]) -> int:
        if words:
            return run_typed([*words, "--help"], self.console, self.context)
        for name in OFFERED:
            text = get_commands().commands[name].get_short_help_str(80)
            self.console.write(f"{name:<10}{text}")
        self.console.write(f"{'help':<10}Show this list; `help COMMAND` shows the details.")
        self.console.write(f"{'exit':<10}Leave the shell, like Ctrl-D. Ctrl-C discards a line.")
        return 0


def _split_words(line: str) -> list[str]:
    """The words of a line, as a POSIX shell splits them; # begins a comment. Raises UsageError."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise UsageError(f"this line cannot be read: {error}", "Close the quotes.") from None
    return words[1:] if words[:1] == ["kafkaform"] else words


def _read_until_exit(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        if line.strip() in LEAVE:
            return
        yield line


def remember_line(line: str) -> None:
    """Add a line to the history, unless it can contain a secret."""
    import readline  # noqa: PLC0415  # not every Python has it

    if line.strip() and not _SECRET.search(line) and not holds_secret(line):
        readline.add_history(line)


def render_greeting(context: ShellContext, cluster_id: str, principal: str | None) -> str:
    """The first line of the shell."""
    identity = f" as {principal}" if principal else ""
    may = "alter can make changes" if context.writes else "changes need --allow-apply"
    return f"Connected to cluster {cluster_id}{identity}; {may}. `help` lists the commands."


@connects
def shell(
    opener: Opener,
    allow_apply: Annotated[
        bool, typer.Option("--allow-apply", help="Allow `alter` to make changes.")
    ] = False,
) -> int:
    """Run commands interactively over one connection.

    Knows describe, explain, plan and alter.

    The shell is read-only unless you give --allow-apply. It also runs commands from a pipe, one per
    line, and then exits with 1 if any of them failed.
    """
    context = ShellContext(opener.flags, allow_apply)
    try:
        session = context.get_session(opener.resolve_connection())
        greet = render_greeting(context, session.facts.scope_id, session.facts.principal)
        opener.console.note(greet)
        return Shell(context, opener.console).run()
    finally:
        context.close()
