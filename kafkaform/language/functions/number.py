"""Functions over numbers, and the two that read Kafka's units."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce

from ...core.schema import NUMBER
from ..convert import convert
from ..faults import FunctionFault, LimitFault
from ..limits import LIMITS
from ..numbers import PRECISION, Number, add, checked, normal
from ..values import Null, Val
from .spec import Function, Param, number, string, value


def _ceil(amount: Number) -> Val:
    return int(Decimal(amount).to_integral_value(ROUND_CEILING))


def _floor(amount: Number) -> Val:
    return int(Decimal(amount).to_integral_value(ROUND_FLOOR))


def _log(amount: Number, base: Number) -> Val:
    if amount <= 0 or base <= 0 or base == 1:
        raise FunctionFault("a logarithm needs positive numbers and a base other than 1")
    ratio = PRECISION.divide(Decimal(amount).ln(PRECISION), Decimal(base).ln(PRECISION))
    return normal(_rounded(ratio))


def _rounded(result: Decimal) -> Decimal:
    """Without the last digits, which transcendental functions cannot promise."""
    return result.quantize(Decimal(1).scaleb(-15), context=PRECISION)


def _pow(base: Number, exponent: Number) -> Val:
    if isinstance(exponent, int) and isinstance(base, int) and exponent >= 0:
        if exponent * max(base.bit_length(), 1) > LIMITS.digits * 4:
            raise LimitFault(f"the result has more than {LIMITS.digits} digits")
        return checked(base**exponent)
    try:
        return normal(PRECISION.power(Decimal(base), Decimal(exponent)))
    except ArithmeticError:
        raise FunctionFault("the result is no number") from None


def _max(first: Number, *rest: Number) -> Val:
    return max(first, *rest) if rest else first


def _min(first: Number, *rest: Number) -> Val:
    return min(first, *rest) if rest else first


def _sum(amounts: Val) -> Val:
    items = getattr(amounts, "items", ())
    if not isinstance(items, tuple) or not items:
        raise FunctionFault("it needs a list with at least one number", 0)
    if any(isinstance(item, Null) for item in items):
        raise FunctionFault("the list holds null", 0)
    numbers = [convert(item, NUMBER) for item in items]
    return reduce(add, (number for number in numbers if isinstance(number, int | Decimal)))


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _parseint(text: Val, base: Number) -> Val:
    if not isinstance(text, str):
        raise FunctionFault("a string is needed", 0)
    if not isinstance(base, int) or not 2 <= base <= 62:
        raise FunctionFault("the base must be a whole number from 2 to 62", 1)
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    digits = digits.lower() if base <= 36 else digits
    allowed = _DIGITS[:base]
    if not digits or len(digits) > LIMITS.digits or any(d not in allowed for d in digits):
        raise FunctionFault(f"the text is not a whole number of base {base}", 0)
    return sign * reduce(lambda total, digit: total * base + allowed.index(digit), digits, 0)


_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_BYTES = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGTP", 1)},
    "KB": 1000,
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", 1)},
}
_AMOUNT = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)")
_FOREVER = ("forever", "unlimited", "-1")


def _measured(text: str, units: dict[str, int], example: str) -> Val:
    """The sum of the amounts in the text, in the smallest unit."""
    if text in _FOREVER:
        return -1
    total, position = Decimal(0), 0
    while position < len(text.rstrip()):
        match = _AMOUNT.match(text, position)
        if match is None or match[2] not in units:
            known = ", ".join(unit for unit in units if unit)
            raise FunctionFault(f"expected an amount and a unit ({known}), such as {example}", 0)
        total += Decimal(match[1]) * units[match[2]]
        position = match.end()
    if not position or total != total.to_integral_value():
        raise FunctionFault(f"it must be a whole amount, such as {example}", 0)
    return int(total)


def _retention(text: str) -> Val:
    return _measured(text, _MILLISECONDS, '"7d" or "1d12h"')


def _bytes(text: str) -> Val:
    return _measured(text, _BYTES, '"1GiB" or "500MB"')


FUNCTIONS = (
    Function("abs", abs, (number(),)),
    Function("ceil", _ceil, (number(),)),
    Function("floor", _floor, (number(),)),
    Function("log", _log, (number(), number("base"))),
    Function("max", _max, (number("first"),), number("numbers")),
    Function("min", _min, (number("first"),), number("numbers")),
    Function("parseint", _parseint, (value("text"), number("base"))),
    Function("pow", _pow, (number("base"), number("exponent"))),
    Function("signum", lambda n: (n > 0) - (n < 0), (number(),)),
    Function("sum", _sum, (Param("list"),)),
    Function("retention", _retention, (string(),)),
    Function("bytes", _bytes, (string(),)),
)
