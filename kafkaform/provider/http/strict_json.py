"""Read JSON of a foreign server: what two readers could understand differently is refused."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

MAX_DEPTH = 100
"""Levels of lists and objects. Python's own limit depends on who calls."""
MAX_DIGITS = 400
"""Of a number, and of its exponent as a power of ten: the largest double has 309 digits."""


_LONG_NUMBER = b"0" * MAX_DIGITS
_DIGITS = bytes.maketrans(b"123456789", b"000000000")


class NotJson(ValueError):
    """The text is not JSON as RFC 8259 and RFC 7493 (I-JSON) want it. It repeats nothing of it."""


class _NotPlain(Exception):
    """Something that the short way cannot judge."""


def parse_json(data: bytes | str) -> Any:
    """Lists, dicts, texts, ints, Decimals, bools and None. data: UTF-8. Raises NotJson.

    Refused are NaN and infinity, duplicate keys, half of a surrogate pair, numbers without
    measure, and more than MAX_DEPTH levels.
    """
    # Not `core.canonical`, which reads our own files: there {"$secret": …} is a reference to a
    # secret, and no server can be allowed to write one.
    try:
        return _parse_plain(data if isinstance(data, bytes) else data.encode("utf-8"))
    except (_NotPlain, msgspec.MsgspecError, RecursionError, UnicodeError):
        return parse_slowly(data)


def _parse_plain(data: bytes) -> Any:
    """The value of what nearly every server sends, in a quarter of the time. Raises _NotPlain,
    MsgspecError, RecursionError, UnicodeError for anything that only `parse_slowly` can judge."""
    # One byte is found in a tenth of the time of two.
    if (b"\\" in data and b"\\u" in data) or _LONG_NUMBER in data.translate(_DIGITS):
        raise _NotPlain
    value = _DECODER.decode(data)
    # The decoder keeps the last of two equal keys without a word. Written again, the value then has
    # fewer colons: the texts have as many as before, and one is missing for each key that is.
    if msgspec.json.encode(value).count(b":") != data.count(b":"):
        raise _NotPlain
    # So few brackets cannot be nested too deeply.
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        _check_parts(value)
    return value


def parse_slowly(data: bytes | str) -> Any:
    """The same with the whole check."""
    try:
        value = json.loads(
            data if isinstance(data, str) else data.decode("utf-8"),
            object_pairs_hook=_build_object,
            parse_float=_parse_decimal,
            parse_int=_parse_integer,
            parse_constant=_refuse_constant,
        )
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"it is not JSON ({error.msg} at character {error.pos})") from None
    except UnicodeDecodeError:
        raise NotJson("it is not UTF-8") from None
    _check_parts(value)
    return value


def _check_parts(value: Any) -> None:
    """Depth and texts, level by level: recursion would end where Python's stack does."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif isinstance(item, dict):
                for key in item:
                    _check_text(key)
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        if not inner:
            return
        level = inner
    raise NotJson("it is nested too deeply")


def _check_text(text: str) -> None:
    # Half of a pair cannot be written as UTF-8: the first file or screen would fail on it.
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise NotJson("it contains half of a surrogate pair") from None


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotJson("an object has the same key twice")
    return members


def _parse_decimal(text: str) -> Decimal:
    try:
        number = Decimal(text) if len(text) <= MAX_DIGITS else None
    except InvalidOperation:  # an exponent that no Decimal can have
        number = None
    if number is None or abs(number.adjusted()) > MAX_DIGITS:
        raise NotJson("a number has too many digits")
    return number


def _parse_integer(text: str) -> int:
    # Python needs quadratic time to read a number.
    if len(text) > MAX_DIGITS:
        raise NotJson("a number has too many digits")
    return int(text)


def _refuse_constant(text: str) -> Any:
    raise NotJson(f"{text} is not a JSON number")


_DECODER = msgspec.json.Decoder(float_hook=_parse_decimal)
