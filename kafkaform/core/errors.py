"""Errors that stop a command, and their exit codes.

KafkaformError                 1
├── UsageError                 1   a flag, an address, a file name
├── ConfigurationError         1   carries diagnostics
├── ConnectError               1   the system is unreachable, or refuses the login
├── MissingObject              1   what a data source asks for does not exist
├── DryRunRefused              1   nothing was sent
├── PlanRefused                4   stale, foreign or altered plan
│   └── OtherSystem            4   another system answers than the session's
├── AppliedInPart              5
├── OutcomeUnknown             6
├── Locked                     7
├── Blocked                    8   impossible change, guard, --fail-on
├── StorageError               9   state or log cannot be written, or fails its check
└── Interrupted           130, 143
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .diagnostics import Diagnostic, Diagnostics, Severity

Failure = TypeVar("Failure", bound="KafkaformError")


class KafkaformError(Exception):
    """An error that a command explains to its user."""

    def __init__(self, message: str, advice: str = "", diagnostics: Diagnostics = ()) -> None:
        """message: what happened and why; advice: what to do next; diagnostics: shown instead."""
        super().__init__(message)
        self.message = message
        self.advice = advice
        self._diagnostics = diagnostics
        self.applied: Any = None
        """What the run did before: an `Applied`, if something may have been sent."""

    @property
    def diagnostics(self) -> Diagnostics:
        """What to show: the diagnostics it carries, or one made of message and advice."""
        if self._diagnostics:
            return self._diagnostics
        return (Diagnostic(Severity.ERROR, self.message, advice=self.advice),)

    def __str__(self) -> str:
        """The message; below it the faults that the error carries, one in each line."""
        faults = "".join(
            f"\n  {item.range}: {item.summary}" if item.range else f"\n  {item.summary}"
            for item in self._diagnostics
            if item.summary != self.message
        )
        return f"{self.message}:{faults}" if faults else self.message

    def rewrite(self, change: Callable[[str], str]) -> None:
        """Apply `change` to each of its texts, for example to mask secrets."""
        self.message, self.advice = change(self.message), change(self.advice)
        self.args = (self.message,)
        self._diagnostics = tuple(item.rewrite(change) for item in self._diagnostics)


class UsageError(KafkaformError):
    """A flag, an argument or a file name cannot be used as given."""


class ConfigurationError(KafkaformError):
    """The configuration has faults. `diagnostics` names each one with its place."""


class ConnectError(KafkaformError):
    """No system answered, or the login was refused."""


class MissingObject(KafkaformError):
    """The object that a data source asks for does not exist: a read that could have seen it did
    not."""


class DryRunRefused(KafkaformError):
    """The system or a rule refused a step in the dry run. Nothing was sent."""


class PlanRefused(KafkaformError):
    """The plan is stale, altered, or made for another system or state."""


class OtherSystem(PlanRefused):
    """The system that answers has another scope id than the session.

    It ends the run. Nothing that the other system says is believed, and what is open stays open
    until the right one answers.
    """


class AppliedInPart(KafkaformError):
    """Some steps failed or were skipped. What succeeded is recorded."""


class OutcomeUnknown(KafkaformError):
    """Some outcomes are not known yet. The next run reads the objects again and recovers."""


class Locked(KafkaformError):
    """Another run has the lock, or has changed the state meanwhile."""


class Blocked(KafkaformError):
    """An impossible change, a guard or a --fail-on condition stops the run."""


class StorageError(KafkaformError):
    """State or audit log cannot be written, read or trusted."""


class Interrupted(KafkaformError):
    """A signal stopped the run after the batch in flight. Everything is recorded."""

    def __init__(self, message: str, advice: str = "", signal_number: int = 2) -> None:
        super().__init__(message, advice)
        self.signal_number = signal_number


class Ended(BaseException):
    """A signal ends the command while nothing is being sent.

    The signal handler raises it. It is not an Exception, so that no code that handles errors
    catches it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        self.handled = False
        """Whoever catches it for good sets this, so that it is not raised again."""

    @property
    def exit_code(self) -> int:
        """What a shell reports for a process that the signal killed."""
        return 128 + self.number


# 2 is not among them: with --detailed-exitcode it means that there are changes, as in Terraform.
EXIT_CODES: dict[type[KafkaformError], int] = {
    KafkaformError: 1,
    UsageError: 1,
    ConfigurationError: 1,
    ConnectError: 1,
    MissingObject: 1,
    DryRunRefused: 1,
    PlanRefused: 4,
    OtherSystem: 4,
    AppliedInPart: 5,
    OutcomeUnknown: 6,
    Locked: 7,
    Blocked: 8,
    StorageError: 9,
}


def exit_code(error: KafkaformError) -> int:
    """The process exit code for this error (architecture §7)."""
    if isinstance(error, Interrupted):
        # As shells report a process that a signal has killed: 130 and 143.
        return 128 + error.signal_number
    return EXIT_CODES[type(error)]


def make_detailed_error(
    kind: type[Failure], summary: str, lines: Sequence[str], advice: str
) -> Failure:
    """An error of this kind with lines of their own below the summary, such as those of a log."""
    detail = "\n".join(lines)
    diagnostic = Diagnostic(Severity.ERROR, summary, detail, advice=advice)
    return kind(f"{summary}\n{detail}".rstrip(), advice, (diagnostic,))
