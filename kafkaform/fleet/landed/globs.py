"""Globs over names: `*` stands for any characters, `?` for one, all else for itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

_MEANING = {"*": ".*", "?": "."}


def to_regex(glob: str) -> str:
    """The glob as a regular expression for a whole name, alike for Java and for Python."""
    return r"(?s)\A" + "".join(_MEANING.get(c) or re.escape(c) for c in glob) + r"(?!.)"


def matches(text: Column, glob: str) -> Column:
    """Whether a text is one of those that the glob stands for. Most globs need no regular
    expression, which would be slow."""
    stem = glob.removesuffix("*")
    if "*" in stem or "?" in stem:
        return text.rlike(to_regex(glob))
    if glob == "*":
        return text.isNotNull()
    return text == glob if stem == glob else text.startswith(stem)
