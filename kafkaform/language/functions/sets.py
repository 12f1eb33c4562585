"""Functions for sets, and the two that combine lists of conditions."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import product
from math import prod
from typing import Any

from ...core.schema import ANY, BOOL, Type, list_of, set_of
from ..values.conversion import CONVERSION, convert_value
from ..values.faults import FunctionFault, LimitFault
from ..values.limits import LIMITS
from ..values.unification import unify_types
from ..values.value import ListVal, SetVal, TupleVal, Val, key_of, make_set
from .collection import require_sequence
from .spec import Function, Param, make_set_param, make_value_param

Keys = frozenset[Any]


def _make_operation(combine: Callable[[Keys, Keys], Keys]) -> Callable[..., Val]:
    def run(*sets: SetVal) -> Val:
        # An empty set without a type fits every other set.
        kinds = [each.element for each in sets if each.items or each.element != ANY]
        element = unify_types(kinds) if kinds else ANY
        if element is None:
            raise FunctionFault("the sets must have the same type")
        given = [convert_value(each, set_of(element)) for each in sets]
        same = [each for each in given if isinstance(each, SetVal)]
        items = {key_of(item): item for each in same for item in each.items}
        kept = reduce(combine, (each.keys for each in same))
        return make_set(element, (items[key] for key in kept))

    return run


def _setproduct(*sets: Val) -> Val:
    if len(sets) < 2:
        raise FunctionFault("expected at least two sets or lists")
    given = [require_sequence(each, index) for index, each in enumerate(sets)]
    count = prod(len(each.items) for each in given)
    if count > LIMITS.elements:
        limit = f"the limit is {LIMITS.elements:,}"
        raise LimitFault(f"the result would have {count:,} elements; {limit}")
    uniform = [require_sequence(convert_value(each, list_of(ANY))) for each in given]
    kinds = tuple(each.element for each in uniform if isinstance(each, ListVal))
    rows = [TupleVal(items) for items in product(*(each.items for each in uniform))]
    element = Type("tuple", items=kinds)
    if any(isinstance(each, SetVal) for each in given):
        return make_set(element, rows)
    return ListVal(element, tuple(rows))


def _all(conditions: ListVal) -> Val:
    return all(item is True for item in conditions.items)


def _any(conditions: ListVal) -> Val:
    return any(item is True for item in conditions.items)


_CONDITIONS = (Param("conditions", list_of(BOOL)),)
FUNCTIONS = (
    Function("alltrue", "Whether no element of the list is false or null.", _all, _CONDITIONS),
    Function("anytrue", "Whether an element of the list is true.", _any, _CONDITIONS),
    Function(
        "setintersection",
        "The elements that are in each of the sets.",
        _make_operation(Keys.intersection),
        (make_set_param(),),
        make_set_param("sets"),
        cost=CONVERSION,
    ),
    Function(
        "setproduct",
        "Every combination of one element from each set or list.",
        _setproduct,
        (),
        make_value_param("sets"),
        passes=True,
        cost=CONVERSION,
    ),
    Function(
        "setsubtract",
        "The elements of the first set that are not in the second.",
        _make_operation(Keys.difference),
        (make_set_param("from"), make_set_param("remove")),
        cost=CONVERSION,
    ),
    Function(
        "setsymmetricdifference",
        "The elements that are in an odd number of the sets; for two sets, in exactly one.",
        _make_operation(Keys.symmetric_difference),
        (make_set_param(),),
        make_set_param("sets"),
        cost=CONVERSION,
    ),
    Function(
        "setunion",
        "The elements that are in any of the sets.",
        _make_operation(Keys.union),
        (make_set_param(),),
        make_set_param("sets"),
        cost=CONVERSION,
    ),
)
