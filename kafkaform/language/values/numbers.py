"""Exact numbers: int if whole, else Decimal; never a binary float.

Go's HCL computes with 512 bits, so `0.1 + 0.2 == 0.3` and `9007199254740993 + 1` is exact. Configs
are sent as text, so every digit of a float's rounding error would show in a plan.
"""

from __future__ import annotations

import re
from decimal import ROUND_DOWN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow

from .limits import LIMITS

Number = int | Decimal

PRECISION = Context(prec=160, traps=[InvalidOperation, DivisionByZero, Overflow])
"""160 digits are at least as precise as the 512 bits of go-cty's numbers."""

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


def normalise_number(value: Decimal) -> Number:
    """The canonical form of a number. Raises ValueError if it has too many digits."""
    # Equal numbers must have equal forms, because they become keys and texts: 6.0 is int 6.
    if value.is_finite() and abs(value.adjusted()) <= LIMITS.digits:
        return int(value) if value == value.to_integral_value() else value.normalize(PRECISION)
    if not value:
        return 0
    raise ValueError(f"a number can have {LIMITS.digits} digits")


def make_whole(value: Decimal) -> Number:
    """A number with all of its digits; int if it is whole, so 6.0 is 6."""
    return int(value) if value == value.to_integral_value() else value


def parse_number(text: str) -> Number | None:
    """The number that a string spells, as `tonumber` reads it; None if it is not a number."""
    if not _NUMBER.fullmatch(text) or len(text) > LIMITS.digits:
        return None
    try:
        return normalise_number(Decimal(text))
    except (ValueError, InvalidOperation):  # the latter: an exponent beyond Decimal's range
        return None


def render_number(value: Number) -> str:
    """The digits of a number, without exponent and trailing zeros, as go-cty writes it."""
    if isinstance(value, int):
        return str(value)
    digits = format(value, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def check_digits(value: Number) -> Number:
    """The number if it is not too long. Raises ValueError."""
    if isinstance(value, Decimal):
        return normalise_number(value)
    # By bits, because counting digits takes the square of their number.
    if value.bit_length() > LIMITS.digits * 3.33:
        raise ValueError(f"a number can have {LIMITS.digits} digits")
    return value


def make_exact(value: Number) -> Decimal:
    return Decimal(value)


def add(first: Number, second: Number) -> Number:
    if isinstance(first, int) and isinstance(second, int):
        return check_digits(first + second)
    return normalise_number(PRECISION.add(make_exact(first), make_exact(second)))


def subtract(first: Number, second: Number) -> Number:
    if isinstance(first, int) and isinstance(second, int):
        return check_digits(first - second)
    return normalise_number(PRECISION.subtract(make_exact(first), make_exact(second)))


def multiply(first: Number, second: Number) -> Number:
    if isinstance(first, int) and isinstance(second, int):
        return check_digits(first * second)
    return normalise_number(PRECISION.multiply(make_exact(first), make_exact(second)))


def divide(first: Number, second: Number) -> Number:
    """The quotient. Raises ValueError for a division by zero."""
    # Go's HCL yields infinity here. Nothing could be done with it, so it is an error.
    if not second:
        raise ValueError("a number cannot be divided by zero")
    if isinstance(first, int) and isinstance(second, int) and first % second == 0:
        return first // second
    return normalise_number(PRECISION.divide(make_exact(first), make_exact(second)))


def compute_remainder(first: Number, second: Number) -> Number:
    """The remainder of a division that rounds towards zero: -7 % 3 is -1, unlike in Python. Raises
    ValueError for a division by zero."""
    if not second:
        raise ValueError("a number cannot be divided by zero")
    quotient = truncate_number(divide(first, second))
    return subtract(first, multiply(second, quotient))


def truncate_number(value: Number) -> int:
    """The whole part, towards zero."""
    return int(value) if isinstance(value, int) else int(value.to_integral_value(ROUND_DOWN))
