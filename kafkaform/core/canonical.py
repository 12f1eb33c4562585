"""One canonical JSON for everything that is stored, hashed or compared.

Keys sorted, no spaces, ASCII only (so a name cannot forge a line), numbers exact, one line.
Two equal values are equal bytes. Secret references are `{"$secret": "env:NAME"}`.
"""

from __future__ import annotations

import json
from decimal import Decimal
from sys import intern
from typing import Any

from .value import FrozenMap, SecretRef, Value, freeze

SECRET = "$secret"
MAX_DIGITS = 1000


class CanonicalError(ValueError):
    """The text is not canonical JSON of ours: duplicate key, NaN, huge number, not JSON."""


def dumps(value: Any) -> str:
    """Canonical JSON text of a frozen or plain value, one line without a newline."""
    return _encode(value)


def loads(text: str | bytes) -> Value:
    """Parse canonical JSON strictly into frozen values. Raises CanonicalError."""
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
    """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
    import hashlib  # noqa: PLC0415  # it loads OpenSSL, and `validate` needs no digest

    return hashlib.sha256(dumps(value).encode("ascii")).hexdigest()


class _HasDecimal(TypeError):
    """Signals that the quick encoder met a number that only the exact one can write."""


def _default(value: object) -> object:
    if isinstance(value, SecretRef):
        return {SECRET: str(value)}
    if isinstance(value, Decimal):
        raise _HasDecimal
    raise TypeError(f"no canonical form for {type(value).__name__}")


_COMPACT: dict[str, Any] = {
    "sort_keys": True,
    "separators": (",", ":"),
    "ensure_ascii": True,
    "allow_nan": False,
    "default": _default,
}


def _encode(value: Any) -> str:
    """What the quick encoder can write it writes: only the way down to a decimal is slow."""
    if isinstance(value, Decimal):
        return render_number(value)
    try:
        return json.dumps(value, **_COMPACT)
    except _HasDecimal:
        pass
    if isinstance(value, dict):
        items = (f"{json.dumps(key)}:{_encode(value[key])}" for key in sorted(value))
        return "{" + ",".join(items) + "}"
    return "[" + ",".join(map(_encode, value)) + "]"


def render_number(number: Decimal | int) -> str:
    """A number without exponent, trailing zeros or sign of zero: 1.50 -> "1.5"."""
    text = format(Decimal(number), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _build_object(pairs: list[tuple[str, Any]]) -> Any:
    """Called innermost first, so only lists are left to be frozen here."""
    result = {key: _freeze_item(value) for key, value in pairs}
    if len(result) != len(pairs):
        raise CanonicalError("an object has the same key twice")
    if result.keys() == {SECRET} and isinstance(result[SECRET], str):
        source, _, name = result[SECRET].partition(":")
        return SecretRef(source, name)
    return FrozenMap(result)


def _freeze_item(value: Any) -> Any:
    """The words of thousands of objects are few: each is kept once, which also makes comparing
    them a matter of looking at the same place."""
    if type(value) is str:
        return intern(value)
    return tuple(map(_freeze_item, value)) if isinstance(value, list) else value


def _parse_number(text: str) -> Value:
    # We never write exponents, and 1e999999999 would be a number of a gigabyte.
    if len(text) > MAX_DIGITS or "e" in text.lower():
        raise CanonicalError("a number has too many digits or an exponent")
    return freeze(Decimal(text))


def _parse_integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise CanonicalError("a number has too many digits")
    return int(text)


def _refuse_constant(text: str) -> Any:
    raise CanonicalError(f"{text} is not a JSON number")
