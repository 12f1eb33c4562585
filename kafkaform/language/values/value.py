"""The values that expressions yield.

str (in normal form NFC), bool, int and Decimal are used as they are. The classes here express what
Python's containers cannot: a list with one element type differs from a tuple, a map from an object,
and null has a type. All are immutable. Types, marks and sizes are computed once, so that many
instances can look at one large collection.

Numbers are exact: int if whole, else Decimal, never a binary float. Go's HCL computes with 512
bits, so `0.1 + 0.2 == 0.3` and `9007199254740993 + 1` is exact. Configs are sent as text, so every
digit of a float's rounding error would show in a plan.

Test for bool before int: in Python, bool is a subclass of int.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import ROUND_DOWN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from ...core.schema import ANY, BOOL, NUMBER, STRING, Type, list_of, map_of, object_of, set_of
from ...core.value import SecretRef
from .faults import LIMITS, Deferred, Poisoned

Marks: TypeAlias = frozenset[str]
"""Labels on a value that follow it through all operations: a result has the marks of its operands.
So no expression, however long, can turn a secret into a value that is shown."""
UNMARKED: Marks = frozenset()
SENSITIVE = "sensitive"
"""The value must not be shown."""
SECRET = "secret"
"""The value comes from a sensitive variable: it must be neither shown nor stored anywhere."""
CHARACTERS_PER_STEP = 16
"""Copying characters takes little time, but memory."""


Of = TypeVar("Of")
Made = TypeVar("Made")
Number = int | Decimal
PRECISION = Context(prec=160, traps=[InvalidOperation, DivisionByZero, Overflow])
"""160 digits are at least as precise as the 512 bits of go-cty's numbers."""
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


class once(Generic[Of, Made]):
    """A property that is computed once."""

    # functools.cached_property takes a lock in Python 3.11, which costs more than the look at a
    # small value itself.
    def __init__(self, make: Callable[[Of], Made]) -> None:
        self._make = make
        self._name = make.__name__

    def __get__(self, owner: Of, _: type[Of] | None = None) -> Made:
        # From now on the instance has the attribute, and Python does not come here again.
        result = owner.__dict__[self._name] = self._make(owner)
        return result


class Composite(Struct, frozen=True, eq=False, dict=True):
    """The base of all containers."""

    @property
    def children(self) -> Iterable[Val]:
        """The elements."""
        raise NotImplementedError

    @property
    def sound(self) -> Iterable[Val]:
        """The elements without those that raise Poisoned or Deferred."""
        return self.children

    @once
    def marks(self) -> Marks:
        """All marks anywhere inside."""
        return UNMARKED.union(*map(marks_of, self.children))

    @once
    def size(self) -> int:
        """The number of elements and characters at all levels."""
        return 1 + sum(map(size_of, self.children))

    @once
    def work(self) -> int:
        """Steps for looking at all elements at all levels. A shared element counts each time."""
        return 1 + sum(map(work_of, self.sound))

    @once
    def variety(self) -> int:
        """The number of different types of the elements, in the collection with most of them."""
        # Finding a common type compares the types in pairs, so their number decides the cost.
        elements = [unmark(child)[0] for child in self.sound]
        inside = max(
            (element.variety for element in elements if isinstance(element, Composite)), default=0
        )
        try:
            return max(inside, len(set(map(type_of, elements))))
        except (Poisoned, Deferred):
            return inside

    @once
    def sealed_part(self) -> SecretRef | Computed | None:
        """A part that can be passed on but not be read: a secret or a computed attribute."""
        sealed_parts = (find_sealed(child) for child in self.children)
        return next((sealed for sealed in sealed_parts if sealed is not None), None)

    @once
    def depth(self) -> int:
        """How many collections are nested in each other."""
        return 1 + max(map(depth_of, self.sound), default=0)


class TupleVal(Composite, frozen=True):
    """What `[1, "a"]` yields: each element has its own type."""

    items: tuple[Val, ...]

    @property
    def children(self) -> Iterable[Val]:
        return self.items

    @once
    def type(self) -> Type:
        return Type("tuple", items=tuple(map(type_of, self.items)))


class ListVal(Composite, frozen=True):
    """What `tolist([1, 2])` yields: all elements have one type."""

    element: Type
    items: tuple[Val, ...]

    @property
    def children(self) -> Iterable[Val]:
        return self.items

    @once
    def type(self) -> Type:
        return list_of(self.element)


