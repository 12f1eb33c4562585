"""Functions for strings, also by regular expressions, with a time limit for all of these.

A character is a grapheme cluster (Unicode Standard Annex 29). Go's regular expressions (RE2) take
linear time. Python's backtrack, so a pattern of a pull request could hang a run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import islice
from time import process_time
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from ...core.schema import STRING
from ..values.faults import LIMITS, FunctionFault, LimitFault
from ..values.value import ListVal, Null, Number, ObjectVal, TupleVal, Val, normalise_text, type_of
from .spec import Function, make_number_param, make_string_param, make_strings_param

if TYPE_CHECKING:
    import regex  # type: ignore[import-untyped]  # has no stubs


def load_regex() -> Any:
    """The library `regex`. Unlike `re`, it has time limits and \\X. It is slow to load, and few
    configurations need it."""
    return import_module("regex")


def split_graphemes(source: str) -> list[str]:
    """The characters of a text as people count them: an emoji with a skin tone is one."""
    if source.isascii() and "\r" not in source:  # CRLF is one grapheme cluster
        return list(source)
    regex = load_regex()

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
    regex = load_regex()

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


SECONDS = 2.0
"""For all patterns of a run; ordinary ones take microseconds."""
_LONGEST = 4_096
"""Characters of a pattern."""
_REPEATED = 10_000
"""Parts of a pattern. A part in a repetition counts each time, because it is compiled each time."""
_CAPTURED = 1_000_000
"""Groups times characters of a text: a group in a loop keeps all of its captures in memory."""
# Compiled when it is first used: few configurations have patterns.
_PART = (
    r"\\[pPxN]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^]\\])*\]|\(\?[ims-]+\)"
    r"|(?P<open>\((?:\?(?:[:=!>]|<[=!]|P?<\w+>|[ims-]+:))?)|(?P<close>\))"
    r"|\{(?P<least>\d*)(?P<most>,\d*)?\}|(?P<other>.)"
)

_Result = TypeVar("_Result")


class Allowance(Struct):
    """The seconds that are left for matching."""

    # CPU time, so that a busy machine does not make a plan fail.
    remaining_seconds: float = SECONDS

    def spend_time(self, run: Callable[[float], _Result]) -> _Result:
        """The result of run(timeout in seconds). Raises LimitFault when the time is used up."""
        start = process_time()
        try:
            if self.remaining_seconds <= 0:
                raise TimeoutError
            return run(self.remaining_seconds)
        except TimeoutError:
            detail = f"all patterns of a run together can take {SECONDS:.0f} s"
            raise LimitFault(f"{detail}; nested repetitions are the usual cause", 0) from None
        finally:
            self.remaining_seconds -= process_time() - start


def _compile_pattern(
    pattern: str, source: str, allowance: Allowance, argument: int = 0
) -> regex.Pattern[str]:
    """Compile a pattern for use on this text. Raises FunctionFault or LimitFault."""
    if len(pattern) > _LONGEST:
        raise FunctionFault("the pattern is too long", argument)
    regex = load_regex()

    def compile_expression(_: float) -> Any:
        _refuse_dangerous(pattern, argument)
        return regex.compile(pattern.replace(r"\z", r"\Z"), regex.V1)

    try:
        expression = allowance.spend_time(compile_expression)
    except (regex.error, RecursionError, OverflowError, LookupError):
        raise FunctionFault("this is not a regular expression", argument) from None
    if expression.groups * len(source) > _CAPTURED:
        raise LimitFault("the pattern has too many groups for a text of this length", argument)
    return expression


def _refuse_dangerous(pattern: str, argument: int) -> None:
    """Refuse what RE2 does not have and what takes any amount of memory when it is compiled:
    recursive groups, and very large numbers of repetitions. Raises FunctionFault."""
    # Counts parts as the compiler copies them; one entry in `sizes` for each open group.
    sizes, last = [0], 0
    for token in re.finditer(_PART, pattern, re.DOTALL):
        if token["open"]:
            if token["open"] == "(" and pattern.startswith("?", token.end()):
                raise FunctionFault("the pattern has a group of an unknown type", argument)
            sizes.append(0)
            continue
        if token["close"] and len(sizes) > 1:
            last = sizes.pop()
        elif token["least"] is not None:
            counts = (token["least"], (token["most"] or "")[1:])
            times = max(int(count or 1) for count in counts)
            last, size = last * times, last * (times - 1)
            sizes[-1] += size
            continue
        else:
            last = 1
        sizes[-1] += last
        if sizes[-1] > _REPEATED:
            break
    if sum(sizes) > _REPEATED:
        raise FunctionFault("the pattern repeats its parts too often", argument)


def _make_captures(match: regex.Match[str]) -> Val:
    """The whole match, or its groups: by name if they have names, else in order."""
    pattern = match.re
    if pattern.groupindex:
        if len(pattern.groupindex) < pattern.groups:
            raise FunctionFault("named and unnamed groups cannot be mixed", 0)
        return ObjectVal({name: _make_group(text) for name, text in match.groupdict().items()})
    if pattern.groups:
        return TupleVal(tuple(map(_make_group, match.groups())))
    return normalise_text(match[0])


def _make_group(text: str | None) -> Val:
    return Null(STRING) if text is None else normalise_text(text)


def _regex(pattern: str, source: str, allowance: Allowance) -> Val:
    compiled = _compile_pattern(pattern, source, allowance)
    match = allowance.spend_time(lambda seconds: compiled.search(source, timeout=seconds))
    if match is None:
        raise FunctionFault("the pattern does not match", 1)
    return _make_captures(match)


def _regexall(pattern: str, source: str, allowance: Allowance) -> Val:
    compiled = _compile_pattern(pattern, source, allowance)
    matches = allowance.spend_time(
        lambda seconds: list(
            islice(compiled.finditer(source, timeout=seconds), 2 * LIMITS.elements + 2)
        )
    )
    ends = [-1, *(match.end() for match in matches)]
    # Go does not count an empty match directly behind another match; Python does.
    pairs = zip(matches, ends, strict=False)
    items = tuple(_make_captures(match) for match, end in pairs if match.end() > end)
    if items:
        return ListVal(type_of(items[0]), items)
    return ListVal(type_of(_make_empty(compiled)), ())


def _make_empty(pattern: regex.Pattern[str]) -> Val:
    """A value with the type of the pattern's matches: an empty list has an element type, too."""
    if pattern.groupindex:
        return ObjectVal(dict.fromkeys(pattern.groupindex, ""))
    return TupleVal(("",) * pattern.groups) if pattern.groups else ""


