"""What grammar functions receive, and two questions about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from .source import Source
from .tokens import Token

Parts: TypeAlias = Sequence[Any]
"""A rule's tokens and what the functions of its sub-rules returned, punctuation included; which
is which follows from the rule."""


def get_span(parts: Parts) -> tuple[Source, int, int]:
    """Where the rule's text lies: the first three arguments of any node."""
    first = parts[0]
    return first.source, first.start, parts[-1].end


def is_token(part: object, type_: str) -> bool:
    return isinstance(part, Token) and part.type == type_
