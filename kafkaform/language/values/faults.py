"""The exceptions of evaluation: a fault at a place, no value because of another fault, and a value
that is known only after the apply."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

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

    def __init__(self, address: str, attribute: str) -> None:
        super().__init__(f"{address}.{attribute}")
        self.address = address
        self.attribute = attribute


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
