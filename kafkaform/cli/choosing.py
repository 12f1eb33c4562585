"""Which plan an apply runs: a saved one, an open run's, or a new one, and never another than the
approved one (architecture §4.4)."""

from __future__ import annotations

from pathlib import Path

from ..apply.freshness import refuse_if_foreign
from ..apply.recover import outcome_of, steps_of
from ..apply.verify import visible
from ..audit.chain import trusted
from ..audit.event import Kind
from ..core.change import Action, Change, Outcome, OutcomeStatus
from ..core.errors import PlanRefused, UsageError
from ..plan.build import record_only
from ..plan.codec import decode, from_data
from ..plan.lifecycle import ownership
from ..plan.model import Plan
from .planning import plan_now
from .scene import Chosen, Scene


def choose(scene: Scene) -> Chosen:
    """A saved plan, a resumed one, or a new one; with --expect only the reviewed one."""
    ask, found = scene.ask, scene.found
    saved = _saved(ask.plan_file) if ask.plan_file else None
    wanted = saved.approval if saved else (ask.expect or "").partition(".")[0]
    if saved and ask.expect:
        _expected(saved, ask.expect)
    if wanted and found.open_run and found.open_run.approval == wanted and found.open_run.plan:
        plan = from_data(Plan, found.open_run.plan)
        _expected(plan, ask.expect)
        scene.screen.note(f"Resuming run {found.open_run.run}.")
        return Chosen(plan, _still_done(scene, plan))
    past = found.last_run_of(wanted) if wanted else None
    if past is not None and past.complete:
        plan = saved or _recorded_plan(scene, past.run)
        if _holds(scene, plan):
            return Chosen(plan, {}, past.run)
    if saved is not None:
        refuse_if_foreign(saved, scene.planned, scene.sessions, scene.space.providers)
        scene.screen.plan(saved)
        return Chosen(saved, {})
    plan = plan_now(
        scene.space, scene.sessions, scene.planned, found, ask.options, scene.screen.progress
    )
    if ask.imported is not None:
        plan = record_only(plan)
    scene.screen.plan(plan)
    _expected(plan, ask.expect)
    return Chosen(plan, {})


def _saved(path: Path) -> Plan:
    try:
        return decode(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", "Save a plan: `kafkaform plan -out=FILE`."
        ) from None


def _expected(plan: Plan, token: str | None) -> None:
    """Raises PlanRefused unless approval and configuration are the reviewed ones."""
    if token is None or token == plan.token:
        return
    same = token.partition(".")[0] == plan.approval
    what = "the configuration differs" if same else "what would be done differs"
    raise PlanRefused(
        f"this is not the plan that was approved: {what} (approved {token}, now {plan.token})",
        "Have the new plan reviewed, then apply with its approval.",
    )


def _recorded_plan(scene: Scene, run: str) -> Plan:
    records = trusted(scene.space.sink.lines(), scene.space.sink.location)
    body = next(r.body for r in records if r.run == run and r.kind == Kind.PLAN)
    return from_data(Plan, body["plan"])


def _still_done(scene: Scene, plan: Plan) -> dict[str, Outcome]:
    """Applied steps of the open run whose change a fresh reading still shows."""
    run = scene.found.open_run
    records = run.outcomes.values() if run else ()
    pairs = steps_of(plan)
    applied = {
        record.body["step"]: outcome_of(record)
        for record in records
        if record.body["outcome"] == OutcomeStatus.APPLIED and record.body["step"] in pairs
    }
    changes = [pairs[step_id][0] for step_id in applied]
    shown = {change.identity for change in changes if _shows(scene, change)}
    return {step: end for step, end in applied.items() if pairs[step][0].identity in shown}


def _holds(scene: Scene, plan: Plan) -> bool:
    """True if everything that the plan wanted is there."""
    return all(_shows(scene, change) for change in plan.effective)


def _shows(scene: Scene, change: Change) -> bool:
    row = scene.ledger.state.objects.get(change.identity)
    if not change.steps or row is None:
        gone = change.action in (Action.DELETE, Action.FORGET)
        books = row is None if gone else row is not None and ownership(row) == change.row_after
        if not change.steps or not books:
            return books
    session = scene.sessions[change.identity.instance]
    reading = session.read([change.identity])[change.identity]
    kind = scene.space.types[change.identity.kind]
    incarnation = row.incarnation if row else change.incarnation
    return visible(change, reading, kind, session.facts, incarnation)
