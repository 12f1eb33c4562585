"""Exact numbers: whole ones are int, others Decimal; never a binary float."""

from __future__ import annotations

import re
from decimal import ROUND_DOWN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow

from .limits import LIMITS

Number = int | Decimal

PRECISION = Context(prec=160, traps=[InvalidOperation, DivisionByZero, Overflow])
"""160 digits: what a 512 bit binary fraction can tell apart (go-cty's numbers)."""

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


def normal(value: Decimal) -> Number:
    """The one form of a number. Raises ValueError if it has too many digits."""
    if value.is_finite() and abs(value.adjusted()) <= LIMITS.digits:
        return int(value) if value == value.to_integral_value() else value.normalize(PRECISION)
    if not value:
        return 0
    raise ValueError(f"a number may have {LIMITS.digits} digits")


def whole(value: Decimal) -> Number:
    """A number as written, all its digits kept: 6.0 is 6."""
    return int(value) if value == value.to_integral_value() else value


def parse_number(text: str) -> Number | None:
    """The number that a string spells, as `tonumber` reads it; None if it spells none."""
    if not _NUMBER.fullmatch(text) or len(text) > LIMITS.digits:
        return None
    try:
        return normal(Decimal(text))
    except (ValueError, InvalidOperation):  # the latter: an exponent that no Decimal can hold
        return None


def number_text(value: Number) -> str:
    """Decimal digits without exponent or trailing zeros."""
    if isinstance(value, int):
        return str(value)
    digits = format(value, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def checked(value: Number) -> Number:
    """The number if it is not too long. Raises ValueError."""
    if isinstance(value, Decimal):
        return normal(value)
    if value.bit_length() > LIMITS.digits * 3.33:
        raise ValueError(f"a number may have {LIMITS.digits} digits")
    return value


def exact(value: Number) -> Decimal:
    return Decimal(value)


def add(one: Number, other: Number) -> Number:
    if isinstance(one, int) and isinstance(other, int):
        return checked(one + other)
    return normal(PRECISION.add(exact(one), exact(other)))


def subtract(one: Number, other: Number) -> Number:
    if isinstance(one, int) and isinstance(other, int):
        return checked(one - other)
    return normal(PRECISION.subtract(exact(one), exact(other)))


def multiply(one: Number, other: Number) -> Number:
    if isinstance(one, int) and isinstance(other, int):
        return checked(one * other)
    return normal(PRECISION.multiply(exact(one), exact(other)))


def divide(one: Number, other: Number) -> Number:
    """Raises ValueError for a division by zero."""
    if not other:
        raise ValueError("a number cannot be divided by zero")
    if isinstance(one, int) and isinstance(other, int) and one % other == 0:
        return one // other
    return normal(PRECISION.divide(exact(one), exact(other)))


def remainder(one: Number, other: Number) -> Number:
    """What is left after a division towards zero: -7 % 3 is -1. Raises ValueError for zero."""
    if not other:
        raise ValueError("a number cannot be divided by zero")
    quotient = truncated(divide(one, other))
    return subtract(one, multiply(other, quotient))


def truncated(value: Number) -> int:
    """The whole part, towards zero."""
    return int(value) if isinstance(value, int) else int(value.to_integral_value(ROUND_DOWN))
