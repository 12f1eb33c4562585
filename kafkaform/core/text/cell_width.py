"""The width of text on a terminal."""

from __future__ import annotations

_NO_WIDTH = frozenset({"Mn", "Me", "Mc", "Cc", "Cf", "Zl", "Zp"})
"""Unicode categories that take no column: marks on the character before, and controls."""
_JOINED = (range(0x1160, 0x1200), range(0xD7B0, 0xD800))
"""Vowels and final consonants of Hangul, which share the columns of the consonant before them."""


def cell_width(text: str) -> int:
    """How many terminal columns the text takes (Unicode Standard Annex 11)."""
    if text.isascii():
        return len(text)
    # Most text is ASCII, for which nobody should load the tables of Unicode.
    from unicodedata import category, east_asian_width  # noqa: PLC0415  # for startup

    width = 0
    for character in text:
        kind = category(character)
        if kind in _NO_WIDTH or any(ord(character) in joined for joined in _JOINED):
            continue
        # Terminals draw an unassigned character in one column, whatever its block is.
        width += 2 if kind != "Cn" and east_asian_width(character) in "WF" else 1
    return width
