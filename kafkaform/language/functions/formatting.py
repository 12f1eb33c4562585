"""`format` and `formatlist`, with Go's verbs: `%[flags][width][.precision][[index]]letter`."""

from __future__ import annotations

import re
from decimal import Decimal

from ...core.schema import BOOL, NUMBER, STRING
from ..values.conversion import convert_value
from ..values.faults import ConvertFault, FunctionFault, LimitFault
from ..values.limits import LIMITS
from ..values.numbers import PRECISION, Number
from ..values.value import SEQUENCES, Null, Val, normalise_text
from .encoding import quote_json, to_json
from .spec import Function, Param, make_string_param
from .string import make_string_list, refuse_too_long, split_graphemes

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
            return _pad_text(_render_text(value, letter, precision), flags, width)
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


def _render_text(value: Val, letter: str, precision: int | None) -> str:
    text = str(convert_value(value, STRING))
    if precision:
        text = "".join(split_graphemes(text)[:precision])
    return quote_json(text) if letter == "q" else text


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
    # The sign is added last: zeros for the width stand between the sign and the digits.
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
        return _pad_exponent(format(Decimal(value), f".{decimals}{letter}"))
    return _render_significant(value, max(decimals, 1), "E" if letter == "G" else "e")


def _render_significant(value: Number, digits: int, letter: str) -> str:
    rounded = Decimal(format(Decimal(value), f".{digits - 1}e"))
    return _render_general(rounded, digits, letter)


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


def _pad_exponent(text: str) -> str:
    """An exponent with at least two digits, as Go writes it."""
    return re.sub(r"([eE][+-])(\d)$", r"\g<1>0\2", text)


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
