"""How wide text is on a terminal."""

from __future__ import annotations

_NO_WIDTH = frozenset({"Mn", "Me", "Mc", "Cc", "Cf", "Zl", "Zp"})
"""Categories of characters that take no column: marks on the one before, and controls."""
_JOINED = (range(0x1160, 0x1200), range(0xD7B0, 0xD800))
"""Vowels and finals of Hangul, which share the columns of the consonant before them."""


def cell_width(text: str) -> int:
    """How many terminal columns the text takes (Unicode Standard Annex 11)."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    # Most text is ASCII, for which nobody should load the tables of Unicode.
    from unicodedata import category, east_asian_width  # noqa: PLC0415  # for startup

    kind = category(character)
    if kind in _NO_WIDTH or any(ord(character) in joined for joined in _JOINED):
        return 0
    return 2 if kind != "Cn" and east_asian_width(character) in "WF" else 1
