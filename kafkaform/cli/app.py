"""The way in: one command line in, one exit code out, never a traceback.

Commands that editors and hooks run all day are called at once (`quick`); all others go through
typer (`command_tree`), which takes longer to load than those take to run. Exit codes are those of
`core.errors`.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ..core.errors import Ended, KafkaformError, exit_code
from .crash_hooks import hold_standard_streams, install_hooks, prevent_core_dumps
from .quick import find_quick_command
from .terminal.console import Console
from .terminal.outlet import Unwritable, filter_output, make_unwritten_fault
from .terminal.signals import (
    NOTHING_CHANGED,
    SIGNALS,
    end_on_signals,
    end_process,
    find_end,
    work_in_child,
)

GARBAGE = 20_000
"""New objects before the collector looks for garbage; Python's own number is 700."""
ENDED = "The command ended where its output could not be written."
DONE = (
    "Only its output is missing: the command went on to its end, and what it changed is recorded. "
    "`kafkaform audit show` shows what an apply has done."
)
ANSWERS = frozenset(
    ("fleet", name) for name in ("query", "who-can", "permissions", "history", "status", "report")
)
"""Commands that a query engine answers, which looks for no signals."""
VERSION_LINES: Mapping[tuple[str, ...], bool] = {
    ("version",): False,
    ("--version",): False,
    ("version", "-json"): True,
    ("version", "--json"): True,
}
"""Command lines that are answered before the parser of command lines is loaded -> as JSON."""
INTERRUPTED = frozenset(128 + number for number in SIGNALS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line and exit with its code."""
    # Loading modules makes a hundred thousand objects and no garbage: look for it less often.
    gc.set_threshold(GARBAGE)
    hold_standard_streams()
    install_hooks()
    prevent_core_dumps()
    end_on_signals()
    words = sys.argv[1:] if arguments is None else list(arguments)
    if ANSWERS.intersection(pairwise(words)):
        work_in_child()
    code = run_command_line(words)
    if code in INTERRUPTED:
        end_process(code)
    sys.exit(code)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command line; the process exit code. What it writes passes the filter of secrets."""
    with filter_output() as outlet:
        console = Console.make_standard(
            no_color=not {"--no-color", "-no-color"}.isdisjoint(arguments)
        )
        try:
            code = _run_command(arguments, console)
            sys.stdout.flush()
        except Unwritable as fault:
            return _end_unread(fault, console)
        if outlet.out.lost is None:
            return code
        console.show_diagnostics((make_unwritten_fault(outlet.out.lost, DONE),))
        return code or 1


def _run_command(arguments: Sequence[str], console: Console) -> int:
    """Find and call the command; its exit code, whatever ends it."""
    try:
        if tuple(arguments) in VERSION_LINES:
            from .terminal.versions import show_version  # noqa: PLC0415  # one command needs it

            show_version(json=VERSION_LINES[tuple(arguments)])
            return 0
        command = find_quick_command(arguments)
        if command is not None:
            return command()
        from .command_tree import run_typed  # noqa: PLC0415  # typer is slow to load

        return run_typed(arguments, console)
    except Ended as ended:
        return _end_interrupted(ended, console)
    except KafkaformError as error:
        console.show_diagnostics(error.diagnostics)
        return exit_code(error)
    except Exception as error:  # noqa: BLE001  # the last line of defence: a fault of ours
        if (end := find_end(error)) is not None:
            return _end_interrupted(end, console)
        from .bug_report import explain_error  # noqa: PLC0415  # only a fault of ours needs it

        console.show_diagnostics((explain_error(error),))
        return 1


def _end_unread(fault: Unwritable, console: Console) -> int:
    """A command that ended because nobody takes its output. A reader that has seen enough is no
    error, and whoever waits for the exit code is told as the system would: by SIGPIPE."""
    if fault.reader_left:
        return 128 + signal.SIGPIPE
    console.show_diagnostics((make_unwritten_fault(fault.error, ENDED),))
    return 1


def _end_interrupted(ended: Ended, console: Console) -> int:
    console.note(f"\n{NOTHING_CHANGED}")
    return ended.exit_code
