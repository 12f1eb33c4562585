"""The report of an apply: a result for each step, the error that the command ends with, and how the
user goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..audit.records import Record
from ..core.change import Change, Outcome, OutcomeStatus, Step
from ..core.errors import (
    AppliedInPart,
    Interrupted,
    KafkaformError,
    Locked,
    OtherSystem,
    OutcomeUnknown,
)
from ..core.resource import SETTING, FaultClass
from ..core.text import render_count
from ..core.words import NEUTRAL, Words, shared
from .verify import Invisible, Sight, is_untellable


class Rerun(Struct, frozen=True):
    """How a run can be repeated, for the advice of its errors."""

    command: str = "apply"
    """The name of its command."""
    command_text: str = "`kafkaform apply`"
    """The command line that runs it once more, in words."""
    reviewed: bool = False
    """Its plan was reviewed before it began: it comes from a file, or its approval was given."""
    folder: str = ""
    """The folder of the run, if that is not the current one."""

    @property
    def program(self) -> str:
        """How a command line begins that is about the folder of the run."""
        return f"kafkaform --chdir {self.folder}" if self.folder else "kafkaform"

    @property
    def repeat_advice(self) -> str:
        """What to do if this very plan can be applied later."""
        return f"Run {self.command_text} again."

    @property
    def new_plan_advice(self) -> str:
        """What to do if this plan must not be applied any more."""
        if self.reviewed:
            return "Plan again and have the new plan reviewed."
        return f"Run {self.command_text} again: it makes a new plan."

    @property
    def remainder_advice(self) -> str:
        """What to do if a part of the plan was applied."""
        if self.reviewed:
            return f"Run {self.command_text} again: it applies what is left of the plan."
        return (
            f"Run {self.command_text} again: what was applied is recorded, and the rest is "
            "planned again."
        )


PLAIN_APPLY = Rerun()
"""How an `apply` that plans and asks can be repeated."""


GOOD = (OutcomeStatus.APPLIED, OutcomeStatus.STARTED)

WorkKey = tuple[str, str | None]
"""Provider instance and ticket."""


class Result(Struct, frozen=True):
    """One step and how it ended."""

    change: Change
    """The change that the step belongs to."""
    step: Step
    """The step."""
    outcome: Outcome
    """How it ended."""
    attempt: int = 1
    """Counts from 1."""
    duration_ms: int = 0
    """Milliseconds from send to answer."""

    @property
    def work(self) -> WorkKey:
        """The work that this step started, if it has a ticket."""
        return self.step.identity.instance, self.outcome.ticket


class Work(Struct, frozen=True):
    """Long work, and how far it is."""

    obligation: Record
    """The record that opened it."""
    outcome: Outcome
    """Applied, started (it runs), failed or unknown."""
    due: bool = False
    """A setting that is still to be removed, because its task has ended."""
    words: Words = NEUTRAL
    """The words of the provider whose system was asked."""

    @property
    def ended(self) -> bool:
        """True if nothing is left to do about it."""
        return not self.due and self.outcome.status in (OutcomeStatus.APPLIED, OutcomeStatus.FAILED)

    @property
    def key(self) -> WorkKey:
        """What the provider calls it."""
        return get_work_key(self.obligation)

    @property
    def is_removal(self) -> bool:
        """True if the run has removed a setting."""
        applied = self.outcome.status is OutcomeStatus.APPLIED
        return self.obligation.body["what"] == SETTING and applied and not self.due


def get_work_key(obligation: Record) -> WorkKey:
    """What the provider calls the work of this obligation."""
    return obligation.body["instance"], obligation.body["ticket"]


class Report(Struct, frozen=True):
    """What an apply did."""

    results: tuple[Result, ...] = ()
    """The last result of each step, in the order of the plan."""
    invisible: tuple[Invisible, ...] = ()
    """What was applied and some live node did not show as it was applied."""
    stopped: KafkaformError | None = None
    """Why the run ended early."""
    work: tuple[Work, ...] = ()
    """Work of earlier runs that ended, or was to be removed, by this one."""

    @property
    def complete(self) -> bool:
        """True if every step was applied or started."""
        return self.stopped is None and all(r.outcome.status in GOOD for r in self.results)

    def count(self, status: OutcomeStatus) -> int:
        """How many steps ended so."""
        return sum(1 for result in self.results if result.outcome.status is status)

    def make_error(self, rerun: Rerun = PLAIN_APPLY) -> KafkaformError | None:
        """The error that the command ends with, None if everything was applied. rerun: how the user
        goes on."""
        # The order decides what the user has to know first. An unknown outcome comes before a
        # failure, because nobody should act on the system before it is known.
        if isinstance(self.stopped, (Interrupted, Locked)):
            return self.stopped
        unknown = self.count(OutcomeStatus.UNKNOWN)
        if unknown:
            cause = f", and the run ended early: {self.stopped.message}" if self.stopped else ""
            # Only the right system can tell what became of them, so its advice comes first.
            first = f"{self.stopped.advice} " if isinstance(self.stopped, OtherSystem) else ""
            return OutcomeUnknown(
                f"the outcome of {_render_steps(unknown)} is not known yet{cause}",
                f"{first}{self._advise_unknown(rerun)}".lstrip(),
            )
        # Once something was applied, a refusal is not the whole truth: the plan is applied in part.
        if self.stopped is not None and not any(r.outcome.status in GOOD for r in self.results):
            return self.stopped
        undone = self._render_undone()
        if not undone and self.stopped is None:
            return self._make_unseen_error(rerun)
        if self.stopped is None:
            return AppliedInPart(undone, rerun.remainder_advice)
        if not undone:
            return OutcomeUnknown(
                f"everything was applied, but could not be verified: {self.stopped.message}",
                f"{self.stopped.advice} {rerun.repeat_advice}".lstrip(),
            )
        return AppliedInPart(f"{undone}: {self.stopped.message}", self.stopped.advice)

    def _make_unseen_error(self, rerun: Rerun) -> OutcomeUnknown | None:
        """What was applied and not seen as it was applied, and what to do. None if all was seen."""
        unseen = [item for item in self.invisible if item.counts]
        if not unseen:
            return None
        addresses = {item.address for item in unseen}
        single = len(addresses) == 1
        objects = f"{next(iter(addresses))} was" if single else f"{len(addresses):,} objects were"
        rights = list(dict.fromkeys(i.reason for i in unseen if i.sight is Sight.HIDDEN))
        if all(item.sight is Sight.HIDDEN for item in unseen):
            remainder = f", and {len(rights) - 1:,} more" if rights[1:] else ""
            return OutcomeUnknown(
                f"{objects} applied, but cannot be seen: {rights[0]}{remainder}",
                f"Grant what is missing, then run {rerun.command_text} again, which looks again. "
                "With --no-wait, a run does not look.",
            )
        noun = unseen[0].noun
        return OutcomeUnknown(
            f"{objects} applied, but not every live {noun} shows {'it' if single else 'them'} as "
            "applied",
            f"Run {rerun.command_text} again in a minute: it looks again. If a {noun} stays "
            "behind, look into its log.",
        )

    def _render_undone(self) -> str:
        counts = Counter(_name_end(result.outcome) for result in self.results)
        counts_shown = [
            f"{_render_steps(counts[ending])} {ending}" for ending in ENDS if counts[ending]
        ]
        unfinished = [w.words for w in self.work if w.outcome.status is OutcomeStatus.UNKNOWN]
        if unfinished:
            counts_shown.append(f"a {shared(unfinished).setting} was not removed")
        return ", ".join(counts_shown)

    def _advise_unknown(self, rerun: Rerun) -> str:
        """How to find out about the unknown outcomes."""
        unknown = [r for r in self.results if r.outcome.status is OutcomeStatus.UNKNOWN]
        if not all(is_untellable(result.change, result.step) for result in unknown):
            return f"Run {rerun.command_text} again: it first reads the objects and recovers."
        if rerun.command == "alter":
            return (
                "Whether the secret arrived cannot be read back. Run the same `kafkaform alter` "
                "again, "
                "which sends it once more."
            )
        return (
            "Whether the secret arrived cannot be read back. Apply the same approval again "
            f"(`{rerun.program} apply --expect APPROVAL`), which sends it once more, or give it "
            "another version."
        )


ENDS = ("failed", "not applied", "not sent")
_ALL_ENDS = ("applied", "under way", *ENDS, "unknown")


def count_ends(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """How these steps ended -> how many did, for people who watch the run."""
    words = {
        OutcomeStatus.APPLIED: "applied",
        OutcomeStatus.STARTED: "under way",
        OutcomeStatus.UNKNOWN: "unknown",
    }
    tally = Counter(words.get(outcome.status) or _name_end(outcome) for outcome in outcomes)
    return {end: tally[end] for end in _ALL_ENDS if tally[end]}


def _name_end(outcome: Outcome) -> str:
    """How a step ended that was not applied, as in ENDS; empty for one that was."""
    if outcome.status is OutcomeStatus.SKIPPED:
        return "not sent"
    if outcome.status is not OutcomeStatus.FAILED:
        return ""
    # "Not applied" is what certainly had no effect, such as a request that could not be sent.
    fault = outcome.fault
    return "not applied" if fault and fault.kind is FaultClass.NOT_APPLIED else "failed"


def _render_steps(number: int) -> str:
    return render_count(number, "step")


def group_by_change(results: Sequence[Result]) -> list[tuple[Change, tuple[Outcome, ...]]]:
    """Each change with the outcomes of its steps, in order."""
    groups: dict[str, tuple[Change, list[Outcome]]] = {}
    for result in results:
        key = f"{result.change.identity}"
        groups.setdefault(key, (result.change, []))[1].append(result.outcome)
    return [(change, tuple(outcomes)) for change, outcomes in groups.values()]
