"""Match names against globs: `*` is any text, `?` one character, and all else is literal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

_MEANING = {"*": ".*", "?": "."}


def to_regex(glob: str) -> str:
    """Translate the glob to a regular expression for the whole name, for Java and Python alike."""
    # `$` and `\Z` also match before a trailing newline in Java, and `\z` is new in Python: a
    # look-ahead that nothing follows means the same in both. `(?s)` lets `*` match newlines, too.
    return r"(?s)\A" + "".join(_MEANING.get(c) or re.escape(c) for c in glob) + r"(?!.)"


def matches(text: Column, glob: str) -> Column:
    """True for texts that the glob matches. Most globs are a name or a prefix: those need no
    regular expression, which costs Spark many times a comparison."""
    stem = glob.removesuffix("*")
    if "*" in stem or "?" in stem:
        return text.rlike(to_regex(glob))
    if glob == "*":
        return text.isNotNull()
    return text == glob if stem == glob else text.startswith(stem)
