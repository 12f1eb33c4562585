"""Write the report of a root in the format that the file's name asks for, and CSV beside it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from ...core.errors import StorageError, UsageError
from ...core.storage import make_storage_error
from ..exports.rows import Mask, write_csv
from ..tables.reader import Build, Gold, find_before, read_current
from .data import render_data
from .html import render_html
from .markdown import render_markdown
from .model import FleetReport, build_report
from .questions import DETAILS, NUMBERS, Answers, ask_questions
from .redact import make_build_redactor

FORMS: Mapping[str, Callable[[FleetReport], str]] = {
    ".html": render_html,
    ".md": render_markdown,
    ".json": render_data,
}
"""Ending of a file -> how it is rendered."""
KEY_BYTES = 32
"""Length of the key for redacted names."""


class WrittenReport(Struct, frozen=True):
    """What was written."""

    report: FleetReport
    paths: tuple[Path, ...]
    """The files, the report first."""


def write_report(root: str, out: Path, *, redact: bool = False, csv: bool = False) -> WrittenReport:
    """Write the report of the newest build to `out`: .html, .md or .json.

    redact: mask principals, under a new key; csv: write every gold table to a file beside it.
    Raises UsageError: there is no build, or the file has another ending; StorageError.
    """
    render = FORMS.get(out.suffix)
    if render is None:
        raise UsageError(
            f"{out}: a report is not written as {out.suffix or 'a file without ending'}",
            f"Name a file that ends in {', '.join(FORMS)}.",
        )
    gold = Gold(read_current(root))
    mask = make_build_redactor(gold, secrets.token_bytes(KEY_BYTES)) if redact else None
    report = make_report(gold, mask=mask, csv=out.stem if csv else None)
    _write_whole(out, render(report))
    tables = write_csv(gold, out.parent, out.stem, mask) if csv else ()
    return WrittenReport(report, (out, *tables))


def make_report(gold: Gold, *, mask: Mask | None = None, csv: str | None = None) -> FleetReport:
    """Return the report of a build, compared with the one before. csv: as in `FleetReport`."""
    answers = ask_questions(gold, {**NUMBERS, **DETAILS}, mask)
    previous, numbers = _read_earlier(gold.build)
    return build_report(gold.build, answers, numbers, previous, redacted=mask is not None, csv=csv)


def _read_earlier(build: Build) -> tuple[Build | None, Answers | None]:
    """Return the build before and its numbers. If its files are gone, return nothing: today's
    report does not depend on them."""
    try:
        previous = find_before(build)
        return previous, ask_questions(Gold(previous), NUMBERS) if previous else None
    except StorageError:
        return None, None


def _write_whole(path: Path, text: str) -> None:
    """Write the whole file or nothing."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_text(text, "utf-8")
        half.replace(path)
    except OSError as error:
        raise make_storage_error("cannot write the report", path, error) from None
    finally:
        half.unlink(missing_ok=True)
