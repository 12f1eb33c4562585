"""Canonical JSON for everything that is stored, hashed or compared.

Keys are sorted; there are no spaces; numbers are exact; the text is one line of ASCII, so that no
name can forge a line. Equal values are equal bytes. Secret references are
`{"$secret": "env:NAME"}`. A struct is an object of its fields without those that have their default
value, which keeps large plans small.
"""

from __future__ import annotations

import functools
import json
import re
from binascii import hexlify
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from sys import intern
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from .nouns import list_defaults
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


class Rendered(Struct, frozen=True):
    """A value whose canonical JSON is known already, such as that of a whole plan."""

    text: str
    """The canonical JSON."""

    @classmethod
    def make(cls, value: Any) -> Rendered:
        """The rendered form of this value."""
        return cls(dumps(value))


class _HasText(TypeError):
    """The standard encoder met a value that has its own text."""


def _make_plain(value: object) -> object:
    """The plain form of a value that an encoder does not know, one level deep."""
    if isinstance(value, SecretRef):
        return {SECRET: str(value)}
    if isinstance(value, Struct):
        fields = zip(list_defaults(type(value)), astuple(value), strict=True)
        return {
            name: item if type(item) is not float else Decimal(repr(item))
            for (name, usual), item in fields
            if item is not usual and item != usual
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"no canonical form for {type(value).__name__}")


def _find_text(value: object) -> str | None:
    """The text of a value that has its own, None for any other."""
    if isinstance(value, Decimal):
        return render_number(value)
    return value.text if isinstance(value, Rendered) else None


def _refuse_text(value: object) -> object:
    if _find_text(value) is not None:
        raise _HasText
    return _make_plain(value)


_encode = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=True,
    allow_nan=False,
    default=_refuse_text,
).encode
_UNSAFE = re.compile("[^ -~]")


@functools.cache
def _load_encoder() -> Callable[[Any], bytes]:
    import orjson  # noqa: PLC0415  # it loads dataclasses, and `validate` writes no JSON

    def default(value: object) -> object:
        text = _find_text(value)
        return _make_plain(value) if text is None else orjson.Fragment(text)

    flags = (
        orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    )
    return functools.partial(orjson.dumps, default=default, option=flags)


def dumps(value: Any) -> str:
    """Canonical JSON text of a frozen or plain value, or of structs of those, one line without a
    newline. Raises TypeError for a value that has none."""
    # A third of an apply was the standard encoder. orjson writes the same ten times as fast, except
    # for what it refuses (half characters, numbers beyond 64 bits), and except for characters that
    # are not ASCII, or delete (7f): it does not escape those.
    try:
        text = _load_encoder()(value)
    except TypeError:
        return _dump_slowly(value)
    if text.isascii() and b"\x7f" not in text:
        return text.decode("ascii")
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text.decode("utf-8"))


def _dump_slowly(value: Any) -> str:
    """Canonical JSON by the standard encoder."""
    try:
        return _encode(value)
    except _HasText:
        return _dump_parts(value)


def _dump_parts(value: Any) -> str:
    """Canonical JSON of a value that has its own text, or of a container of one, which are few."""
    text = _find_text(value)
    if text is not None:
        return text
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(dumps, value)) + "]"
    members: Any = value if isinstance(value, dict) else _make_plain(value)
    items = (f"{json.dumps(key)}:{dumps(members[key])}" for key in sorted(members))
    return "{" + ",".join(items) + "}"


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
