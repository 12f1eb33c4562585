"""Send batches: intent durable → lock still ours → send once → outcome durable → state.

Nothing is repeated blindly. A step whose answer was lost is read until the system shows what became
of it. Only a step that the system has certainly not executed, and that it refused only for now, is
sent again. Each attempt has an intent and an outcome of its own, and a step that waits has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from ..core.change import Action, Batch, Outcome, OutcomeStatus, Repeat, Step
from ..core.errors import Locked
from ..core.progress import Progress
from ..core.resource import Fault, FaultClass
from .execution import Execution, find_silence, make_skipped
from .report import Result, count_ends
from .settle import compute_patience, settle_results
from .waiting import Limited, say_unclear, send_in_parts

Look = Callable[[Collection[str]], None]
"""Looks again at the objects of these steps if the last look is old. Raises PlanRefused."""
IN_FLIGHT = Fault(
    "NO_ANSWER",
    "the run ended before an answer came; the request may have been sent",
    FaultClass.AMBIGUOUS,
)


def send_requests(
    now: Execution, task: str, batches: Sequence[Batch], look: Look | None = None
) -> None:
    """Send requests of one name, one after another. task: the id of their progress; look: looks
    again at the objects of steps that had to wait, None for steps whose objects were just read.

    Several of them have a progress of their own, because only their own pace predicts the rest.
    """
    sent, total = 0, sum(len(batch.steps) for batch in batches)
    label, several = f"Applying {batches[0].request.name}", len(batches) > 1

    def show_progress(count: int, *, finished: bool = False) -> None:
        now.run.report(Progress(task, label, count, total, "steps", finished=finished))

    def show_left(end: int, remaining: int) -> None:
        nonlocal several
        several = True
        show_progress(end - remaining)

    for batch in batches:
        if several:
            show_progress(sent)
        sent += len(batch.steps)
        # A single batch has a progress of its own only if it takes several requests.
        _send_batch(now, batch, look, partial(show_left, sent))
    if several:
        steps = (step.id for batch in batches for step in batch.steps)
        ends = count_ends(now.results[step_id].outcome for step_id in steps)
        now.run.report(Progress(task, label, sent, total, "steps", finished=True, ends=ends))


def _send_batch(
    now: Execution, batch: Batch, look: Look | None, show: Callable[[int], None]
) -> None:
    """Send one batch, and again, later, what the system certainly has not executed."""
    run, session = now.run, now.run.sessions[batch.instance]
    pace = run.paces.find(batch.instance, batch.request.name)
    attempts: Counter[str] = Counter()

    def send(steps: tuple[Step, ...]) -> dict[str, Fault]:
        run.stop.check()
        if look is not None and pace.limited:
            # The wait may have taken minutes. What somebody did meanwhile was not reviewed.
            look([step.id for step in steps])
        if reason := find_silence(batch.instance, now.results.values()):
            now.skip_steps([step.id for step in steps], reason)
            return {}
        attempts.update(step.id for step in steps)
        ended = _send_once(now, replace(batch, steps=steps), attempts)
        return {
            result.step.id: result.outcome.fault
            for result in ended
            if result.outcome.fault is not None and _may_repeat(result)
        }

    patience, system = compute_patience(session.facts), session.words.system
    wait = partial(run.stop.sleep, run.clock)
    limited = Limited(pace, run.clock, wait, patience, run.report, system, show)
    remaining = send_in_parts(batch.steps, send, limited)
    now.skip_steps([step.id for step in remaining if step.id not in now.results], pace.closed)
    now.show_progress()


def _send_once(now: Execution, batch: Batch, attempts: Mapping[str, int]) -> Sequence[Result]:
    """Intent, send, settle, record. Whatever ends it early, `now.results` says what is known.

    attempts: step id -> the number of this attempt.
    """
    run, session = now.run, now.run.sessions[batch.instance]
    planned = [
        Result(
            *now.pairs[step.id],
            Outcome(step.id, OutcomeStatus.UNKNOWN, fault=IN_FLIGHT),
            attempts[step.id],
        )
        for step in batch.steps
    ]
    patience = compute_patience(session.facts)
    _write_intents(now, planned, patience)
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
    _record_outcomes(now, clear)
    deadline = started + patience
    if unclear:
        say_unclear(run.report, len(unclear), deadline - run.clock.monotonic())
    settled = settle_results(unclear, session, run.types, deadline, run.clock, run.report)
    _record_outcomes(now, settled)
    return (*clear, *map(_keep_pause, unclear, settled))


def _keep_pause(unclear: Result, settled: Result) -> Result:
    """The settled result, with the time after which the answer asked for the same request."""
    before, after = unclear.outcome.fault, settled.outcome.fault
    if before is None or after is None or settled.step.repeat is Repeat.NEVER:
        return settled
    fault = replace(after, retry_after=before.retry_after)
    return replace(settled, outcome=replace(settled.outcome, fault=fault))


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
    certain = [result for result in ended if result.outcome.status is not OutcomeStatus.UNKNOWN]
    with now.run.stop.delay_second_signal():
        now.run.ledger.record_outcomes(now.run.plan, certain)
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
    """True if the system has certainly not executed the step and takes it later."""
    fault = result.outcome.fault
    return result.outcome.status is OutcomeStatus.FAILED and fault is not None and fault.is_for_now
