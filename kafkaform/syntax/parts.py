"""The arguments of the functions that build nodes, and two questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from .source import Source
from .tokens import Token

Parts: TypeAlias = Sequence[Any]
"""The tokens of a rule and the results of its sub-rules, punctuation included. The rule says what
stands at which index."""


def get_span(children: Parts) -> tuple[Source, int, int]:
    """The place of the rule's text: the first three arguments of every node."""
    first = children[0]
    return first.source, first.start, children[-1].end


def is_token(child: object, type_: str) -> bool:
    return isinstance(child, Token) and child.type == type_
