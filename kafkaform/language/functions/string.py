"""Functions over strings; a character is a grapheme cluster (Unicode annex 29)."""

from __future__ import annotations

from collections.abc import Callable

import regex  # type: ignore[import-untyped]  # re with \X; has no stubs

from ...core.schema import STRING
from ..faults import FunctionFault, LimitFault
from ..limits import LIMITS
from ..numbers import Number
from ..values import ListVal, Null, Val, text
from .spec import Function, number, string, strings


def graphemes(source: str) -> list[str]:
    """The characters as a reader counts them."""
    if source.isascii() and "\r" not in source:
        return list(source)
    return list(map(str, regex.findall(r"\X", source)))


def whole(amount: Number, argument: int, name: str = "it") -> int:
    """The number as an int. Raises FunctionFault for a fraction."""
    if not isinstance(amount, int):
        raise FunctionFault(f"{name} must be a whole number", argument)
    return amount


def words(items: list[str]) -> ListVal:
    return ListVal(STRING, tuple(items))


def guarded(size: int) -> None:
    """Refuse a string before it is built."""
    if size > LIMITS.characters:
        raise LimitFault(f"the result would be longer than {LIMITS.characters:,} characters")


def _join(separator: str, *lists: ListVal) -> Val:
    items = [item for each in lists for item in each.items]
    if any(isinstance(item, Null) for item in items):
        raise FunctionFault("null cannot be joined", 1)
    parts = [item for item in items if isinstance(item, str)]
    guarded(sum(map(len, parts)) + len(separator) * len(parts))
    return text(separator.join(parts))


def _split(separator: str, source: str) -> Val:
    if not separator:
        return words(graphemes(source))
    return words(source.split(separator))


def _substr(source: str, offset: Number, length: Number) -> Val:
    start, count = whole(offset, 1, "offset"), whole(length, 2, "length")
    characters = graphemes(source)
    if start < 0:
        start = max(start + len(characters), 0)
    stop = len(characters) if count < 0 else start + count
    return "".join(characters[start:stop])


def _indent(spaces: Number, source: str) -> Val:
    width = whole(spaces, 0, "spaces")
    guarded(len(source) + source.count("\n") * max(width, 0))
    return source.replace("\n", "\n" + " " * width)


def _title(source: str) -> Val:
    return text(regex.sub(r"(?<![\w'])\w", lambda match: match[0].upper(), source))


def _one_to_one(change: Callable[[str], str]) -> Callable[[str], Val]:
    """Case mapping that keeps characters without a single counterpart, such as ligatures."""

    def run(source: str) -> Val:
        if source.isascii():
            return change(source)
        return text("".join(new if len(new := change(old)) == 1 else old for old in source))

    return run


def _chomp(source: str) -> Val:
    return source.rstrip("\r\n")


def _trimspace(source: str) -> Val:
    return source.strip()


FUNCTIONS = (
    Function("chomp", _chomp, (string(),)),
    Function("endswith", str.endswith, (string(), string("suffix"))),
    Function("indent", _indent, (number("spaces"), string())),
    Function("join", _join, (string("separator"), strings()), strings("lists")),
    Function("lower", _one_to_one(str.lower), (string(),)),
    Function("split", _split, (string("separator"), string())),
    Function("startswith", str.startswith, (string(), string("prefix"))),
    Function("strcontains", str.__contains__, (string(), string("substring"))),
    Function("strrev", lambda source: "".join(reversed(graphemes(source))), (string(),)),
    Function("substr", _substr, (string(), number("offset"), number("length"))),
    Function("title", _title, (string(),)),
    Function("trim", lambda source, cut: source.strip(cut), (string(), string("characters"))),
    Function("trimprefix", str.removeprefix, (string(), string("prefix"))),
    Function("trimspace", _trimspace, (string(),)),
    Function("trimsuffix", str.removesuffix, (string(), string("suffix"))),
    Function("upper", _one_to_one(str.upper), (string(),)),
)
