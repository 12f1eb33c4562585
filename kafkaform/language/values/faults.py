"""The exceptions of evaluation: a fault at a place, no value because of another fault, and a value
that is known only after the apply; and the limits, because pull requests can be hostile
(architecture §8)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from msgspec import Struct

from ...core.diagnostics import Diagnostic, Range, Severity, suggest

_KNOWN = 200
"""No suggestion is looked for among more names: each takes time, and faults can be thousands."""


def suggest_near(word: str, candidates: Collection[str]) -> str:
    """`Did you mean "x"?` for the nearest known word, or an empty string."""
    return suggest(word, candidates) if len(candidates) <= _KNOWN else ""


def quote_names(names: Sequence[str]) -> str:
    """Names in a sentence: `"a", "b" and "c"`."""
    *first, last = (f'"{name}"' for name in names)
    return f"{', '.join(first)} and {last}" if first else last


class Location(Protocol):
    """Anything with a location in the text, such as a node."""

    @property
    def range(self) -> Range: ...

    @property
    def excerpt(self) -> str | None: ...


class EvalError(Exception):
    """A fault of the configuration at a location; becomes one Diagnostic."""

    def __init__(
        self,
        location: Location,
        summary: str,
        detail: str = "",
        advice: str = "",
        hide: bool = False,
    ) -> None:
        super().__init__(summary)
        self.location = location
        self.summary = summary
        self.detail = detail
        self.advice = advice
        self.hide = hide
        """Whether the source line is left out of the message, because it may contain a secret."""


HIDDEN_REASON = "The reason is hidden because an argument is sensitive."


@contextmanager
def hide_reasons(hide: bool) -> Iterator[None]:
    """Replace the reason of faults inside, if `hide`: it could reveal a sensitive value."""
    # Which element of a hidden list failed, and why, says something about the list.
    try:
        yield
    except LimitError:
        raise
    except EvalError as fault:
        if not hide:
            raise
        raise EvalError(
            fault.location,
            "This cannot be evaluated",
            "The reason is hidden because it depends on a sensitive value.",
        ) from None


class LimitError(EvalError):
    """Evaluation exceeded a limit. `try` and `can` do not catch it: a hostile configuration could
    otherwise go on at the limit for ever."""


class Poisoned(Exception):
    """A value is missing because of a fault that has been reported where it occurred, so nothing
    more is reported."""


class Skipped(Poisoned):
    """A value is missing because its block is skipped, such as a block of another tool. The text
    of the exception is the address of the block."""


class Deferred(Exception):
    """The value is set by the server and known only after the apply."""

    def __init__(self, address: str, attribute: str, instead: str = "") -> None:
        super().__init__(f"{address}.{attribute}")
        self.address = address
        self.attribute = attribute
        self.instead = instead
        """What an argument can do without it, as advice."""


class ConvertFault(Exception):
    """A value does not fit a type."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        """A clause without a full stop: `expected a number, got a list`."""
        self.path = path
        """The steps from the outermost value to the part that does not fit: `.a[0]`. Keys can be
        sensitive, so messages about sensitive values use `message` alone."""

    def nest_in(self, step: str) -> ConvertFault:
        """The same fault, seen from one level further out."""
        return ConvertFault(self.message, step + self.path)

    def __str__(self) -> str:
        return f"{self.message} (at {self.path})" if self.path else self.message


class FunctionFault(Exception):
    """A function refuses its arguments."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        """A clause without a full stop: `the list is empty`."""
        self.argument = argument
        """The index of the argument to blame; None for all of them."""


class LimitFault(FunctionFault):
    """A function would exceed a limit. `try` and `can` do not catch it."""


def make_error(
    location: Location,
    summary: str,
    detail: str = "",
    advice: str = "",
    *,
    address: str | None = None,
    context: Iterable[str] = (),
    hide: bool = False,
) -> Diagnostic:
    """An error at a place. hide: leave out the source line, because it may contain a secret."""
    excerpt = None if hide else location.excerpt
    return Diagnostic(
        Severity.ERROR, summary, detail, location.range, excerpt, advice, address, tuple(context)
    )


def make_warning(
    location: Location, summary: str, detail: str = "", advice: str = ""
) -> Diagnostic:
    return Diagnostic(Severity.WARNING, summary, detail, location.range, location.excerpt, advice)


def make_diagnostic(
    fault: EvalError, address: str | None = None, context: Iterable[str] = ()
) -> Diagnostic:
    """The diagnostic of an EvalError."""
    return make_error(
        fault.location,
        fault.summary,
        fault.detail,
        fault.advice,
        address=address,
        context=context,
        hide=fault.hide,
    )


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
