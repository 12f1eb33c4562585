"""`kafkaform console`: try expressions on this folder's configuration.

Expressions come from a terminal or a pipe. The shell uses the same loop, with a function of its own
that evaluates them (`Evaluate`).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from ...core.diagnostics import Diagnostics, has_errors
from ...core.errors import UsageError
from ...language.console import make_evaluator
from ...render.text import render_block
from ...syntax.nodes import Source
from ...syntax.scan import scan
from ...syntax.tokens import TRIVIA, Frame
from ...workflow.configuration.evaluation import Inputs, read_configuration
from ...workflow.configuration.places import find_state_home
from ..options.flags import NoColor, Var, VarFile
from ..terminal.console import Console

Evaluate: TypeAlias = Callable[[str], tuple[str | None, Diagnostics]]
"""The text of an expression -> its value as HCL, None after an error, and the faults."""

PROMPT, MORE = "> ", "… "
HISTORY_LINES = 1000
HELP = """Type an expression, such as var.name, local.list[0] or upper("a"), to see its value.
An open bracket or heredoc goes on in the next line; Ctrl-C drops what was typed.
`exit` or Ctrl-D ends."""
_STILL_OPEN = ('Unclosed "', "Unclosed heredoc", "Unclosed comment")


def console(var: Var = [], var_file: VarFile = [], no_color: NoColor = False) -> int:
    """Evaluate expressions against the configuration.

    Needs no cluster.

    You can use variables, locals, functions and what resources declare; `help` explains the rest.
    With expressions from a pipe, the console exits with 1 if any of them failed.
    """
    screen = Console.make_standard(no_color=no_color)
    configuration = read_configuration(Path(), Inputs.read(var, var_file))
    built = configuration.evaluate(offline=True)
    # A folder without files is no error here: functions can be tried anywhere.
    if configuration.tree.configuration:
        screen.show_diagnostics(built.desired.diagnostics)
    return run_console(make_evaluator(built), screen)


def converse(evaluate: Evaluate, console: Console) -> int:
    """Answer at a terminal, with prompts and a history, until the end of input. Returns 0."""
    with raise_interrupts(), keep_history(locate_history("console")):
        waiting: list[str] = []
        while True:
            try:
                waiting.append(input(MORE if waiting else PROMPT))
                text = "\n".join(waiting)
                if text.strip() == "exit":
                    return 0
                if not is_open(text):
                    waiting = []
                    _answer_expression(text, evaluate, console)
            except KeyboardInterrupt:
                console.note("")
                waiting = []
            except EOFError:
                console.note("")
                return 0


def answer_all(lines: Iterable[str], evaluate: Evaluate, console: Console) -> int:
    """Answer every expression of a pipe; returns 1 if one of them failed."""
    results = []
    for text in split_expressions(lines):
        if text.strip() == "exit":
            break
        results.append(_answer_expression(text, evaluate, console))
    return int(not all(results))


def split_expressions(lines: Iterable[str]) -> Iterator[str]:
    """Split lines into expressions; the last one can be unfinished."""
    waiting: list[str] = []
    for line in lines:
        waiting.append(line.rstrip("\r\n"))
        text = "\n".join(waiting)
        if not is_open(text):
            yield text
            waiting = []
    if waiting:
        yield "\n".join(waiting)


def is_open(text: str) -> bool:
    """Whether the expression continues in the next line, because a bracket, heredoc or comment is
    not closed yet. One with another error is complete, so that the error is shown."""
    faults = scan(Source("", f"{text}\n"), Frame.EXPRESSION).faults
    return bool(faults) and all(fault.summary.startswith(_STILL_OPEN) for fault in faults)


def _answer_expression(text: str, evaluate: Evaluate, console: Console) -> bool:
    """Print the value or the errors of an expression; returns whether it has a value."""
    if text.strip() == "help":
        console.write(HELP)
        return True
    scanned = scan(Source("", text), Frame.EXPRESSION)
    if not scanned.faults and all(token.type in TRIVIA for token in scanned.tokens):
        return True
    value, faults = evaluate(f"{text}\n")
    console.show_diagnostics(faults)
    if value is not None:
        console.write(render_block(value))
    return not has_errors(faults)


@contextmanager
def raise_interrupts() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt here instead of ending the program."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def locate_history(of: str) -> Path:
    """The file with the earlier lines of a console or a shell."""
    return find_state_home() / f"{of}_history"


@contextmanager
def keep_history(file: Path) -> Iterator[None]:
    """Load earlier lines for the arrow keys, and save them when the block ends, if possible."""
    try:
        import readline  # noqa: PLC0415  # not every Python has it
    except ImportError:  # Python can be built without it
        yield
        return
    # There is none before the first session, and a damaged one must not stop this one.
    with suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        readline.set_history_length(HISTORY_LINES)
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # People type secrets, so other users must not read the file, not even for a moment.
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
            file.chmod(0o600)
            readline.write_history_file(file)


def run_console(evaluate: Evaluate, console: Console) -> int:
    """Answer expressions until the end of input, from a terminal or a pipe."""
    if sys.stdin.isatty():
        return converse(evaluate, console)
    try:
        return answer_all(sys.stdin, evaluate, console)
    except UnicodeDecodeError:
        raise UsageError(
            f"standard input is not {sys.stdin.encoding.upper()} text",
            "Write expressions in that encoding, or set PYTHONIOENCODING.",
        ) from None
