"""Functions that read and write JSON, CSV, base64, URLs and character sets, and format texts with
Go's verbs: `%[flags][width][.precision][[index]]letter`."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from decimal import Decimal
from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import Any
from urllib.parse import quote_plus, unquote_plus

from ...core.schema import BOOL, NUMBER, STRING
from ..values.conversion import convert_value
from ..values.faults import LIMITS, ConvertFault, FunctionFault, LimitFault
from ..values.value import (
    FIELDS,
    NULL,
    PRECISION,
    SEQUENCES,
    ListVal,
    Null,
    Number,
    ObjectVal,
    TupleVal,
    Val,
    normalise_number,
    normalise_text,
    render_number,
    size_of,
)
from .spec import Function, Param, make_string_param
from .string import make_string_list, refuse_too_long, split_graphemes

_ESCAPE = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029\x7f"})


def quote_json(source: str) -> str:
    """A JSON string. Characters that could end a script element are escaped, as Go does it."""
    return json.dumps(source, ensure_ascii=False).translate(_ESCAPE)


def to_json(value: Val) -> str:
    """Compact JSON with sorted names. Raises LimitFault if it would be too long."""
    # The standard library's encoder cannot be used, because it has no exact numbers but int.
    if size_of(value) > LIMITS.characters:
        raise LimitFault("the value is too large for one string", 0)
    return _render_json(value)


def _render_json(value: Val) -> str:
    if isinstance(value, str):
        return quote_json(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return render_number(value)
    if isinstance(value, SEQUENCES):
        return f"[{','.join(map(_render_json, value.items))}]"
    if isinstance(value, FIELDS):
        pairs = (
            f"{quote_json(name)}:{_render_json(value.fields[name])}"
            for name in sorted(value.fields)
        )
        return f"{{{','.join(pairs)}}}"
    return "null"


def _jsondecode(source: str) -> Val:
    try:
        data = json.loads(
            source,
            parse_int=lambda digits: normalise_number(Decimal(digits)),
            parse_float=lambda digits: normalise_number(Decimal(digits)),
            parse_constant=_refuse_constant,
        )
        return _convert_plain(data, LIMITS.depth)
    except json.JSONDecodeError as fault:
        position = f"line {fault.lineno}, column {fault.colno}"
        raise FunctionFault(f"the text is not JSON: {fault.msg} at {position}", 0) from None
    except (RecursionError, ValueError, ArithmeticError):
        raise FunctionFault("the text is not JSON, or nested too deeply", 0) from None


def _refuse_constant(word: str) -> Any:
    """Refuse NaN and Infinity, which Python's parser takes though JSON does not have them."""
    raise ValueError(word)


def _convert_plain(data: Any, depth: int) -> Val:
    if depth < 0:
        raise ValueError("nested too deeply")
    if data is None:
        return NULL
    if isinstance(data, str):
        return normalise_text(data)
    if isinstance(data, list):
        return TupleVal(tuple([_convert_plain(item, depth - 1) for item in data]))
    if isinstance(data, dict):
        return ObjectVal(
            {normalise_text(name): _convert_plain(item, depth - 1) for name, item in data.items()}
        )
    number: Val = data
    return number


_FIELD = re.compile(r'(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r?\n|\Z)')


def _parse_csv_rows(source: str) -> Iterator[list[str]]:
    """The rows of a CSV text (RFC 4180) without empty lines. Raises FunctionFault for a misplaced
    quote."""
    # Python's csv module takes a quote inside a field, which Go refuses; files would be read in
    # another way than by Terraform.
    row: list[str] = []
    position, end = 0, ","
    while end:
        field = _FIELD.match(source, position)
        if field is None:
            line = source.count("\n", 0, position) + 1
            raise FunctionFault(f"the text is not CSV: a quote or break in line {line}", 0)
        quoted, plain, end = field.groups()
        row.append(plain if quoted is None else quoted.replace('""', '"').replace("\r\n", "\n"))
        position = field.end()
        if end != ",":
            if len(row) > 1 or quoted is not None or plain:
                yield row
            row = []


