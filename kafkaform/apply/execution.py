"""An apply while it sends: what it works with, and what it knows so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from ..core.change import Change, Outcome, OutcomeStatus, Step
from ..core.clock import Clock
from ..core.progress import Progress
from ..core.progress import Reporter as ReportTo
from ..core.resource import Fault, FaultClass
from ..plan.lower import find_needs, place_changes
from ..plan.model import Plan
from ..provider.contract import ResourceType, Secrets, Session
from ..state.backend import Held, Lease
from .ledger import Ledger, make_bookkeeping_step
from .report import GOOD, Result, count_ends
from .rerun import Rerun
from .settle import is_in_vain
from .stop import Stop
from .waiting import Paces


class ApplyRun(Struct, frozen=True):
    """Everything that an apply works with."""

    plan: Plan
    """The approved plan."""
    sessions: Mapping[str, Session]
    """Provider instance -> its session."""
    types: Mapping[str, ResourceType]
    """Resource types by name."""
    secrets: Secrets
    """The secrets that the requests need."""
    ledger: Ledger
    """State and log."""
    clock: Clock
    """Measures and waits."""
    stop: Stop
    """Whether somebody asked the run to end."""
    report: ReportTo
    """Gets progress and messages."""
    lease: Lease = Held()
    """The lock that the run has."""
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """Step id -> outcome, of steps that the resumed run has applied."""
    rerun: Rerun = Rerun()
    """How the user goes on with it."""
    paces: Paces = field(default_factory=Paces)
    """What the run knows about the limits of its systems."""


class Execution(Struct):
    """One apply in progress. Its results grow until each step has one."""

    run: ApplyRun
    """What it works with."""
    pairs: Mapping[str, tuple[Change, Step]]
    """Step id -> the change and the step, in the order of the plan, bookkeeping steps included."""
    needs: Mapping[str, set[str]]
    """Step id -> ids of the steps that must be applied first."""
    results: dict[str, Result]
    """Step id -> how the step ended; in flight it counts as unknown."""
    reported: int = 0
    """How many results the last report of the progress counted."""

    def note_results(self, results: Iterable[Result]) -> None:
        """Set the results of these steps."""
        self.results.update({result.step.id: result for result in results})

    def skip_steps(self, step_ids: Iterable[str], reason: str) -> None:
        """Note that these steps were never sent, and why."""
        self.note_results(
            Result(*self.pairs[step_id], make_skipped(step_id, reason)) for step_id in step_ids
        )

    def list_undone(self) -> list[Result]:
        """The results that are not as the plan wants them."""
        return [result for result in self.results.values() if result.outcome.status not in GOOD]

    def show_progress(self) -> None:
        """Report how many steps have ended."""
        self.reported = count = len(self.results)
        total = len(self.pairs)
        finished = count == total
        results = self.results.values() if finished else ()
        ends = count_ends(result.outcome for result in results)
        # Steps are not alike: a create takes milliseconds, a lost answer half a minute.
        self.run.report(
            Progress("apply", "Applying", count, total, "steps", finished, even=False, ends=ends)
        )


def start_execution(run: ApplyRun) -> Execution:
    """The execution of a plan, with the results that a resumed run already has."""
    pairs = {step.id: (change, step) for change, step in _list_pairs(run.plan)}
    results = {
        step_id: Result(*pair, run.outcomes[step_id])
        for step_id, pair in pairs.items()
        if step_id in run.outcomes
    }
    return Execution(run, pairs, find_needs(run.plan.effective), results)


def _list_pairs(plan: Plan) -> Iterator[tuple[Change, Step]]:
    for change in place_changes(plan.effective):
        for step in change.steps or (make_bookkeeping_step(change),):
            yield change, step


def make_skipped(step_id: str, reason: str) -> Outcome:
    """The outcome of a step that was never sent."""
    fault = Fault("SKIPPED", reason, FaultClass.NOT_APPLIED)
    return Outcome(step_id, OutcomeStatus.SKIPPED, fault=fault)


def find_silence(instance: str, results: Iterable[Result]) -> str | None:
    """Why nothing more is sent to a system that left a request without any trace, None if none did.

    The system most likely has no leader, and the next request would be waited for as long.
    """
    for result in results:
        if result.step.identity.instance == instance and is_in_vain(result):
            name, address = result.step.request.name, result.change.address
            return f"the outcome of {name} for {address} is not known"
    return None
