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
from ..core.progress import Report as ReportTo
from ..core.resource import Fault, FaultClass
from ..plan.lower import CREATING, DELETING, gates, lower, needs, placed
from ..plan.model import Plan, Wave
from ..provider.contract import ResourceType, Secrets, Session
from ..state.backend import Held, Lease
from .again import Again
from .freshness import refuse_if_stale
from .ledger import Ledger, bookkeeping
from .obligations import follow_up
from .preflight import QUOTA_PATIENCE, dry_run, narrowed
from .report import GOOD, Report, Result, Work
from .settle import in_vain, patience, settle
from .stop import Stop
from .waiting import say_unclear


class Run(Struct, frozen=True):
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


def execute(run: Run) -> Report:
    """Send the whole plan, wave by wave.

    What the world does ends up in the report; only StorageError is raised, because then
    nothing that is sent could be recorded.
    """
    pairs = {step.id: (change, step) for change, step in _pairs(run.plan)}
    results = {
        step_id: Result(*pair, run.done[step_id])
        for step_id, pair in pairs.items()
        if step_id in run.done
    }
    stopped: KafkaformError | None = None
    work: tuple[Work, ...] = ()
    try:
        _keep_books(run, results)
        before = needs(run.plan.effective)
        if len(results) < len(pairs):
            _show(run, results, pairs)
        for number, wave in enumerate(lower(run.plan)):
            _wave(run, wave, before, pairs, results, later=number > 0)
        work = follow_up(run.plan, results, run.ledger, run.sessions, run.stop)
    except StorageError:
        raise
    except KafkaformError as error:
        stopped = error
    why = stopped.message if stopped else "it was not reached"
    for step_id, pair in pairs.items():
        results.setdefault(step_id, Result(*pair, skipped(step_id, why)))
    report = Report(tuple(results[step_id] for step_id in pairs), stopped=stopped, work=work)
    return report if report.complete else replace(report, stopped=stopped or run.stop.error())


def _pairs(plan: Plan) -> Iterator[tuple[Change, Step]]:
    for change in placed(plan.effective):
        for step in change.steps or (bookkeeping(change),):
            yield change, step


def skipped(step_id: str, why: str) -> Outcome:
    """The outcome of a step that was never sent."""
    return Outcome(
        step_id, OutcomeStatus.SKIPPED, fault=Fault("SKIPPED", why, FaultClass.NOT_APPLIED)
    )


def _keep_books(run: Run, results: dict[str, Result]) -> None:
    """Changes without steps (adopt, forget, owners, protection): recorded together, at once."""
    pairs = [(change, bookkeeping(change)) for change in run.plan.effective if not change.steps]
    todo = [(change, step) for change, step in pairs if step.id not in results]
    if not todo:
        return
    run.stop.check()
    done = [Result(change, step, _applied(step)) for change, step in todo]
    with run.stop.writing():
        run.ledger.intend(run.plan, done)
        run.ledger.record(run.plan, done)
    results.update({result.step.id: result for result in done})


def _applied(step: Step) -> Outcome:
    return Outcome(step.id, OutcomeStatus.APPLIED)


