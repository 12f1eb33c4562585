"""`retention` and `bytes`: times in milliseconds, and sizes in bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...core.text.quantity import MILLISECONDS, parse_amount
from ..values.faults import FunctionFault
from ..values.value import Val
from .spec import Function, make_string_param

_SIZES = tuple(
    (f"{letter}iB", 1024**power) for power, letter in ((4, "T"), (3, "G"), (2, "M"), (1, "K"))
)
_NUMBER = re.compile(r"[1-9]\d{0,17}", re.ASCII)


def _parse(text: str, unit: str) -> Val:
    try:
        return parse_amount(text, unit)
    except ValueError as error:
        raise FunctionFault(str(error), 0) from None


def _retention(text: str) -> Val:
    return _parse(text, "ms")


def _bytes(text: str) -> Val:
    return _parse(text, "bytes")


# The largest first. Weeks are left out, because nobody says four of them for a month.
_CALLS: Mapping[str, tuple[str, tuple[tuple[str, int], ...]]] = {
    "ms": ("retention", tuple((unit, MILLISECONDS[unit]) for unit in ("d", "h", "m", "s"))),
    "bytes": ("bytes", _SIZES),
    "bytes/s": ("bytes", _SIZES),
}
"""Unit of a value (`core/text/quantity.py`) -> the function that computes it, and its units."""


def render_call(value: object, unit: str) -> str:
    """`retention("30d")` for 2592000000 in `ms`. Empty for a value that is no whole amount of a
    larger unit. value: a number or its text."""
    text = f"{value}"
    if unit not in _CALLS or not _NUMBER.fullmatch(text):
        return ""
    function, units = _CALLS[unit]
    number = int(text)
    fits = ((number // factor, name) for name, factor in units if number % factor == 0)
    amount = next(fits, None)
    return "" if amount is None else f'{function}("{amount[0]}{amount[1]}")'


FUNCTIONS = (
    Function(
        "retention",
        'A time such as `"7d"` or `"1d12h"` in milliseconds; -1 for `"forever"`.',
        _retention,
        (make_string_param(),),
        steps=10,
    ),
    Function(
        "bytes",
        'A size such as `"1GiB"` (1024³) or `"500MB"` (1000²) in bytes.',
        _bytes,
        (make_string_param(),),
        steps=10,
    ),
)
