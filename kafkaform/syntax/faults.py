"""Syntax errors: how one is made, and how the builder gives up on an item."""

from __future__ import annotations

from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from .source import Source


class SyntaxFault(Exception):
    """An item cannot become a node; never leaves this package."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__()
        self.diagnostics: Diagnostics = diagnostics


def make_fault(
    source: Source, start: int, end: int, summary: str, detail: str = "", advice: str = ""
) -> Diagnostic:
    """An error at text[start:end]; the texts may name words and marks, never literals."""
    return Diagnostic(
        Severity.ERROR,
        summary,
        detail,
        source.range(start, end),
        source.excerpt(start),
        advice,
    )
