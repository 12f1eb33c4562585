"""Limits for what evaluation can build, because pull requests can be hostile (architecture §8)."""

from __future__ import annotations

from msgspec import Struct

from .faults import LimitError, Location, Poisoned


class Limits(Struct, frozen=True):
    """The limits of one run."""

    files: int = 10_000
    """Files of one folder."""
    elements: int = 100_000
    """Elements of one collection."""
    instances: int = 200_000
    """Instances of all resources and modules together."""
    calls: int = 1_000
    """`module` blocks; those in a module count for every call of the module."""
    names: int = 200_000
    """Blocks and local values, counted in the same way."""
    steps: int = 5_000_000
    """Expressions evaluated and elements handled; some seconds."""
    characters: int = 1024 * 1024
    """Characters of one string."""
    total_elements: int = 1_000_000
    """Elements of one whole value, at all levels."""
    size: int = 32 * 1024 * 1024
    """The same, plus all characters."""
    depth: int = 100
    """Collections nested in each other."""
    digits: int = 1_000
    """Digits of a number."""


LIMITS = Limits()


class Budget(Struct, eq=False):
    """The evaluation steps that are left in one run."""

    # Steps instead of seconds: a configuration is refused on every computer or on none.
    remaining_steps: int = LIMITS.steps
    instances: int = 0
    """Objects and modules that were counted so far."""
    open_reads: int = 0
    """How many times an attribute was read that its block leaves to the system, and that is not
    known yet."""
    open_read: tuple[str, str] = ("", "")
    """The last of them: its address and its name."""

    def charge(self, steps: int, location: Location) -> None:
        """Take steps away. Raises LimitError at the location when none are left, and Poisoned from
        then on, because one diagnostic is enough."""
        if self.remaining_steps < 0:
            raise Poisoned
        self.remaining_steps -= steps
        if self.remaining_steps < 0:
            raise LimitError(
                location,
                "The configuration takes too many steps to evaluate",
                f"The limit is {LIMITS.steps:,} steps. Nested loops are the usual cause.",
                "Compute the value once in a local value, or split the configuration.",
            )

    def charge_fault(self, steps: int) -> bool:
        """Take steps away for a fault. Returns whether these were the last ones."""
        if self.spent:
            return False
        self.remaining_steps -= steps
        return self.spent

    def end_budget(self) -> None:
        """Take all steps away, because there are so many errors that evaluation is useless."""
        self.remaining_steps = -1

    @property
    def spent(self) -> bool:
        """Whether no steps are left. Nothing more is evaluated then."""
        return self.remaining_steps < 0

    def count_instance(self, location: Location) -> None:
        """Count one more instance of a resource or module. Raises LimitError over the limit."""
        self.instances += 1
        if self.instances > LIMITS.instances:
            raise LimitError(
                location,
                "The configuration declares too many objects",
                f"One configuration can declare {LIMITS.instances:,} objects.",
                "Split it into several folders, each with its own state.",
            )

    def admit(self, count: int, location: Location) -> None:
        """Charge for a collection of `count` elements before it is built. Raises LimitError if it
        would be too large."""
        if count > LIMITS.elements:
            raise LimitError(
                location,
                f"A collection of {count:,} elements is too large",
                f"A collection can have {LIMITS.elements:,} elements.",
            )
        self.charge(count, location)
