"""Diagnostics: faults of the user as data, so that all faults of a run are shown at once."""

from __future__ import annotations

import difflib
import os.path
from collections.abc import Callable, Iterable
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from .text.synonyms import list_meant_words


class Severity(StrEnum):
    """Whether a diagnostic stops the run."""

    ERROR = "error"
    WARNING = "warning"


class Range(Struct, frozen=True, order=True):
    """A place in a file. Lines and columns count from 1, and the end is exclusive."""

    file: str
    """The path that messages show."""
    line: int
    """Where it begins."""
    column: int
    """Where it begins, in code points."""
    end_line: int
    """Where it ends."""
    end_column: int
    """Where it ends, in code points."""
    start_byte: int = 0
    """Offset of the begin in the UTF-8 text."""
    end_byte: int = 0
    """Offset of the end in the UTF-8 text."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Diagnostic(Struct, frozen=True):
    """One fault or warning."""

    severity: Severity
    """Whether it stops the run."""
    summary: str
    """What happened, one line."""
    detail: str = ""
    """Why."""
    range: Range | None = None
    """Where in the configuration."""
    excerpt: str | None = None
    """The source line at `range`, never one with a sensitive value."""
    advice: str = ""
    """What to do next."""
    address: str | None = None
    """The object that it is about."""
    context: tuple[str, ...] = ()
    """What was being evaluated, outermost first: `while evaluating kafka_topic.orders["eu"]`."""
    places: tuple[Diagnostic, ...] = ()
    """If it sums up several places: what is wrong at each, which an editor shows there."""

    def rewrite(self, change: Callable[[str], str]) -> Diagnostic:
        """The same diagnostic with `change` applied to each text; places stay."""
        return replace(
            self,
            summary=change(self.summary),
            detail=change(self.detail),
            advice=change(self.advice),
            excerpt=None if self.excerpt is None else change(self.excerpt),
            context=tuple(map(change, self.context)),
            places=tuple(item.rewrite(change) for item in self.places),
        )


Diagnostics = tuple[Diagnostic, ...]


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """True if at least one of these stops the run."""
    return any(item.severity is Severity.ERROR for item in diagnostics)


_SEPARATORS = "_.-:"
"""What separates the parts of a name."""
_SAME = 0.9
"""The likeness from which a word is a misspelling of another, and not a word of its own."""


def suggest(word: str, words: Iterable[str], likeness: float = 0.6) -> str:
    """`Did you mean "x"?` for the known word that is meant, in any case, or an empty text: a
    misspelt one, one that other tools call so, or the nearest. likeness: the share of equal
    characters from which a word counts as near."""
    folded = {item.casefold(): item for item in words}
    key = word.casefold()
    near, share = _find_nearest(key, folded, likeness)
    if share < _SAME:
        near = next((meant for meant in list_meant_words(key) if meant in folded), near)
    return f'Did you mean "{folded[near]}"?' if near else ""


def _find_nearest(word: str, words: Iterable[str], likeness: float) -> tuple[str, float]:
    """The nearest known word, and the share of equal characters; empty and 0 for none."""
    # What two words have in common up to a separator, such as the name of the system in front of
    # all types, makes no word near to another.
    rests: dict[int, dict[str, str]] = {}
    for candidate in words:
        # The length of the equal begin of two words, up to its last separator.
        common = os.path.commonprefix((word, candidate))
        start = max(common.rfind(mark) for mark in _SEPARATORS) + 1
        rests.setdefault(start, {})[candidate[start:]] = candidate
    near = [
        suffixes[suffix]
        for start, suffixes in rests.items()
        for suffix in difflib.get_close_matches(word[start:], suffixes, n=1, cutoff=likeness)
    ]
    shares = {
        candidate: difflib.SequenceMatcher(None, candidate, word).ratio() for candidate in near
    }
    best = max(shares, key=shares.__getitem__, default="")
    return best, shares.get(best, 0.0)