class SetVal(Composite, frozen=True):
    """A set; `make_set` makes one."""

    element: Type
    items: tuple[Val, ...]
    """Unique and in order, so that equal sets are iterated in the same way."""

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
    """What `{ a = 1 }` yields: each field has its own type."""

    fields: Mapping[str, Val]
    """In any order; the language iterates them by name."""

    @property
    def children(self) -> Iterable[Val]:
        return self.fields.values()

    @property
    def sound(self) -> Iterable[Val]:
        # The outputs of a module are evaluated on their own: some can be missing (see `Live`).
        is_complete = isinstance(self.fields, dict)
        return self.children if is_complete else list(_list_obtainable(self.fields))

    @once
    def type(self) -> Type:
        return object_of({name: type_of(self.fields[name]) for name in sorted(self.fields)})


class MapVal(Composite, frozen=True):
    """What `tomap({ a = 1 })` yields: all values have one type."""

    element: Type
    fields: Mapping[str, Val]

    @property
    def children(self) -> Iterable[Val]:
        return self.fields.values()

    @once
    def type(self) -> Type:
        return map_of(self.element)


class Null(Struct, frozen=True, eq=False):
    """null, which has a type in HCL: a null list is not a null string."""

    type: Type = ANY


class Marked(Struct, frozen=True, eq=False):
    """A value with marks."""

    value: Val
    marks: Marks
    ref: SecretRef | None = None
    """The variable, or the element of one, whose whole value this is: it can be a secret."""


class Computed(Struct, frozen=True, eq=False):
    """An attribute of a resource that the server sets, as long as it is not known.

    This is not Terraform's unknown value: it cannot be computed with. Every expression that reads
    it is deferred as a whole (docs/decisions/002).
    """

    address: str
    attribute: str
    type: Type
    instead: str = ""
    """See `AttributeSchema.instead`."""

    def defer(self) -> Deferred:
        return Deferred(self.address, self.attribute, self.instead)


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
FieldValues: TypeAlias = ObjectVal | MapVal
SEQUENCES = (TupleVal, ListVal, SetVal)
FIELDS = (ObjectVal, MapVal)
NULL = Null()
EMPTY_TUPLE = TupleVal(())
EMPTY_OBJECT = ObjectVal({})


def normalise_text(value: str) -> str:
    """The string in normal form NFC, which all strings of the language have, as in Go's HCL."""
    return value if value.isascii() else unicodedata.normalize("NFC", value)


def make_set(element: Type, items: Iterable[Val]) -> Val:
    """A set of these items. Marks of items become marks of the set, because the order and the
    number of its elements depend on all of them."""
    marks: Marks = UNMARKED
    unique: dict[Any, Val] = {}
    for item in items:
        if item_marks := marks_of(item):  # two elements that differ in marks only are one
            item, marks = unmark_deep(item), marks | item_marks
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
    """All marks of a value and of the values in it."""
    if isinstance(value, Composite):
        return value.marks
    if isinstance(value, Marked):
        return value.marks | marks_of(value.value)
    return UNMARKED


def size_of(value: Val) -> int:
    """The number of elements and characters of a value, at all levels."""
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, Composite):
        return value.size
    return size_of(value.value) if isinstance(value, Marked) else 1


def depth_of(value: Val) -> int:
    """How many collections are nested in each other."""
    if isinstance(value, Composite):
        return value.depth
    return depth_of(value.value) if isinstance(value, Marked) else 0


def work_of(value: Val) -> int:
    """Steps for looking at all of a value."""
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
            # Whoever reads the field reports why it has no value.
            continue
        yield value


def find_sealed(value: Val) -> SecretRef | Computed | None:
    """The secret or computed attribute that this value is or contains."""
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
    # A reference to a secret needs no marks: it does not have the secret's value.
    return value if isinstance(value, SecretRef) else Marked(value, marks)


def unmark(value: Val) -> tuple[Val, Marks]:
    """The value without its own marks, and the marks. Marks of its elements stay."""
    if isinstance(value, Marked):
        return value.value, value.marks
    return value, UNMARKED


def unmark_deep(value: Val) -> Val:
    """The value without any marks, also in its elements."""
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


def list_elements(value: Sequence | FieldValues) -> Iterable[tuple[Val, Val]]:
    """Keys and values in the order of iteration: positions, sorted names, set elements."""
    if isinstance(value, SetVal):
        return zip(value.items, value.items, strict=True)
    if isinstance(value, TupleVal | ListVal):
        return enumerate(value.items)
    return ((name, value.fields[name]) for name in sorted(value.fields))


def key_of(value: Val) -> Any:
    """A hashable key: equal values of one type have equal keys, and keys of one type have an
    order."""
    # The first number keeps values of different kinds apart, which Python could not compare.
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


