"""Durations in provider blocks."""

from __future__ import annotations

import re
from decimal import Decimal

from ..core.value import Value

# Some protocols carry whole milliseconds. A request with 0 can expire before
# anybody looks at it, and some clients report that as success.
MIN_SECONDS, MAX_SECONDS = 0.001, 3600.0

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s|m)?", re.ASCII)
_UNITS = {None: 1.0, "s": 1.0, "ms": 0.001, "m": 60.0}


def parse_seconds(value: Value) -> float | None:
    """The seconds that a number or a text such as `30s` means; None if it is no duration, not
    positive, or over an hour."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        return None
    match = _DURATION.fullmatch(str(value).strip())
    if match is None:
        return None
    length = float(match[1]) * _UNITS[match[2]]
    return length if MIN_SECONDS <= length <= MAX_SECONDS else None
