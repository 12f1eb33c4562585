"""The texts of lexical errors, such as unknown characters and brackets that do not match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .patterns import UNINDENTED_ITEM
from .source import Source
from .tokens import CLOSER_OF, Frame


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