def is_equal(first: Val, second: Val) -> bool:
    """Whether two values are equal in the language, marks aside: `"1" == 1` is false, `1 == 1.0`
    true, a tuple never equals a list, and all nulls are equal."""
    if first.__class__ is second.__class__ and isinstance(first, str | int | Decimal):
        return first == second
    first, second = unmark(first)[0], unmark(second)[0]
    if isinstance(first, Null) or isinstance(second, Null):
        return isinstance(first, Null) and isinstance(second, Null)
    for value in (first, second):
        if isinstance(value, Computed):
            raise value.defer()
    if isinstance(first, SEQUENCES):
        return isinstance(second, SEQUENCES) and (
            first.__class__ is second.__class__
            and getattr(first, "element", None) == getattr(second, "element", None)
            and len(first.items) == len(second.items)
            and all(map(is_equal, first.items, second.items))
        )
    if isinstance(first, FIELDS):
        return isinstance(second, FIELDS) and (
            first.__class__ is second.__class__
            and getattr(first, "element", None) == getattr(second, "element", None)
            and first.fields.keys() == second.fields.keys()
            and all(is_equal(item, second.fields[name]) for name, item in first.fields.items())
        )
    return type_of(first) == type_of(second) and first == second


def normalise_number(value: Decimal) -> Number:
    """The canonical form of a number. Raises ValueError if it has too many digits."""
    # Equal numbers must have equal forms, because they become keys and texts: 6.0 is int 6.
    if value.is_finite() and abs(value.adjusted()) <= LIMITS.digits:
        return int(value) if value == value.to_integral_value() else value.normalize(PRECISION)
    if not value:
        return 0
    raise ValueError(f"a number can have {LIMITS.digits} digits")


def make_whole(value: Decimal) -> Number:
    """A number with all of its digits; int if it is whole, so 6.0 is 6."""
    return int(value) if value == value.to_integral_value() else value


def parse_number(text: str) -> Number | None:
    """The number that a string spells, as `tonumber` reads it; None if it is not a number."""
    if not _NUMBER.fullmatch(text) or len(text) > LIMITS.digits:
        return None
    try:
        return normalise_number(Decimal(text))
    except (ValueError, InvalidOperation):  # the latter: an exponent beyond Decimal's range
        return None


def render_number(value: Number) -> str:
    """The digits of a number, without exponent and trailing zeros, as go-cty writes it."""
    if isinstance(value, int):
        return str(value)
    digits = format(value, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def check_digits(value: Number) -> Number:
    """The number if it is not too long. Raises ValueError."""
    if isinstance(value, Decimal):
        return normalise_number(value)
    # By bits, because counting digits takes the square of their number.
    if value.bit_length() > LIMITS.digits * 3.33:
        raise ValueError(f"a number can have {LIMITS.digits} digits")
    return value


def make_exact(value: Number) -> Decimal:
    return Decimal(value)


def add(first: Number, second: Number) -> Number:
    if isinstance(first, int) and isinstance(second, int):
        return check_digits(first + second)
    return normalise_number(PRECISION.add(make_exact(first), make_exact(second)))


def subtract(first: Number, second: Number) -> Number:
    if isinstance(first, int) and isinstance(second, int):
        return check_digits(first - second)
    return normalise_number(PRECISION.subtract(make_exact(first), make_exact(second)))


def multiply(first: Number, second: Number) -> Number:
    if isinstance(first, int) and isinstance(second, int):
        return check_digits(first * second)
    return normalise_number(PRECISION.multiply(make_exact(first), make_exact(second)))


def divide(first: Number, second: Number) -> Number:
    """The quotient. Raises ValueError for a division by zero."""
    # Go's HCL yields infinity here. Nothing could be done with it, so it is an error.
    if not second:
        raise ValueError("a number cannot be divided by zero")
    if isinstance(first, int) and isinstance(second, int) and first % second == 0:
        return first // second
    return normalise_number(PRECISION.divide(make_exact(first), make_exact(second)))


def compute_remainder(first: Number, second: Number) -> Number:
    """The remainder of a division that rounds towards zero: -7 % 3 is -1, unlike in Python. Raises
    ValueError for a division by zero."""
    if not second:
        raise ValueError("a number cannot be divided by zero")
    quotient = truncate_number(divide(first, second))
    return subtract(first, multiply(second, quotient))


def truncate_number(value: Number) -> int:
    """The whole part, towards zero."""
    return int(value) if isinstance(value, int) else int(value.to_integral_value(ROUND_DOWN))
