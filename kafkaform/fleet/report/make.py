"""From a root to files: the report in the form that a file's name asks for, and CSV beside it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from ...core.errors import StorageError, UsageError
from ...core.storage import refusal
from ..exports.rows import Mask, write_csv
from ..tables.reader import Build, Gold, before, current
from .data import data
from .html import html
from .markdown import markdown
from .model import Report, report
from .questions import DETAILS, NUMBERS, Answers, ask
from .redact import redactor_of

FORMS: Mapping[str, Callable[[Report], str]] = {".html": html, ".md": markdown, ".json": data}
KEY_BYTES = 32


class Made(Struct, frozen=True):
    """paths: of the files that were written, the report first."""

    report: Report
    paths: tuple[Path, ...]


def write(root: str, out: Path, *, redact: bool = False, csv: bool = False) -> Made:
    """Write the report of the newest build to `out`: .html, .md or .json. redact: principals
    are masked under a new key; csv: every gold table as a file beside it.

    Raises UsageError: no build, or another ending; StorageError.
    """
    form = FORMS.get(out.suffix)
    if form is None:
        raise UsageError(
            f"{out}: a report is not written as {out.suffix or 'a file without ending'}",
            f"Name a file that ends in {', '.join(FORMS)}.",
        )
    gold = Gold(current(root))
    mask = redactor_of(gold, secrets.token_bytes(KEY_BYTES)) if redact else None
    made = of(gold, mask=mask, csv=out.stem if csv else None)
    _put(out, form(made))
    tables = write_csv(gold, out.parent, out.stem, mask) if csv else ()
    return Made(made, (out, *tables))


def of(gold: Gold, *, mask: Mask | None = None, csv: str | None = None) -> Report:
    """The report of a build, compared with the one before. csv: as `Report` has it."""
    answers = ask(gold, {**NUMBERS, **DETAILS}, mask)
    previous, numbers = _earlier(gold.build)
    return report(gold.build, answers, numbers, previous, redacted=mask is not None, csv=csv)


def _earlier(build: Build) -> tuple[Build | None, Answers | None]:
    """The build before and its numbers. Nothing, if its files are gone: a report of today does
    not depend on them."""
    try:
        previous = before(build)
        return previous, ask(Gold(previous), NUMBERS) if previous else None
    except StorageError:
        return None, None


def _put(path: Path, text: str) -> None:
    """The whole file or none."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_text(text, "utf-8")
        half.replace(path)
    except OSError as error:
        raise refusal("cannot write the report", path, error) from None
    finally:
        half.unlink(missing_ok=True)