def _replace(source: str, old: str, new: str, allowance: Allowance) -> Val:
    """The text with every occurrence replaced. `/…/` is a pattern; the replacement refers to its
    groups as `$1`, `${1}` or `${name}`."""
    if len(old) < 2 or not (old.startswith("/") and old.endswith("/")):
        if len(source) + source.count(old) * len(new) > LIMITS.characters + len(source):
            raise LimitFault(f"the result would be longer than {LIMITS.characters:,} characters")
        return normalise_text(source.replace(old, new))
    compiled = _compile_pattern(old[1:-1], source, allowance, 1)
    total_length = 0

    def expand(match: regex.Match[str]) -> str:
        nonlocal total_length
        replacement: str = _REFERENCE.sub(
            lambda reference: _resolve_reference(match, reference), new
        )
        total_length += len(replacement)
        if total_length > LIMITS.characters:
            raise LimitFault(f"the result would be longer than {LIMITS.characters:,} characters")
        return replacement

    return normalise_text(
        allowance.spend_time(lambda seconds: compiled.sub(expand, source, timeout=seconds))
    )


_REFERENCE = re.compile(r"\$(?:\$|\{(\w+)\}|(\w+))")


def _resolve_reference(match: regex.Match[str], reference: re.Match[str]) -> str:
    name = reference[1] or reference[2]
    if name is None:
        return "$"
    try:
        group = match[int(name) if name.isdigit() else name]
    except (IndexError, KeyError):
        # As in Go: a group that the expression does not have is an empty text.
        return ""
    return "" if group is None else str(group)


def pattern_functions() -> tuple[Function, ...]:
    """The functions over patterns, with one allowance of time for all their calls."""
    allowance = Allowance()
    calls = (
        (
            "regex",
            "The first match of a pattern, or its groups as a tuple or object.",
            _regex,
            ("pattern", "text"),
        ),
        ("regexall", "A list of all matches of a pattern.", _regexall, ("pattern", "text")),
        (
            "replace",
            "The text with each occurrence of a substring, or of a `/pattern/`, replaced.",
            _replace,
            ("text", "substring", "replacement"),
        ),
    )
    return tuple(
        Function(
            name,
            doc,
            partial(call, allowance=allowance),
            tuple(map(make_string_param, params)),
            steps=10,
        )
        for name, doc, call, params in calls
    )


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
