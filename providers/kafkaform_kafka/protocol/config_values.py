"""Gives equal config values one spelling: the one that a broker prints after parsing. Sizes in
bytes are read the way people write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from kafkaform.core.canonical import render_number
from kafkaform.core.text.quantity import LONG_MAX, SCALES, render_amount, render_quantity
from kafkaform.core.value import EMPTY, FrozenMap, Value

from .config_keys import ALL_TOPIC_KEYS, INT_MAX, ConfigKey

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kKMGT]i?)?B?(?:/s)?", re.ASCII)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(value: Any) -> int | None:
    """The bytes in a number or in text such as `50MiB` (1024s) or `50 MB` (1000s); None if it is
    not a size, or less than one byte."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        return None
    match = _SIZE.fullmatch(str(value).strip())
    if match is None:
        return None
    unit = match[2] or ""
    base = 1024 if unit.endswith("i") else 1000
    size = int(Decimal(match[1]) * base ** _POWERS[unit[:1].upper()])
    return size if size > 0 else None


Lookup = Callable[[str], ConfigKey | None]
"""Name of a config -> its row in a table, or None."""

REPEATED = 4_096
"""Pairs of config and value whose answers are kept: thousands of topics share a few of them."""

_NUMBERS = ("int", "long", "short")
_SYMBOLS = {"bytes": "B", "bytes/s": "B/s"}
_LONG = 1000
"""From here on, a number of units is long."""
FOLLOWS = -2
"""The value of a local retention that follows the retention of all data (KIP-405)."""
_FOLLOWED = {
    f"{prefix}local.retention.{unit}": f"{prefix}retention.{unit}"
    for prefix in ("", "log.")
    for unit in ("ms", "bytes")
}

# Bounded: no valid number is longer, and int() refuses texts of more than 4,300 digits.
_INTEGER = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?", re.ASCII)


def config_value(key: str, value: Value, find: Lookup = ALL_TOPIC_KEYS.get) -> Value:
    """The canonical text of a config's value; None stays None. find: the table of the configs."""
    # Brokers trim, turn `TRUE` into `true` and `+5` into `5`. Without the same here, each plan
    # would show a difference that no apply can remove. Text that does not parse stays as it was
    # written, so that the check can show it.
    return None if value is None else _make_canonical(key, _render_text(value).strip(), find)


# By text and not by value: true and 1 are equal for Python.
@lru_cache(REPEATED)
def _make_canonical(key: str, text: str, find: Lookup) -> str:
    definition = find(key)
    return text if definition is None else _FORMS[definition.kind](definition, text)


def config_map(config: Mapping[str, Value] | None, find: Lookup = ALL_TOPIC_KEYS.get) -> FrozenMap:
    """The canonical form of a whole config map; None counts as an empty one."""
    if not config:
        return EMPTY
    return FrozenMap({key: config_value(key, value, find) for key, value in config.items()})


def parse_integer(text: str) -> int | None:
    """The whole number that a broker reads in this text, or None."""
    return int(text) if _INTEGER.fullmatch(text) else None


def parse_double(text: str) -> Decimal | None:
    """The decimal number that a broker reads in this text, or None."""
    if not _DOUBLE.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def parse_limit(text: str) -> Decimal:
    """A number that can be compared: -1 means no limit in every config that accepts it."""
    number = parse_integer(text)
    if number is None:
        return parse_double(text) or Decimal(0)
    return Decimal(LONG_MAX if number == -1 else number)


def render_config(key: ConfigKey | None, text: str) -> str:
    """A value in people's units: `7 d`, `no limit`; the text itself if it is no number. An amount
    that has no short exact form is rounded: `6.94 d (600000000 ms)`."""
    if key is None or key.kind not in _NUMBERS or (number := parse_integer(text)) is None:
        return text
    if number == FOLLOWS and key.name in _FOLLOWED:
        return f"as {_FOLLOWED[key.name]}"
    if number == -1 or number == key.limit >= INT_MAX:
        return "no limit"
    if key.unit not in SCALES:
        return f"{number:,}"
    exact = render_quantity(number, key.unit) or f"{number:,} {_SYMBOLS.get(key.unit, key.unit)}"
    if number <= 0 or Decimal(exact.partition(" ")[0].replace(",", "")) < _LONG:
        return exact
    rounded = render_amount(number, key.unit)
    if rounded == exact:
        return exact
    return f"{rounded} ({number} {_SYMBOLS.get(key.unit, key.unit)})"


def parse_items(text: str) -> tuple[str, ...]:
    """The elements of a list value in their order, trimmed."""
    items = (item.strip() for item in text.split(","))
    # Brokers drop repeated elements since Kafka 4.2 (KIP-1161).
    return tuple(dict.fromkeys(item for item in items if item))


def _render_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return render_number(value)
    if isinstance(value, tuple):
        return ",".join(_render_text(item) for item in value)
    return str(value)


def _integer_form(_: ConfigKey, text: str) -> str:
    number = parse_integer(text)
    # Most are canonical already, and the text that came in is one that others share.
    return text if number is None or str(number) == text else str(number)


def _double_form(_: ConfigKey, text: str) -> str:
    number = parse_double(text)
    return text if number is None else render_number(number)


def _boolean_form(_: ConfigKey, text: str) -> str:
    return text.lower() if text.lower() in ("true", "false") else text


def _list_form(key: ConfigKey, text: str) -> str:
    items = parse_items(text)
    return ",".join(items if key.ordered else sorted(items))


def _string_form(_: ConfigKey, text: str) -> str:
    return text


_FORMS: Mapping[str, Callable[[ConfigKey, str], str]] = {
    "int": _integer_form,
    "long": _integer_form,
    "short": _integer_form,
    "double": _double_form,
    "boolean": _boolean_form,
    "list": _list_form,
    "string": _string_form,
    "class": _string_form,
    "password": _string_form,
}
