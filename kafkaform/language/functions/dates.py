"""Functions for points in time in the form of RFC 3339: `2026-01-31T12:00:00Z`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from decimal import ROUND_FLOOR, Decimal

from msgspec import Struct

from ..values.faults import FunctionFault
from ..values.value import Val
from .spec import Function, make_string_param


class _Instant(Struct, frozen=True, order=True):
    """A point in time."""

    second: datetime
    """With its offset from UTC."""
    fraction: Decimal
    """The fraction of the second; Go has nanoseconds, `datetime` only microseconds."""


# ASCII: without it, \d would match the digits of all scripts. Digits after the ninth are dropped,
# as Go does it.
_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d{1,9})?\d*"
    r"(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)


def _parse_instant(source: str, argument: int) -> _Instant:
    match = _INSTANT.fullmatch(source)
    try:
        if match is None:
            raise ValueError
        sign = -1 if match[8] == "-" else 1
        offset = timedelta(hours=int(match[9] or 0), minutes=int(match[10] or 0)) * sign
        year, month, day, hour, minute, second = map(int, match.groups()[:6])
        zone = timezone(offset)
        return _Instant(
            datetime(year, month, day, hour, minute, second, tzinfo=zone), Decimal(match[7] or 0)
        )
    except ValueError:
        raise FunctionFault('expected a time such as "2026-01-31T12:00:00Z"', argument) from None


def _timecmp(first: str, second: str) -> Val:
    earlier, later = _parse_instant(first, 0), _parse_instant(second, 1)
    return (earlier > later) - (earlier < later)


_SECONDS: Mapping[str, Decimal] = {
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "\u00b5s": Decimal("1e-6"),  # with the sign for micro
    "ns": Decimal("1e-9"),
}
_UNITS = "|".join(sorted(_SECONDS, key=len, reverse=True))
_AMOUNT = re.compile(rf"([0-9]{{1,12}}(?:\.[0-9]{{0,9}})?|\.[0-9]{{1,9}})({_UNITS})")


def _parse_duration(source: str) -> Decimal:
    """The seconds of a duration such as `-1h30m`, in the form of Go's `ParseDuration`."""
    bare = source.removeprefix("-" if source.startswith("-") else "+")
    if bare != "0" and (not bare or _AMOUNT.sub("", bare)):
        units = ", ".join(_SECONDS)
        raise FunctionFault(f'expected amounts and units ({units}), such as "1h30m" or "-10s"', 1)
    amounts = (Decimal(amount) * _SECONDS[unit] for amount, unit in _AMOUNT.findall(bare))
    return sum(amounts, Decimal(0)) * (1 if bare == source or source[0] == "+" else -1)


def _timeadd(time: str, duration: str) -> Val:
    start = _parse_instant(time, 0)
    seconds = (start.fraction + _parse_duration(duration)).to_integral_value(ROUND_FLOOR)
    try:
        return _render_time(start.second + timedelta(seconds=int(seconds)))
    except OverflowError:
        raise FunctionFault("the year of the result must be from 1 to 9999") from None


def normalise_time(source: str) -> str:
    """A point in time in the form of RFC 3339, in whole seconds. Raises FunctionFault."""
    return _render_time(_parse_instant(source, 0).second)


def _render_time(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat() + _render_offset(time, ":", "Z")


def _render_offset(time: datetime, colon: str, zero: str) -> str:
    """The offset from UTC as `+01:00`. zero: how an offset of 0 is written; empty for `+00:00`."""
    minutes = int((time.utcoffset() or timedelta()).total_seconds()) // 60
    if not minutes and zero:
        return zero
    hours, remaining_minutes = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}{colon}{remaining_minutes:02}"


_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
# Names are English whatever the locale is, so `strftime` cannot be used.
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_VERBS: Mapping[str, Callable[[datetime], str]] = {
    "YY": lambda t: f"{t.year % 100:02}",
    "YYYY": lambda t: f"{t.year:04}",
    "M": lambda t: str(t.month),
    "MM": lambda t: f"{t.month:02}",
    "MMM": lambda t: _MONTHS[t.month - 1][:3],
    "MMMM": lambda t: _MONTHS[t.month - 1],
    "D": lambda t: str(t.day),
    "DD": lambda t: f"{t.day:02}",
    "EEE": lambda t: _DAYS[t.weekday()][:3],
    "EEEE": lambda t: _DAYS[t.weekday()],
    "h": lambda t: str(t.hour),
    "hh": lambda t: f"{t.hour:02}",
    "H": lambda t: str(t.hour % 12 or 12),
    "HH": lambda t: f"{t.hour % 12 or 12:02}",
    "AA": lambda t: "AM" if t.hour < 12 else "PM",
    "aa": lambda t: "am" if t.hour < 12 else "pm",
    "m": lambda t: str(t.minute),
    "mm": lambda t: f"{t.minute:02}",
    "s": lambda t: str(t.second),
    "ss": lambda t: f"{t.second:02}",
    "Z": lambda t: _render_offset(t, ":", "Z"),
    "ZZZ": lambda t: _render_offset(t, "", "UTC"),
    "ZZZZ": lambda t: _render_offset(t, "", ""),
    "ZZZZZ": lambda t: _render_offset(t, ":", ""),
}
_WORD = re.compile(
    r"(?P<quote>'')|'(?P<text>(?:[^']|'')+)'|(?P<verb>([A-Za-z])\4*)|(?P<other>.)", re.DOTALL
)


def _formatdate(template: str, time: str) -> Val:
    second = _parse_instant(time, 1).second
    return "".join(_render_word(word, second) for word in _WORD.finditer(template))


def _render_word(word: re.Match[str], time: datetime) -> str:
    if word["verb"]:
        if word["verb"] not in _VERBS:
            raise FunctionFault(f"{word['verb'][:9]} is not a verb; quote letters as 'text'", 0)
        return _VERBS[word["verb"]](time)
    if word["other"] == "'":
        raise FunctionFault("a quote is not closed", 0)
    return "'" if word["quote"] else (word["text"] or word["other"]).replace("''", "'")


FUNCTIONS = (
    Function(
        "formatdate",
        "The time in another form: `YYYY-MM-DD hh:mm:ss`, `EEE, DD MMM`, `'text'`, `Z`.",
        _formatdate,
        (make_string_param("template"), make_string_param("time")),
        steps=15,
    ),
    Function(
        "timeadd",
        'The time plus a duration such as `"1h30m"` or `"-10s"`.',
        _timeadd,
        (make_string_param("time"), make_string_param("duration")),
        steps=15,
    ),
    Function(
        "timecmp",
        "-1, 0 or 1: whether the first time is before, equal to or after the second.",
        _timecmp,
        (make_string_param("one"), make_string_param("other")),
        steps=15,
    ),
)
