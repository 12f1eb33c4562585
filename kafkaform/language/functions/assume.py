"""Functions that check an assumption about a value and return the value."""

from __future__ import annotations

from collections.abc import Callable

from ...core.schema import ANY, list_of, map_of, set_of
from ..values.conversion import convert_value
from ..values.equality import is_equal
from ..values.faults import FunctionFault
from ..values.limits import LIMITS
from ..values.numbers import Number, render_number
from ..values.value import FIELDS, Null, Val, type_of
from .spec import Function, Param, make_number_param, make_string_param, make_value_param


def _equal(actual: Val, expected: Val) -> Val:
    # The language's equality does not convert, and `assumeequal("1", 1)` is meant to hold.
    if not is_equal(convert_value(actual, type_of(expected)), expected):
        raise FunctionFault("the value is not the expected one", 0)
    return expected


def _not_null(value: Val) -> Val:
    if isinstance(value, Null):
        raise FunctionFault("it is null", 0)
    return value


def _prefix(source: str, prefix: str) -> Val:
    if not source.startswith(prefix):
        raise FunctionFault("the text does not start with the prefix", 0)
    return source


def _between(value: Val, lowest: Number = 0, highest: Number = LIMITS.elements) -> Val:
    count = len(value.fields if isinstance(value, FIELDS) else getattr(value, "items", ()))
    if count < lowest:
        raise FunctionFault(
            f"the number of elements is {count}, less than {render_number(lowest)}", 0
        )
    if count > highest:
        raise FunctionFault(
            f"the number of elements is {count}, more than {render_number(highest)}", 0
        )
    return value


def _at_most(value: Val, highest: Number) -> Val:
    return _between(value, highest=highest)


_LENGTHS: tuple[tuple[str, str, Callable[..., Val], tuple[str, ...]], ...] = (
    ("", "from `lowest` to `highest`", _between, ("lowest", "highest")),
    ("min", "`lowest` or more", _between, ("lowest",)),
    ("max", "`highest` or fewer", _at_most, ("highest",)),
)
_KINDS = (("list", list_of(ANY)), ("set", set_of(ANY)), ("map", map_of(ANY)))
FUNCTIONS = (
    Function(
        "assumeequal",
        "The expected value; an error unless the actual one equals it.",
        _equal,
        (make_value_param("actual", null=True), make_value_param("expected", null=True)),
        unifies=True,
    ),
    Function(
        "assumenotnull",
        "The value; an error if it is null.",
        _not_null,
        (make_value_param(null=True),),
        passes=True,
        cost=0,
    ),
    Function(
        "assumestringprefix",
        "The text; an error unless it starts with the prefix.",
        _prefix,
        (make_string_param(), make_string_param("prefix")),
    ),
    *(
        Function(
            f"assume{kind}length{ending}",
            f"The {kind}; an error unless it has {words} elements.",
            call,
            (Param(kind, want), *map(make_number_param, names)),
            passes=True,
        )
        for kind, want in _KINDS
        for ending, words, call, names in _LENGTHS
    ),
)
