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
        kinds = [operand.element for operand in sets if operand.items or operand.element != ANY]
        element = unify_types(kinds) if kinds else ANY
        if element is None:
            raise FunctionFault("the sets must have the same type")
        converted = [convert_value(operand, set_of(element)) for operand in sets]
        operands = [operand for operand in converted if isinstance(operand, SetVal)]
        items = {key_of(item): item for operand in operands for item in operand.items}
        keys = reduce(combine, (operand.keys for operand in operands))
        return make_set(element, (items[key] for key in keys))

    return run


def _setproduct(*sets: Val) -> Val:
    if len(sets) < 2:
        raise FunctionFault("expected at least two sets or lists")
    collections = [require_sequence(collection, index) for index, collection in enumerate(sets)]
    count = prod(
        len(collection.items) for collection in collections
    )  # known before anything is built
    if count > LIMITS.elements:
        limit = f"the limit is {LIMITS.elements:,}"
        raise LimitFault(f"the result would have {count:,} elements; {limit}")
    uniform = [
        require_sequence(convert_value(collection, list_of(ANY))) for collection in collections
    ]
    kinds = tuple(collection.element for collection in uniform if isinstance(collection, ListVal))
    rows = [TupleVal(items) for items in product(*(collection.items for collection in uniform))]
    element = Type("tuple", items=kinds)
    if any(isinstance(collection, SetVal) for collection in collections):
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