def _csvdecode(source: str) -> Val:
    rows = list(_parse_csv_rows(source))
    if not rows:
        raise FunctionFault("the first line must name the columns", 0)
    header = [normalise_text(name) for name in rows[0]]
    if len(set(header)) < len(header):
        raise FunctionFault("two columns have the same name", 0)
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            counts = f"{len(row)} instead of {len(header)}"
            raise FunctionFault(f"the number of fields in row {number} is {counts}", 0)
    items = [
        ObjectVal(dict(zip(header, map(normalise_text, row), strict=True))) for row in rows[1:]
    ]
    return ListVal(ObjectVal(dict.fromkeys(header, "")).type, tuple(items))


def decode_base64(source: str) -> bytes:
    """The bytes of a base64 text. Raises FunctionFault."""
    try:
        return base64.b64decode(source, validate=True)
    except ValueError:
        raise FunctionFault("the text is not base64", 0) from None


def _base64decode(source: str) -> Val:
    try:
        return normalise_text(decode_base64(source).decode())
    except UnicodeDecodeError:
        raise FunctionFault("the text is not base64 of UTF-8 text", 0) from None


def _base64gunzip(source: str) -> Val:
    # A compressed text of kilobytes can expand to gigabytes, so no more than allowed is unpacked.
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        content = unpacker.decompress(decode_base64(source), LIMITS.characters)
        if unpacker.unconsumed_tail:
            raise LimitFault(f"the result would be longer than {LIMITS.characters:,} bytes", 0)
        if not unpacker.eof:
            raise ValueError
        return normalise_text(content.decode())
    except (zlib.error, ValueError):
        raise FunctionFault("the text is not base64 of UTF-8 text compressed by gzip", 0) from None


def _find_codec(encoding: str) -> str:
    """Python's name of a character set. Raises FunctionFault."""
    name = normalize_encoding(encoding).lower()
    codec = aliases.get(name, name)
    if codec not in _CHARACTER_SETS:
        raise FunctionFault("there is no such character set; examples are UTF-16LE and CP1252", 1)
    return codec


# The table also has codecs that are not character sets, such as hex and zip. Python refuses to
# encode text with those by a LookupError.
_CHARACTER_SETS = frozenset(aliases.values()) - {"utf_16", "utf_32"}
"""Without two that need a byte order mark to be unambiguous."""


def _textencodebase64(source: str, encoding: str) -> Val:
    try:
        return base64.b64encode(source.encode(_find_codec(encoding))).decode()
    except LookupError:
        raise FunctionFault("there is no such character set", 1) from None
    except UnicodeEncodeError:
        raise FunctionFault("the character set lacks a character of the text", 0) from None


def _textdecodebase64(source: str, encoding: str) -> Val:
    codec = _find_codec(encoding)
    try:
        return normalise_text(decode_base64(source).decode(codec))
    except LookupError:
        raise FunctionFault("there is no such character set", 1) from None
    except UnicodeDecodeError:
        raise FunctionFault("the bytes are not text in this character set", 0) from None


def _base64encode(source: str) -> Val:
    return base64.b64encode(source.encode()).decode()


def _urldecode(source: str) -> Val:
    tails = source.split("%")[1:]
    if any(len(tail) < 2 or not all(c in _HEX for c in tail[:2]) for tail in tails):
        raise FunctionFault("a percent sign must be followed by two hexadecimal digits", 0)
    return normalise_text(unquote_plus(source, errors="replace"))


_HEX = frozenset("0123456789abcdefABCDEF")


_VERB = re.compile(r"%(?:%|([0#\-+ ]*)([1-9]\d*)?(?:\.(\d*))?(?:\[([1-9]\d*)\])?([a-zA-Z]))")
_INTEGERS = {"b": "b", "d": "d", "o": "o", "x": "x", "X": "X"}
_FLOATS = "eEfgG"


