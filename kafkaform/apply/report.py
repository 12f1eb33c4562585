"""What an apply did: one line per change for people, one exit code for pipelines."""

from __future__ import annotations

from collections.abc import Sequence

from ..audit.event import Record
from ..core.change import Change, Outcome, OutcomeStatus, Step
from ..core.dataclass import dataclass
from ..core.errors import (
    AppliedInPart,
    Interrupted,
    KafkaformError,
    Locked,
    OtherCluster,
    OutcomeUnknown,
)
from .judge import untellable
from .verify import Invisible

GOOD = (OutcomeStatus.APPLIED, OutcomeStatus.STARTED)
NEXT = "Run `kafkaform {}` again: what was applied is recorded, the rest is planned anew."

WorkKey = tuple[str, str | None]
"""Provider instance, ticket."""


@dataclass(frozen=True, slots=True)
class Result:
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


@dataclass(frozen=True, slots=True)
class Work:
    """Long work by the record of its obligation, and how it stands now: applied, started (it
    runs), failed, or unknown. due: a throttle whose move has ended, and that is still to be
    removed."""

    obligation: Record
    outcome: Outcome
    due: bool = False

    @property
    def ended(self) -> bool:
        return not self.due and self.outcome.status in (OutcomeStatus.APPLIED, OutcomeStatus.FAILED)

    @property
    def key(self) -> WorkKey:
        return work_key(self.obligation)


def work_key(obligation: Record) -> WorkKey:
    return obligation.body["instance"], obligation.body["ticket"]


@dataclass(frozen=True, slots=True)
class Report:
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

    def error(self, command: str = "apply") -> KafkaformError | None:
        """What the command ends with, or None: interrupted, refused, unknown, in part."""
        if isinstance(self.stopped, (Interrupted, Locked, OtherCluster)):
            return self.stopped
        unknown = self.count(OutcomeStatus.UNKNOWN)
        if unknown:
            return OutcomeUnknown(
                f"the outcome of {_steps(unknown)} is not known yet", self._resolving(command)
            )
        if self.stopped is not None:
            return self.stopped
        left = [w for w in self.work if w.outcome.status is OutcomeStatus.UNKNOWN]
        failed = self.count(OutcomeStatus.FAILED)
        skipped = self.count(OutcomeStatus.SKIPPED)
        if failed or skipped or left:
            parts = [f"{_steps(failed)} failed"] if failed else []
            parts += ["a throttle was not removed"] if left else []
            parts += [f"{_steps(skipped)} not sent"] if skipped else []
            return AppliedInPart(", ".join(parts), NEXT.format(command))
        return None

    def _resolving(self, command: str) -> str:
        """How the unknown outcomes become known."""
        unknown = [r for r in self.results if r.outcome.status is OutcomeStatus.UNKNOWN]
        if not all(untellable(result.change, result.step) for result in unknown):
            return f"Run `kafkaform {command}` again: it reads them first and recovers."
        if command == "alter":
            return (
                "Nobody can read whether the secret arrived. Run the same `kafkaform alter` again, "
                "which sends it once more."
            )
        return (
            "Nobody can read whether the secret arrived. Apply the same approval again (`kafkaform "
            "apply --expect APPROVAL`), which sends it once more, or give it another version."
        )


def _steps(number: int) -> str:
    return f"{number} step" if number == 1 else f"{number} steps"


def by_change(results: Sequence[Result]) -> list[tuple[Change, tuple[Outcome, ...]]]:
    """Results grouped under their change, in order."""
    groups: dict[str, tuple[Change, list[Outcome]]] = {}
    for result in results:
        key = f"{result.change.identity}"
        groups.setdefault(key, (result.change, []))[1].append(result.outcome)
    return [(change, tuple(outcomes)) for change, outcomes in groups.values()]
