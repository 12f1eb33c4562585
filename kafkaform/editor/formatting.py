"""Format an open file as `kafkaform fmt` formats a saved one."""

from __future__ import annotations

from msgspec import Struct

from ..core.diagnostics import has_errors
from ..syntax.format import format_text
from ..syntax.parse import parse
from .project import FLEET, FORMATTED
from .texts import Span, Text


class LineEdit(Struct, frozen=True):
    """A part of a file, and what replaces it."""

    span: Span
    text: str


def format_document(name: str, text: Text) -> LineEdit | None:
    """The lines that change; None if none does, or if the text does not parse."""
    if not (name.endswith(FORMATTED) or name == FLEET):
        return None
    if has_errors(parse(text.text, name)[1]):
        return None
    before, after = (
        content.splitlines(keepends=True) for content in (text.text, format_text(text.text))
    )
    if before == after:
        return None
    # The editor keeps the cursor in lines that are not part of the edit.
    first = _count_equal(before, after)
    last = _count_equal(before[first:][::-1], after[first:][::-1])
    start = sum(map(len, before[:first]))
    end = sum(map(len, before[: len(before) - last]))
    return LineEdit(text.locate_span(start, end), "".join(after[first : len(after) - last]))


def _count_equal(old_lines: list[str], new_lines: list[str]) -> int:
    pairs = zip(old_lines, new_lines, strict=False)
    return next(
        (n for n, (a, b) in enumerate(pairs) if a != b), min(len(old_lines), len(new_lines))
    )