def _format(template: str, *arguments: Val) -> Val:
    pieces: list[str] = []
    # `%[2]s` names an argument, and the verbs behind it go on from there, as in Go.
    position, following, highest, size = 0, 1, 0, 0
    while (sign := template.find("%", position)) >= 0:
        pieces.append(template[position:sign])
        verb = _VERB.match(template, sign)
        if verb is None:
            raise FunctionFault(f"there is no verb after the % at character {sign + 1}", 0)
        position = verb.end()
        if verb[5] is None:
            pieces.append("%")
            continue
        index = int(verb[4] or following)
        following, highest = index + 1, max(highest, index)
        if index > len(arguments):
            count = len(arguments)
            raise FunctionFault(f"{verb[0]} needs argument {index}, but there are only {count}")
        pieces.append(_render_verb(verb, arguments[index - 1]))
        size += len(pieces[-1])
        refuse_too_long(size)
    if highest < len(arguments):
        raise FunctionFault(f"there are more arguments than verbs; {highest} are used")
    return normalise_text("".join(pieces) + template[position:])


def _render_verb(verb: re.Match[str], value: Val) -> str:
    flags, width, letter = verb[1], int(verb[2] or 0), verb[5]
    if width > LIMITS.digits or int(verb[3] or 0) > LIMITS.digits:
        raise FunctionFault(f"{verb[0]} is wider than {LIMITS.digits} characters", 0)
    precision = None if verb[3] is None else int(verb[3] or 0)
    if isinstance(value, Null) and letter != "v":
        raise FunctionFault(f"{verb[0]} cannot show null")
    try:
        if letter == "v":
            return _pad_text(_render_as_is(value, "#" in flags), flags, width)
        if letter == "t":
            return "true" if convert_value(value, BOOL) else "false"
        if letter in "sq":
            text = str(convert_value(value, STRING))
            if precision:
                text = "".join(split_graphemes(text)[:precision])
            return _pad_text(quote_json(text) if letter == "q" else text, flags, width)
        if letter in _INTEGERS or letter in _FLOATS:
            return _render_number(convert_value(value, NUMBER), flags, width, precision, letter)
    except ConvertFault as fault:
        raise FunctionFault(f"{verb[0]}: {fault}") from None
    raise FunctionFault(f"there is no verb %{letter}", 0)


def _render_as_is(value: Val, sharp: bool) -> str:
    if isinstance(value, str) and not sharp:
        return value
    if isinstance(value, int | Decimal) and not isinstance(value, bool) and not sharp:
        return _render_shortest(value, "e")
    return to_json(value)


def _pad_text(text: str, flags: str, width: int) -> str:
    # Width counts what people take for characters, not code points.
    missing = width - len(split_graphemes(text))
    if missing <= 0:
        return text
    fill = ("0" if "0" in flags else " ") * missing
    return text + fill if "-" in flags else fill + text


def _render_number(value: Val, flags: str, width: int, precision: int | None, letter: str) -> str:
    if not isinstance(value, int | Decimal):
        raise FunctionFault("expected a number")
    # The sign is added last: zeros for the width come between the sign and the digits.
    digits = _render_digits(-value if value < 0 else value, flags, precision, letter)
    sign = "-" if value < 0 else "+" if "+" in flags else " " if " " in flags else ""
    missing = width - len(sign) - len(digits)
    if missing <= 0:
        return sign + digits
    if "-" in flags:
        return sign + digits + " " * missing
    return sign + "0" * missing + digits if "0" in flags else " " * missing + sign + digits


def _render_digits(value: Number, flags: str, precision: int | None, letter: str) -> str:
    if letter in _INTEGERS:
        if not isinstance(value, int):
            raise FunctionFault(f"%{letter} needs a whole number")
        prefix = {"x": "0x", "X": "0X", "o": "0", "b": "0b"}.get(letter, "") if "#" in flags else ""
        return prefix + format(value, letter).zfill(precision or 0)
    if letter in "gG" and precision is None:
        return _render_shortest(value, "E" if letter == "G" else "e")
    decimals = 6 if precision is None else precision
    if letter == "f":
        return format(Decimal(value), f".{decimals}f")
    if letter in "eE":
        # An exponent with at least two digits, as Go writes it.
        return re.sub(
            r"([eE][+-])(\d)$", r"\g<1>0\2", format(Decimal(value), f".{decimals}{letter}")
        )
    digits = max(decimals, 1)
    rounded = Decimal(format(Decimal(value), f".{digits - 1}e"))
    return _render_general(rounded, digits, "E" if letter == "G" else "e")


