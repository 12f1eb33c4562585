"""Execute an approved plan, wave by wave, and send its batches. Nothing else sends.

The order for each batch: intent durable → lock still ours → send once → outcome durable → state.

Nothing is rolled back. Independent steps go on after a failure, and dependents are skipped. Deletes
of a provider instance wait until everything else there is applied. The first signal ends the run
after the batch in flight. A step that starts long work counts as done: no run waits for a task.

Nothing is repeated blindly. A step whose answer was lost is read until the system shows what became
of it. Only a step that the system has certainly not executed, and that it refused only for now, is
sent again. Until its last answer it waits under the intent that it has, and a step that was never
sent has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.change import Action, Batch, Change, Outcome, OutcomeStatus, Repeat, Step
from ..core.clock import Clock
from ..core.errors import KafkaformError, Locked, OtherSystem, StorageError
from ..core.progress import Progress
from ..core.progress import Reporter as ReportTo
from ..core.resource import Fault, FaultClass
from ..plan.lower import CREATING, DELETING, find_needs, is_gate, lower_plan, place_changes
from ..plan.model import Plan, Wave
from ..provider.contract import ResourceType, Secrets, Session
from ..state.model import Held, Lease
from .freshness import Recheck, refuse_if_stale
from .ledger import Ledger, make_bookkeeping_step
from .obligations import follow_up
from .preflight import DryRun, dry_run, narrow_batches
from .rate_limits import Limited, Paces, say_unclear, send_in_parts
from .recovery import INTENT_SECONDS, compute_patience, is_in_vain, settle_results
from .report import GOOD, Report, Rerun, Result, Work, count_ends
from .stop import Stop

Look = Callable[[Collection[str]], None]
"""Looks again at the objects of these steps if the last look is old. Raises PlanRefused."""
IN_FLIGHT = Fault(
    "NO_ANSWER",
    "the run ended before an answer came; the request may have been sent",
    FaultClass.AMBIGUOUS,
)
LOOK_SECONDS = 60.0
"""How old a look at an object may be when a step leaves that had to wait for its system."""


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


class Intents(Struct, frozen=True):
    """The intents of one batch. An intent stays open while its step waits, so that a step that the
    system refuses ten times has one intent and one outcome."""

    attempts: Counter[str] = field(default_factory=Counter)
    """Step id -> how many intents it has."""
    times: dict[str, float] = field(default_factory=dict)
    """Step id -> when its last intent was written, in seconds since the epoch."""
    waiting: dict[str, Result] = field(default_factory=dict)
    """Step id -> the last refusal of a step that waits under an open intent."""

    def list_expired(self, steps: Collection[Step], time: float) -> list[Result]:
        """Those of these steps that wait under an intent that is too old for another request."""
        return [
            self.waiting[step.id]
            for step in steps
            if step.id in self.waiting and time - self.times[step.id] > INTENT_SECONDS
        ]


def send_requests(
    execution: Execution, task: str, batches: Sequence[Batch], look: Look | None = None
) -> None:
    """Send requests of one name, one after another. task: the id of their progress; look: looks
    again at the objects of steps that had to wait, None for steps whose objects were just read.

    Several of them have a progress of their own, because only their own pace predicts the rest.
    """
    sent, total = 0, sum(len(batch.steps) for batch in batches)
    label, several = f"Applying {batches[0].request.name}", len(batches) > 1

    def show_progress(count: int, *, finished: bool = False) -> None:
        execution.run.report(Progress(task, label, count, total, "steps", finished=finished))

    def show_left(end: int, remaining: int) -> None:
        nonlocal several
        several = True
        show_progress(end - remaining)

    for batch in batches:
        if several:
            show_progress(sent)
        sent += len(batch.steps)
        # A single batch has a progress of its own only if it takes several requests.
        _send_batch(execution, batch, look, partial(show_left, sent))
    if several:
        steps = (step.id for batch in batches for step in batch.steps)
        ends = count_ends(execution.results[step_id].outcome for step_id in steps)
        execution.run.report(Progress(task, label, sent, total, "steps", finished=True, ends=ends))


def _send_batch(
    execution: Execution, batch: Batch, look: Look | None, show: Callable[[int], None]
) -> None:
    """Send one batch, and again, later, what the system certainly has not executed."""
    run, session = execution.run, execution.run.sessions[batch.instance]
    pace = run.paces.find(batch.instance, batch.request.name)
    intents = Intents()

    def send(steps: tuple[Step, ...]) -> dict[str, Fault]:
        run.stop.check()
        if look is not None and pace.limited:
            # The wait may have taken minutes. What somebody did meanwhile was not reviewed.
            look([step.id for step in steps])
        if reason := find_silence(batch.instance, execution.results.values()):
            execution.skip_steps([step.id for step in steps], reason)
            return {}
        ended = _send_once(execution, replace(batch, steps=steps), intents)
        return {
            result.step.id: result.outcome.fault
            for result in ended
            if result.outcome.fault is not None and _may_repeat(result)
        }

    patience, system = compute_patience(session.facts), session.words.system
    wait = partial(run.stop.sleep, run.clock)
    limited = Limited(pace, run.clock, wait, patience, run.report, system, show)
    try:
        remaining = send_in_parts(batch.steps, send, limited)
    except (StorageError, Locked, OtherSystem):
        raise  # The log cannot or must not be written: the next run settles what is open.
    except KafkaformError:
        _end_waiting(execution, intents)
        raise
    _end_waiting(execution, intents)
    execution.skip_steps(
        [step.id for step in remaining if step.id not in execution.results], pace.closed_reason
    )
    execution.show_progress()


def _end_waiting(execution: Execution, intents: Intents) -> None:
    """Record the last refusal of each step that still waits: it is not sent again."""
    with execution.run.stop.delay_second_signal():
        execution.run.ledger.record_outcomes(execution.run.plan, list(intents.waiting.values()))
    intents.waiting.clear()


def _send_once(execution: Execution, batch: Batch, intents: Intents) -> Sequence[Result]:
    """Write the intents, send, settle and record. `execution.results` says what is known, whatever
    ends this early."""
    run, session = execution.run, execution.run.sessions[batch.instance]
    patience = compute_patience(session.facts)
    planned = _write_intents(execution, batch.steps, intents, patience)
    # The deadline counts from before the send: whoever keeps the request cannot have had it longer.
    started = run.clock.monotonic()
    outcomes = session.apply(batch, run.secrets)
    milliseconds = int((run.clock.monotonic() - started) * 1000)
    sent = [
        replace(result, outcome=outcome, duration_ms=milliseconds)
        for result, outcome in zip(planned, outcomes, strict=True)
    ]
    unclear = [result for result in sent if _is_unclear(result)]
    clear = [result for result in sent if result not in unclear]
    # What is certain is on record before anybody waits for what is not: the wait can take a minute,
    # and a crash in it must not turn known outcomes into open intents.
    refused = [result for result in clear if _may_repeat(result)]
    execution.note_results(refused)
    intents.waiting.update((result.step.id, result) for result in refused)
    _record_outcomes(execution, [result for result in clear if not _may_repeat(result)])
    deadline = started + patience
    if unclear:
        say_unclear(run.report, len(unclear), deadline - run.clock.monotonic())
    settled = settle_results(unclear, session, run.types, deadline, run.clock, run.report)
    _record_outcomes(execution, settled)
    return (*clear, *map(_keep_pause, unclear, settled))


def _keep_pause(unclear: Result, settled: Result) -> Result:
    """The settled result, with the time after which the answer asked for the same request."""
    before, after = unclear.outcome.fault, settled.outcome.fault
    if before is None or after is None or settled.step.repeat is Repeat.NEVER:
        return settled
    fault = replace(after, retry_after=before.retry_after)
    return replace(settled, outcome=replace(settled.outcome, fault=fault))


def _write_intents(
    execution: Execution, steps: Sequence[Step], intents: Intents, seconds: float
) -> list[Result]:
    """Make certain that each of these steps has a durable intent, and that nobody else can write
    for so many seconds. Returns the steps as in flight.

    Raises Locked if somebody can; then nothing is sent.
    """
    run, time = execution.run, execution.run.clock.now()
    expired = intents.list_expired(steps, time)
    fresh = {result.step.id for result in expired}
    fresh.update(step.id for step in steps if step.id not in intents.waiting)
    intents.attempts.update(fresh)
    intents.times.update(dict.fromkeys(fresh, time))
    planned = [
        Result(
            *execution.pairs[step.id],
            Outcome(step.id, OutcomeStatus.UNKNOWN, fault=IN_FLIGHT),
            intents.attempts[step.id],
        )
        for step in steps
    ]
    execution.note_results(planned)
    for step in steps:
        intents.waiting.pop(step.id, None)
    try:
        # A signal must not tear an append in two: nothing could be appended to the log after that.
        with run.stop.delay_second_signal():
            run.ledger.record_outcomes(run.plan, expired)
            run.ledger.write_intents(run.plan, [r for r in planned if r.step.id in fresh])
        # The lock is asked after the intent and not before it. A process can be paused at any line,
        # and whoever takes over the lock meanwhile reads the intent and waits for its request.
        run.lease.ensure(seconds)
    except Locked as error:
        # The intents stay open; the run that has the lock now finds that nothing came of them.
        execution.note_results(
            replace(result, outcome=make_skipped(result.step.id, error.message))
            for result in planned
        )
        raise
    return planned


def _record_outcomes(execution: Execution, ended: Sequence[Result]) -> None:
    # An unknown result gets no outcome record: its intent stays open, and so the next run asks.
    certain = [result for result in ended if result.outcome.status is not OutcomeStatus.UNKNOWN]
    with execution.run.stop.delay_second_signal():
        execution.run.ledger.record_outcomes(execution.run.plan, certain)
        execution.note_results(ended)


def _has_fault(result: Result, kind: FaultClass) -> bool:
    return result.outcome.fault is not None and result.outcome.fault.kind is kind


def _is_unclear(result: Result) -> bool:
    """True if only a fresh reading can say what happened."""
    if result.outcome.status is OutcomeStatus.UNKNOWN or _has_fault(result, FaultClass.AMBIGUOUS):
        return True
    # "Already exists" in answer to a create is a conflict: the object was missing when the plan was
    # made, and a create is never sent twice, so what is in the way is not ours. A system that may
    # have sent it twice itself, from a leader to the next, reports AMBIGUOUS (decisions/008).
    return _has_fault(result, FaultClass.CONVERGED) and result.change.action is not Action.CREATE


def _may_repeat(result: Result) -> bool:
    """True if the system has certainly not executed the step and takes it later."""
    fault = result.outcome.fault
    return result.outcome.status is OutcomeStatus.FAILED and fault is not None and fault.is_for_now


def execute_plan(run: ApplyRun) -> Report:
    """Send the whole plan, wave by wave.

    Whatever happens to the systems ends up in the report. Only StorageError is raised, because
    after that nothing that is sent could be recorded.
    """
    execution = start_execution(run)
    stopped: KafkaformError | None = None
    work: tuple[Work, ...] = ()
    try:
        _keep_books(execution)
        if len(execution.results) < len(execution.pairs):
            execution.show_progress()
        for number, wave in enumerate(lower_plan(run.plan)):
            _run_wave(execution, wave, later=number > 0)
        work = follow_up(run.plan, execution.results, run.ledger, run.sessions, run.stop)
    except StorageError:
        raise
    except KafkaformError as error:
        stopped = error
    remaining = [step_id for step_id in execution.pairs if step_id not in execution.results]
    execution.skip_steps(
        remaining, stopped.message if stopped else "the run ended before this step"
    )
    # Steps that were never sent have ended, too.
    if execution.reported < len(execution.results):
        execution.show_progress()
    report = Report(
        tuple(execution.results[step_id] for step_id in execution.pairs), (), stopped, work
    )
    return report if report.complete else replace(report, stopped=stopped or run.stop.make_error())


def _keep_books(execution: Execution) -> None:
    """Record changes without requests (adopt, forget, owners, protection), all at once."""
    run = execution.run
    outcomes = [
        Result(change, step, Outcome(step_id, OutcomeStatus.APPLIED))
        for step_id, (change, step) in execution.pairs.items()
        if not change.steps and step_id not in execution.results
    ]
    if not outcomes:
        return
    run.stop.check()
    # They send nothing, but they decide what may be deleted later, so the log has to show them.
    with run.stop.delay_second_signal():
        run.ledger.write_intents(run.plan, outcomes)
        run.ledger.record_outcomes(run.plan, outcomes)
    execution.note_results(outcomes)


def _run_wave(execution: Execution, wave: Wave, *, later: bool) -> None:
    """Run one wave: skip what cannot go, look again, dry-run what had to wait, send."""
    undone, ready = execution.list_undone(), set()
    for step in (step for batch in wave.batches for step in batch.steps):
        if step.id in execution.results:
            continue  # a resumed run has applied it
        if reason := _find_hindrance(execution, step, undone):
            execution.skip_steps([step.id], reason)
        else:
            ready.add(step.id)
    if not ready:
        return
    if later:
        # Earlier waves may have taken minutes. What somebody else did meanwhile was not reviewed.
        _look_again(execution, ready)
        ready -= _refuse_after_wait(execution, wave, ready)
    phase = f"{wave.part}.{wave.round}.{wave.phase}"
    look = partial(_look_if_old, execution, execution.run.clock.monotonic())
    for name, batches in groupby(narrow_batches(wave.batches, ready), lambda b: b.request.name):
        send_requests(execution, f"{phase} {name}", tuple(batches), look)


def _look_if_old(execution: Execution, looked: float, step_ids: Collection[str]) -> None:
    """Look again at the objects of these steps if the last look is old. looked: when that was."""
    if execution.run.clock.monotonic() - looked > LOOK_SECONDS:
        _look_again(execution, step_ids)


def _find_hindrance(execution: Execution, step: Step, undone: Sequence[Result]) -> str | None:
    """Why this step must not be sent, None if it can be. undone: what earlier waves left undone."""
    for need in sorted(execution.needs[step.id]):
        if need not in execution.results or execution.results[need].outcome.status not in GOOD:
            return f"it depends on {execution.pairs[need][0].address}, which was not applied"
    instance = step.identity.instance
    if reason := find_silence(instance, undone):
        return reason
    for result in undone:
        if result.step.identity.instance != instance:
            continue
        if is_gate(step.request, result.step.request):
            return f"it waits for {result.change.address}, which was not applied"
        # What is deleted may be the only copy of something that part 1 was to replace.
        if step.request.part == DELETING and result.step.request.part == CREATING:
            return f"nothing is deleted, because {result.change.address} was not applied"
    return None


def _look_again(execution: Execution, ready: Collection[str]) -> None:
    """Raises PlanRefused if the objects of these steps changed; what this run wrote is expected."""
    run = execution.run
    changes = list(
        {id(execution.pairs[s][0]): execution.pairs[s][0] for s in sorted(ready)}.values()
    )
    written = {
        step_id: result.outcome.incarnation
        for step_id, result in execution.results.items()
        if result.outcome.status in GOOD
    }
    refuse_if_stale(
        changes,
        Recheck(
            run.plan,
            run.sessions,
            run.types,
            run.ledger.state,
            run.clock,
            partial(run.stop.sleep, run.clock),
            run.rerun,
            written,
        ),
    )


def _refuse_after_wait(execution: Execution, wave: Wave, ready: Collection[str]) -> set[str]:
    """Pass 2 of the dry run, for steps that had to wait for others. The refused ones are skipped,
    and their ids returned."""
    run = execution.run
    waited = {step_id for step_id in ready if execution.needs[step_id]}
    wait = partial(run.stop.sleep, run.clock)
    asking = DryRun(run.sessions, run.report, run.clock, wait, run.paces)
    verdicts = dry_run((wave,), waited, asking)
    refused = [verdict for verdict in verdicts.values() if verdict.fault is not None]
    execution.note_results(
        Result(
            *execution.pairs[verdict.step],
            Outcome(verdict.step, OutcomeStatus.SKIPPED, fault=verdict.fault),
        )
        for verdict in refused
    )
    return {verdict.step for verdict in refused}
