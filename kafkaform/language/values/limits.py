"""Bounds on what evaluation may build, against hostile pull requests (architecture §8)."""

from __future__ import annotations

from msgspec import Struct

from .faults import LimitError, Place, Poisoned


class Limits(Struct, frozen=True):
    """files: of one folder; elements: of one collection; instances: of all resources and modules
    together; calls: `module` blocks, counted in every module that has them; names: what is
    declared, counted in the same way; steps: expressions
    evaluated and elements handled in a run; characters: of one string; parts: elements of one
    whole value, at all levels; size: the same with all characters; depth: collections inside each
    other; digits: of a number."""

    files: int = 10_000
    elements: int = 100_000
    instances: int = 200_000
    calls: int = 1_000
    names: int = 200_000
    steps: int = 5_000_000
    characters: int = 1024 * 1024
    parts: int = 1_000_000
    size: int = 32 * 1024 * 1024
    depth: int = 100
    digits: int = 1_000


LIMITS = Limits()


class Budget(Struct, eq=False):
    """What is left of the evaluation steps of one run."""

    left: int = LIMITS.steps
    instances: int = 0
    """Objects and modules that were counted so far."""

    def charge(self, steps: int, place: Place) -> None:
        """Take steps away. Raises LimitError at `place` when none are left, later Poisoned:
        one diagnostic is enough."""
        if self.left < 0:
            raise Poisoned
        self.left -= steps
        if self.left < 0:
            raise LimitError(
                place,
                "The configuration takes too many steps to evaluate",
                f"A run may take {LIMITS.steps:,} steps; loops inside loops are the usual cause.",
                "Compute the value once in a local value, or split the configuration.",
            )

    def charge_fault(self, steps: int) -> bool:
        """Take steps away for a fault; whether these were the last ones."""
        if self.spent:
            return False
        self.left -= steps
        return self.spent

    def end_budget(self) -> None:
        """Take all steps away, since errors were told that make evaluation useless."""
        self.left = -1

    @property
    def spent(self) -> bool:
        """Whether no steps are left, so that nothing more is evaluated."""
        return self.left < 0

    def count_instance(self, place: Place) -> None:
        """Count one more instance of a resource. Raises LimitError over the limit."""
        self.instances += 1
        if self.instances > LIMITS.instances:
            raise LimitError(
                place,
                "The configuration declares too many objects",
                f"One configuration may declare {LIMITS.instances:,}.",
                "Split it into several folders, each with its own state.",
            )

    def admit(self, count: int, place: Place) -> None:
        """Refuse a collection of `count` elements before it is built, else charge for it."""
        if count > LIMITS.elements:
            raise LimitError(
                place,
                f"A collection of {count:,} elements is too large",
                f"A collection may have {LIMITS.elements:,} elements.",
            )
        self.charge(count, place)
