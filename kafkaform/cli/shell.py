"""The shell of KIP-4: commands typed one after another over one connection.

A line is what stands after `kafkaform`; typer parses it. No error ends the shell, nor does a
broker that restarts: whatever fails, the next line begins anew.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer
from msgspec import Struct

from ..core.diagnostics import suggest
from ..core.errors import KafkaformError, UsageError, exit_code
from ..core.redaction import holds_secret
from .bug_report import explain_error
from .command_tree import get_commands, run_typed
from .completion import LEAVE, OFFERED, Completer
from .options.connection import ShellContext, Way, connects
from .options.kafka_advice import advise_command
from .terminal.console import Console
from .terminal.repl import keep_history, locate_history, raise_interrupts

PROMPT = "kafkaform> "
_SECRET = re.compile(
    r"(?:passw|passphrase|secret|token|jaas|\.key\b)[^\s=]*\s*=(?!\s*\[?\s*(?:env|file):)|"
    r"://[^\s/@]+:[^\s/@]+@",
    re.IGNORECASE,
)
"""What may be followed by a secret: such lines are not kept."""


class Shell(Struct, frozen=True):
    """kept: what commands get; console: where errors go."""

    kept: ShellContext
    console: Console

    def run(self) -> int:
        """Until the end of input: a conversation if somebody is there, else all that comes; then
        1 if a line failed."""
        if sys.stdin.isatty():
            self._hold_conversation()
            return 0
        went_well = [self.answer(line) for line in _read_until_exit(sys.stdin)]
        return int(not all(went_well))

    def _hold_conversation(self) -> None:
        with (
            raise_interrupts(),
            keep_history(locate_history("shell")),
            Completer(self.kept).install(),
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
        """Carry out one line; whether all went well."""
        try:
            return self._carry_out(line) == 0
        except KeyboardInterrupt:
            self.console.note("Interrupted.")
            self.kept.close()
            return False
        except KafkaformError as error:
            self.console.show_diagnostics(error.diagnostics)
            if not isinstance(error, UsageError):
                self.kept.close()  # a new connection may find what this one lost
            return exit_code(error) == 0
        except Exception as error:  # noqa: BLE001  # a fault of ours does not end the shell
            self.console.show_diagnostics((explain_error(error),))
            self.kept.close()
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
        return run_typed(words, self.console, self.kept)

    def _show_help(self, words: Sequence[str]) -> int:
        if words:
            return run_typed([*words, "--help"], self.console, self.kept)
        for name in OFFERED:
            text = get_commands().commands[name].get_short_help_str(80)
            self.console.write(f"{name:<10}{text}")
        self.console.write(f"{'help':<10}Show this list; `help COMMAND` shows the details.")
        self.console.write(f"{'exit':<10}Leave the shell, like Ctrl-D. Ctrl-C discards a line.")
        return 0


def _split_words(line: str) -> list[str]:
    """The words of a line as a shell takes them apart; # begins a comment. Raises UsageError."""
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
    """Keep a line for the arrow keys, unless it may hold a secret."""
    import readline  # noqa: PLC0415  # not every Python has it

    if line.strip() and not _SECRET.search(line) and not holds_secret(line):
        readline.add_history(line)


def render_greeting(kept: ShellContext, cluster_id: str, principal: str | None) -> str:
    """What the shell says first."""
    who = f" as {principal}" if principal else ""
    may = "alter may change things" if kept.writes else "nothing is changed without --allow-apply"
    return f"Connected to cluster {cluster_id}{who}; {may}. `help` lists the commands."


@connects
def shell(
    way: Way,
    allow_apply: Annotated[
        bool, typer.Option("--allow-apply", help="Allow `alter` to make changes.")
    ] = False,
) -> int:
    """Run commands interactively over one connection.

    Knows describe, explain, plan and alter.

    The shell is read-only unless you give --allow-apply. It also runs commands from a pipe, one per
    line, and then exits with 1 if any of them failed.
    """
    kept = ShellContext(way.flags, allow_apply)
    try:
        session = kept.get_session(way.resolve_connection())
        greet = render_greeting(kept, session.facts.scope_id, session.facts.principal)
        way.console.note(greet)
        return Shell(kept, way.console).run()
    finally:
        kept.close()
