"""Parses sizes in bytes the way people write them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

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
