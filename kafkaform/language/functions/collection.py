"""Functions for collections: lists, tuples, sets, maps and objects."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from itertools import product
from math import prod
from typing import Any

from ...core.schema import ANY, BOOL, NUMBER, STRING, Type, list_of, set_of
from ..values.conversion import CONVERSION, convert_value
from ..values.faults import LIMITS, FunctionFault, LimitFault
from ..values.types import describe_value, unify_types
from ..values.value import (
    FIELDS,
    SEQUENCES,
    UNMARKED,
    FieldValues,
    ListVal,
    MapVal,
    Null,
    Number,
    ObjectVal,
    Sequence,
    SetVal,
    TupleVal,
    Val,
    add,
    add_marks,
    is_equal,
    key_of,
    make_set,
    type_of,
    unmark,
)
from .spec import (
    Function,
    Param,
    make_list_param,
    make_number_param,
    make_set_param,
    make_string_param,
    make_strings_param,
    make_value_param,
)
from .string import require_whole, split_graphemes

Keys = frozenset[Any]
_CONDITIONS = (Param("conditions", list_of(BOOL)),)


def require_sequence(value: Val, argument: int = 0) -> Sequence:
    """The argument as a list, set or tuple. Raises FunctionFault."""
    if isinstance(value, SEQUENCES):
        return value
    raise FunctionFault(f"expected a list, got {describe_value(value)}", argument)


def _make_like(source: Sequence, items: tuple[Val, ...]) -> Val:
    """A list of these items if the source has an element type, else a tuple."""
    return TupleVal(items) if isinstance(source, TupleVal) else ListVal(source.element, items)


def _length(value: Val) -> Val:
    if isinstance(value, str):
        return len(split_graphemes(value))
    if isinstance(value, FIELDS):
        return len(value.fields)
    if isinstance(value, SEQUENCES):
        return len(value.items)
    raise FunctionFault("expected a string or a collection", 0)


def _concat(*lists: Val) -> Val:
    sequences = [require_sequence(sequence, index) for index, sequence in enumerate(lists)]
    if any(isinstance(sequence, SetVal) for sequence in sequences):
        raise FunctionFault("a set has no order; use tolist(…) first")
    if not sequences:
        raise FunctionFault("at least one list is needed")
    # Only lists make a list; one tuple among them makes the result a tuple (go-cty).
    kinds = [sequence.type for sequence in sequences]
    kind = unify_types(kinds) if all(k.kind == "list" for k in kinds) else None
    if kind is not None:
        converted = [require_sequence(convert_value(sequence, kind)) for sequence in sequences]
        return ListVal(
            kind.element or ANY, tuple(i for sequence in converted for i in sequence.items)
        )
    return TupleVal(tuple(item for sequence in sequences for item in sequence.items))


def _flatten(value: Val) -> Val:
    # With a list of what is left instead of recursion. Marks of inner lists go to the result,
    # because the lists themselves disappear.
    items: list[Val] = []
    marks = UNMARKED
    pending = list(reversed(require_sequence(value).items))
    while pending:
        item = pending.pop()
        inner, item_marks = unmark(item)
        if isinstance(inner, SEQUENCES):
            marks |= item_marks
            pending.extend(reversed(inner.items))
        else:
            items.append(item)
        if len(items) + len(pending) > LIMITS.elements:
            raise LimitFault(f"the result has more than {LIMITS.elements:,} elements")
    return add_marks(TupleVal(tuple(items)), marks)


def _contains(collection: Val, target: Val) -> Val:
    return any(is_equal(item, target) for item in require_sequence(collection).items)


def _index(collection: Val, target: Val) -> Val:
    for position, item in enumerate(require_sequence(collection).items):
        if is_equal(item, target):
            return position
    raise FunctionFault("the value is not in the list", 1)


def _distinct(source: ListVal) -> Val:
    unique: dict[Any, Val] = {}
    for item in source.items:
        unique.setdefault(key_of(item), item)
    return ListVal(source.element, tuple(unique.values()))


def _compact(source: ListVal) -> Val:
    strings = (item for item in source.items if item != "" and not isinstance(item, Null))
    return ListVal(STRING, tuple(strings))


def _coalescelist(*lists: Val) -> Val:
    for index, sequence in enumerate(lists):
        if not isinstance(sequence, Null) and require_sequence(sequence, index).items:
            return sequence
    raise FunctionFault("every list is empty or null")


def _one(collection: Val) -> Val:
    items = require_sequence(collection).items
    if len(items) > 1:
        raise FunctionFault(f"expected one element or none, got {len(items)}", 0)
    if items:
        return items[0]
    # null has the type of the elements, so that a later conversion or splat treats it alike.
    return Null(ANY if isinstance(collection, TupleVal) else type_of(collection).element or ANY)


def _element(collection: Val, position: Number) -> Val:
    source, index = require_sequence(collection), require_whole(position, 1, "the index")
    if isinstance(source, SetVal):
        raise FunctionFault("a set has no order; use tolist(…) first", 0)
    if not source.items:
        raise FunctionFault("the list is empty", 0)
    return source.items[index % len(source.items)]  # -1 is the last element, as in OpenTofu


def _sort(source: ListVal) -> Val:
    if any(isinstance(item, Null) for item in source.items):
        raise FunctionFault("the list contains null", 0)
    return ListVal(STRING, tuple(sorted(source.items, key=key_of)))


def _reverse(collection: Val) -> Val:
    source = require_sequence(collection)
    return _make_like(source, tuple(reversed(source.items)))


def _slice(collection: Val, start: Number, end: Number) -> Val:
    source = require_sequence(collection)
    if isinstance(source, SetVal):
        raise FunctionFault("a set has no order; use tolist(…) first", 0)
    first, last = require_whole(start, 1, "the start"), require_whole(end, 2, "the end")
    if not 0 <= first <= last <= len(source.items):
        raise FunctionFault(f"expected 0 <= start <= end <= {len(source.items)}")
    return _make_like(source, source.items[first:last])


def _chunklist(source: ListVal, size: Number) -> Val:
    width = require_whole(size, 1, "the size")
    if width < 0:
        raise FunctionFault("the size cannot be negative", 1)
    step = width or max(len(source.items), 1)  # size 0 makes one chunk
    chunks: tuple[Val, ...] = tuple(
        ListVal(source.element, source.items[offset : offset + step])
        for offset in range(0, len(source.items), step)
    )
    return ListVal(source.type, chunks)


def _range(*bounds: Number) -> Val:
    if not 1 <= len(bounds) <= 3:
        raise FunctionFault("expected an end; a start and an end; or a start, an end and a step")
    start, end = (0, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    step: Number = 1 if start <= end else -1
    if len(bounds) == 3:
        step = bounds[2]
    if not step or (end - start) * step < 0:
        raise FunctionFault("the step never reaches the end")
    if abs(Decimal(end - start) / Decimal(step)) > LIMITS.elements:
        raise LimitFault(f"the result would have more than {LIMITS.elements:,} elements")
    # Numbers are exact, so the steps add up without the rounding errors of floats.
    items: list[Val] = []
    current: Number = start
    while (current < end) if step > 0 else (current > end):
        items.append(current)
        current = add(current, step)
    return ListVal(NUMBER, tuple(items))


def _matchkeys(source: ListVal, keys: ListVal, search: ListVal) -> Val:
    if len(source.items) != len(keys.items):
        raise FunctionFault(f"there are {len(source.items)} values and {len(keys.items)} keys")
    kind = unify_types((keys.element, search.element))
    if kind is None:
        raise FunctionFault("the keys and the searched keys must have the same type")
    search_keys = {key_of(convert_value(item, kind)) for item in search.items}
    pairs = zip(source.items, keys.items, strict=True)
    matches = (item for item, key in pairs if key_of(convert_value(key, kind)) in search_keys)
    return ListVal(source.element, tuple(matches))


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


def require_mapping(value: Val, argument: int = 0) -> FieldValues:
    """The argument as a map or object. Raises FunctionFault."""
    if isinstance(value, FIELDS):
        return value
    raise FunctionFault(f"expected a map or an object, got {describe_value(value)}", argument)


def _lookup(value: Val, key: str, *default: Val) -> Val:
    source = require_mapping(value)
    if len(default) > 1:
        raise FunctionFault("expected a map, a key and at most one default", 2)
    fallback = [
        convert_value(item, source.element) if isinstance(source, MapVal) else item
        for item in default
    ]
    if key in source.fields:
        return source.fields[key]
    if not fallback:
        raise FunctionFault("the map does not have this key, and no default is given", 1)
    return fallback[0]


def _merge(*maps: Val) -> Val:
    # Null counts as an empty map. The result is a map only if all arguments are maps of one type.
    fields: dict[str, Val] = {}
    elements: list[Type | None] = []
    for index, mapping in enumerate(maps):
        if isinstance(mapping, Null) and mapping.type.kind in ("map", "object", "any"):
            elements.append(mapping.type.element)
        else:
            source = require_mapping(mapping, index)
            fields.update(source.fields)
            elements.append(source.element if isinstance(source, MapVal) else None)
    first_element = elements[0] if elements else None
    is_uniform = first_element is not None and all(element == first_element for element in elements)
    return (
        MapVal(first_element, fields)
        if first_element is not None and is_uniform
        else ObjectVal(fields)
    )


def _keys(value: Val) -> Val:
    source = require_mapping(value)
    names = tuple(sorted(source.fields))
    return TupleVal(names) if isinstance(source, ObjectVal) else ListVal(STRING, names)


def _values(value: Val) -> Val:
    source = require_mapping(value)
    items = tuple(source.fields[name] for name in sorted(source.fields))
    return TupleVal(items) if isinstance(source, ObjectVal) else ListVal(source.element, items)


def _zipmap(keys: ListVal, values: Val) -> Val:
    source = require_sequence(values, 1)
    if isinstance(source, SetVal):
        raise FunctionFault("a set has no order; use tolist(…) first", 1)
    if len(keys.items) != len(source.items):
        raise FunctionFault(f"there are {len(keys.items)} keys and {len(source.items)} values")
    # Keys cannot have marks in an object, so the object gets them.
    fields, marks = {}, UNMARKED
    for key, item in zip(keys.items, source.items, strict=True):
        name, key_marks = unmark(key)
        if not isinstance(name, str):
            raise FunctionFault("a key is null", 0)
        fields[name], marks = item, marks | key_marks
    result = ObjectVal(fields) if isinstance(source, TupleVal) else MapVal(source.element, fields)
    return add_marks(result, marks)


def _transpose(value: Val) -> Val:
    keys_by_item: dict[str, list[Val]] = {}
    for name, items in sorted(require_mapping(value).fields.items()):
        listed = convert_value(items, list_of(STRING))
        for item in require_sequence(listed).items:
            if not isinstance(item, str):
                raise FunctionFault("a list contains null", 0)
            keys_by_item.setdefault(item, []).append(name)
    element = list_of(STRING)
    return MapVal(
        element, {name: ListVal(STRING, tuple(keys)) for name, keys in keys_by_item.items()}
    )


FUNCTIONS = (
    Function(
        "chunklist",
        "The list cut into lists of at most `size` elements.",
        _chunklist,
        (make_list_param(), make_number_param("size")),
        passes=True,
    ),
    Function(
        "coalescelist",
        "The first list that is neither null nor empty.",
        _coalescelist,
        (),
        make_value_param("lists", null=True),
        passes=True,
    ),
    Function(
        "compact", "The list without empty strings and nulls.", _compact, (make_strings_param(),)
    ),
    Function(
        "concat",
        "All elements of the lists, in order, as one list.",
        _concat,
        (),
        make_value_param("lists"),
        passes=True,
        unifies=True,
    ),
    Function(
        "contains",
        "Whether the list or set contains the value.",
        _contains,
        (make_value_param("list"), make_value_param("value", null=True)),
    ),
    Function(
        "distinct",
        "The list without repeated elements.",
        _distinct,
        (make_list_param(),),
        cost=2,
    ),
    Function(
        "element",
        "The element at the index; behind the last element it starts again with the first.",
        _element,
        (make_value_param("list"), make_number_param("index")),
        passes=True,
        cost=0,
    ),
    Function(
        "flatten",
        "The elements of the list, and of all lists inside it, as one list.",
        _flatten,
        (make_value_param("list"),),
        passes=True,
        cost=2,
    ),
    Function(
        "index",
        "The position of the value in the list, counted from 0.",
        _index,
        (make_value_param("list"), make_value_param()),
    ),
    Function(
        "length",
        "How many elements a collection has, or how many characters a string.",
        _length,
        (make_value_param(),),
        passes=True,
        cost=0,
    ),
    Function(
        "matchkeys",
        "The values whose key, at the same position, is in the last list.",
        _matchkeys,
        (make_list_param("values"), make_list_param("keys"), make_list_param("search")),
        cost=CONVERSION,
    ),
    Function(
        "one",
        "The only element of the list, or null if it is empty.",
        _one,
        (make_value_param("list"),),
        passes=True,
        cost=0,
    ),
    Function(
        "range",
        "The numbers from 0 or a start up to an end, without the end, optionally with a step.",
        _range,
        (),
        make_number_param("bounds"),
        steps=3,
        cost=2,
    ),
    Function(
        "reverse", "The list in reverse order.", _reverse, (make_value_param("list"),), passes=True
    ),
    Function(
        "slice",
        "The elements from `start` up to `end`, without the last one; both are counted from 0.",
        _slice,
        (make_value_param("list"), make_number_param("start"), make_number_param("end")),
        passes=True,
    ),
    Function(
        "sort", "The strings in the order of their characters.", _sort, (make_strings_param(),)
    ),
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
    Function(
        "keys",
        "The keys of a map or object, sorted.",
        _keys,
        (make_value_param("map"),),
        passes=True,
    ),
    Function(
        "lookup",
        "The value under the key, or the default if there is none.",
        _lookup,
        (make_value_param("map"), make_string_param("key")),
        Param("default", null=True, marked=True, deep=True),
        passes=True,
        cost=0,
    ),
    Function(
        "merge",
        "All maps or objects as one; if a key occurs in several, the last one wins.",
        _merge,
        (),
        make_value_param("maps", null=True),
        passes=True,
    ),
    Function(
        "transpose",
        "A map from each string in the lists to the keys of the lists that contain it.",
        _transpose,
        (Param("map"),),
    ),
    Function(
        "values",
        "The values of a map or object, in the order of its keys.",
        _values,
        (make_value_param("map"),),
        passes=True,
    ),
    Function(
        "zipmap",
        "A map or object of these keys with the values at the same positions.",
        _zipmap,
        (make_strings_param("keys"), make_value_param("values")),
        passes=True,
    ),
)
