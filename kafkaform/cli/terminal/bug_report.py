"""Report an unexpected exception as a bug in kafkaform, with instructions for filing it.

The screen shows its type and place only, because the text of an exception can contain a value of
the configuration. A private file gets the traceback, without the values of variables and without
the secrets of the run.
"""

from __future__ import annotations

import errno
import os
import platform
import tempfile
import traceback
from pathlib import Path
from types import TracebackType

from ...core.diagnostics import Diagnostic, Severity
from ...core.installation import list_unfit_packages, render_install_command
from ...core.secret import mask_secrets
from ...core.storage import CAUSES
from ...version import VERSION

RECORDED = (
    "Nothing is lost: each request is in the audit log before it is sent, and the next run finds "
    "out its result."
)
SAFE = f"This is a bug in kafkaform, not a fault of your configuration. {RECORDED}"


def explain_error(error: BaseException) -> Diagnostic:
    """Describe an unexpected error in one paragraph, and name the file with its details."""
    return _explain_surroundings(error) or Diagnostic(
        Severity.ERROR,
        render_summary(type(error), error.__traceback__),
        detail=SAFE,
        advice=f"Report it to the project. {_write_details(error)}",
    )


def _explain_surroundings(error: BaseException) -> Diagnostic | None:
    """What the computer or its packages lack, None if the fault is ours."""
    if isinstance(error, OSError) and error.filename is not None and error.errno in CAUSES:
        cause, advice = CAUSES[error.errno]
        if error.errno == errno.EACCES:
            advice = "Give this user the right to use it, or use another place."
        return Diagnostic(Severity.ERROR, f"{error.filename}: {cause}", advice=advice)
    if isinstance(error, MemoryError):
        return Diagnostic(
            Severity.ERROR,
            "kafkaform got no more memory from the system",
            RECORDED,
            advice="Raise the limit of the process or container, then run the command again.",
        )
    unfit = [] if isinstance(error, OSError) else list(list_unfit_packages())
    if not unfit:
        return None
    return Diagnostic(
        Severity.ERROR,
        f"kafkaform {VERSION} does not work with the installed versions of its libraries",
        "\n".join((*(f"{text}." for text in unfit), RECORDED)),
        advice=f"Run `{render_install_command()}`.",
    )


def render_summary(kind: type[BaseException], trace: TracebackType | None) -> str:
    """What failed and where, without the text of the exception."""
    last = traceback.extract_tb(trace)[-1:]
    location = "".join(f" at {Path(frame.filename).name}, line {frame.lineno}" for frame in last)
    return f"kafkaform {VERSION} failed unexpectedly: {kind.__name__}{location}"


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
