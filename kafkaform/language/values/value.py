"""Values of the language: what expressions yield.

str (NFC), bool, int and Decimal (a Decimal is never whole, both are exact) stand for themselves.
The classes here say what Python's own containers cannot: a list of one element type differs from
a tuple, a map from an object, and a null has a type. All are immutable; types, marks and sizes
are computed once, so that a big collection may be looked at from each of its instances.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from ...core.schema import ANY, BOOL, NUMBER, STRING, Type, list_of, map_of, object_of, set_of
from ...core.value import SecretRef
from .faults import Deferred, Poisoned

Marks: TypeAlias = frozenset[str]
UNMARKED: Marks = frozenset()
SENSITIVE = "sensitive"
"""Not to be shown."""
SECRET = "secret"
"""Came from a sensitive variable: not to be shown, nor stored anywhere."""
CHARACTERS_PER_STEP = 16
"""Copying is cheap, but memory is not."""


Of = TypeVar("Of")
Made = TypeVar("Made")


class once(Generic[Of, Made]):
    """A property that is computed once. functools' takes a lock each time, which is what it costs
    to look at a small value."""

    def __init__(self, make: Callable[[Of], Made]) -> None:
        self._make = make
        self._name = make.__name__

    def __get__(self, owner: Of, _: type[Of] | None = None) -> Made:
        made = owner.__dict__[self._name] = self._make(owner)
        return made


class Composite(Struct, frozen=True, eq=False, dict=True):
    """What the containers share."""

    @property
    def children(self) -> Iterable[Val]:
        """What is inside; each container says it itself."""
        raise NotImplementedError

    @property
    def sound(self) -> Iterable[Val]:
        """The children that can be had."""
        return self.children

    @once
    def marks(self) -> Marks:
        """All marks anywhere inside."""
        return UNMARKED.union(*map(marks_of, self.children))

    @once
    def size(self) -> int:
        """Elements and characters, all levels together."""
        return 1 + sum(map(size_of, self.children))

    @once
    def work(self) -> int:
        """Steps for one look at all of it: the elements of all levels, each time they occur."""
        return 1 + sum(map(work_of, self.sound))

    @once
    def variety(self) -> int:
        """How many types the elements of one collection have, the largest number inside."""
        parts = [unmark(child)[0] for child in self.sound]
        inside = max((part.variety for part in parts if isinstance(part, Composite)), default=0)
        try:
            return max(inside, len(set(map(type_of, parts))))
        except (Poisoned, Deferred):
            return inside

    @once
    def sealed_part(self) -> SecretRef | Computed | None:
        """A part inside that may be passed on but not looked at, if there is one."""
        parts = (find_sealed(child) for child in self.children)
        return next((part for part in parts if part is not None), None)

    @once
    def depth(self) -> int:
        return 1 + max(map(depth_of, self.sound), default=0)


class TupleVal(Composite, frozen=True):
    items: tuple[Val, ...]

    @property
    def children(self) -> Iterable[Val]:
        return self.items

    @once
    def type(self) -> Type:
        return Type("tuple", items=tuple(map(type_of, self.items)))


class ListVal(Composite, frozen=True):
    element: Type
    items: tuple[Val, ...]

    @property
    def children(self) -> Iterable[Val]:
        return self.items

    @once
    def type(self) -> Type:
        return list_of(self.element)


class SetVal(Composite, frozen=True):
    """items: unique and in order; make one with `make_set`."""

    element: Type
    items: tuple[Val, ...]

    @property
    def children(self) -> Iterable[Val]:
        return self.items

    @once
    def type(self) -> Type:
        return set_of(self.element)

    @once
    def keys(self) -> frozenset[Any]:
        return frozenset(map(key_of, self.items))


class ObjectVal(Composite, frozen=True):
    """fields: in order of their names when iterated by the language, in any order here."""

    fields: Mapping[str, Val]

    @property
    def children(self) -> Iterable[Val]:
        return self.fields.values()

    @property
    def sound(self) -> Iterable[Val]:
        whole = isinstance(self.fields, dict)  # unlike the outputs of a module
        return self.children if whole else list(_list_obtainable(self.fields))

    @once
    def type(self) -> Type:
        return object_of({name: type_of(self.fields[name]) for name in sorted(self.fields)})


class MapVal(Composite, frozen=True):
    element: Type
    fields: Mapping[str, Val]

    @property
    def children(self) -> Iterable[Val]:
        return self.fields.values()

    @once
    def type(self) -> Type:
        return map_of(self.element)


class Null(Struct, frozen=True, eq=False):
    type: Type = ANY


class Marked(Struct, frozen=True, eq=False):
    """A value with marks; ref: the variable whose whole value this is."""

    value: Val
    marks: Marks
    ref: SecretRef | None = None


class Computed(Struct, frozen=True, eq=False):
    """Stands inside a resource for an attribute that the server sets."""

    address: str
    attribute: str
    type: Type

    def defer(self) -> Deferred:
        return Deferred(self.address, self.attribute)


Val: TypeAlias = (
    str
    | bool
    | int
    | Decimal
    | TupleVal
    | ListVal
    | SetVal
    | ObjectVal
    | MapVal
    | Null
    | Marked
    | Computed
    | SecretRef
)
Sequence: TypeAlias = TupleVal | ListVal | SetVal
Fields: TypeAlias = ObjectVal | MapVal
SEQUENCES = (TupleVal, ListVal, SetVal)
FIELDS = (ObjectVal, MapVal)
NULL = Null()
EMPTY_TUPLE = TupleVal(())
EMPTY_OBJECT = ObjectVal({})


def normalise_text(value: str) -> str:
    """The string in normal form NFC, as every string of the language is."""
    return value if value.isascii() else unicodedata.normalize("NFC", value)


def make_set(element: Type, items: Iterable[Val]) -> Val:
    """A set of these items; marks of items become marks of the set."""
    marks: Marks = UNMARKED
    unique: dict[Any, Val] = {}
    for item in items:
        if found := marks_of(item):
            item, marks = unmark_deep(item), marks | found
        unique.setdefault(key_of(item), item)
    ordered = tuple(unique[key] for key in sorted(unique))
    return add_marks(SetVal(element, ordered), marks)


def type_of(value: Val) -> Type:
    """The type of any value. Raises Deferred for a computed attribute."""
    if isinstance(value, str | SecretRef):
        return STRING
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int | Decimal):
        return NUMBER
    if isinstance(value, Marked):
        return type_of(value.value)
    return value.type


def marks_of(value: Val) -> Marks:
    """All marks of a value and of what is inside."""
    if isinstance(value, Composite):
        return value.marks
    if isinstance(value, Marked):
        return value.marks | marks_of(value.value)
    return UNMARKED


def size_of(value: Val) -> int:
    """Elements and characters of a value, all levels together."""
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, Composite):
        return value.size
    return size_of(value.value) if isinstance(value, Marked) else 1


def depth_of(value: Val) -> int:
    """How many collections lie inside each other."""
    if isinstance(value, Composite):
        return value.depth
    return depth_of(value.value) if isinstance(value, Marked) else 0


def work_of(value: Val) -> int:
    """Steps for one look at all of a value."""
    if isinstance(value, Composite):
        return value.work
    if isinstance(value, str):
        return 1 + len(value) // CHARACTERS_PER_STEP
    return work_of(value.value) if isinstance(value, Marked) else 1


def _list_obtainable(fields: Mapping[str, Val]) -> Iterator[Val]:
    for name in fields:
        try:
            value = fields[name]
        except (Poisoned, Deferred):
            continue
        yield value


def find_sealed(value: Val) -> SecretRef | Computed | None:
    """The secret or computed attribute that this value is or holds."""
    if isinstance(value, SecretRef | Computed):
        return value
    if isinstance(value, Composite):
        return value.sealed_part
    return find_sealed(value.value) if isinstance(value, Marked) else None


def add_marks(value: Val, marks: Marks) -> Val:
    """The value with these marks added; the same object if there are none to add."""
    if not marks:
        return value
    if isinstance(value, Marked):
        return value if marks <= value.marks else Marked(value.value, value.marks | marks)
    return value if isinstance(value, SecretRef) else Marked(value, marks)


def unmark(value: Val) -> tuple[Val, Marks]:
    """The value without its own marks (inner ones stay), and those."""
    if isinstance(value, Marked):
        return value.value, value.marks
    return value, UNMARKED


def unmark_deep(value: Val) -> Val:
    """The value without any mark inside."""
    if isinstance(value, Marked):
        value = value.value
    if not isinstance(value, Composite) or not value.marks:
        return value
    if isinstance(value, TupleVal):
        return TupleVal(tuple(map(unmark_deep, value.items)))
    if isinstance(value, ListVal | SetVal):
        return type(value)(value.element, tuple(map(unmark_deep, value.items)))
    fields = {name: unmark_deep(item) for name, item in value.fields.items()}
    return ObjectVal(fields) if isinstance(value, ObjectVal) else MapVal(value.element, fields)


def list_elements(value: Sequence | Fields) -> Iterable[tuple[Val, Val]]:
    """Keys and values in the order of iteration: positions, sorted names, set elements."""
    if isinstance(value, SetVal):
        return zip(value.items, value.items, strict=True)
    if isinstance(value, TupleVal | ListVal):
        return enumerate(value.items)
    return ((name, value.fields[name]) for name in sorted(value.fields))


def key_of(value: Val) -> Any:
    """A hashable key: two values of one type have equal keys if they are equal, and keys of
    one type can be ordered."""
    if isinstance(value, bool):
        return (0, int(value))
    if isinstance(value, str | int | Decimal):
        return (0, value)
    if isinstance(value, SEQUENCES):
        return (1, tuple(map(key_of, value.items)))
    if isinstance(value, FIELDS):
        return (1, tuple((name, key_of(value.fields[name])) for name in sorted(value.fields)))
    if isinstance(value, Null):
        return (2,)
    if isinstance(value, Computed):
        raise value.defer()
    return (3, str(value))


def is_equal(one: Val, other: Val) -> bool:
    """Equality of the language: no conversion, types count, all nulls are equal. Ignores marks."""
    if one.__class__ is other.__class__ and isinstance(one, str | int | Decimal):
        return one == other
    one, other = unmark(one)[0], unmark(other)[0]
    if isinstance(one, Null) or isinstance(other, Null):
        return isinstance(one, Null) and isinstance(other, Null)
    for value in (one, other):
        if isinstance(value, Computed):
            raise value.defer()
    if isinstance(one, SEQUENCES):
        return isinstance(other, SEQUENCES) and _equal_items(one, other)
    if isinstance(one, FIELDS):
        return isinstance(other, FIELDS) and _equal_fields(one, other)
    return type_of(one) == type_of(other) and one == other


def _equal_items(one: Sequence, other: Sequence) -> bool:
    return (
        one.__class__ is other.__class__
        and getattr(one, "element", None) == getattr(other, "element", None)
        and len(one.items) == len(other.items)
        and all(map(is_equal, one.items, other.items))
    )


def _equal_fields(one: Fields, other: Fields) -> bool:
    return (
        one.__class__ is other.__class__
        and getattr(one, "element", None) == getattr(other, "element", None)
        and one.fields.keys() == other.fields.keys()
        and all(is_equal(item, other.fields[name]) for name, item in one.fields.items())
    )
