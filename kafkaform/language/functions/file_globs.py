"""File name patterns for `fileset`: `*`, `**` for folders, `?`, `[a-z]`, `{a,b}`, `\\*`."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from ..values.faults import FunctionFault

_LONGEST = 1_024
"""Characters of a pattern."""
_WORD = re.compile(
    r"(?P<folders>(?<![^/])\*\*/)|(?P<below>(?<![^/])\*\*$)|(?P<any>\*+)|(?P<one>\?)"
    r"|\[(?P<inverse>[!^]?)(?P<set>[^]/][^]/]*)\]|\\(?P<escaped>.)"
    r"|(?P<open>\{)|(?P<close>\})|(?P<comma>,)|(?P<plain>.)",
    re.DOTALL,
)
# fnmatch cannot be used: its `*` matches slashes, and it has neither `**` nor braces.
_MEANING = {
    "folders": "(?:[^/]+/)*",
    "below": ".+",
    "any": "[^/]*",
    "one": "[^/]",
    "open": "(?:",
    "close": ")",
    "comma": "|",
}


class Glob(Struct, frozen=True):
    """A compiled pattern."""

    depth: int | None
    """How many folders deep a match can be; None for any depth."""
    expression: Any
    """A regular expression that matches whole paths."""


def parse_glob(pattern: str) -> Glob:
    """Compile a pattern. Raises FunctionFault."""
    # Unlike re, it has time limits: a pattern of a pull request must not hang a run.
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415  # it is slow to load, and few configurations need it

    segments = pattern.removeprefix("./").split("/")
    if not pattern or len(pattern) > _LONGEST or ".." in segments or not segments[0]:
        raise FunctionFault("a pattern must stay below the folder: no .. and no leading /", 1)
    words, braces = [], 0
    for word in _WORD.finditer("/".join(segments)):
        kind = word.lastgroup or ""
        braces += (kind == "open") - (kind == "close")
        words.append(_make_expression(kind, word, braces))
    if braces:
        raise FunctionFault("a brace of the pattern is not closed", 1)
    try:
        expression = regex.compile("".join(words), regex.DOTALL)
    except regex.error:
        raise FunctionFault("this is not a pattern of file names", 1) from None
    return Glob(None if "**" in pattern else len(segments) - 1, expression)


def _make_expression(kind: str, word: re.Match[str], braces: int) -> str:
    if kind == "set":
        inverse = "^/" if word["inverse"] else ""
        return f"[{inverse}{re.escape(word['set']).replace(chr(92) + '-', '-')}]"
    if kind in ("escaped", "plain") or (kind == "comma" and not braces):
        return re.escape(word[kind])
    return _MEANING[kind]
