"""JSON of schemas as text: one spelling for equal documents."""

from __future__ import annotations

import json
from typing import Any

from kafkaform.core.canonical import render_number
from kafkaform.provider.http.strict_json import parse_json

FEW = 100
"""So many brackets cannot be nested too deeply."""
MAX_PLAIN = 18
"""Digits of a number that needs no further check."""

__all__ = ["parse_text", "sort_keys", "write_json"]


def parse_text(text: str) -> Any:
    """The document: what `parse_json` gives and refuses. Raises ValueError."""
    # Most schemas are small and plain. The whole check takes longer than everything else that a
    # plan does with them.
    if "\\u" in text or not text.isascii() or text.count("{") + text.count("[") > FEW:
        return parse_json(text)
    try:
        return json.loads(
            text,
            object_pairs_hook=_build_object,
            parse_int=_read_integer,
            parse_float=_leave,
            parse_constant=_leave,
        )
    except _NotPlain:
        return parse_json(text)
    except json.JSONDecodeError:
        return parse_json(text)


class _NotPlain(Exception):
    """Something that only the whole check can judge."""


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _NotPlain
    return found


def _read_integer(text: str) -> int:
    if len(text) > MAX_PLAIN:
        raise _NotPlain
    return int(text)


def _leave(_: str) -> Any:
    raise _NotPlain


class _FoundDecimal(TypeError):
    """The standard encoder met a number that it cannot write exactly."""


def write_json(value: Any) -> str:
    """The document on one line. Objects keep the order of their keys."""
    try:
        # Clients look a schema up by its text, and their libraries do not escape what is printable.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_refuse)
    except _FoundDecimal:
        return _write_exactly(value)


def _refuse(_: object) -> Any:
    raise _FoundDecimal


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
