"""Limits for the size and depth of whole values, and the cost of converting them."""

from __future__ import annotations

from ...core.schema import Type
from .conversion import CONVERSION, has_type
from .faults import LimitError, Location
from .limits import LIMITS
from .unification import COMPARED
from .value import Composite, Val, depth_of, unmark, work_of


def require_bounded(value: Val, location: Location, title: str) -> Val:
    """The value. Raises LimitError if it is too large or too deep to be kept under a name."""
    # A value can be shared: `[x, x]` costs a step, but doubles the size. Thirty such lines would
    # make a value that no memory could print, so each named value is checked.
    inner = unmark(value)[0]
    if isinstance(inner, Composite) and (
        inner.work > LIMITS.total_elements or inner.size > LIMITS.size or inner.depth > LIMITS.depth
    ):
        raise LimitError(
            location,
            f"{title} is too large",
            f"A value can have {LIMITS.total_elements:,} elements, {LIMITS.depth} levels and "
            f"{LIMITS.size:,} characters.",
        )
    return value


def require_shallow(value: Val, location: Location) -> Val:
    """The value. Raises LimitError if it has too many levels for functions that recurse."""
    if depth_of(value) > LIMITS.depth:
        detail = f"Collections can be nested in each other {LIMITS.depth} times."
        raise LimitError(location, "A value has too many levels", detail)
    return value


def compute_look_cost(value: Val, location: Location) -> int:
    """Steps for fitting a value to the known type of an argument. Raises LimitError if it has too
    many levels."""
    # Each level compares the types of everything below it.
    return 2 * depth_of(require_shallow(value, location)) * work_of(value) + 1


def compute_conversion_cost(value: Val, want: Type) -> int:
    """Steps for converting a value; 0 if it stays as it is."""
    inner = unmark(value)[0]
    if not isinstance(inner, Composite) or want.kind == "any" or has_type(inner, want):
        return 0
    return compute_type_cost(inner)


def compute_type_cost(value: Composite) -> int:
    """Steps for finding a common type for the elements of each collection in a value."""
    # Types are compared in pairs, but not more than COMPARED of them.
    different = min(value.variety, COMPARED) * value.depth // 3
    return value.work * max(CONVERSION, different)
