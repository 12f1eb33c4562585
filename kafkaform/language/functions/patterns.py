"""Regular expressions, with a time limit: a pattern from a pull request must not hang a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import regex  # type: ignore[import-untyped]  # re with \X and time limits; has no stubs

from ...core.schema import STRING
from ..faults import FunctionFault
from ..limits import LIMITS
from ..values import ListVal, Null, ObjectVal, TupleVal, Val, text, type_of
from .spec import Function, string

SECONDS = 1.0
"""For one pattern on one string; common patterns take microseconds."""
_LONGEST = 4_096

_Result = TypeVar("_Result")


def _compiled(pattern: str, argument: int = 0) -> regex.Pattern[str]:
    if len(pattern) > _LONGEST:
        raise FunctionFault("the pattern is too long", argument)
    try:
        return regex.compile(pattern.replace(r"\z", r"\Z"), regex.V1)
    except (regex.error, RecursionError):
        raise FunctionFault("this is not a regular expression", argument) from None


def _guarded(run: Callable[[], _Result]) -> _Result:
    try:
        return run()
    except TimeoutError:
        raise FunctionFault(f"the pattern needs more than {SECONDS:.0f} s on this text") from None


def _captures(match: regex.Match[str]) -> Val:
    """The whole match, or its groups: by name if they have names, else in order."""
    pattern = match.re
    if pattern.groupindex:
        if len(pattern.groupindex) < pattern.groups:
            raise FunctionFault("named and unnamed groups cannot be mixed", 0)
        return ObjectVal({name: _group(found) for name, found in match.groupdict().items()})
    if pattern.groups:
        return TupleVal(tuple(map(_group, match.groups())))
    return text(match[0])


def _group(found: str | None) -> Val:
    return Null(STRING) if found is None else text(found)


def _regex(pattern: str, source: str) -> Val:
    compiled = _compiled(pattern)
    match = _guarded(lambda: compiled.search(source, timeout=SECONDS))
    if match is None:
        raise FunctionFault("the pattern does not match", 1)
    return _captures(match)


def _regexall(pattern: str, source: str) -> Val:
    compiled = _compiled(pattern)
    found = _guarded(lambda: list(compiled.finditer(source, timeout=SECONDS)))
    ends = [-1, *(match.end() for match in found)]
    pairs = zip(found, ends, strict=False)  # nothing right behind a match is no match
    items = tuple(_captures(match) for match, end in pairs if match.end() > end)
    if items:
        return ListVal(type_of(items[0]), items)
    return ListVal(type_of(_empty(compiled)), ())


def _empty(pattern: regex.Pattern[str]) -> Val:
    """A value of the type that the pattern's matches have."""
    if pattern.groupindex:
        return ObjectVal(dict.fromkeys(pattern.groupindex, ""))
    return TupleVal(("",) * pattern.groups) if pattern.groups else ""


def replace_pattern(source: str, pattern: str, template: str) -> Val:
    """Every match replaced; `$1`, `${1}` and `${name}` stand for groups."""
    compiled = _compiled(pattern, 1)
    grown = 0

    def expand(match: regex.Match[str]) -> str:
        nonlocal grown
        new: str = _REFERENCE.sub(lambda reference: _referred(match, reference), template)
        grown += len(new)
        if grown > LIMITS.characters:
            raise FunctionFault("the result is too long")
        return new

    return text(_guarded(lambda: compiled.sub(expand, source, timeout=SECONDS)))


_REFERENCE = regex.compile(r"\$(?:\$|\{(\w+)\}|(\w+))")


def _referred(match: regex.Match[str], reference: regex.Match[str]) -> str:
    name = reference[1] or reference[2]
    if name is None:
        return "$"
    try:
        found = match[int(name) if name.isdigit() else name]
    except (IndexError, KeyError):
        return ""
    return "" if found is None else str(found)


FUNCTIONS = (
    Function("regex", _regex, (string("pattern"), string())),
    Function("regexall", _regexall, (string("pattern"), string())),
)
