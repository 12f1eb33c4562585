"""The texts of lexical errors: characters that mean nothing, brackets that do not match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .patterns import UNINDENTED_ITEM
from .source import Source
from .tokens import CLOSER_OF, Frame


class Complaint(NamedTuple):
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
    "After << or <<- comes one word and then at once the end of the line.",
    "Write <<EOT; delete blanks and quotes around the word.",
)
CONFLICT = Complaint(
    "Conflict marker",
    "Git wrote this line where two versions of the file differ, and nobody has decided yet.",
    "Keep what is right of both versions and delete the lines of <<<<<<<, ======= and >>>>>>>.",
)
LONG_MARKER = Complaint("Heredoc marker too long", "The word after << should be short.")
TOO_COMPLEX = Complaint("File too complex", "It has too many words and marks.", "Split the file.")

_QUOTES = 'Use double quotes: "text".'
_CHARACTERS: Mapping[str, Complaint] = {
    "'": Complaint("Single quotes do not make a string", advice=_QUOTES),
    "`": Complaint("Backquotes do not make a string", advice=_QUOTES),
    **dict.fromkeys("“”„«»‘’", Complaint("Curly quotes do not make a string", advice=_QUOTES)),
    ";": Complaint("A semicolon ends nothing here", advice="Use a line per argument."),
    "&": Complaint("A single & is no operator", advice="Use && for a logical and."),
    "|": Complaint("A single | is no operator", advice="Use || for a logical or."),
    "$": Complaint(
        "A $ means nothing outside a string",
        advice='Write the reference itself (var.x), or a template in quotes ("${var.x}").',
    ),
    "\\": Complaint("A backslash means nothing outside a string"),
    "\r": Complaint(
        "A bare carriage return is not a line end", advice="Save the file with LF or CRLF ends."
    ),
    "~": Complaint("A ~ only trims next to a template's braces", advice="Write ${~ x ~}."),
    "\ufeff": Complaint("A byte order mark belongs at the start of a file", advice="Delete it."),
}


def make_unexpected(character: str) -> Complaint:
    known = _CHARACTERS.get(character)
    shown = f'"{character}"' if character.isprintable() else f"U+{ord(character):04X}"
    return known or Complaint(f"Unexpected character {shown}")


def make_unclosed_heredoc(marker: str) -> Complaint:
    return Complaint(
        "Unclosed heredoc",
        f"No line holds {marker} alone before the end of the file.",
        f"Put {marker} on a line of its own, followed by a newline.",
    )


def make_too_deep(limit: int) -> Complaint:
    detail = f"More than {limit} brackets, blocks and strings lie inside each other."
    return Complaint("Nested too deeply", detail, "Name parts of it as locals.")


def make_nothing_open(mark: str) -> Complaint:
    advice = f'Delete it, or look for a missing opening mark or one "{mark}" too many above.'
    return Complaint(f'Unexpected "{mark}"', "It closes nothing that is open.", advice)


def make_mismatch(mark: str, frame: Frame, opener: str, line: int) -> Complaint:
    """mark: what closes; frame, opener, line: what is open."""
    expected = CLOSER_OF[frame]
    return Complaint(
        f'Expected "{expected}" before "{mark}"',
        f'"{opener}" of line {line} is still open.',
        f'Add the missing "{expected}".',
    )


def make_unclosed(source: Source, frame: Frame, opener: str, after: int) -> Complaint:
    """after: offset of the line end after the opener; a line further down that begins like an
    item of the file shows where the closing mark is probably missing."""
    closer = CLOSER_OF[frame]
    suspect = UNINDENTED_ITEM.search(source.text, after)
    advice = f'Add the missing "{closer}".'
    if suspect:
        line = source.range(suspect.start(), suspect.end()).line
        advice = f'The missing "{closer}" probably belongs before line {line}.'
    detail = f'The file ends before the "{closer}" that closes it.'
    return Complaint(f'Unclosed "{opener}"', detail, advice)
