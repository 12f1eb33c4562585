"""Single values of a document as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaform.core.canonical import render_number

NOTHING = "-"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def cell(value: Any) -> str:
    """One value of a document; a dash for an unknown one."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(map(cell, value)) or NOTHING
    return value if isinstance(value, str) else render_number(value)


def size(number: int | None) -> str:
    """Bytes in the largest unit of which there is at least one."""
    if number is None:
        return NOTHING
    amount, unit = float(number), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{number} B"


def count(number: int, noun: str) -> str:
    """`1 topic`, `1,200 topics`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def entity_text(entity: Mapping[str, str | None]) -> str:
    """`user "ci", client-id default`."""
    return ", ".join(
        f"{part} default" if name is None else f'{part} "{name}"'
        for part, name in sorted(entity.items(), reverse=True)
    )
