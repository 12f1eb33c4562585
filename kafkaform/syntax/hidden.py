"""Characters that do not show, or turn the order in which a line shows: a text with them is not
what its readers see (Trojan Source, CVE-2021-42574)."""

from __future__ import annotations

import re

from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from .source import Source

_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]|(?<![^\x00-\x7f])[\u200c\u200d]"
)
"""Controls but for tabs and line ends, marks of direction, signs without width, tags. Joiners
count only behind ASCII: other scripts and emoji need them."""


def find_hidden(source: Source) -> Diagnostics:
    """A warning at the first such character of a text, which says how many there are."""
    first = _HIDDEN.search(source.text)
    if first is None:
        return ()
    start, end = first.span()
    count = sum(1 for _ in _HIDDEN.finditer(source.text))
    others = f" There are {count} such characters in this file." if count > 1 else ""
    return (
        Diagnostic(
            Severity.WARNING,
            f"A character that does not show: U+{ord(first.group()):04X}",
            f"What is read here may differ from what is seen.{others}",
            source.range(start, end),
            source.excerpt(start),
            "Delete it; if it is meant, write it in quotes as \\uNNNN.",
        ),
    )
