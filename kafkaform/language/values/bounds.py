"""How large and deep whole values may be, and what it takes to convert them."""

from __future__ import annotations

from ...core.schema import Type
from .conversion import CONVERSION, has_type
from .faults import LimitError, Place
from .limits import LIMITS
from .unification import COMPARED
from .value import Composite, Val, depth_of, unmark, work_of


def require_bounded(value: Val, place: Place, what: str) -> Val:
    """The value. Raises LimitError if it is too large or too deep to be kept under a name."""
    inner = unmark(value)[0]
    if isinstance(inner, Composite) and (
        inner.work > LIMITS.parts or inner.size > LIMITS.size or inner.depth > LIMITS.depth
    ):
        raise LimitError(
            place,
            f"{what} is too large",
            f"A value may have {LIMITS.parts:,} elements at {LIMITS.depth} levels, and "
            f"{LIMITS.size:,} characters.",
        )
    return value


def require_shallow(value: Val, place: Place) -> Val:
    """The value. Raises LimitError if it has too many levels to be looked through."""
    if depth_of(value) > LIMITS.depth:
        detail = f"Here {LIMITS.depth} collections may lie inside each other."
        raise LimitError(place, "A value has too many levels", detail)
    return value


def compute_look_cost(value: Val, place: Place) -> int:
    """Steps for making a value of an argument fit its type, which is known. Raises LimitError if
    it has too many levels."""
    return 2 * depth_of(require_shallow(value, place)) * work_of(value) + 1


def compute_conversion_cost(value: Val, want: Type) -> int:
    """Steps that converting a value takes; none for what stays as it is."""
    inner = unmark(value)[0]
    if not isinstance(inner, Composite) or want.kind == "any" or has_type(inner, want):
        return 0
    return compute_type_cost(inner)


def compute_type_cost(value: Composite) -> int:
    """Steps for finding one type for the elements of each collection inside."""
    different = min(value.variety, COMPARED) * value.depth // 3
    return value.work * max(CONVERSION, different)
