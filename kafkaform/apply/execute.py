"""Execute an approved plan, wave by wave. `send` is the one place that sends.

Nothing is rolled back. Independent steps go on after a failure, and dependents are skipped. Deletes
of a provider instance wait until everything else there is applied. The first signal ends the run
after the batch in flight. A step that starts long work counts as done: no run waits for a task.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import groupby

from msgspec.structs import replace

from ..core.change import Outcome, OutcomeStatus, Step
from ..core.errors import KafkaformError, StorageError
from ..plan.lower import CREATING, DELETING, is_gate, lower_plan
from ..plan.model import Wave
from .execution import ApplyRun, Execution, find_silence, start_execution
from .obligations import follow_up
from .preflight import DryRun, dry_run, narrow_batches
from .recheck import Recheck, refuse_if_stale
from .report import GOOD, Report, Result, Work
from .send import send_requests

LOOK_SECONDS = 60.0
"""How old a look at an object may be when a step leaves that had to wait for its system."""


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
