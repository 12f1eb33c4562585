"""Replace Python's crash output, so that tracebacks and core dumps cannot leak secrets.

An exception in a thread, in a destructor or outside of `app.run_command_line` is reported in one
line, without its text, which can contain a secret, and without the values of variables.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

from . import terminal

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
