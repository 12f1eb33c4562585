"""Syntax errors: how they are made, and the exception that ends the building of an item."""

from __future__ import annotations

from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from .source import Source


class SyntaxFault(Exception):
    """An item cannot become a node. `parse` catches it, so it never leaves this package."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__()
        self.diagnostics: Diagnostics = diagnostics


def make_fault(
    source: Source, start: int, end: int, summary: str, detail: str = "", advice: str = ""
) -> Diagnostic:
    """An error at text[start:end]. The texts never contain literals, which may be secrets."""
    return Diagnostic(
        Severity.ERROR,
        summary,
        detail,
        source.range(start, end),
        source.excerpt(start),
        advice,
    )


def is_repeated(earlier: Diagnostic, later: Diagnostic) -> bool:
    """Whether the later error repeats the earlier one, on the same line or the next."""
    near = earlier.range and later.range and later.range.line <= earlier.range.line + 1
    return bool(near) and earlier.summary == later.summary
