"""Find invisible characters and characters that change the direction of text.

Reviewers see another text than the parser if a file contains them (Trojan Source, CVE-2021-42574).
"""

from __future__ import annotations

import re

from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from .source import Source

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
