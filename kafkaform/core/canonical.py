"""Canonical JSON for everything that is stored, hashed or compared.

Keys are sorted; there are no spaces; numbers are exact; the text is one line of ASCII, so that no
name can forge a line. Equal values are equal bytes. Secret references are
`{"$secret": "env:NAME"}`.
"""

from __future__ import annotations

import json
from binascii import hexlify
from decimal import Decimal
from sys import intern
from typing import Any

from .value import EMPTY, FrozenMap, SecretRef, Value, freeze

SECRET = "$secret"
# Python needs quadratic time to read a number: one of a million digits would take minutes.
MAX_DIGITS = 1000


class CanonicalError(ValueError):
    """The text is not canonical JSON: no JSON at all, a duplicate key, NaN, or a huge number."""


def loads(text: str | bytes) -> Value:
    """The frozen value of this canonical JSON. Raises CanonicalError."""
    # A reader that took the last of two equal keys, or NaN, or a rounded number would accept texts
    # that nobody wrote, and two readers could see two plans in one file.
    try:
        plain = json.loads(
            text,
            object_pairs_hook=_build_object,
            parse_float=_parse_number,
            parse_int=_parse_integer,
            parse_constant=_refuse_constant,
        )
    except RecursionError:
        raise CanonicalError("nested too deeply") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise CanonicalError(str(error)) from None
    frozen: Value = _freeze_item(plain)
    return frozen


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, as 64 hexadecimal digits."""
    import hashlib  # noqa: PLC0415  # it loads OpenSSL, and `validate` needs no digest

    return hashlib.sha256(dumps(value).encode("ascii")).hexdigest()


def digest_bytes(content: bytes) -> str:
    """The digest of the text of these bytes in hexadecimal digits."""
    import hashlib  # noqa: PLC0415  # as above

    # The canonical JSON of a text that needs no escapes. A configuration can read many files.
    return hashlib.sha256(b'"%b"' % hexlify(content)).hexdigest()


class _HasDecimal(TypeError):
    """An encoder met a number that it cannot write exactly."""


def _default(value: object) -> object:
    if isinstance(value, SecretRef):
        return {SECRET: str(value)}
    if isinstance(value, Decimal):
        raise _HasDecimal
    raise TypeError(f"no canonical form for {type(value).__name__}")


_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False, default=_default
).encode


def dumps(value: Any) -> str:
    """Canonical JSON text of a frozen or plain value, one line without a newline."""
    import orjson  # noqa: PLC0415  # it loads dataclasses, and `validate` writes no JSON

    # A third of an apply was the standard encoder. orjson writes the same ten times as fast, except
    # for what it refuses, and except for characters that are not ASCII, or delete (7f): it does not
    # escape those.
    flags = (
        orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    )
    try:
        text = orjson.dumps(value, _default, flags)
    except TypeError as error:
        meets_decimal = isinstance(error.__cause__, _HasDecimal)
        return _dump_parts(value) if meets_decimal else _dump_slowly(value)
    return text.decode("ascii") if text.isascii() and b"\x7f" not in text else _dump_slowly(value)


def _dump_slowly(value: Any) -> str:
    """Canonical JSON by the standard encoder. Raises TypeError for a value that has none."""
    try:
        return _encode(value)
    except _HasDecimal:
        return _dump_parts(value)


def _dump_parts(value: Any) -> str:
    """Canonical JSON of a decimal, or of a container of one, which are few."""
    if isinstance(value, Decimal):
        return render_number(value)
    if isinstance(value, dict):
        items = (f"{json.dumps(key)}:{dumps(value[key])}" for key in sorted(value))
        return "{" + ",".join(items) + "}"
    return "[" + ",".join(map(dumps, value)) + "]"


def render_number(number: Decimal | int) -> str:
    """A number without exponent, trailing zeros, or a sign of zero: 1.50 -> "1.5"."""
    text = format(Decimal(number), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _build_object(pairs: list[tuple[str, Any]]) -> Any:
    """A frozen object. The parser calls this innermost first, so that only lists are not frozen
    yet."""
    # Thousands of objects share a few words. Interned, each is stored once, and comparing two of
    # them is comparing two pointers.
    result = {
        key: intern(value) if value.__class__ is str else _freeze_item(value)
        for key, value in pairs
    }
    if len(result) != len(pairs):
        raise CanonicalError("an object has the same key twice")
    if len(result) == 1 and result.keys() == {SECRET} and isinstance(result[SECRET], str):
        source, _, name = result[SECRET].partition(":")
        return SecretRef(source, name)
    return FrozenMap(result) if result else EMPTY


def _freeze_item(value: Any) -> Any:
    if value.__class__ is str:
        return intern(value)
    return tuple(map(_freeze_item, value)) if value.__class__ is list else value


def _parse_number(text: str) -> Value:
    # We never write exponents, and 1e999999999 would become a number of a gigabyte.
    if len(text) > MAX_DIGITS or "e" in text.lower():
        raise CanonicalError("a number has too many digits or an exponent")
    return freeze(Decimal(text))


def _parse_integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise CanonicalError("a number has too many digits")
    return int(text)


def _refuse_constant(text: str) -> Any:
    raise CanonicalError(f"{text} is not a JSON number")
