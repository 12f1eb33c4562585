"""JSON of schemas as text: one spelling for equal documents."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from kafkaform.core.canonical import render_number

_AS_TEXT = msgspec.json.Encoder(decimal_format="string")
_AS_NUMBER = msgspec.json.Encoder(decimal_format="number")
_IN_ORDER = msgspec.json.Encoder(decimal_format="number", order="deterministic")


def write_json(value: Any) -> str:
    """The document on one line. Objects keep the order of their keys, and what is printable is not
    escaped: clients look a schema up by its text, and their libraries do so."""
    written = _AS_NUMBER.encode(value)
    # A Decimal would keep its exponent and its zeros. Only what has one is written in two ways.
    return written.decode() if written == _AS_TEXT.encode(value) else _write_exactly(value)


def _write_exactly(value: Any) -> str:
    if isinstance(value, dict):
        items = (f"{write_json(key)}:{write_json(item)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write_json, value)) + "]"
    assert isinstance(value, Decimal)
    return render_number(value)


def sort_keys(value: Any) -> Any:
    """The document with the keys of all objects sorted: their order means nothing (RFC 8259 §4)."""
    if isinstance(value, dict):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    return [sort_keys(item) for item in value] if isinstance(value, list) else value


def write_sorted(value: Any) -> str:
    """The document with the keys of all objects sorted, on one line; numbers as they were read."""
    return _IN_ORDER.encode(value).decode()
