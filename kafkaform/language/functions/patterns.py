"""Functions with regular expressions, with a time limit for all of them.

Go's regular expressions (RE2) take linear time. Python's backtrack, so a pattern of a pull request
could hang a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import islice
from time import process_time
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from ...core.schema import STRING
from ..values.faults import FunctionFault, LimitFault
from ..values.limits import LIMITS
from ..values.value import ListVal, Null, ObjectVal, TupleVal, Val, normalise_text, type_of
from .spec import Function, make_string_param

if TYPE_CHECKING:
    # Unlike re, it has time limits and \X. It is slow to load, and few configurations need it.
    import regex  # type: ignore[import-untyped]  # has no stubs

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
    import regex  # noqa: PLC0415  # it is slow to load, and few configurations need it

    def compile_expression(_: float) -> regex.Pattern[str]:
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
