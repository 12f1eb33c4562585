"""Read an expression, evaluate it, print its value, again and again: for people and for pipes.

What an expression means is not known here: `Evaluate` is handed in.
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
from ...render.text import render_block
from ...syntax.scan import scan
from ...syntax.source import Source
from ...syntax.tokens import TRIVIA, Frame
from ...workflow.configuration.places import find_state_home
from .console import Console

Evaluate: TypeAlias = Callable[[str], tuple[str | None, Diagnostics]]
"""The text of an expression -> its value as HCL text, or None, and the faults."""

PROMPT, MORE = "> ", "… "
HISTORY_LINES = 1000
HELP = """Type an expression, such as var.name, local.list[0] or upper("a"), to see its value.
An open bracket or heredoc goes on in the next line; Ctrl-C drops what was typed.
`exit` or Ctrl-D ends."""
_STILL_OPEN = ('Unclosed "', "Unclosed heredoc", "Unclosed comment")


def converse(evaluate: Evaluate, console: Console) -> int:
    """At a terminal: prompts, a history, and going on after errors. Always 0."""
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
    """From a pipe: every expression in turn; 1 if one of them failed."""
    results = []
    for text in split_expressions(lines):
        if text.strip() == "exit":
            break
        results.append(_answer_expression(text, evaluate, console))
    return int(not all(results))


def split_expressions(lines: Iterable[str]) -> Iterator[str]:
    """The expressions that some lines hold; the last one may be unfinished."""
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
    """Whether the expression goes on, because a bracket, heredoc or comment is not closed yet,
    and nothing else is wrong with it."""
    faults = scan(Source("", f"{text}\n"), Frame.EXPRESSION).faults
    return bool(faults) and all(fault.summary.startswith(_STILL_OPEN) for fault in faults)


def _answer_expression(text: str, evaluate: Evaluate, console: Console) -> bool:
    """Print the value or what is wrong; whether all went well."""
    if text.strip() == "help":
        console.write(HELP)
        return True
    found = scan(Source("", text), Frame.EXPRESSION)
    if not found.faults and all(token.type in TRIVIA for token in found.tokens):
        return True
    value, faults = evaluate(f"{text}\n")
    console.show_diagnostics(faults)
    if value is not None:
        console.write(render_block(value))
    return not has_errors(faults)


# -- the terminal


@contextmanager
def raise_interrupts() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt here instead of ending the program."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def locate_history(of: str) -> Path:
    """Where the lines of a console or a shell are kept."""
    return find_state_home() / f"{of}_history"


@contextmanager
def keep_history(file: Path) -> Iterator[None]:
    """Lines of earlier consoles, for the arrow keys; kept from other users, since people type
    secrets. Where nothing can be kept, nothing is."""
    try:
        import readline  # noqa: PLC0415  # not every Python has it
    except ImportError:  # a Python without it
        yield
        return
    with suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        readline.set_history_length(HISTORY_LINES)
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
            file.chmod(0o600)
            readline.write_history_file(file)


def run_console(evaluate: Evaluate, console: Console) -> int:
    """Until the end of input: a conversation if somebody is there, else all that comes."""
    if sys.stdin.isatty():
        return converse(evaluate, console)
    try:
        return answer_all(sys.stdin, evaluate, console)
    except UnicodeDecodeError:
        raise UsageError(
            f"standard input is not {sys.stdin.encoding.upper()} text",
            "Write expressions in that encoding, or set PYTHONIOENCODING.",
        ) from None