def _render_shortest(value: Number, letter: str) -> str:
    exact = PRECISION.plus(Decimal(value))
    return ("-" if value < 0 else "") + _render_general(abs(exact), 6, letter)


def _render_general(value: Decimal, digits: int, letter: str) -> str:
    """Go's %g: as %e if the exponent is below -4 or at least `places`, else as %f; without trailing
    zeros."""
    exponent = value.adjusted() if value else 0
    mantissa = "".join(map(str, value.as_tuple().digits)).rstrip("0") or "0"
    if -4 <= exponent < digits:
        text = format(value, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    point = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
    return f"{mantissa[0]}{point}{letter}{exponent:+03d}"


def _formatlist(template: str, *arguments: Val) -> Val:
    lengths = {len(a.items) for a in arguments if isinstance(a, SEQUENCES)}
    if len(lengths) > 1:
        raise FunctionFault("all lists must have the same length")
    count = lengths.pop() if lengths else 1
    rows = (
        [a.items[row] if isinstance(a, SEQUENCES) else a for a in arguments] for row in range(count)
    )
    items, size = [], 0
    for row in rows:
        items.append(str(_format(template, *row)))
        size += len(items[-1])
        if size > LIMITS.size:
            raise LimitFault(f"the strings would have more than {LIMITS.size:,} characters")
    return make_string_list(items)


_ARGUMENTS = Param("values", null=True)


FUNCTIONS = (
    Function(
        "base64decode",
        "The text that was encoded in base64 (UTF-8).",
        _base64decode,
        (make_string_param(),),
    ),
    Function(
        "base64gunzip",
        "The text that was compressed by gzip and encoded in base64 (UTF-8).",
        _base64gunzip,
        (make_string_param(),),
    ),
    Function("base64encode", "The text in base64 (UTF-8).", _base64encode, (make_string_param(),)),
    Function(
        "csvdecode",
        "The rows of a CSV text as objects; the first line names the columns.",
        _csvdecode,
        (make_string_param(),),
        steps=5,
        cost=2,
        characters=2,
    ),
    Function(
        "jsondecode",
        "The value of a JSON text.",
        _jsondecode,
        (make_string_param(),),
        steps=5,
        cost=4,
        characters=2,
    ),
    Function(
        "jsonencode",
        "The value as compact JSON, with sorted names.",
        to_json,
        (Param("value", null=True),),
        steps=5,
        cost=3,
    ),
    Function(
        "textdecodebase64",
        "The text of base64 bytes in a character set such as UTF-16LE.",
        _textdecodebase64,
        (make_string_param(), make_string_param("encoding")),
    ),
    Function(
        "textencodebase64",
        "The base64 bytes of the text in a character set such as UTF-16LE.",
        _textencodebase64,
        (make_string_param(), make_string_param("encoding")),
    ),
    Function(
        "urldecode",
        "The text with escapes such as `%20`, and plus signs, decoded.",
        _urldecode,
        (make_string_param(),),
        characters=4,
    ),
    Function(
        "urlencode",
        "The text with special characters escaped for the query of a URL.",
        quote_plus,
        (make_string_param(),),
    ),
    Function(
        "format",
        "The template with its verbs (`%s`, `%d`, `%q`, `%.2f` and others) replaced by values.",
        _format,
        (make_string_param("template"),),
        _ARGUMENTS,
        steps=5,
        cost=3,
    ),
    Function(
        "formatlist",
        "A list with the result of `format` for each element of the lists.",
        _formatlist,
        (make_string_param("template"),),
        _ARGUMENTS,
        steps=5,
        cost=8,
    ),
)
