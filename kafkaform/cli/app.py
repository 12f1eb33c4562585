"""The entry point: run one command line and exit with its code, never with a traceback.

The exit codes are those of `core.errors`.

Python's crash output is replaced, so that tracebacks and core dumps cannot leak secrets. An
exception in a thread, in a destructor or outside of `run_command_line` is reported in one line,
without its text, which can contain a secret, and without the values of variables.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from types import TracebackType
from typing import Any

from ..core.errors import Ended, KafkaformError, exit_code
from ..core.progress import Event, Message, report_slow_tasks
from ..core.text import inline
from . import terminal
from .terminal.console import Console, Unwritable, filter_output, make_unwritten_fault
from .terminal.signals import (
    NOTHING_CHANGED,
    SIGNALS,
    end_on_signals,
    end_process,
    find_end,
    work_in_child,
)

ENDED = "The command ended where its output could not be written."
DONE = (
    "Only its output is missing: the command went on to its end, and what it changed is recorded. "
    "`kafkaform audit show` shows what an apply has done."
)
ANSWERS = frozenset(
    ("fleet", name) for name in ("query", "who-can", "permissions", "history", "status", "report")
)
"""Commands that a query engine answers, which looks for no signals."""
INTERRUPTED = frozenset(128 + number for number in SIGNALS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line and exit with its code."""
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
    # At its end Python searches all objects for garbage, which takes a tenth of `validate`. Their
    # memory goes back to the system anyway, and whatever must reach a disk was closed before.
    gc.freeze()
    sys.exit(code)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. All its output passes the secrets filter."""
    with filter_output() as outlet:
        plain = not {"--no-color", "-no-color", "--color=never"}.isdisjoint(arguments)
        console = Console.make_standard(no_color=plain)
        try:
            try:
                # Here, so that a library of another version is explained, too.
                from .command_tree import run_typed  # noqa: PLC0415  # see above

                with report_slow_tasks(partial(_note_slow_task, console)):
                    code = run_typed(arguments, console)
            except (Ended, Exception) as error:  # noqa: BLE001  # the last line of defence
                code = _show_failure(error, console)
            sys.stdout.flush()
        except Unwritable as fault:
            # A reader that has seen enough, such as `head`, is no error: the exit code is the one
            # of a program that SIGPIPE ends.
            if fault.reader_left:
                return 128 + signal.SIGPIPE
            console.show_diagnostics((make_unwritten_fault(fault.error, ENDED),))
            return 1
        if outlet.out.write_error is None:
            return code
        console.show_diagnostics((make_unwritten_fault(outlet.out.write_error, DONE),))
        return code or 1


def _note_slow_task(console: Console, event: Event) -> None:
    if isinstance(event, Message):
        console.note(inline(event.text))


def _show_failure(error: BaseException, console: Console) -> int:
    """Show why the command failed, and return its exit code."""
    if isinstance(error, KafkaformError):
        console.show_diagnostics(error.diagnostics)
        return exit_code(error)
    # Compiled code that a signal interrupts raises an error of its own, with ours as its cause.
    if (ended := find_end(error)) is not None:
        ended.handled = True
        console.note(f"\n{NOTHING_CHANGED}")
        return ended.exit_code
    console.show_diagnostics((terminal.bug_report.explain_error(error),))
    return 1


_STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}
_QUIET = (SystemExit, BrokenPipeError)
"""Not reported: an exit that was asked for, and a reader that closed its pipe."""


def hold_standard_streams() -> None:
    """Put something that cannot be read or written in the place of each closed standard stream."""
    # Otherwise the next file that is opened, such as the audit log, gets the number of the closed
    # stream, and then everything that a library writes to standard error.
    for number, (name, mode) in enumerate(_STREAMS.items()):
        present = getattr(sys, name) is not None
        with suppress(OSError):
            os.fstat(number)
            if present:
                continue
        # For reading, also in the place of an output: writing fails then, as on a closed one.
        descriptor = os.open(os.devnull, os.O_RDONLY)
        if not present:
            # It stays open for the whole process.
            stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def install_hooks() -> None:
    """Report every exception that nothing catches as a bug in kafkaform."""
    sys.excepthook = _report_fault
    threading.excepthook = lambda fault: _report_fault(
        fault.exc_type, fault.exc_value, fault.exc_traceback
    )
    sys.unraisablehook = _report_unraisable


def _report_fault(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    if issubclass(kind, _QUIET) or sys.stderr is None:
        return
    with suppress(OSError, ValueError):  # standard error is closed
        ended = not issubclass(kind, Exception)
        sys.stderr.write(
            "Interrupted.\n"
            if ended
            else f"Error: {terminal.bug_report.render_summary(kind, trace)}\n"
        )


def _report_unraisable(fault: Any) -> None:
    _report_fault(fault.exc_type, fault.exc_value, fault.exc_traceback)


def prevent_core_dumps() -> None:
    """Keep the memory of this process, which will contain secrets, off the disk if it crashes."""
    # Child processes inherit the limit, such as the broker of the sandbox.
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
