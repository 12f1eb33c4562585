"""Syntax errors: how they are made, the texts of lexical errors, and the search for characters that
a reader does not see.

Reviewers see another text than the parser if a file contains invisible characters or characters
that change the direction of text (Trojan Source, CVE-2021-42574).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from .source import Source
from .tokens import CLOSER_OF, UNINDENTED_ITEM, Frame


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


class Complaint(NamedTuple):
    """The text of an error; its place is added where it is found."""

    summary: str
    detail: str = ""
    advice: str = ""


UNCLOSED_STRING = Complaint(
    "Unclosed string",
    "A quoted string ends on the line on which it begins.",
    'Add the closing ", write \\n for a newline, or use a heredoc (<<EOT).',
)
UNCLOSED_COMMENT = Complaint("Unclosed comment", "No */ follows this /*.")
BAD_HEREDOC = Complaint(
    "Invalid heredoc start",
    "Only one word and the end of the line can follow << or <<-.",
    "Write <<EOT; delete spaces and quotes around the word.",
)
CONFLICT = Complaint(
    "Conflict marker",
    "Git wrote this line where two versions of the file differ; the conflict is not resolved.",
    "Keep the right lines of both versions and delete the <<<<<<<, ======= and >>>>>>> lines.",
)
# The marker ends up in a regular expression and in messages, so it has to be short.
LONG_MARKER = Complaint("Heredoc marker too long", "The word after << must be short.")
TOO_COMPLEX = Complaint("File too complex", "It has too many tokens.", "Split the file.")

_QUOTES = 'Use double quotes: "text".'
_CHARACTERS: Mapping[str, Complaint] = {
    "'": Complaint("Single quotes do not make a string", advice=_QUOTES),
    "`": Complaint("Backquotes do not make a string", advice=_QUOTES),
    **dict.fromkeys("“”„«»‘’", Complaint("Curly quotes do not make a string", advice=_QUOTES)),
    ";": Complaint(
        "A semicolon does not separate anything", advice="Write one argument on each line."
    ),
    "&": Complaint("A single & is not an operator", advice="Use && for a logical and."),
    "|": Complaint("A single | is not an operator", advice="Use || for a logical or."),
    "$": Complaint(
        "A $ has no meaning outside a string",
        advice='Write the reference itself (var.x), or a template in quotes ("${var.x}").',
    ),
    "\\": Complaint("A backslash has no meaning outside a string"),
    "\r": Complaint(
        "A carriage return alone does not end a line",
        advice="Save the file with LF or CRLF line endings.",
    ),
    "~": Complaint("A ~ is allowed only inside the braces of a template", advice="Write ${~ x ~}."),
    "\ufeff": Complaint(
        "A byte order mark is allowed only at the start of a file", advice="Delete it."
    ),
}
"""Character -> what people mean by it, for those that other languages use."""


def make_unexpected(character: str) -> Complaint:
    complaint = _CHARACTERS.get(character)
    rendered = f'"{character}"' if character.isprintable() else f"U+{ord(character):04X}"
    return complaint or Complaint(f"Unexpected character {rendered}")


def make_unclosed_heredoc(marker: str) -> Complaint:
    return Complaint(
        "Unclosed heredoc",
        f"The file ends before a line that contains only {marker}.",
        f"Put {marker} on a line of its own, followed by a newline.",
    )


def make_too_deep(limit: int) -> Complaint:
    detail = f"More than {limit} brackets, blocks and strings are nested in each other."
    return Complaint("Nested too deeply", detail, "Move parts of it into local values.")


def make_nothing_open(mark: str) -> Complaint:
    advice = f'Delete it, or look above for a missing opening bracket or an extra "{mark}".'
    return Complaint(f'Unexpected "{mark}"', "No open bracket matches it.", advice)


def make_mismatch(mark: str, frame: Frame, opener: str, line: int) -> Complaint:
    """mark: the closing bracket that was found; frame, opener, line: what is open."""
    expected = CLOSER_OF[frame]
    return Complaint(
        f'Expected "{expected}" before "{mark}"',
        f'"{opener}" in line {line} is still open.',
        f'Add the missing "{expected}".',
    )


def make_unclosed(source: Source, frame: Frame, opener: str, after: int) -> Complaint:
    """after: offset of the end of the opener's line."""
    closer = CLOSER_OF[frame]
    # A line further down that begins like a top-level item is probably where the writer thought
    # that the bracket was closed.
    suspect = UNINDENTED_ITEM.search(source.text, after)
    advice = f'Add the missing "{closer}".'
    if suspect:
        line = source.range(suspect.start(), suspect.end()).line
        advice = f'The missing "{closer}" probably belongs before line {line}.'
    detail = f'The file ends before the matching "{closer}".'
    return Complaint(f'Unclosed "{opener}"', detail, advice)


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""All of them that a text of ASCII can contain; it is found in a tenth of the time."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]|(?<![^\x00-\x7f])[\u200c\u200d]"
)
"""Control characters except tabs and line ends, direction marks, characters without width, tags.
Joiners count only behind ASCII, because other scripts and emoji need them."""


def find_hidden(source: Source) -> Diagnostics:
    """One warning at the first such character of a text, with the number of all of them."""
    # A warning and not an error, because a description in another script can need such characters.
    # One for all of them: a hostile file could have a million.
    hidden = _CONTROL if source.text.isascii() else _HIDDEN
    first = hidden.search(source.text)
    if first is None:
        return ()
    start, end = first.span()
    count = sum(1 for _ in hidden.finditer(source.text))
    count_note = f" There are {count} such characters in this file." if count > 1 else ""
    return (
        Diagnostic(
            Severity.WARNING,
            f"Invisible character U+{ord(first.group()):04X}",
            f"The text can mean something else than what you see.{count_note}",
            source.range(start, end),
            source.excerpt(start),
            "Delete it. If you need it, write it in quotes as \\uNNNN.",
        ),
    )
