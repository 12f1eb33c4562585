"""Functions that write and read JSON, CSV, base64, URLs, and digests."""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.parse import quote_plus, unquote_plus

from ..faults import FunctionFault, LimitFault
from ..limits import LIMITS
from ..numbers import normal, number_text
from ..values import (
    FIELDS,
    NULL,
    SEQUENCES,
    ListVal,
    ObjectVal,
    TupleVal,
    Val,
    size_of,
    text,
)
from .spec import Function, Param, string

_ESCAPE = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029\x7f"})


def quoted(source: str) -> str:
    """A JSON string; what could end a script element is escaped."""
    return json.dumps(source, ensure_ascii=False).translate(_ESCAPE)


def to_json(value: Val) -> str:
    """Compact JSON, names sorted. Raises FunctionFault if it would be too long."""
    if size_of(value) > LIMITS.characters:
        raise LimitFault("the value is too large for one string", 0)
    return _json(value)


def _json(value: Val) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return number_text(value)
    if isinstance(value, SEQUENCES):
        return f"[{','.join(map(_json, value.items))}]"
    if isinstance(value, FIELDS):
        pairs = (f"{quoted(name)}:{_json(value.fields[name])}" for name in sorted(value.fields))
        return f"{{{','.join(pairs)}}}"
    return "null"


def _jsondecode(source: str) -> Val:
    try:
        data = json.loads(
            source,
            parse_int=lambda digits: normal(Decimal(digits)),
            parse_float=lambda digits: normal(Decimal(digits)),
            parse_constant=_no_constant,
        )
        return _plain(data, LIMITS.depth)
    except json.JSONDecodeError as fault:
        where = f"line {fault.lineno}, column {fault.colno}"
        raise FunctionFault(f"the text is not JSON: {fault.msg} at {where}", 0) from None
    except (RecursionError, ValueError, ArithmeticError):
        raise FunctionFault("the text is not JSON, or nested too deeply", 0) from None


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def _plain(data: Any, depth: int) -> Val:
    if depth < 0:
        raise ValueError("nested too deeply")
    if data is None:
        return NULL
    if isinstance(data, str):
        return text(data)
    if isinstance(data, list):
        return TupleVal(tuple([_plain(item, depth - 1) for item in data]))
    if isinstance(data, dict):
        return ObjectVal({text(name): _plain(item, depth - 1) for name, item in data.items()})
    number: Val = data
    return number


def _csvdecode(source: str) -> Val:
    try:
        rows = [row for row in csv.reader(io.StringIO(source), strict=True) if row]
    except csv.Error as fault:
        raise FunctionFault(f"the text is not CSV: {fault}", 0) from None
    if not rows:
        raise FunctionFault("the first line must name the columns", 0)
    header = [text(name) for name in rows[0]]
    if len(set(header)) < len(header):
        raise FunctionFault("two columns have the same name", 0)
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise FunctionFault(f"row {line} has {len(row)} fields instead of {len(header)}", 0)
    items = [ObjectVal(dict(zip(header, map(text, row), strict=True))) for row in rows[1:]]
    return ListVal(ObjectVal(dict.fromkeys(header, "")).type, tuple(items))


def _base64decode(source: str) -> Val:
    try:
        return text(base64.b64decode(source, validate=True).decode())
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise FunctionFault("the text is not base64 of UTF-8 text", 0) from None


def _base64encode(source: str) -> Val:
    return base64.b64encode(source.encode()).decode()


def _urldecode(source: str) -> Val:
    tails = source.split("%")[1:]
    if any(len(tail) < 2 or not all(c in _HEX for c in tail[:2]) for tail in tails):
        raise FunctionFault("a percent sign must be followed by two hexadecimal digits", 0)
    return text(unquote_plus(source, errors="replace"))


_HEX = frozenset("0123456789abcdefABCDEF")


def _digest(algorithm: str) -> Callable[[str], Val]:
    return lambda source: hashlib.new(algorithm, source.encode(), usedforsecurity=False).hexdigest()


_ALGORITHMS = ("md5", "sha1", "sha256", "sha512")
FUNCTIONS = (
    Function("base64decode", _base64decode, (string(),)),
    Function("base64encode", _base64encode, (string(),)),
    Function("csvdecode", _csvdecode, (string(),)),
    Function("jsondecode", _jsondecode, (string(),)),
    Function("jsonencode", to_json, (Param("value", null=True),)),
    Function("urldecode", _urldecode, (string(),)),
    Function("urlencode", quote_plus, (string(),)),
    *(Function(name, _digest(name), (string(),)) for name in _ALGORITHMS),
)
