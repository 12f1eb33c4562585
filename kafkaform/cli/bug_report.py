"""A fault of kafkaform itself, told as one: what it is, whose it is, how to report it.

The details go to a private file, since an exception's text can hold a value of the
configuration, and never to the screen. They are the trace without the values of variables, and
without the secrets of the run.
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
    "This is a fault of kafkaform, not of your configuration. Nothing is lost: each request is "
    "in the audit log before it is sent, and the next run finds out what became of it."
)


def explain_error(error: BaseException) -> Diagnostic:
    """One paragraph about an unexpected error, and where its details are."""
    return Diagnostic(
        Severity.ERROR,
        render_summary(type(error), error.__traceback__),
        detail=SAFE,
        advice=f"Report it to the project. {_write_details(error)}",
    )


def render_summary(kind: type[BaseException], trace: TracebackType | None) -> str:
    """What failed and where, without the words of the exception."""
    last = traceback.extract_tb(trace)[-1:]
    place = "".join(f" at {Path(frame.filename).name}, line {frame.lineno}" for frame in last)
    return f"kafkaform {VERSION} failed unexpectedly: {kind.__name__}{place}"


def _write_details(error: BaseException) -> str:
    """Write the trace to a new private file and say so; if that fails, say how to do without."""
    about = f"kafkaform {VERSION}, Python {platform.python_version()}, {platform.platform()}\n"
    text = mask_secrets(about + "".join(traceback.format_exception(error)))
    try:
        descriptor, name = tempfile.mkstemp(prefix="kafkaform-fault-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return "Say which command you ran and with which flags."
    return f"The details are in {name}; look for secrets in it before you share it."
