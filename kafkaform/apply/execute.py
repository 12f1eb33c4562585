"""The one place that sends. For each batch: intent durable → lock still ours → send → outcome
durable → state.

Nothing is rolled back and nothing is repeated blindly. Independent steps go on after a failure,
dependents are skipped; deletes of a provider instance wait until everything else there is
applied. The first signal ends the run after the batch in flight. A step that starts long work
counts as done: nobody waits for a move.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.change import Action, Batch, Change, Outcome, OutcomeStatus, Step
from ..core.clock import Clock
from ..core.errors import KafkaformError, Locked, StorageError
from ..core.progress import Progress
from ..core.progress import Reporter as ReportTo
from ..core.resource import Fault, FaultClass
from ..plan.lower import CREATING, DELETING, find_needs, is_gate, lower_plan, place_changes
from ..plan.model import Plan, Wave
from ..provider.contract import ResourceType, Secrets, Session
from ..state.backend import Held, Lease
from .again import Again
from .freshness import refuse_if_stale
from .ledger import Ledger, make_bookkeeping_step
from .obligations import follow_up
from .preflight import QUOTA_PATIENCE, dry_run, narrow_batches
from .report import GOOD, Report, Result, Work
from .settle import compute_patience, is_in_vain, settle_results
from .stop import Stop
from .waiting import say_unclear


class ApplyRun(Struct, frozen=True):
    """Everything that an apply works with. lease: the lock that it holds; done: steps that a
    resumed run has applied; again: how a user goes on with it."""

    plan: Plan
    sessions: Mapping[str, Session]
    types: Mapping[str, ResourceType]
    secrets: Secrets
    ledger: Ledger
    clock: Clock
    stop: Stop
    report: ReportTo
    lease: Lease = Held()
    done: Mapping[str, Outcome] = field(default_factory=dict)
    again: Again = Again()


def execute_plan(run: ApplyRun) -> Report:
    """Send the whole plan, wave by wave.

    What the world does ends up in the report; only StorageError is raised, because then
    nothing that is sent could be recorded.
    """
    pairs = {step.id: (change, step) for change, step in _list_pairs(run.plan)}
    results = {
        step_id: Result(*pair, run.done[step_id])
        for step_id, pair in pairs.items()
        if step_id in run.done
    }
    stopped: KafkaformError | None = None
    work: tuple[Work, ...] = ()
    try:
        _keep_books(run, results)
        before = find_needs(run.plan.effective)
        if len(results) < len(pairs):
            _show_progress(run, results, pairs)
        for number, wave in enumerate(lower_plan(run.plan)):
            _run_wave(run, wave, before, pairs, results, later=number > 0)
        work = follow_up(run.plan, results, run.ledger, run.sessions, run.stop)
    except StorageError:
        raise
    except KafkaformError as error:
        stopped = error
    why = stopped.message if stopped else "it was not reached"
    for step_id, pair in pairs.items():
        results.setdefault(step_id, Result(*pair, make_skipped(step_id, why)))
    report = Report(tuple(results[step_id] for step_id in pairs), stopped=stopped, work=work)
    return report if report.complete else replace(report, stopped=stopped or run.stop.make_error())


def _list_pairs(plan: Plan) -> Iterator[tuple[Change, Step]]:
    for change in place_changes(plan.effective):
        for step in change.steps or (make_bookkeeping_step(change),):
            yield change, step


def make_skipped(step_id: str, why: str) -> Outcome:
    """The outcome of a step that was never sent."""
    return Outcome(
        step_id, OutcomeStatus.SKIPPED, fault=Fault("SKIPPED", why, FaultClass.NOT_APPLIED)
    )


def _keep_books(run: ApplyRun, results: dict[str, Result]) -> None:
    """Changes without steps (adopt, forget, owners, protection): recorded together, at once."""
    pairs = [
        (change, make_bookkeeping_step(change)) for change in run.plan.effective if not change.steps
    ]
    todo = [(change, step) for change, step in pairs if step.id not in results]
    if not todo:
        return
    run.stop.check()
    done = [Result(change, step, _make_applied(step)) for change, step in todo]
    with run.stop.delay_second_signal():
        run.ledger.write_intents(run.plan, done)
        run.ledger.record_outcomes(run.plan, done)
    results.update({result.step.id: result for result in done})


def _make_applied(step: Step) -> Outcome:
    return Outcome(step.id, OutcomeStatus.APPLIED)


def _run_wave(
    run: ApplyRun,
    wave: Wave,
    before: Mapping[str, set[str]],
    pairs: Mapping[str, tuple[Change, Step]],
    results: dict[str, Result],
    *,
    later: bool,
) -> None:
    """One wave: leave out what cannot go, look again, dry-run what had to wait, send."""
    ready = set()
    failed = [result for result in results.values() if result.outcome.status not in GOOD]
    for step in (step for batch in wave.batches for step in batch.steps):
        why = _find_hindrance(step, before, pairs, results, failed)
        if step.id in results:
            continue
        if why:
            results[step.id] = Result(*pairs[step.id], make_skipped(step.id, why))
        else:
            ready.add(step.id)
    if not ready:
        return
    if later:
        _look_again(run, ready, pairs, results)
        ready -= _find_refused(run, wave, ready, before, pairs, results)
    phase = f"{wave.part}.{wave.round}.{wave.phase}"
    for name, batches in groupby(narrow_batches(wave.batches, ready), lambda b: b.request.name):
        _send_requests(run, f"{phase} {name}", tuple(batches), pairs, results)


def _send_requests(
    run: ApplyRun,
    task: str,
    batches: Sequence[Batch],
    pairs: Mapping[str, tuple[Change, Step]],
    results: dict[str, Result],
) -> None:
    """Requests of one name, one after another. Several have a progress of their own: only their
    pace tells how long the rest of them takes. task: of that progress."""
    sent, total = 0, sum(len(batch.steps) for batch in batches)
    label = f"Applying {batches[0].request.name}"
    for batch in batches:
        if len(batches) > 1:
            run.report(Progress(task, label, sent, total, "steps"))
        if why := _find_silence(batch.instance, results.values()):
            _note_results(
                results, [Result(*pairs[s.id], make_skipped(s.id, why)) for s in batch.steps]
            )
        else:
            _send_batch(run, batch, pairs, results)
        sent += len(batch.steps)
    if len(batches) > 1:
        run.report(Progress(task, label, sent, total, "steps", finished=True))


def _find_hindrance(
    step: Step,
    before: Mapping[str, set[str]],
    pairs: Mapping[str, tuple[Change, Step]],
    results: Mapping[str, Result],
    failed: Sequence[Result],
) -> str | None:
    """Why this step must not be sent: a step that it waits for is not applied, or it deletes
    and something in part 1 of its provider instance is not. failed: what earlier waves left
    undone."""
    for need in sorted(before[step.id]):
        if need not in results or results[need].outcome.status not in GOOD:
            return f"{pairs[need][0].address} comes first and was not applied"
    if why := _find_silence(step.identity.instance, failed):
        return why
    for result in failed:
        if result.step.identity.instance != step.identity.instance:
            continue
        if is_gate(step.request, result.step.request):
            return f"{result.change.address} comes first and was not applied"
        if step.request.part == DELETING and result.step.request.part == CREATING:
            return f"nothing is deleted, because {result.change.address} was not applied"
    return None


def _find_silence(instance: str, results: Iterable[Result]) -> str | None:
    """Why nothing more is sent to a system of which nobody can tell what became of a request: it
    most likely has no leader, and the next one would be waited for as long."""
    lost = next(
        (r for r in results if r.step.identity.instance == instance and is_in_vain(r)), None
    )
    if lost is None:
        return None
    return f"it is not known what became of {lost.step.request.name} for {lost.change.address}"


def _look_again(
    run: ApplyRun,
    ready: set[str],
    pairs: Mapping[str, tuple[Change, Step]],
    results: Mapping[str, Result],
) -> None:
    """Freshness before a later wave; what this run wrote counts as expected."""
    changes = list({id(pairs[s][0]): pairs[s][0] for s in sorted(ready)}.values())
    written = {
        step_id: result.outcome.incarnation
        for step_id, result in results.items()
        if result.outcome.status in GOOD
    }
    refuse_if_stale(changes, run.sessions, run.types, run.ledger.state, written, run.again)


def _find_refused(
    run: ApplyRun,
    wave: Wave,
    ready: set[str],
    before: Mapping[str, set[str]],
    pairs: Mapping[str, tuple[Change, Step]],
    results: dict[str, Result],
) -> set[str]:
    """Pass 2 of the dry run, for steps that had to wait for others; refused ones are skipped."""
    waited = {step_id for step_id in ready if before[step_id]}
    refused = set()
    verdicts = dry_run((wave,), waited, run.sessions, run.report, run.clock, partial(_pause, run))
    for verdict in verdicts.values():
        if verdict.fault is not None:
            refused.add(verdict.step)
            outcome = Outcome(verdict.step, OutcomeStatus.SKIPPED, fault=verdict.fault)
            results[verdict.step] = Result(*pairs[verdict.step], outcome)
    return refused


def _pause(run: ApplyRun, seconds: float) -> None:
    run.stop.sleep(run.clock, seconds)


def _send_batch(
    run: ApplyRun,
    batch: Batch,
    pairs: Mapping[str, tuple[Change, Step]],
    results: dict[str, Result],
) -> None:
    """Send one batch; again, later, only what certainly was not done."""
    facts = run.sessions[batch.instance].facts
    give_up = run.clock.monotonic() + QUOTA_PATIENCE * compute_patience(facts)
    attempt = 1
    todo = batch.steps
    while todo:
        run.stop.check()
        sent = _send_once(run, replace(batch, steps=todo), pairs, results, attempt)
        again = [r for r in sent if _may_repeat(r)]
        wait = max([0.1, *(r.outcome.fault.retry_after for r in again if r.outcome.fault)])
        if not again or run.clock.monotonic() + wait > give_up:
            break  # also where the system asks to wait for longer than anybody would
        run.stop.sleep(run.clock, wait)
        todo = tuple(result.step for result in again)
        attempt += 1
    _show_progress(run, results, pairs)


def _send_once(
    run: ApplyRun,
    batch: Batch,
    pairs: Mapping[str, tuple[Change, Step]],
    results: dict[str, Result],
    attempt: int,
) -> tuple[Result, ...]:
    """Intent, send, settle, record. Whatever ends it early, `results` says what is known."""
    session = run.sessions[batch.instance]
    planned = [Result(*pairs[s.id], _make_in_flight(s.id), attempt) for s in batch.steps]
    _write_intents(run, planned, results, compute_patience(session.facts))
    started = run.clock.monotonic()
    outcomes = session.apply(batch, run.secrets)
    taken = int((run.clock.monotonic() - started) * 1000)
    sent = [
        replace(p, outcome=o, duration_ms=taken) for p, o in zip(planned, outcomes, strict=True)
    ]
    unclear = [r for r in sent if _is_unclear(r)]
    clear = [r for r in sent if r not in unclear]
    # What is certain is on record before anybody waits for what is not.
    _record_outcomes(run, clear, results)
    deadline = started + compute_patience(session.facts)
    if unclear:
        say_unclear(run.report, len(unclear), deadline - run.clock.monotonic())
    settled = settle_results(unclear, session, run.types, deadline, run.clock, run.report)
    _record_outcomes(run, settled, results)
    return (*clear, *settled)


def _write_intents(
    run: ApplyRun, planned: Sequence[Result], results: dict[str, Result], seconds: float
) -> None:
    """Make the intents durable, and be sure that nobody else may write for so long. Raises Locked
    if somebody does; then nothing is sent, and whoever has the lock now closes the intents."""
    _note_results(results, planned)
    try:
        with run.stop.delay_second_signal():
            run.ledger.write_intents(run.plan, planned)
        run.lease.ensure(seconds)
    except Locked as error:
        unsent = [replace(p, outcome=make_skipped(p.step.id, error.message)) for p in planned]
        _note_results(results, unsent)
        raise


def _record_outcomes(run: ApplyRun, ended: Sequence[Result], results: dict[str, Result]) -> None:
    """What is unknown gets no outcome: its intent stays open."""
    known = [r for r in ended if r.outcome.status is not OutcomeStatus.UNKNOWN]
    with run.stop.delay_second_signal():
        run.ledger.record_outcomes(run.plan, known)
        _note_results(results, ended)


def _note_results(results: dict[str, Result], new: Sequence[Result]) -> None:
    results.update({result.step.id: result for result in new})


def _make_in_flight(step_id: str) -> Outcome:
    lost = Fault(
        "NO_ANSWER",
        "the run ended before an answer came; the request may have left",
        FaultClass.AMBIGUOUS,
    )
    return Outcome(step_id, OutcomeStatus.UNKNOWN, fault=lost)


def _has_fault(result: Result, kind: FaultClass) -> bool:
    return result.outcome.fault is not None and result.outcome.fault.kind is kind


def _is_unclear(result: Result) -> bool:
    """True if only a fresh reading can tell what happened.

    "Already exists" after a pre-image of nothing is a conflict: a create without a clear answer
    is read, never sent again, so what is in the way is not ours. Where the system itself may have
    sent it twice, its provider says AMBIGUOUS.
    """
    if result.outcome.status is OutcomeStatus.UNKNOWN or _has_fault(result, FaultClass.AMBIGUOUS):
        return True
    return _has_fault(result, FaultClass.CONVERGED) and result.change.action is not Action.CREATE


def _may_repeat(result: Result) -> bool:
    failed = result.outcome.status is OutcomeStatus.FAILED
    fault = result.outcome.fault
    return (
        failed
        and fault is not None
        and fault.kind is FaultClass.NOT_APPLIED
        and (fault.retry_after > 0)
    )


def _show_progress(
    run: ApplyRun, results: Mapping[str, Result], pairs: Mapping[str, tuple[Change, Step]]
) -> None:
    done = len(results) == len(pairs)
    run.report(
        Progress("apply", "Applying", len(results), len(pairs), "steps", finished=done, even=False)
    )
