"""The shell (KIP-4): type commands one after another over one connection.

A line is a command line without `kafkaform`, and typer parses it. Neither an error nor a broker
that restarts ends the shell: the next line starts again.
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
from ..core.secret import holds_secret
from .bug_report import explain_error
from .command_tree import get_commands, run_typed
from .completion import LEAVE, OFFERED, Completer
from .options.connection import ShellContext, Way, connects
from .options.kafka_advice import advise_command
from .terminal.console import Console
from .terminal.repl import keep_history, locate_history, raise_interrupts

PROMPT = "kafkaform> "
# A reference (env:NAME, file:PATH) is no secret, and such a line is recorded.
_SECRET = re.compile(
    r"(?:passw|passphrase|secret|token|jaas|\.key\b)[^\s=]*\s*=(?!\s*\[?\s*(?:env|file):)|"
    r"://[^\s/@]+:[^\s/@]+@",
    re.IGNORECASE,
)
"""What a secret can follow. Such lines are not recorded in the history."""


class Shell(Struct, frozen=True):
    """One run of the shell."""

    kept: ShellContext
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
        """Carry out one line. True if it succeeded."""
        try:
            return self._carry_out(line) == 0
        except KeyboardInterrupt:
            self.console.note("Interrupted.")
            self.kept.close()
            return False
        except KafkaformError as error:
            self.console.show_diagnostics(error.diagnostics)
            if not isinstance(error, UsageError):
                self.kept.close()  # the next line connects again, because the broker may be back
            return exit_code(error) == 0
        except Exception as error:  # noqa: BLE001  # a bug of ours does not end the shell
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
    context = ShellContext(way.flags, allow_apply)
    try:
        session = context.get_session(way.resolve_connection())
        greet = render_greeting(context, session.facts.scope_id, session.facts.principal)
        way.console.note(greet)
        return Shell(context, way.console).run()
    finally:
        context.close()
