"""Functions that convert types, and that set or test the sensitive mark."""

from __future__ import annotations

from collections.abc import Callable

from ...core.schema import ANY, BOOL, NUMBER, STRING, Type, list_of, map_of, set_of
from ..values.conversion import CONVERSION, convert_value
from ..values.faults import FunctionFault
from ..values.unification import unify_types
from ..values.value import SECRET, SENSITIVE, Null, Val, add_marks, marks_of, type_of, unmark
from .spec import Function, Param

_TARGETS = (
    ("tostring", "a string", STRING),
    ("tonumber", "a number", NUMBER),
    ("tobool", "true or false", BOOL),
    ("tolist", "a list, whose elements get one type", list_of(ANY)),
    ("toset", "a set, without order and repetition", set_of(ANY)),
    ("tomap", "a map, whose values get one type", map_of(ANY)),
)


def _make_conversion(want: Type) -> Callable[[Val], Val]:
    return lambda value: convert_value(value, want)


def _sensitive(value: Val) -> Val:
    return add_marks(value, frozenset({SENSITIVE}))


def _nonsensitive(value: Val) -> Val:
    # Only the value's own marks: a sensitive element of a list stays sensitive (as in Terraform).
    inner, marks = unmark(value)
    return add_marks(inner, marks - {SENSITIVE, SECRET})


def _issensitive(value: Val) -> Val:
    return SENSITIVE in marks_of(value)


def _coalesce(*values: Val) -> Val:
    # The result has the common type of all arguments if there is one, whichever is chosen.
    kind = unify_types(type_of(value) for value in values if type_of(value) != ANY)
    for value in values:
        if isinstance(value, Null) or value == "":
            continue
        return value if kind is None else convert_value(value, kind)
    raise FunctionFault("every argument is null or an empty string")


_RAW = Param("value", ANY, null=True, marked=True)
FUNCTIONS = (
    *(
        Function(
            name,
            f"The value as {noun}.",
            _make_conversion(kind),
            (_RAW,),
            passes=True,
            steps=20,
            cost=CONVERSION,
        )
        for name, noun, kind in _TARGETS
    ),
    Function(
        "sensitive",
        "The value, marked as sensitive: it is hidden in all output.",
        _sensitive,
        (_RAW,),
        passes=True,
        cost=0,
    ),
    Function(
        "nonsensitive",
        "The value, no longer marked as sensitive.",
        _nonsensitive,
        (_RAW,),
        passes=True,
        cost=0,
    ),
    Function(
        "issensitive",
        "Whether the value, or a part of it, is sensitive.",
        _issensitive,
        (_RAW,),
        passes=True,
        cost=0,
    ),
    Function(
        "coalesce",
        "The first argument that is neither null nor an empty string.",
        _coalesce,
        (),
        Param("values", ANY, null=True),
        passes=True,
        unifies=True,
    ),
)
