"""Choose the plan that an apply runs: a saved one, the one of an open run, or a new one. It never
differs from the approved one (architecture §4.4)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ..apply.freshness import REPLAN_ADVICE, Remake, refuse_if_altered, refuse_if_foreign
from ..apply.ledger import make_bookkeeping_step
from ..apply.obligations import drop_removals
from ..apply.recovery import index_steps, read_outcome
from ..apply.report import GOOD
from ..apply.verify import canonicalize_reading, is_visible
from ..audit.index import LoggedRun, LogIndex, list_pending
from ..audit.records import ADVICE, parse_record, parse_time
from ..core.address import parse_address
from ..core.change import Action, Change, Outcome, Path, Step
from ..core.errors import ConnectError, PlanRefused, StorageError
from ..core.head import Head
from ..core.resource import Identity, InstanceWorld, Observed, Reading
from ..plan.build import remake_changes
from ..plan.codec import read_recorded_plan
from ..plan.completion import complete_declared
from ..plan.diff import agrees, equals_target, flatten, render_leaf, render_path, render_sides
from ..plan.model import RULE, Plan, digest_change
from ..plan.observe import compute_destination, hide_all_reported, resolve_absence
from ..plan.select import drop_left_out, record_only, set_untyped_aside
from ..provider.contract import ResourceType
from ..render.plan_comparison import ONLY, compare_plans, render_comparison
from ..render.terraform import to_json
from ..render.text import inline
from ..state.model import Row
from .model import ApplyRequest, Chosen, Note, PlanChosen, Scene
from .planning import add_removals, plan_workspace, tell_writers, tell_writers_since
from .workspace import find_parked_objects, find_providers

NAMED = 5
"""How many objects an error names."""
NOT_REVIEWED = (
    "What earlier runs left to remove is left to the next apply, because it was not reviewed."
)


def find_resumed_runs(ask: ApplyRequest, index: LogIndex) -> frozenset[str]:
    """The ids of the runs that this apply continues: those with the approval of the open run, if
    that approval is asked for."""
    open_run = index.open_run
    if open_run is None or _get_wanted_approval(ask) != open_run.approval:
        return frozenset()
    # An approval of an earlier version covers less, so nothing more is sent under it.
    if open_run.plan is None or open_run.plan.get("rule") != RULE:
        return frozenset()
    return frozenset(run.run for run in index.runs.values() if run.approval == open_run.approval)


def _get_wanted_approval(ask: ApplyRequest) -> str:
    """The approval that the plan must have; "" if any will do."""
    return ask.plan.approval if ask.plan else (ask.expect or "").partition(".")[0]


def choose_plan(scene: Scene) -> Chosen:
    """Choose the saved plan, the plan of an open run, or a new one; with --expect only the reviewed
    one. Raises PlanRefused if that is impossible."""
    ask, index = scene.ask, scene.log_index
    if ask.make is not None:
        plan = add_removals(ask.make(scene), scene.space, scene.sessions, index)
        scene.announce(PlanChosen(plan))
        return Chosen(plan, {}, made_now=True)
    saved, approval = ask.plan, _get_wanted_approval(ask)
    if saved is not None:
        refuse_if_altered(saved, scene.space.providers)
        _require_expected(saved, scene)
    if approval and index.open_run and index.open_run.approval == approval and index.open_run.plan:
        plan = read_recorded_plan(index.open_run.plan, index.open_run.run)
        refuse_if_altered(plan, scene.space.providers)
        _require_expected(plan, scene)
        # The plan of a first run has no lineage yet. It comes from this state's own log, so it
        # needs no further proof that it belongs here.
        state = replace(scene.ledger.state, lineage=plan.lineage)
        _require_reached(plan, scene)
        refuse_if_foreign(plan, state, scene.sessions)
        scene.announce(Note(f"Resuming run {index.open_run.run}."))
        scene.announce(PlanChosen(plan, index.open_run.run))
        return Chosen(plan, _find_still_done(scene, plan))
    # A pipeline that is started twice must find its plan applied, and not refused as stale.
    past = index.find_last_run(approval) if approval else None
    if past is not None and past.complete:
        plan = saved or _read_logged_plan(scene, past)
        settled = not plan.removals or not _has_owed(scene, plan)
        if settled and ask.expect in (None, plan.token) and _is_all_there(scene, plan):
            scene.announce(PlanChosen(plan, past.run))
            scene.announce(
                Note(f"Already applied by run {past.run}; everything is still as planned.")
            )
            return Chosen(plan, {}, past.run)
    if saved is not None:
        _require_reached(saved, scene)
        refuse_if_foreign(saved, scene.planned, scene.sessions)
        scene.announce(PlanChosen(saved))
        return Chosen(saved, {})
    plan = plan_workspace(
        scene.space, scene.reached, scene.planned, index, ask.options, scene.announce
    )
    if ask.imported is not None:
        plan = record_only(plan, [str(parse_address(address)) for address, _ in ask.imported])
    plan = _match_reviewed(plan, scene)
    scene.announce(PlanChosen(plan))
    _require_expected(plan, scene)
    return Chosen(plan, {}, made_now=True)


def _match_reviewed(plan: Plan, scene: Scene) -> Plan:
    """The plan, or the part of it that was approved if what is beyond that needs no approval."""
    ask = scene.ask
    # A setting whose task ended after the review adds a removal, which changes the approval.
    # The reviewed part is applied without it.
    bare = drop_removals(plan) if plan.removals and ask.expect else plan
    if bare is not plan and ask.expect == bare.token:
        scene.announce(Note(NOT_REVIEWED))
        plan = bare
    # Whoever approved the plan read everything. What cannot be read now needed nothing then, if
    # all the rest is as approved: nothing less is done.
    left_out = (*(change.address for change in plan.left_out), *plan.unevaluated)
    whole = drop_left_out(plan) if left_out and ask.expect else plan
    if whole is not plan and ask.expect == whole.token:
        scene.announce(Note(_describe_unread(left_out)))
        plan = whole
    return plan


def _describe_unread(left_out: Sequence[str]) -> str:
    named = ", ".join(left_out[:NAMED])
    remainder = f" and {len(left_out) - NAMED:,} more" if left_out[NAMED:] else ""
    return f"Could not be read, but the approved plan does nothing with it: {named}{remainder}."


def _require_reached(plan: Plan, scene: Scene) -> None:
    """Raises ConnectError for a system that the plan changes and that cannot be reached now: an
    approved plan is applied as a whole or not at all."""
    for change in plan.effective:
        fault = scene.reached.unread.get(change.identity.instance)
        if fault is not None and change.action is not Action.FORGET:
            raise ConnectError(
                f"{change.address} cannot be applied: {fault.message}",
                f"{fault.advice} {scene.ask.rerun.repeat_advice} Nothing was sent.".strip(),
            )


def find_remaker(scene: Scene, plan: Plan) -> Remake | None:
    """What makes changes of this plan anew; None for a plan of another configuration than that of
    the folder, and for one that no configuration made."""
    desired = scene.space.desired
    if scene.ask.make is not None or desired.digest != plan.configuration:
        return None

    def remake(readings: Mapping[Identity, Reading]) -> Mapping[Identity, Change]:
        world = {
            instance: InstanceWorld(
                session.facts,
                {i: reading for i, reading in readings.items() if i.instance == instance},
            )
            for instance, session in scene.sessions.items()
        }
        pending, space = list_pending(scene.log_index), scene.space
        whole = complete_declared(desired, space.types, scene.sessions, world)
        plan_time = parse_time(plan.created)
        parked = find_parked_objects(
            space, scene.sessions, scene.planned, scene.log_index, plan_time, plan.options.mode
        )
        whole = replace(whole, parked=parked)
        return remake_changes(plan.options, whole, scene.planned, world, pending, space.providers)

    return remake


def refuse_old_token(token: str | None) -> None:
    """Raises PlanRefused for an approval that contains only a part of the configuration digest."""
    if token is not None and re.fullmatch(r"[0-9a-f]{64}\.[0-9a-f]{16}", token):
        raise PlanRefused(
            "this approval is of an earlier version of kafkaform: it names only the first 16 "
            "digits of the configuration's digest, and does not cover all that an apply does",
            REPLAN_ADVICE,
        )


def _require_expected(plan: Plan, scene: Scene) -> None:
    """Raises PlanRefused unless approval and configuration are the reviewed ones."""
    token = scene.ask.expect
    if token is None or token == plan.token:
        return
    for line in _list_differences(scene, plan):
        scene.announce(Note(line))
    same_plan = token.partition(".")[0] == plan.approval
    difference = "the configuration differs" if same_plan else "what would be done differs"
    hint = ""
    if not scene.ask.reviewed:
        difference += f" (approved {token}, now {plan.token})"
        hint = " To see what differs, add `--reviewed` with that plan."
    raise PlanRefused(
        f"this is not the plan that was approved: {difference}",
        f"Have the new plan reviewed, then apply with its approval.{hint}",
    )


def _list_differences(scene: Scene, plan: Plan) -> Iterator[str]:
    """How the plan differs from the one that was reviewed, and who changed what, for people."""
    reviewed = scene.ask.reviewed
    if reviewed is None:
        return
    differences = compare_plans(reviewed, to_json(plan))
    yield "What differs from the reviewed plan, which is the first one here:"
    yield from (f"  {line}" for line in render_comparison(differences))
    titles = {difference.title.partition(ONLY)[0] for difference in differences}
    rows = scene.ledger.state.objects.values()
    addresses = {
        **{row.identity: owner for row in rows for owner in row.owners},
        **{change.identity: change.address for change in plan.changes},
    }
    identities = [identity for identity, address in addresses.items() if inline(address) in titles]
    since = str(reviewed.get("timestamp", ""))
    for identity, text in tell_writers_since(scene.log_index, plan, identities, since).items():
        yield f"  {inline(addresses[identity])}: {text}"


def _has_owed(scene: Scene, plan: Plan) -> bool:
    """Whether something that the plan removes still has to be removed."""
    listed = {(removal.identity.instance, removal.ticket) for removal in plan.removals}
    return bool(listed & scene.ledger.owed)


def _read_logged_plan(scene: Scene, run: LoggedRun) -> Plan:
    sink = scene.space.sink
    line = next(sink.lines(run.planned.seq - 1), None) if run.planned is not None else None
    if line is None:
        return read_recorded_plan(None, run.run)
    record = parse_record(line, sink.location)
    # The index is proven, and it says which record has the plan.
    if run.planned != Head(record.seq, record.hash):
        raise StorageError(f"{sink.location}: record {record.seq} was changed", ADVICE)
    return read_recorded_plan(record.body["plan"], run.run)


def _find_still_done(scene: Scene, plan: Plan) -> dict[str, Outcome]:
    """The applied and started steps of the open run that a new read confirms, by id."""
    run = scene.log_index.open_run
    records = run.outcomes.values() if run else ()
    pairs = index_steps(plan)
    applied = {
        record.body["step"]: read_outcome(record)
        for record in records
        if record.body["outcome"] in GOOD and record.body["step"] in pairs
    }
    # One step at a time: a change that was interrupted is partly done.
    alone = {step_id: _isolate_step(*pairs[step_id]) for step_id in applied}
    readings = _read_changes(scene, alone.values())
    return {s: end for s, end in applied.items() if _is_shown(scene, alone[s], readings)}


def _isolate_step(change: Change, step: Step) -> Change:
    """The change with this step only. Adopting and forgetting have no steps."""
    return replace(change, steps=(step,)) if change.steps else change


def _is_all_there(scene: Scene, plan: Plan) -> bool:
    """Whether the live objects and the state are as the plan wanted them."""
    readings = _read_changes(scene, plan.effective)
    if not all(_is_shown(scene, change, readings) for change in plan.effective):
        return False
    updates = [change for change in plan.effective if change.action is Action.UPDATE]
    changed = [c.identity for c in updates if not _is_whole(scene, c, readings)]
    if not changed:
        return True
    remake = find_remaker(scene, plan)
    remade = remake({identity: readings[identity] for identity in changed}) if remake else {}
    return all(identity in remade and not remade[identity].effective for identity in changed)


def _read_changes(scene: Scene, changes: Iterable[Change]) -> Mapping[Identity, Reading]:
    """Read every object that these changes write or refresh, in one read per provider instance."""
    identities: dict[str, set[Identity]] = {}
    for change in changes:
        if change.steps or change.action is Action.REFRESH:
            identities.setdefault(change.identity.instance, set()).add(change.identity)
    readings = {
        identity: reading
        for instance, ids in identities.items()
        for identity, reading in scene.sessions[instance].read(sorted(ids)).items()
    }
    return hide_all_reported(readings, scene.ledger.state)


def _is_shown(scene: Scene, change: Change, readings: Mapping[Identity, Reading]) -> bool:
    """Whether the state and the live object are as the change wanted them."""
    row = scene.ledger.state.objects.get(change.identity)
    if change.action is Action.REFRESH:
        return row is not None and row.attributes == change.after and _is_live(scene, row, readings)
    if not change.steps or row is None:
        gone = change.action in (Action.DELETE, Action.FORGET)
        books = row is None if gone else row is not None and row.ownership == change.row_after
        if not change.steps or not books:
            return books
    kind = scene.space.types[change.identity.kind]
    facts = scene.sessions[change.identity.instance].facts
    incarnation = row.incarnation if row else change.incarnation
    return is_visible(change, readings[change.identity], kind, facts, incarnation)


def _is_whole(scene: Scene, change: Change, readings: Mapping[Identity, Reading]) -> bool:
    """Whether the live object is as the update left it, also in what that did not write."""
    reading = readings.get(change.identity)
    if not isinstance(reading, Observed) or change.after is None:
        return True
    kind = scene.space.types[change.identity.kind]
    facts = scene.sessions[change.identity.instance].facts
    return equals_target(change.after, canonicalize_reading(reading, kind, facts))


def _is_live(scene: Scene, row: Row, readings: Mapping[Identity, Reading]) -> bool:
    """Whether the live object still is as the state has taken it in."""
    reading = resolve_absence(readings[row.identity], row.attributes)
    if not isinstance(reading, Observed) or row.incarnation not in (None, reading.incarnation):
        return False
    kind = scene.space.types[row.identity.kind]
    facts = scene.sessions[row.identity.instance].facts
    return agrees(row.attributes, kind.canonical(compute_destination(reading), facts))


def refuse_outdated_refresh(scene: Scene, plan: Plan, applied: Collection[str]) -> None:
    """Raises PlanRefused unless a new plan has every change of this one, with the same values.

    done: ids of the steps that an interrupted run has recorded. The new plan proves each absence
    again (`plan.observe.confirm_absent`), and finds out again what can be taken in.
    """
    # Compared are whole changes and not only values: nothing that an edited file adds to them gets
    # into the state.
    # Without the selection: a resumed run has recorded some of its objects already.
    everything = replace(plan.options, target=(), exclude=())
    providers = find_providers(scene.space, {i.instance for i in scene.planned.objects})
    typed, _ = set_untyped_aside(scene.planned, providers, plan.options)
    new = plan_workspace(
        scene.space, scene.reached, typed, scene.log_index, everything, scene.announce
    )
    scopes = new.scopes
    live = {digest_change(c, scopes[c.identity.instance], plan.lineage) for c in new.effective}
    stale = [
        change
        for change in plan.effective
        if make_bookkeeping_step(change).id not in applied
        and digest_change(change, plan.scopes[change.identity.instance], plan.lineage) not in live
    ]
    if stale:
        raise PlanRefused(
            f"the plan is stale: {_render_outdated(scene, plan, stale[:NAMED], new)}"
            + (f"; and {len(stale) - NAMED} more" if stale[NAMED:] else ""),
            scene.ask.rerun.new_plan_advice,
        )


def _render_outdated(scene: Scene, plan: Plan, stale: Sequence[Change], new: Plan) -> str:
    """What a new refresh-only plan would record of these objects, and who changed them."""
    changes = {change.identity: change for change in new.changes}
    types = scene.space.types
    paths = {
        change.identity: _compare_recorded(change, changes.get(change.identity), types)
        for change in stale
    }
    writers = tell_writers(scene.log_index, plan, {i: [*texts] for i, texts in paths.items()})
    return "; ".join(
        f"{change.address}: {', '.join([*paths[change.identity].values()][:NAMED])} "
        f"({writers[change.identity]})"
        for change in stale
    )


def _compare_recorded(
    planned: Change, new: Change | None, types: Mapping[str, ResourceType]
) -> Mapping[Path, str]:
    """Path -> what the plan would record there, and what is live now; the empty path is the object
    as a whole."""
    if new is None or new.after is None or planned.after is None or new.blocked is not None:
        return {(): "the object or its record in the state changed"}
    kind = types[planned.identity.kind]
    before, now = flatten(planned.after), flatten(new.after)
    texts = {
        path: render_sides(
            render_path(path),
            render_leaf(path, before.get(path), kind),
            render_leaf(path, now.get(path), kind),
        )
        for path in sorted(before.keys() | now.keys())
        if before.get(path) != now.get(path)
    }
    return texts or {(): "its record in the state changed"}
