"""JSON of schemas as text: one spelling for equal documents."""

from __future__ import annotations

import json
from typing import Any

from kafkaform.core.canonical import render_number
from kafkaform.provider.http.strict_json import parse_json

__all__ = ["parse_json", "sort_keys", "write_json"]


class _HasDecimal(TypeError):
    """The standard encoder met a number that it cannot write exactly."""


def write_json(value: Any) -> str:
    """The document on one line. Objects keep the order of their keys."""
    try:
        # Clients look a schema up by its text, and their libraries do not escape what is printable.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_refuse)
    except _HasDecimal:
        return _write_exactly(value)


def _refuse(_: object) -> Any:
    raise _HasDecimal


def _write_exactly(value: Any) -> str:
    if isinstance(value, dict):
        items = (f"{write_json(key)}:{write_json(item)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write_json, value)) + "]"
    return render_number(value)


def sort_keys(value: Any) -> Any:
    """The document with the keys of all objects sorted: their order means nothing (RFC 8259 §4)."""
    if isinstance(value, dict):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    return [sort_keys(item) for item in value] if isinstance(value, list) else value
