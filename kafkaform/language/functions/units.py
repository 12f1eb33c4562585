"""`retention` and `bytes`: times in milliseconds, and sizes in bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from ..values.faults import FunctionFault
from ..values.value import Val
from .spec import Function, make_string_param

_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_BYTES = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGTP", 1)},
    "KB": 1000,
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", 1)},
}
_AMOUNT = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)")
_SIZES = tuple(
    (f"{letter}iB", 1024**power) for power, letter in ((4, "T"), (3, "G"), (2, "M"), (1, "K"))
)
_NUMBER = re.compile(r"[1-9]\d{0,17}", re.ASCII)
_FOREVER = ("forever", "unlimited", "-1")
"""Configs of retention take -1 for no limit."""


def _parse_amounts(text: str, units: Mapping[str, int], example: str) -> Val:
    """The sum of the amounts in the text, in the smallest unit."""
    if text in _FOREVER:
        return -1
    total, position = Decimal(0), 0
    while position < len(text.rstrip()):
        match = _AMOUNT.match(text, position)
        if match is None or match[2] not in units:
            known = ", ".join(unit for unit in units if unit)
            raise FunctionFault(f"expected an amount and a unit ({known}), such as {example}", 0)
        # Decimal, because half of a unit must be exact: 0.1 of a day is 8,640,000 ms.
        total += Decimal(match[1]) * units[match[2]]
        position = match.end()
    if not position or total != total.to_integral_value():
        raise FunctionFault(f"the amount must be a whole number, such as {example}", 0)
    return int(total)


def _retention(text: str) -> Val:
    return _parse_amounts(text, _MILLISECONDS, '"7d" or "1d12h"')


def _bytes(text: str) -> Val:
    return _parse_amounts(text, _BYTES, '"1GiB" or "500MB"')


# The largest first. Weeks are left out, because nobody says four of them for a month.
_CALLS: Mapping[str, tuple[str, tuple[tuple[str, int], ...]]] = {
    "ms": ("retention", tuple((unit, _MILLISECONDS[unit]) for unit in ("d", "h", "m", "s"))),
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
