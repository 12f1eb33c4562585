"""Functions for numbers: arithmetic, times in milliseconds (`retention`), sizes in `bytes`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce

from ...core.schema import NUMBER
from ...core.text import MILLISECONDS, parse_amount
from ..values.conversion import convert_value
from ..values.faults import LIMITS, FunctionFault, LimitFault
from ..values.value import PRECISION, Null, Number, Val, add, check_digits, normalise_number
from .spec import Function, Param, make_number_param, make_string_param, make_value_param


def _ceil(amount: Number) -> Val:
    return int(Decimal(amount).to_integral_value(ROUND_CEILING))


def _floor(amount: Number) -> Val:
    return int(Decimal(amount).to_integral_value(ROUND_FLOOR))


def _log(amount: Number, base: Number) -> Val:
    if amount <= 0 or base <= 0 or base == 1:
        raise FunctionFault("expected positive numbers and a base other than 1")
    ratio = PRECISION.divide(Decimal(amount).ln(PRECISION), Decimal(base).ln(PRECISION))
    # 15 decimal places: `log(1000, 10)` is 3 only when rounded; the reference computes with 64-bit
    # floats.
    return normalise_number(ratio.quantize(Decimal(1).scaleb(-15), context=PRECISION))


def _pow(base: Number, exponent: Number) -> Val:
    # The size of the result is estimated first: 10 to the power of a billion would fill the memory.
    if isinstance(exponent, int) and isinstance(base, int) and exponent >= 0:
        if exponent * max(base.bit_length(), 1) > LIMITS.digits * 4:
            raise LimitFault(f"the result has more than {LIMITS.digits} digits")
        return check_digits(base**exponent)
    try:
        return normalise_number(PRECISION.power(Decimal(base), Decimal(exponent)))
    except ArithmeticError:
        raise FunctionFault("the result is not a number") from None


def _max(first: Number, *numbers: Number) -> Val:
    return max(first, *numbers) if numbers else first


def _min(first: Number, *numbers: Number) -> Val:
    return min(first, *numbers) if numbers else first


def _sum(amounts: Val) -> Val:
    items = getattr(amounts, "items", ())
    if not isinstance(items, tuple) or not items:
        raise FunctionFault("expected a list with at least one number", 0)
    if any(isinstance(item, Null) for item in items):
        raise FunctionFault("the list contains null", 0)
    numbers = [convert_value(item, NUMBER) for item in items]
    return reduce(add, (number for number in numbers if isinstance(number, int | Decimal)))


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _parseint(text: Val, base: Number) -> Val:
    if not isinstance(text, str):
        raise FunctionFault("expected a string", 0)
    if not isinstance(base, int) or not 2 <= base <= 62:
        raise FunctionFault("the base must be a whole number from 2 to 62", 1)
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    digits = digits.lower() if base <= 36 else digits  # beyond 36, capitals are other digits
    allowed = _DIGITS[:base]
    if not digits or len(digits) > LIMITS.digits or any(d not in allowed for d in digits):
        raise FunctionFault(f"the text is not a whole number in base {base}", 0)
    return sign * reduce(lambda total, digit: total * base + allowed.index(digit), digits, 0)


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


# The largest first. Weeks are left out, because months are not written as four weeks.
_CALLS: Mapping[str, tuple[str, tuple[tuple[str, int], ...]]] = {
    "ms": ("retention", tuple((unit, MILLISECONDS[unit]) for unit in ("d", "h", "m", "s"))),
    "bytes": ("bytes", _SIZES),
    "bytes/s": ("bytes", _SIZES),
}
"""Unit of a value (`core/text.py`) -> the function that computes it, and its units."""


def render_call(value: object, unit: str) -> str:
    """`retention("30d")` for 2592000000 in `ms`. Empty for a value that is not a whole amount of a
    larger unit. value: a number or its text."""
    text = f"{value}"
    if unit not in _CALLS or not _NUMBER.fullmatch(text):
        return ""
    function, units = _CALLS[unit]
    number = int(text)
    amounts = ((number // factor, name) for name, factor in units if number % factor == 0)
    amount = next(amounts, None)
    return "" if amount is None else f'{function}("{amount[0]}{amount[1]}")'


FUNCTIONS = (
    Function("abs", "The number without its sign.", abs, (make_number_param(),)),
    Function("ceil", "The number, rounded up to a whole number.", _ceil, (make_number_param(),)),
    Function(
        "floor", "The number, rounded down to a whole number.", _floor, (make_number_param(),)
    ),
    Function(
        "log",
        "The logarithm of the number to the base.",
        _log,
        (make_number_param(), make_number_param("base")),
        steps=700,
    ),
    Function(
        "max",
        "The largest of the numbers.",
        _max,
        (make_number_param("first"),),
        make_number_param("numbers"),
    ),
    Function(
        "min",
        "The smallest of the numbers.",
        _min,
        (make_number_param("first"),),
        make_number_param("numbers"),
    ),
    Function(
        "parseint",
        "The whole number that the text spells in a base between 2 and 62.",
        _parseint,
        (make_value_param("text"), make_number_param("base")),
        steps=20,
        characters=1,
    ),
    Function(
        "pow",
        "The base raised to the exponent.",
        _pow,
        (make_number_param("base"), make_number_param("exponent")),
        steps=700,
    ),
    Function(
        "signum",
        "-1, 0 or 1: the sign of the number.",
        lambda n: (n > 0) - (n < 0),
        (make_number_param(),),
    ),
    Function("sum", "The sum of the numbers in the list or set.", _sum, (Param("list"),)),
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
