"""Random conditions, each as text and as the Python function that it must mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from random import Random
from typing import Any

Row = dict[str, Any]
Said = tuple[str, Callable[[Row], Any]]
"""Text and meaning; None is NULL."""
ATTRS = ("n", "m", "flag", "config.x")
VALUES = ("0", "1", "2", "3.5", "-4", " 7 ", "abc", "", "true", "false", "It's", "a_b%")
_SIX = Decimal("0.000001")


def condition(dice: Random, depth: int = 3) -> Said:
    made = [_compared, _null, _among, _between, _like, _flag, _call]
    if depth:
        made += [_joined, _joined, _inverse]
    return dice.choice(made)(dice, max(0, depth - 1))


def number_of(text: str | None) -> Decimal | None:
    try:
        return None if text is None else Decimal(text.strip())
    except InvalidOperation:
        return None


def _joined(dice: Random, depth: int) -> Said:
    parts = [condition(dice, depth) for _ in range(dice.randrange(2, 4))]
    word = dice.choice(("and", "OR"))
    decides = word == "OR"

    def meaning(row: Row) -> bool | None:
        values = [mean(row) for _, mean in parts]
        return decides if decides in values else None if None in values else not decides

    return f" {word} ".join(f"({said})" for said, _ in parts), meaning


def _inverse(dice: Random, depth: int) -> Said:
    said, mean = condition(dice, depth)
    return f"NOT ({said})", lambda row: None if mean(row) is None else not mean(row)


def _text(dice: Random) -> Said:
    if dice.random() < 0.2:
        value = dice.choice(VALUES)
        return "'" + value.replace("'", "''") + "'", lambda _: value
    if dice.random() < 0.3:
        name = dice.choice(("key", "owner", "cluster", "env"))
        return name, lambda row: row[name]
    attr = dice.choice(ATTRS)
    return f"attrs['{attr}']", lambda row: row["attrs"].get(attr)


def _number(dice: Random, depth: int = 1) -> Said:
    if dice.random() < 0.4:
        value = dice.choice(("0", "1", "2", "3.5", "12"))
        return value, lambda _: Decimal(value)
    if depth and dice.random() < 0.5:
        return _computed(dice)
    if dice.random() < 0.2:
        said, text = _text(dice)
        return f"length({said})", lambda row: None if text(row) is None else Decimal(len(text(row)))
    attr = dice.choice(ATTRS)
    return f"(attrs['{attr}'] * 1)", lambda row: number_of(row["attrs"].get(attr))


def _computed(dice: Random) -> Said:
    left, right = _number(dice, 0), _number(dice, 0)
    sign = dice.choice("+-*/%")

    def meaning(row: Row) -> Decimal | None:
        one, other = left[1](row), right[1](row)
        if one is None or other is None or (sign in "/%" and not other):
            return None
        value: Decimal = _SIGNS[sign](one, other)
        return value.quantize(_SIX, ROUND_HALF_UP)

    return f"({left[0]} {sign} {right[0]})", meaning


_SIGNS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
}
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _compared(dice: Random, _: int) -> Said:
    if dice.random() < 0.5:
        left, right = _number(dice), _number(dice)
    else:
        left, right = _text(dice), _text(dice)
    if dice.random() < 0.1:
        return f"{left[0]} <=> {right[0]}", lambda row: left[1](row) == right[1](row)
    sign = dice.choice(list(_COMPARED))

    def meaning(row: Row) -> bool | None:
        one, other = left[1](row), right[1](row)
        return None if one is None or other is None else _COMPARED[sign](one, other)

    return f"{left[0]} {sign} {right[0]}", meaning


def _null(dice: Random, _: int) -> Said:
    said, mean = dice.choice((_text, _number))(dice)
    if dice.random() < 0.5:
        return f"{said} IS NULL", lambda row: mean(row) is None
    return f"{said} is not null", lambda row: mean(row) is not None


def _among(dice: Random, _: int) -> Said:
    attr, names = dice.choice(ATTRS), dice.sample(VALUES, 3)
    inverse = dice.random() < 0.5
    quoted = ", ".join("'" + name.replace("'", "''") + "'" for name in names)

    def meaning(row: Row) -> bool | None:
        value = row["attrs"].get(attr)
        return None if value is None else (value in names) is not inverse

    return f"attrs['{attr}'] {'NOT ' if inverse else ''}IN ({quoted})", meaning


def _between(dice: Random, _: int) -> Said:
    attr, low, high = dice.choice(ATTRS), dice.randrange(-5, 3), dice.randrange(0, 8)

    def meaning(row: Row) -> bool | None:
        value = number_of(row["attrs"].get(attr))
        return None if value is None else low <= value <= high

    return f"attrs['{attr}'] between {low} and {high}", meaning


def _like(dice: Random, _: int) -> Said:
    said, text = _text(dice)
    word, pattern, regex = dice.choice(
        (
            ("LIKE", "a%", "a.*"),
            ("like", "_", "."),
            ("LIKE", "%''s", ".*'s"),
            ("RLIKE", "^a|e$", "(^a|.*e$).*"),
            ("rlike", r"\d", r".*\d.*"),
        )
    )

    def meaning(row: Row) -> bool | None:
        value = text(row)
        return None if value is None else re.fullmatch(regex, value, re.DOTALL) is not None

    return f"{said} {word} '{pattern}'", meaning


def _flag(dice: Random, _: int) -> Said:
    known = {"true": True, "false": False, "0": False, "1": True}
    return "attrs['flag'] = true", lambda row: known.get(row["attrs"].get("flag", ""))


def _call(dice: Random, _: int) -> Said:
    attr = dice.choice(ATTRS)
    if dice.random() < 0.3:
        return f"map_contains_key(attrs, '{attr}')", lambda row: attr in row["attrs"]
    said, text = _text(dice)
    name, done = dice.choice(
        (
            ("startswith", str.startswith),
            ("endswith", str.endswith),
            ("contains", str.__contains__),
        )
    )
    return f"{name}({said}, 'a')", lambda row: None if text(row) is None else done(text(row), "a")
