"""A fault of kafkaform itself, told as one: what it is, whose it is, how to report it.

The details go to a private file, since an exception's text can hold a value of the
configuration, and never to the screen.
"""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from pathlib import Path

from .. import __version__
from ..core.diagnostics import Diagnostic, Severity

SAFE = (
    "This is a fault of kafkaform, not of your configuration. Nothing is lost: each request is "
    "in the audit log before it is sent, and the next run finds out what became of it."
)


def explained(error: Exception) -> Diagnostic:
    """One paragraph about an unexpected error, and where its details are."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}, line {last.lineno}"
    return Diagnostic(
        Severity.ERROR,
        f"kafkaform {__version__} failed unexpectedly: {type(error).__name__} at {place}",
        detail=SAFE,
        advice=f"Report it to the project. {_details(error)}",
    )


def _details(error: Exception) -> str:
    """Write the trace to a new private file and say so; if that fails, say how to do without."""
    about = f"kafkaform {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    text = about + "".join(traceback.format_exception(error))
    try:
        descriptor, name = tempfile.mkstemp(prefix="kafkaform-fault-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return "Say which command you ran and with which flags."
    return f"The details are in {name}; look for secrets in it before you share it."
