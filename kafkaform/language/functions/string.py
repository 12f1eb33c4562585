"""Functions for strings. A character is a grapheme cluster (Unicode Standard Annex 29)."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from ...core.schema import STRING
from ..values.faults import FunctionFault, LimitFault
from ..values.limits import LIMITS
from ..values.numbers import Number
from ..values.value import ListVal, Null, Val, normalise_text
from .spec import Function, make_number_param, make_string_param, make_strings_param


def split_graphemes(source: str) -> list[str]:
    """The characters of a text as people count them: an emoji with a skin tone is one."""
    if source.isascii() and "\r" not in source:  # CRLF is one grapheme cluster
        return list(source)
    # Unlike re, it has \X.
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415  # it is slow to load, and few configurations need it

    return list(map(str, regex.findall(r"\X", source)))


def require_whole(amount: Number, argument: int, name: str = "it", bits: int = 63) -> int:
    """The number as an int. Raises FunctionFault for a fraction, and for a number with more than
    `bits` bits; the default is what Go's integers have."""
    if not isinstance(amount, int) or not -(2**bits) <= amount < 2**bits:
        raise FunctionFault(f"{name} must be a whole number", argument)
    return amount


def make_string_list(items: list[str]) -> ListVal:
    return ListVal(STRING, tuple(items))


def refuse_too_long(size: int) -> None:
    """Raise LimitFault if a string would be too long, before it is built."""
    if size > LIMITS.characters:
        raise LimitFault(f"the result would be longer than {LIMITS.characters:,} characters")


def _join(separator: str, *lists: ListVal) -> Val:
    items = [item for string_list in lists for item in string_list.items]
    if any(isinstance(item, Null) for item in items):
        raise FunctionFault("null cannot be joined", 1)
    strings = [item for item in items if isinstance(item, str)]
    refuse_too_long(sum(map(len, strings)) + len(separator) * len(strings))
    return normalise_text(separator.join(strings))


def _split(separator: str, source: str) -> Val:
    if not separator:
        return make_string_list(split_graphemes(source))
    return make_string_list(source.split(separator))


def _substr(source: str, offset: Number, length: Number) -> Val:
    start, count = require_whole(offset, 1, "offset"), require_whole(length, 2, "length")
    characters = split_graphemes(source)
    if start < 0:
        start = max(start + len(characters), 0)
    stop = len(characters) if count < 0 else start + count
    return "".join(characters[start:stop])


def _indent(spaces: Number, source: str) -> Val:
    width = require_whole(spaces, 0, "spaces")
    refuse_too_long(len(source) + source.count("\n") * max(width, 0))
    return source.replace("\n", "\n" + " " * width)


def _title(source: str) -> Val:
    # Its \w includes combining marks, unlike that of re.
    import regex  # noqa: PLC0415  # it is slow to load, and few configurations need it

    return normalise_text(regex.sub(r"(?<![\w'])\w", lambda match: match[0].upper(), source))


def _map_one_to_one(change: Callable[[str], str]) -> Callable[[str], Val]:
    """Change the case of each character, except of those without a single counterpart."""

    # Go maps character by character. Python would turn "ß" into "SS", so plans would differ.
    def run(source: str) -> Val:
        if source.isascii():
            return change(source)
        return normalise_text(
            "".join(new if len(new := change(old)) == 1 else old for old in source)
        )

    return run


def _chomp(source: str) -> Val:
    return source.rstrip("\r\n")


def _trimspace(source: str) -> Val:
    return source.strip()


def _basename(path: str) -> Val:
    return path.rstrip("/").rpartition("/")[2] or ("/" if path else ".")


def _dirname(path: str) -> Val:
    folder, slash, _ = path.rpartition("/")
    return posixpath.normpath((folder or slash) or ".")


FUNCTIONS = (
    Function("basename", "The last part of a path.", _basename, (make_string_param("path"),)),
    Function("dirname", "A path without its last part.", _dirname, (make_string_param("path"),)),
    Function("chomp", "The text without newlines at its end.", _chomp, (make_string_param(),)),
    Function(
        "endswith",
        "Whether the text ends with the suffix.",
        str.endswith,
        (make_string_param(), make_string_param("suffix")),
    ),
    Function(
        "indent",
        "The text with spaces before each line except the first.",
        _indent,
        (make_number_param("spaces"), make_string_param()),
    ),
    Function(
        "join",
        "The strings of the lists as one, with the separator between them.",
        _join,
        (make_string_param("separator"), make_strings_param()),
        make_strings_param("lists"),
    ),
    Function(
        "lower", "The text in lower case.", _map_one_to_one(str.lower), (make_string_param(),)
    ),
    Function(
        "split",
        "The parts of the text between the separators.",
        _split,
        (make_string_param("separator"), make_string_param()),
    ),
    Function(
        "startswith",
        "Whether the text starts with the prefix.",
        str.startswith,
        (make_string_param(), make_string_param("prefix")),
    ),
    Function(
        "strcontains",
        "Whether the substring occurs in the text.",
        str.__contains__,
        (make_string_param(), make_string_param("substring")),
    ),
    Function(
        "strrev",
        "The text with its characters in reverse order.",
        lambda source: "".join(reversed(split_graphemes(source))),
        (make_string_param(),),
    ),
    Function(
        "substr",
        "A part of the text: `length` characters from `offset` on; -1 for all that follow.",
        _substr,
        (make_string_param(), make_number_param("offset"), make_number_param("length")),
    ),
    Function(
        "title",
        "The text with the first letter of each word in upper case.",
        _title,
        (make_string_param(),),
    ),
    Function(
        "trim",
        "The text without these characters at both ends.",
        lambda source, cut: source.strip(cut),
        (make_string_param(), make_string_param("characters")),
    ),
    Function(
        "trimprefix",
        "The text without the prefix, if it starts with it.",
        str.removeprefix,
        (make_string_param(), make_string_param("prefix")),
    ),
    Function(
        "trimspace",
        "The text without white space at both ends.",
        _trimspace,
        (make_string_param(),),
    ),
    Function(
        "trimsuffix",
        "The text without the suffix, if it ends with it.",
        str.removesuffix,
        (make_string_param(), make_string_param("suffix")),
    ),
    Function(
        "upper", "The text in upper case.", _map_one_to_one(str.upper), (make_string_param(),)
    ),
)
