"""Send batches: intent durable → lock still ours → send once → outcome durable → state.

Nothing is repeated blindly. A step whose answer was lost is read until the system shows what became
of it. Only a step that the system has certainly not executed, and for which it named a time to
wait, is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..core.change import Action, Batch, Outcome, OutcomeStatus
from ..core.errors import Locked
from ..core.progress import Progress
from ..core.resource import Fault, FaultClass
from .execution import Execution, find_silence, make_skipped
from .preflight import QUOTA_PATIENCE
from .report import Result, count_ends
from .settle import compute_patience, settle_results
from .waiting import say_unclear

IN_FLIGHT = Fault(
    "NO_ANSWER",
    "the run ended before an answer came; the request may have been sent",
    FaultClass.AMBIGUOUS,
)
LEAST_PAUSE = 0.1
"""Seconds to wait at least before a step is sent again."""


def send_requests(now: Execution, task: str, batches: Sequence[Batch]) -> None:
    """Send requests of one name, one after another. task: the id of their progress.

    Several of them have a progress of their own, because only their own pace predicts the rest.
    """
    sent, total = 0, sum(len(batch.steps) for batch in batches)
    label = f"Applying {batches[0].request.name}"
    for batch in batches:
        if len(batches) > 1:
            now.run.report(Progress(task, label, sent, total, "steps"))
        if why := find_silence(batch.instance, now.results.values()):
            now.skip_steps([step.id for step in batch.steps], why)
        else:
            _send_batch(now, batch)
        sent += len(batch.steps)
    if len(batches) > 1:
        steps = (step.id for batch in batches for step in batch.steps)
        ends = count_ends(now.results[step_id].outcome for step_id in steps)
        now.run.report(Progress(task, label, sent, total, "steps", finished=True, ends=ends))


def _send_batch(now: Execution, batch: Batch) -> None:
    """Send one batch, and again, later, what the system certainly has not executed."""
    run = now.run
    facts = run.sessions[batch.instance].facts
    give_up = run.clock.monotonic() + QUOTA_PATIENCE * compute_patience(facts)
    attempt, todo = 1, batch.steps
    while todo:
        run.stop.check()
        sent = _send_once(now, replace(batch, steps=todo), attempt)
        again = [result for result in sent if _may_repeat(result)]
        pauses = [r.outcome.fault.retry_after for r in again if r.outcome.fault]
        pause = max([LEAST_PAUSE, *pauses])
        # A system whose quota is used up may ask for hours. Nobody would wait that long, so the
        # steps end as not applied, and the user can run the command again.
        if not again or run.clock.monotonic() + pause > give_up:
            break
        run.stop.sleep(run.clock, pause)
        todo = tuple(result.step for result in again)
        attempt += 1
    now.show_progress()


def _send_once(now: Execution, batch: Batch, attempt: int) -> Sequence[Result]:
    """Intent, send, settle, record. Whatever ends it early, `now.results` says what is known."""
    run, session = now.run, now.run.sessions[batch.instance]
    planned = [
        Result(
            *now.pairs[step.id],
            Outcome(step.id, OutcomeStatus.UNKNOWN, fault=IN_FLIGHT),
            attempt,
        )
        for step in batch.steps
    ]
    patience = compute_patience(session.facts)
    _write_intents(now, planned, patience)
    # The deadline counts from before the send: whoever keeps the request cannot have had it longer.
    started = run.clock.monotonic()
    outcomes = session.apply(batch, run.secrets)
    taken = int((run.clock.monotonic() - started) * 1000)
    sent = [
        replace(result, outcome=outcome, duration_ms=taken)
        for result, outcome in zip(planned, outcomes, strict=True)
    ]
    unclear = [result for result in sent if _is_unclear(result)]
    clear = [result for result in sent if result not in unclear]
    # What is certain is on record before anybody waits for what is not: the wait can take a minute,
    # and a crash in it must not turn known outcomes into open intents.
    _record_outcomes(now, clear)
    deadline = started + patience
    if unclear:
        say_unclear(run.report, len(unclear), deadline - run.clock.monotonic())
    settled = settle_results(unclear, session, run.types, deadline, run.clock, run.report)
    _record_outcomes(now, settled)
    return (*clear, *settled)


def _write_intents(now: Execution, planned: Sequence[Result], seconds: float) -> None:
    """Make the intents durable, and make certain that nobody else can write for so many seconds.

    Raises Locked if somebody can; then nothing is sent.
    """
    run = now.run
    now.note_results(planned)
    try:
        # A signal must not tear an append in two: nothing could be appended to the log after that.
        with run.stop.delay_second_signal():
            run.ledger.write_intents(run.plan, planned)
        # The lock is asked after the intent and not before it. A process can be paused at any line,
        # and whoever takes over the lock meanwhile reads the intent and waits for its request.
        run.lease.ensure(seconds)
    except Locked as error:
        # The intents stay open; the run that has the lock now finds that nothing came of them.
        now.note_results(
            replace(result, outcome=make_skipped(result.step.id, error.message))
            for result in planned
        )
        raise


def _record_outcomes(now: Execution, ended: Sequence[Result]) -> None:
    # An unknown result gets no outcome record: its intent stays open, and so the next run asks.
    known = [result for result in ended if result.outcome.status is not OutcomeStatus.UNKNOWN]
    with now.run.stop.delay_second_signal():
        now.run.ledger.record_outcomes(now.run.plan, known)
        now.note_results(ended)


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
    """True if the system has certainly not executed the step and asks to send it later."""
    fault = result.outcome.fault
    return (
        result.outcome.status is OutcomeStatus.FAILED
        and fault is not None
        and fault.kind is FaultClass.NOT_APPLIED
        and fault.retry_after > 0
    )
