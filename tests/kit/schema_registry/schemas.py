"""Schemas for tests."""

from __future__ import annotations

import json
from typing import Any


def field(name: str, kind: Any = "string", **given: Any) -> dict[str, Any]:
    """A field of an Avro record."""
    return {"name": name, "type": kind, **given}


def record(*fields: dict[str, Any], name: str = "Order", indent: int | None = None) -> str:
    """An Avro record as people write it."""
    return json.dumps({"fields": list(fields), "name": name, "type": "record"}, indent=indent)


ID = field("id", "long")
NOTE = field("note", ["null", "string"], default=None)
AMOUNT = field("amount", "int")
ORDER = record(ID)
"""A record with one field."""
ORDER_WITH_NOTE = record(ID, NOTE)
"""Compatible with `ORDER` in both directions."""
ORDER_WITH_AMOUNT = record(ID, AMOUNT)
"""Readers with it cannot read what was written with `ORDER`."""
