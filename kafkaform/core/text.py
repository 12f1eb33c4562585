"""Text that people see and type: foreign text made harmless, its width on a terminal, clauses as
sentences, times and sizes in the units that people think in, and pages: lines, tables and prose
that are not laid out yet.

Foreign text is names, values and messages that somebody else chose. It must not move a cursor,
reorder what is read, forge a line, or start a command of a build log or a formula of a spreadsheet.

A value with a unit is never rounded: it is shown in the largest unit in which it has at most two
decimals.

A provider makes pages, because it knows what its documents mean, and a renderer knows terminals.
Nothing in a page is escaped: the renderer makes foreign text harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
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
LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1

_TIMES = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))
_SIZES = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))

# Unit -> (symbol, factor), the largest first. Systems count sizes in powers of two: their defaults
# are 1 GiB or 1 MiB, and read badly as 1.07 GB.
SCALES: Mapping[str, tuple[tuple[str, int], ...]] = {
    "ms": _TIMES,
    "s": tuple((symbol, factor // 1000) for symbol, factor in _TIMES if factor >= 1000),
    "bytes": _SIZES,
    "bytes/s": tuple((f"{symbol}/s", factor) for symbol, factor in _SIZES),
    "percent": (("%", 1),),
}

MILLISECONDS: Mapping[str, int] = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
BYTES: Mapping[str, int] = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGTP", 1)},
    "KB": 1000,
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", 1)},
}
"""Unit that somebody writes -> how many of the smallest one it has."""
WRITTEN: Mapping[str, tuple[Mapping[str, int], str]] = {
    "ms": (MILLISECONDS, '"7d" or "1d12h"'),
    "s": (
        {name: factor // 1000 for name, factor in MILLISECONDS.items() if factor >= 1000},
        '"7d" or "1d12h"',
    ),
    "bytes": (BYTES, '"1GiB" or "500MB"'),
    "bytes/s": (
        {f"{name}{per}": factor for name, factor in BYTES.items() for per in ("", "/s") if name}
        | {"": 1},
        '"1MiB" or "500kB/s"',
    ),
}
"""Unit of a value -> the units in which it can be written, and examples."""
_AMOUNT = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*(?:/s)?)")
_FOREVER = ("forever", "unlimited", "-1")
"""Values for no limit."""

NO_LIMIT = "no limit"
_UNLIMITED = (LONG_MAX, INT_MAX, -1)
"""Values that are no amounts."""


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


def parse_amount(text: str, unit: str) -> int:
    """604800000 for `7d` in `ms`: the sum of the amounts in a text, in this unit. Raises ValueError
    with a clause that says what is expected."""
    units, example = WRITTEN[unit]
    if text in _FOREVER:
        return -1
    total, position = Decimal(0), 0
    while position < len(text.rstrip()):
        match = _AMOUNT.match(text, position)
        if match is None or match[2] not in units:
            unit_names = ", ".join(name for name in units if name)
            raise ValueError(f"expected an amount and a unit ({unit_names}), such as {example}")
        # Decimal, because half of a unit must be exact: 0.1 of a day is 8,640,000 ms.
        total += Decimal(match[1]) * units[match[2]]
        position = match.end()
    if not position or total != total.to_integral_value():
        raise ValueError(f"the amount must be a whole number, such as {example}")
    return int(total)


def render_quantity(value: object, unit: str) -> str:
    """`30 d` for 2592000000 in `ms`. Empty for a value that is no amount of this unit, or that is
    short already. value: an int, a Decimal or its text; unit: one without a scale has no amounts,
    but values for no limit."""
    number = _read_number(value)
    if number is None or not unit:
        return ""
    if unit != "percent" and number in _UNLIMITED:
        return NO_LIMIT
    scale = SCALES.get(unit)
    if scale is None or number <= 0:
        return ""
    for symbol, factor in scale:
        amount = number / factor
        if amount >= 1 and amount == round(amount, 2):
            return f"{amount.normalize():f} {symbol}"
    return ""


def render_with_exact(value: object, unit: str) -> str:
    """`30 d (2592000000)`, `5 ms`, or the value alone if it is no amount of this unit."""
    amount = render_quantity(value, unit)
    exact = f"{value}"
    if not amount or amount.partition(" ")[0] == exact:
        return amount or exact
    return f"{amount} ({exact})"


def render_amount(value: int, unit: str) -> str:
    """`1.2 GiB` for a measured figure, rounded to two decimals: it is no setting that somebody has
    to type."""
    for symbol, factor in SCALES[unit]:
        if value >= factor:
            return f"{Decimal(value / factor).quantize(Decimal('0.01')).normalize():f} {symbol}"
    return f"0 {SCALES[unit][-1][0]}"


def render_span(seconds: int) -> str:
    """`2 h 10 min` for a measured time: its largest unit and the next one, cut off."""
    scale = SCALES["s"]
    largest = next((n for n, (_, factor) in enumerate(scale) if seconds >= factor), len(scale) - 1)
    pieces: list[str] = []
    for symbol, factor in scale[largest : largest + 2]:
        amount, seconds = divmod(seconds, factor)
        pieces += [f"{amount} {symbol}"] if amount or not pieces else []
    return " ".join(pieces)


def render_count(number: int, noun: str, plural: str = "") -> str:
    """`1 object`, `1,200 objects`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def render_days(days: float) -> str:
    """`5 hours`, `9 days`, `3 years` for an estimate in days."""
    if days < 2:
        return render_count(max(1, round(days * 24)), "hour")
    if days < 730:
        return render_count(round(days), "day")
    return render_count(round(days / 365), "year")


def _read_number(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


def parse_whole(text: str) -> int | None:
    """The whole number, 0 or more, that the digits of a text spell; None for any other text.

    Bounded: systems have no longer numbers, and int() refuses texts of more than 4,300 digits.
    """
    return int(text) if _WHOLE.fullmatch(text) else None
