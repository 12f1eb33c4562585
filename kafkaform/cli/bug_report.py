"""Report an unexpected exception as a bug in kafkaform, with instructions for filing it.

The screen shows its type and place only, because the text of an exception can contain a value of
the configuration. A private file gets the traceback, without the values of variables and without
the secrets of the run.
"""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from pathlib import Path
from types import TracebackType

from ..core.diagnostics import Diagnostic, Severity
from ..core.redaction import mask_secrets
from ..version import VERSION

SAFE = (
    "This is a bug in kafkaform, not a fault of your configuration. Nothing is lost: each request "
    "is in the audit log before it is sent, and the next run finds out its result."
)


def explain_error(error: BaseException) -> Diagnostic:
    """Describe an unexpected error in one paragraph, and name the file with its details."""
    return Diagnostic(
        Severity.ERROR,
        render_summary(type(error), error.__traceback__),
        detail=SAFE,
        advice=f"Report it to the project. {_write_details(error)}",
    )


def render_summary(kind: type[BaseException], trace: TracebackType | None) -> str:
    """What failed and where, without the text of the exception."""
    last = traceback.extract_tb(trace)[-1:]
    place = "".join(f" at {Path(frame.filename).name}, line {frame.lineno}" for frame in last)
    return f"kafkaform {VERSION} failed unexpectedly: {kind.__name__}{place}"


def _write_details(error: BaseException) -> str:
    """Write the traceback to a new private file, and say where it is or what to report instead."""
    about = f"kafkaform {VERSION}, Python {platform.python_version()}, {platform.platform()}\n"
    text = mask_secrets(about + "".join(traceback.format_exception(error)))
    try:
        # mkstemp makes a file that only this user can read (mode 0600), under a name that nobody
        # can guess and prepare in a shared folder.
        descriptor, name = tempfile.mkstemp(prefix="kafkaform-fault-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return "Say which command you ran and with which flags."
    return f"The details are in {name}; look for secrets in it before you share it."
