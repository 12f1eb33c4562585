"""What an apply did: one line per change for people, one exit code for pipelines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from ..audit.event import Record
from ..core.change import Change, Outcome, OutcomeStatus, Step
from ..core.errors import (
    AppliedInPart,
    Interrupted,
    KafkaformError,
    Locked,
    OtherSystem,
    OutcomeUnknown,
)
from ..core.resource import FaultClass
from ..core.words import NEUTRAL, Words, shared
from .again import APPLY, Again
from .judge import is_untellable
from .verify import Invisible

GOOD = (OutcomeStatus.APPLIED, OutcomeStatus.STARTED)

WorkKey = tuple[str, str | None]
"""Provider instance, ticket."""


class Result(Struct, frozen=True):
    """One step and how it ended. attempt counts from 1; duration_ms: from send to answer."""

    change: Change
    step: Step
    outcome: Outcome
    attempt: int = 1
    duration_ms: int = 0

    @property
    def work(self) -> WorkKey:
        """What this step started, if it has a ticket."""
        return self.step.identity.instance, self.outcome.ticket


class Work(Struct, frozen=True):
    """Long work by the record of its obligation, and how it stands now: applied, started (it
    runs), failed, or unknown."""

    obligation: Record
    outcome: Outcome
    due: bool = False
    """A setting that is still to be removed, because its task has ended."""
    words: Words = NEUTRAL
    """Those of the provider whose system was asked."""

    @property
    def ended(self) -> bool:
        return not self.due and self.outcome.status in (OutcomeStatus.APPLIED, OutcomeStatus.FAILED)

    @property
    def key(self) -> WorkKey:
        return get_work_key(self.obligation)


def get_work_key(obligation: Record) -> WorkKey:
    return obligation.body["instance"], obligation.body["ticket"]


class Report(Struct, frozen=True):
    """results: the last one of each step, in order; stopped: why the run ended early; work: of
    earlier runs that ended while this one was busy."""

    results: tuple[Result, ...] = ()
    invisible: tuple[Invisible, ...] = ()
    stopped: KafkaformError | None = None
    work: tuple[Work, ...] = ()

    @property
    def complete(self) -> bool:
        """True if every step was applied or started."""
        return self.stopped is None and all(r.outcome.status in GOOD for r in self.results)

    def count(self, status: OutcomeStatus) -> int:
        return sum(1 for result in self.results if result.outcome.status is status)

    def make_error(self, again: Again = APPLY) -> KafkaformError | None:
        """What the command ends with, or None: interrupted, unknown, in part, refused. again: how
        the user goes on. A refusal after something was applied is a plan applied in part."""
        if isinstance(self.stopped, (Interrupted, Locked, OtherSystem)):
            return self.stopped
        unknown = self.count(OutcomeStatus.UNKNOWN)
        if unknown:
            return OutcomeUnknown(
                f"the outcome of {_render_steps(unknown)} is not known yet",
                self._advise_unknown(again),
            )
        if self.stopped is not None and not any(r.outcome.status in GOOD for r in self.results):
            return self.stopped
        undone = self._render_undone()
        if not undone and self.stopped is None:
            return None
        if self.stopped is None:
            return AppliedInPart(undone, again.rest)
        return AppliedInPart(f"{undone}: {self.stopped.message}", self.stopped.advice)

    def _render_undone(self) -> str:
        counts = Counter(_name_end(result.outcome) for result in self.results)
        parts = [f"{_render_steps(counts[how])} {how}" for how in ENDS if counts[how]]
        left = [w.words for w in self.work if w.outcome.status is OutcomeStatus.UNKNOWN]
        if left:
            parts.append(f"a {shared(left).setting} was not removed")
        return ", ".join(parts)

    def _advise_unknown(self, again: Again) -> str:
        """How the unknown outcomes become known."""
        unknown = [r for r in self.results if r.outcome.status is OutcomeStatus.UNKNOWN]
        if not all(is_untellable(result.change, result.step) for result in unknown):
            return f"Run {again.same} again: it reads them first and recovers."
        if again.command == "alter":
            return (
                "Nobody can read whether the secret arrived. Run the same `kafkaform alter` again, "
                "which sends it once more."
            )
        return (
            "Nobody can read whether the secret arrived. Apply the same approval again (`kafkaform "
            "apply --expect APPROVAL`), which sends it once more, or give it another version."
        )


ENDS = ("failed", "not applied", "not sent")


def _name_end(outcome: Outcome) -> str:
    """How a step ended that was not applied. "Not applied" is what certainly had no effect,
    such as a request that could not be sent."""
    if outcome.status is OutcomeStatus.SKIPPED:
        return "not sent"
    if outcome.status is not OutcomeStatus.FAILED:
        return ""
    fault = outcome.fault
    return "not applied" if fault and fault.kind is FaultClass.NOT_APPLIED else "failed"


def _render_steps(number: int) -> str:
    return f"{number} step" if number == 1 else f"{number} steps"


def group_by_change(results: Sequence[Result]) -> list[tuple[Change, tuple[Outcome, ...]]]:
    """Results grouped under their change, in order."""
    groups: dict[str, tuple[Change, list[Outcome]]] = {}
    for result in results:
        key = f"{result.change.identity}"
        groups.setdefault(key, (result.change, []))[1].append(result.outcome)
    return [(change, tuple(outcomes)) for change, outcomes in groups.values()]