def _wave(
    run: Run,
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
        why = _hindrance(step, before, pairs, results, failed)
        if step.id in results:
            continue
        if why:
            results[step.id] = Result(*pairs[step.id], skipped(step.id, why))
        else:
            ready.add(step.id)
    if not ready:
        return
    if later:
        _look_again(run, ready, pairs, results)
        ready -= _refused(run, wave, ready, before, pairs, results)
    phase = f"{wave.part}.{wave.round}.{wave.phase}"
    for name, batches in groupby(narrowed(wave.batches, ready), lambda b: b.request.name):
        _requests(run, f"{phase} {name}", tuple(batches), pairs, results)


def _requests(
    run: Run,
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
        if why := _silence(batch.instance, results.values()):
            _note(results, [Result(*pairs[s.id], skipped(s.id, why)) for s in batch.steps])
        else:
            _batch(run, batch, pairs, results)
        sent += len(batch.steps)
    if len(batches) > 1:
        run.report(Progress(task, label, sent, total, "steps", finished=True))


def _hindrance(
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
    if why := _silence(step.identity.instance, failed):
        return why
    for result in failed:
        if result.step.identity.instance != step.identity.instance:
            continue
        if gates(step.request, result.step.request):
            return f"{result.change.address} comes first and was not applied"
        if step.request.part == DELETING and result.step.request.part == CREATING:
            return f"nothing is deleted, because {result.change.address} was not applied"
    return None


def _silence(instance: str, results: Iterable[Result]) -> str | None:
    """Why nothing more is sent to a system of which nobody can tell what became of a request: it
    most likely has no leader, and the next one would be waited for as long."""
    lost = next((r for r in results if r.step.identity.instance == instance and in_vain(r)), None)
    if lost is None:
        return None
    return f"it is not known what became of {lost.step.request.name} for {lost.change.address}"


def _look_again(
    run: Run,
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


def _refused(
    run: Run,
    wave: Wave,
    ready: set[str],
    before: Mapping[str, set[str]],
    pairs: Mapping[str, tuple[Change, Step]],
    results: dict[str, Result],
) -> set[str]:
    """Pass 2 of the dry run, for steps that had to wait for others; refused ones are skipped."""
    waited = {step_id for step_id in ready if before[step_id]}
    refused = set()
    verdicts = dry_run((wave,), waited, run.sessions, run.report, run.clock, partial(_rest, run))
    for verdict in verdicts.values():
        if verdict.fault is not None:
            refused.add(verdict.step)
            outcome = Outcome(verdict.step, OutcomeStatus.SKIPPED, fault=verdict.fault)
            results[verdict.step] = Result(*pairs[verdict.step], outcome)
    return refused


def _rest(run: Run, seconds: float) -> None:
    run.stop.sleep(run.clock, seconds)


def _batch(
    run: Run,
    batch: Batch,
    pairs: Mapping[str, tuple[Change, Step]],
    results: dict[str, Result],
) -> None:
    """Send one batch; again, later, only what certainly was not done."""
    facts = run.sessions[batch.instance].facts
    give_up = run.clock.monotonic() + QUOTA_PATIENCE * patience(facts)
    attempt = 1
    todo = batch.steps
    while todo:
        run.stop.check()
        sent = _once(run, replace(batch, steps=todo), pairs, results, attempt)
        again = [r for r in sent if _may_repeat(r)]
        wait = max([0.1, *(r.outcome.fault.retry_after for r in again if r.outcome.fault)])
        if not again or run.clock.monotonic() + wait > give_up:
            break  # also where the system asks to wait for longer than anybody would
        run.stop.sleep(run.clock, wait)
        todo = tuple(result.step for result in again)
        attempt += 1
    _show(run, results, pairs)


def _once(
    run: Run,
    batch: Batch,
    pairs: Mapping[str, tuple[Change, Step]],
    results: dict[str, Result],
    attempt: int,
) -> tuple[Result, ...]:
    """Intent, send, settle, record. Whatever ends it early, `results` says what is known."""
    session = run.sessions[batch.instance]
    planned = [Result(*pairs[s.id], _in_flight(s.id), attempt) for s in batch.steps]
    _intend(run, planned, results, patience(session.facts))
    started = run.clock.monotonic()
    outcomes = session.apply(batch, run.secrets)
    taken = int((run.clock.monotonic() - started) * 1000)
    sent = [
        replace(p, outcome=o, duration_ms=taken) for p, o in zip(planned, outcomes, strict=True)
    ]
    unclear = [r for r in sent if _is_unclear(r)]
    clear = [r for r in sent if r not in unclear]
    # What is certain is on record before anybody waits for what is not.
    _record(run, clear, results)
    deadline = started + patience(session.facts)
    if unclear:
        say_unclear(run.report, len(unclear), deadline - run.clock.monotonic())
    settled = settle(unclear, session, run.types, deadline, run.clock, run.report)
    _record(run, settled, results)
    return (*clear, *settled)


def _intend(
    run: Run, planned: Sequence[Result], results: dict[str, Result], seconds: float
) -> None:
    """Make the intents durable, and be sure that nobody else may write for so long. Raises Locked
    if somebody does; then nothing is sent, and whoever has the lock now closes the intents."""
    _note(results, planned)
    try:
        with run.stop.writing():
            run.ledger.intend(run.plan, planned)
        run.lease.ensure(seconds)
    except Locked as error:
        unsent = [replace(p, outcome=skipped(p.step.id, error.message)) for p in planned]
        _note(results, unsent)
        raise


def _record(run: Run, ended: Sequence[Result], results: dict[str, Result]) -> None:
    """What is unknown gets no outcome: its intent stays open."""
    known = [r for r in ended if r.outcome.status is not OutcomeStatus.UNKNOWN]
    with run.stop.writing():
        run.ledger.record(run.plan, known)
        _note(results, ended)


def _note(results: dict[str, Result], new: Sequence[Result]) -> None:
    results.update({result.step.id: result for result in new})


def _in_flight(step_id: str) -> Outcome:
    lost = Fault(
        "NO_ANSWER",
        "the run ended before an answer came; the request may have left",
        FaultClass.AMBIGUOUS,
    )
    return Outcome(step_id, OutcomeStatus.UNKNOWN, fault=lost)


def _is(result: Result, kind: FaultClass) -> bool:
    return result.outcome.fault is not None and result.outcome.fault.kind is kind


def _is_unclear(result: Result) -> bool:
    """True if only a fresh reading can tell what happened.

    "Already exists" after a pre-image of nothing is a conflict: a create without a clear answer
    is read, never sent again, so what is in the way is not ours. Where the system itself may have
    sent it twice, its provider says AMBIGUOUS.
    """
    if result.outcome.status is OutcomeStatus.UNKNOWN or _is(result, FaultClass.AMBIGUOUS):
        return True
    return _is(result, FaultClass.CONVERGED) and result.change.action is not Action.CREATE


def _may_repeat(result: Result) -> bool:
    failed = result.outcome.status is OutcomeStatus.FAILED
    fault = result.outcome.fault
    return (
        failed
        and fault is not None
        and fault.kind is FaultClass.NOT_APPLIED
        and (fault.retry_after > 0)
    )


def _show(
    run: Run, results: Mapping[str, Result], pairs: Mapping[str, tuple[Change, Step]]
) -> None:
    done = len(results) == len(pairs)
    run.report(
        Progress("apply", "Applying", len(results), len(pairs), "steps", finished=done, even=False)
    )
