"""Canonical JSON for all that is stored, hashed or compared, and the structs that are read from it.

Keys are sorted; there are no spaces; numbers are exact; the text is one line of ASCII, so that no
name can forge a line. Equal values are equal bytes. Secret references are
`{"$secret": "env:NAME"}`. A struct is an object of its fields without those that have their default
value, which keeps large plans small.

Structs are built field by field according to their type hints. A file that somebody edited is
refused with the name of the wrong member, and never becomes a struct that its type does not allow.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import types
import typing
from binascii import hexlify
from collections.abc import Callable, Hashable, Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from sys import intern
from typing import Any

import msgspec
import msgspec.structs
from msgspec import Struct
from msgspec.structs import astuple

from .value import EMPTY, FrozenMap, SecretRef, Value, freeze

NOTHING = msgspec.NODEFAULT

T = typing.TypeVar("T")
Reader = Callable[[Any], Any]
_PLAIN: Mapping[Any, tuple[tuple[type[Any], ...], str]] = {
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, Decimal), "a number"),
    FrozenMap: ((FrozenMap,), "an object"),
}
# Compared with `type(data)`, because a bool is an instance of int in Python.
"""Type of a field -> the types that its data may have, and what a message calls them."""
SECRET = "$secret"
# Python needs quadratic time to read a number: one of a million digits would take minutes.
MAX_DIGITS = 1000
_UNSAFE = re.compile("[^ -~]")


class Misfit(ValueError):
    """A member of the data is not what its struct requires."""

    def __init__(self, problem: str, path: str = "") -> None:
        """problem: the rest of a sentence that begins with the member; path: where it is."""
        super().__init__(problem, path)
        self.problem, self.path = problem, path

    def nest_in(self, step: str) -> Misfit:
        """The same error, seen from one level above."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        return Misfit(self.problem, f"{step}{dot}{self.path}")

    def __str__(self) -> str:
        return f"`{self.path}` {self.problem}" if self.path else f"it {self.problem}"


def from_data(cls: type[T], data: Value) -> T:
    """The struct whose canonical JSON has this data. Raises Misfit for data of another shape."""
    return typing.cast(T, _make_reader(typing.cast(Any, cls))(data))


def parse_json(text: str | bytes) -> Value:
    """The frozen values of any JSON that another program may have written. Raises Misfit."""
    try:
        value: Value = _freeze_json(
            json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
        )
    except RecursionError:
        raise Misfit("is nested too deeply") from None
    except ValueError as error:
        raise Misfit(f"is not JSON: {error}") from None
    return value


def _freeze_json(value: Any) -> Any:
    if isinstance(value, dict):
        return FrozenMap({name: _freeze_json(item) for name, item in value.items()})
    return tuple(map(_freeze_json, value)) if isinstance(value, list) else value


@functools.cache
def list_defaults(cls: Hashable) -> tuple[tuple[str, Any], ...]:
    """Name and default of each field of a struct; NOTHING for a field that must be given."""
    return tuple(
        (field.name, field.default if field.default_factory is NOTHING else field.default_factory())
        for field in msgspec.structs.fields(typing.cast(Any, cls))
    )


@functools.cache
def _make_reader(hint: Hashable) -> Reader:
    origin = typing.get_origin(hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _make_noun_reader(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _make_word_reader(hint)
    if origin is tuple:
        return _make_tuple_reader(typing.get_args(hint))
    if origin is frozenset:
        items = _make_tuple_reader((*typing.get_args(hint), ...))
        return lambda data: frozenset(items(data))
    if hint is date:
        return _read_date
    if origin is typing.Union or origin is types.UnionType:
        # Reads X for `X | None`; any other union is a Value, which is taken as it stands.
        hints = [a for a in typing.get_args(hint) if a is not type(None)]
        if len(hints) != 1:
            return lambda data: data
        inner = _make_reader(hints[0])
        return lambda data: None if data is None else inner(data)
    if origin is not None and issubclass(origin, Mapping):
        return _make_map_reader(typing.get_args(hint)[1])
    if hint in _PLAIN:
        return _make_plain_reader(hint)
    return lambda data: data


def _make_plain_reader(hint: Any) -> Reader:
    expected, name = _PLAIN[hint]

    def read(data: Any) -> Any:
        if type(data) not in expected:
            raise Misfit(f"is not {name}")
        try:
            return float(data) if hint is float else data
        except OverflowError:
            raise Misfit("is too large") from None

    return read


def _read_date(data: Any) -> date:
    try:
        return date.fromisoformat(data)
    except (TypeError, ValueError):
        raise Misfit("is not a date (YYYY-MM-DD)") from None


def _make_word_reader(cls: type[Enum]) -> Reader:
    words = {member.value: member for member in cls}

    def read(data: Any) -> Any:
        if type(data) is not str or data not in words:
            raise Misfit(f"is not one of {', '.join(words)}")
        return words[data]

    return read


def _make_noun_reader(cls: type[Any]) -> Reader:
    hints = typing.get_type_hints(cls)
    readers: dict[str, Reader] = {}
    needed: set[str] = set()

    def read(data: Any) -> Any:
        if type(data) is not FrozenMap:
            raise Misfit("is not an object")
        # Made at the first read and not before: the type hints of two structs may name each other.
        if not readers:
            fields = list_defaults(typing.cast(Hashable, cls))
            needed.update(name for name, default in fields if default is NOTHING)
            readers.update({name: _make_reader(hints[name]) for name, _ in fields})
        if missing := needed - data.keys():
            raise Misfit(f"lacks {', '.join(sorted(missing))}")
        members = {}
        for name, value in data.items():
            if name not in readers:
                raise Misfit("is not known to this version").nest_in(name)
            try:
                members[name] = readers[name](value)
            except Misfit as misfit:
                raise misfit.nest_in(name) from None
        return cls(**members)

    return read


def _make_map_reader(hint: Any) -> Reader:
    item = _make_reader(hint)

    def read(data: Any) -> Any:
        if type(data) is not FrozenMap:
            raise Misfit("is not an object")
        entries = {}
        for key, value in data.items():
            try:
                entries[key] = item(value)
            except Misfit as misfit:
                raise misfit.nest_in(key) from None
        return entries

    return read


def _make_tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    """Reads a list of any length (`tuple[X, ...]`), or of as many items as there are types, all of
    which are alike."""
    item = _make_reader(arguments[0])
    length = None if arguments[-1] is ... else len(arguments)

    def read(data: Any) -> Any:
        if type(data) is not tuple:
            raise Misfit("is not a list")
        if length is not None and len(data) != length:
            raise Misfit(f"is not a list of {length}")
        items = []
        for value in data:
            try:
                items.append(item(value))
            except Misfit as misfit:
                raise misfit.nest_in(f"[{len(items)}]") from None
        return tuple(items)

    return read


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
    return hashlib.sha256(dumps(value).encode("ascii")).hexdigest()


def digest_bytes(content: bytes) -> str:
    """The digest of the text of these bytes in hexadecimal digits."""
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
        # Canonical JSON by the standard encoder.
        try:
            return _encode(value)
        except _HasText:
            return _dump_parts(value)
    if text.isascii() and b"\x7f" not in text:
        return text.decode("ascii")
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text.decode("utf-8"))


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
