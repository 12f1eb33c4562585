"""Parses and renders sizes in bytes the way people write them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kKMGT]i?)?B?(?:/s)?", re.ASCII)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_UNITS = ("B", "kB", "MB", "GB", "TB")


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


def render_size(size: float) -> str:
    """`1.2 GB`, in decimal units."""
    power = 0
    while size >= 1000 and power < len(_UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.1f} {_UNITS[power]}" if power else f"{size:.0f} B"
