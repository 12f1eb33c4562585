"""The values and functions of policy conditions, and the tree that a condition is parsed to."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

MOST_CHARACTERS, MOST_DEPTH, MOST_DIGITS = 4_000, 40, 30
COLUMNS = ("kind", "key", "owner", "cluster", "env", "region")
"""Columns that a condition can name."""
ATTRS = "attrs"
"""The map of an object's attributes."""


class TermKind(StrEnum):
    """The type of a term. NULL fits everywhere."""

    NUMBER = "a number"
    TEXT = "text"
    BOOL = "true or false"
    MAP = "the map attrs"
    NULL = "null"


class Term(Struct, frozen=True):
    """A node of the tree."""

    op: str
    """The operation, or what kind of leaf it is."""
    kind: TermKind
    args: tuple[Term, ...] = ()
    value: Any = None
    """Of a literal, a column or an attribute."""
    depth: int = 1
    """Of the tree below it. Spark's planner is recursive, so a deep tree overflows its stack."""


class ConditionFunction(Struct, frozen=True):
    """A function that conditions can call."""

    gives: TermKind
    """The type of the result."""
    takes: tuple[TermKind, ...]
    """The types of the arguments."""
    more: bool = False
    """The last argument may be repeated."""


FUNCTIONS: Mapping[str, ConditionFunction] = {
    "abs": ConditionFunction(TermKind.NUMBER, (TermKind.NUMBER,)),
    "coalesce": ConditionFunction(TermKind.TEXT, (TermKind.TEXT,), more=True),
    "concat": ConditionFunction(TermKind.TEXT, (TermKind.TEXT,), more=True),
    "contains": ConditionFunction(TermKind.BOOL, (TermKind.TEXT, TermKind.TEXT)),
    "endswith": ConditionFunction(TermKind.BOOL, (TermKind.TEXT, TermKind.TEXT)),
    "length": ConditionFunction(TermKind.NUMBER, (TermKind.TEXT,)),
    "lower": ConditionFunction(TermKind.TEXT, (TermKind.TEXT,)),
    "map_contains_key": ConditionFunction(TermKind.BOOL, (TermKind.MAP, TermKind.TEXT)),
    "replace": ConditionFunction(TermKind.TEXT, (TermKind.TEXT, TermKind.TEXT, TermKind.TEXT)),
    "size": ConditionFunction(TermKind.NUMBER, (TermKind.MAP,)),
    "startswith": ConditionFunction(TermKind.BOOL, (TermKind.TEXT, TermKind.TEXT)),
    "trim": ConditionFunction(TermKind.TEXT, (TermKind.TEXT,)),
    "upper": ConditionFunction(TermKind.TEXT, (TermKind.TEXT,)),
}
"""Name -> function."""
CASTS: Mapping[str, TermKind] = {
    "bigint": TermKind.NUMBER,
    "boolean": TermKind.BOOL,
    "decimal": TermKind.NUMBER,
    "double": TermKind.NUMBER,
    "int": TermKind.NUMBER,
    "string": TermKind.TEXT,
}
"""Type of SQL that CAST can name -> the type of its result."""
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


class ConditionFault(ValueError):
    """A condition cannot be parsed.

    message: what is wrong, and at which character (from 1); advice: may be empty.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
