"""Text that people will see: foreign text made harmless, its width on a terminal, clauses as
sentences, and pages: lines, tables and prose that are not laid out yet.

Foreign text is names, values and messages that somebody else chose. It must not move a cursor,
reorder what is read, forge a line, or start a command of a build log or a formula of a spreadsheet.

A provider makes pages, because it knows what its documents mean, and a renderer knows terminals.
Nothing in a page is escaped: the renderer makes foreign text harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias
from unicodedata import category, east_asian_width

from msgspec import Struct

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Unicode calls these printable, but nothing is drawn: joiners, fillers, variation selectors. Two
# names that differ in one of them look the same.
_INVISIBLE = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    r"\U000e0100-\U000e01ef]"
)
# Azure Pipelines, TeamCity and GitHub execute these anywhere in a line of a build log.
_LOG_COMMAND = re.compile(r"##(?=\w*\[)")
# What spreadsheets read as a formula, however they trim; the last four are full-width.
_FORMULA = re.compile(r"[\s\"']*[=+\-@|%\uff1d\uff0b\uff0d\uff20]")

_NO_WIDTH = frozenset({"Mn", "Me", "Mc", "Cc", "Cf", "Zl", "Zp"})
"""Unicode categories that take no column: marks on the character before, and controls."""
_JOINED = (range(0x1160, 0x1200), range(0xD7B0, 0xD800))
"""Vowels and final consonants of Hangul, which share the columns of the consonant before them."""
_OWN_NAME = "kafkaform"
"""It is written in lower case everywhere."""


def escape(char: str) -> str:
    r"""A visible name for one character: \n, \x1b, \u202e, \U000e0001."""
    code = ord(char)
    if char in _NAMED:
        return _NAMED[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def inline(text: str) -> str:
    """Foreign text on one line: invisible characters are escaped, log commands are broken.

    These are escaped: controls (C0, C1, DEL, ESC), line breaks, bidirectional and zero-width
    characters, surrogates, unassigned characters, and spaces other than U+0020.
    """
    if text.isascii() and text.isprintable() and "##" not in text:
        return text
    if not text.isprintable():
        text = "".join(char if char.isprintable() else escape(char) for char in text)
    text = _INVISIBLE.sub(lambda match: escape(match[0]), text)
    return _LOG_COMMAND.sub(r"#\\x23", text)


def escape_log_commands(json: str) -> str:
    """The same JSON with escapes that a build log does not execute as commands."""
    return json.replace("##", "#\\u0023")


def escape_formula(text: str) -> str:
    """Foreign text for a cell of a table that a spreadsheet may open: one line, never a formula.

    What would be a formula gets an apostrophe in front, as spreadsheets mark text.
    """
    cell = inline(text)
    return f"'{cell}" if _FORMULA.match(cell) else cell


def cell_width(text: str) -> int:
    """How many terminal columns the text takes (Unicode Standard Annex 11)."""
    if text.isascii():
        return len(text)
    width = 0
    for character in text:
        kind = category(character)
        if kind in _NO_WIDTH or any(ord(character) in joined for joined in _JOINED):
            continue
        # Terminals draw an unassigned character in one column, whatever its block is.
        width += 2 if kind != "Cn" and east_asian_width(character) in "WF" else 1
    return width


def make_sentence(clause: object) -> str:
    """`write 5, or nothing` as `Write 5, or nothing.`; empty for an empty text.

    clause: a text, or a fault whose text it is.

    Only a plain word gets a capital letter: a first word in quotes or backticks, or with a dot, an
    underscore or an equals sign in it, is what somebody has to type.
    """
    text = str(clause)
    if not text:
        return ""
    word = text.split(maxsplit=1)[0].rstrip(",;:.?")
    plain = word.isalpha() and word != _OWN_NAME
    begin = text[0].upper() if plain else text[0]
    return f"{begin}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


Cells: TypeAlias = tuple[str, ...]


class Grid(Struct, frozen=True):
    """A table."""

    rows: tuple[Cells, ...]
    """The rows, each with as many cells as the first one."""
    right: frozenset[int] = frozenset()
    """The numbers of the columns that are aligned to the right."""
    caption: str = ""
    """What the table is about, for pages whose tables have captions."""


class Prose(Struct, frozen=True):
    """Sentences that are broken into lines."""

    text: str
    """The sentences."""


Page: TypeAlias = Iterator[str | Grid | Prose]
"""A document, from top to bottom. A plain text is one line."""
