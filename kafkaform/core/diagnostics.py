"""Diagnostics: user faults as data, so that all faults of a run are shown at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Range(Struct, frozen=True, order=True):
    """A place in a file. Lines and columns count from 1, columns in code points; the end is
    exclusive; start_byte and end_byte are offsets in UTF-8."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    start_byte: int = 0
    end_byte: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Diagnostic(Struct, frozen=True):
    """summary: what happened, one line; detail: why; advice: what to do next; excerpt: the
    source line at `range` (never of a sensitive value); context: where evaluation came from,
    outermost first, such as `while evaluating kafka_topic.orders["eu"]`."""

    severity: Severity
    summary: str
    detail: str = ""
    range: Range | None = None
    excerpt: str | None = None
    advice: str = ""
    address: str | None = None
    context: tuple[str, ...] = ()

    def rewrite(self, change: Callable[[str], str]) -> Diagnostic:
        """The same with each of its texts in another form; places stay."""
        return replace(
            self,
            summary=change(self.summary),
            detail=change(self.detail),
            advice=change(self.advice),
            excerpt=None if self.excerpt is None else change(self.excerpt),
            context=tuple(map(change, self.context)),
        )


Diagnostics = tuple[Diagnostic, ...]


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(item.severity is Severity.ERROR for item in diagnostics)


def suggest(word: str, known: Iterable[str]) -> str:
    """`Did you mean "x"?` for the nearest known word, whatever its case, or an empty string."""
    import difflib  # noqa: PLC0415  # only a misspelt word needs it

    folded = {item.casefold(): item for item in known}
    near = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6)
    return f'Did you mean "{folded[near[0]]}"?' if near else ""
