"""How evaluation gives up: with a fault at a place, without one, or until after the apply."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from ...core.diagnostics import Diagnostic, Range, Severity, suggest

_KNOWN = 200
"""With more names than these a suggestion costs too much, since faults can be thousands."""


def suggest_near(word: str, known: Collection[str]) -> str:
    """`Did you mean "x"?` for the nearest known word, or an empty string."""
    return suggest(word, known) if len(known) <= _KNOWN else ""


class Place(Protocol):
    """Anything that knows where it stands, such as a syntax node."""

    @property
    def range(self) -> Range: ...

    @property
    def excerpt(self) -> str | None: ...


class EvalError(Exception):
    """A fault of the configuration at `place`; becomes one Diagnostic."""

    def __init__(
        self, place: Place, summary: str, detail: str = "", advice: str = "", hide: bool = False
    ) -> None:
        super().__init__(summary)
        self.place = place
        self.summary = summary
        self.detail = detail
        self.advice = advice
        self.hide = hide


HIDDEN = "The reason is hidden since an argument is sensitive."


@contextmanager
def hide_reasons(hide: bool) -> Iterator[None]:
    """Inside, faults keep their place but not their reason, since it may tell a secret."""
    try:
        yield
    except LimitError:
        raise
    except EvalError as fault:
        if not hide:
            raise
        raise EvalError(
            fault.place,
            "This cannot be evaluated",
            "The reason is hidden since it depends on a sensitive value.",
        ) from None


class LimitError(EvalError):
    """Evaluation went over a limit; `try` and `can` do not catch it."""


class Poisoned(Exception):
    """What is needed is faulty itself and was reported where it stands; stay silent."""


class Skipped(Poisoned):
    """A block that is passed over, such as another tool's; its text is the block's address."""


class Deferred(Exception):
    """The value is set by the server and known only after the apply."""

    def __init__(self, address: str, attribute: str) -> None:
        super().__init__(f"{address}.{attribute}")
        self.address = address
        self.attribute = attribute


class ConvertFault(Exception):
    """A value does not fit a type. path: steps from the outermost value, such as `.a` or `[0]`."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def nest_in(self, step: str) -> ConvertFault:
        """The same fault seen from one level further out."""
        return ConvertFault(self.message, step + self.path)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class FunctionFault(Exception):
    """A function refuses its arguments; argument: index of the one to blame, None for all."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.argument = argument


class LimitFault(FunctionFault):
    """A function would go over a limit; `try` and `can` do not catch it."""


def make_error(
    place: Place,
    summary: str,
    detail: str = "",
    advice: str = "",
    *,
    address: str | None = None,
    context: Iterable[str] = (),
    hide: bool = False,
) -> Diagnostic:
    """An error at a place. hide: keep the source line out, since it may hold a secret."""
    excerpt = None if hide else place.excerpt
    return Diagnostic(
        Severity.ERROR, summary, detail, place.range, excerpt, advice, address, tuple(context)
    )


def make_warning(place: Place, summary: str, detail: str = "", advice: str = "") -> Diagnostic:
    return Diagnostic(Severity.WARNING, summary, detail, place.range, place.excerpt, advice)


def make_diagnostic(
    fault: EvalError, address: str | None = None, context: Iterable[str] = ()
) -> Diagnostic:
    """The diagnostic that an EvalError stands for."""
    return make_error(
        fault.place,
        fault.summary,
        fault.detail,
        fault.advice,
        address=address,
        context=context,
        hide=fault.hide,
    )
