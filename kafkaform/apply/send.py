"""Send batches: intent durable → lock still ours → send once → outcome durable → state.

Nothing is repeated blindly. A step whose answer was lost is read until the system shows what became
of it. Only a step that the system has certainly not executed, and that it refused only for now, is
sent again. Until its last answer it waits under the intent that it has, and a step that was never
sent has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.change import Action, Batch, Outcome, OutcomeStatus, Repeat, Step
from ..core.errors import KafkaformError, Locked, OtherSystem, StorageError
from ..core.progress import Progress
from ..core.resource import Fault, FaultClass
from .execution import Execution, find_silence, make_skipped
from .report import Result, count_ends
from .settle import INTENT_SECONDS, compute_patience, settle_results
from .waiting import Limited, say_unclear, send_in_parts

Look = Callable[[Collection[str]], None]
"""Looks again at the objects of these steps if the last look is old. Raises PlanRefused."""
IN_FLIGHT = Fault(
    "NO_ANSWER",
    "the run ended before an answer came; the request may have been sent",
    FaultClass.AMBIGUOUS,
)


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
        [step.id for step in remaining if step.id not in execution.results], pace.closed
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
