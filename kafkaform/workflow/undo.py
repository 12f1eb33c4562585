"""The plan of an `undo`: what a run changed goes back to what the run's intents found.

It is planned, judged, approved, looked at again, tried out and recorded like any other plan. What
somebody changed since stays as it is, and what cannot come back is named.
"""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ..audit.history import OUTSIDE, LoggedChange, LoggedValue, RunFacts, ToldChanges, tell_changes
from ..audit.index import get_identity, get_run, list_pending
from ..audit.records import RecordKind
from ..audit.sink import read_archived, read_present
from ..audit.writes import SUCCEEDED
from ..core.address import parse_address
from ..core.change import BOOKKEEPING, Action, Change, Ownership, Path
from ..core.diagnostics import Range, suggest
from ..core.errors import PlanRefused, UsageError
from ..core.finding import Block
from ..core.resource import (
    Absent,
    Declared,
    Desired,
    Identity,
    InstanceWorld,
    Lifecycle,
    Observed,
    Reading,
    Removed,
)
from ..core.value import EMPTY, FrozenMap, SecretRef, Value
from ..plan.build import amend, plan_changes, remake_changes
from ..plan.codec import read_recorded_plan
from ..plan.diff import flatten, lay_over, parse_path, render_path
from ..plan.model import Plan
from ..plan.observe import compute_destination, hide_all_reported
from ..plan.uses import order_by_uses
from ..provider.contract import ResourceType
from ..render.text import inline
from ..state.model import Row
from .alter import make_header
from .configuration.policies import find_today
from .history import find_run, list_recent_runs
from .model import Note, Scene
from .outside_changes import find_fleet_root, name_writers
from .planning import judge_by_policies
from .stores import Store, find_anchor

TYPED = Range("command line", 1, 1, 1, 1)
"""The place of the blocks that an undo stands for."""
_STEPS = (RecordKind.INTENT, RecordKind.OUTCOME, RecordKind.RECOVER)
_RECORDS_ONLY = (Action.ADOPT, Action.IMPORT, Action.FORGET, Action.REFRESH, Action.NOOP)
"""Actions that send nothing."""
RUNS = "`kafkaform undo` lists the last runs."
REVERT = (
    "The configuration still says otherwise: revert its change{commit} in Git. Until then, each "
    "plan shows these values as undone, and an apply makes them again."
)


class RunRecord(Struct, frozen=True):
    """What a log says about one run and about what came after it."""

    facts: RunFacts
    planned: Mapping[Identity, Change]
    """Its changes, as its plan has them."""
    steps: Mapping[Identity, tuple[LoggedChange, ...]]
    """What it changed of each object."""
    since: Mapping[Identity, tuple[LoggedChange, ...]]
    """What changed on these objects later."""


class LeftOut(Struct, frozen=True):
    """What an undo does not bring back."""

    address: str
    reason: str
    """Why, without the name of the object."""

    @property
    def text(self) -> str:
        """One line for people."""
        return f"Not undone: {inline(self.address)}: {inline(self.reason)}."


class Goal(Struct, frozen=True):
    """One object that an undo changes."""

    identity: Identity
    address: str
    reading: Reading
    values: Mapping[Path, Value] = field(default_factory=dict)
    """Path -> the value that comes back, None for none."""
    action: Action = Action.UPDATE
    """UPDATE sets `values`; CREATE makes the object again, DELETE removes it."""
    before: Change | None = None
    """Of a deleted object: the change that deleted it."""


# ── what the log says ───────────────────────────────────────────────────────────────────


class ChosenRun(Struct, frozen=True):
    """The run to undo."""

    run: str
    """Its id."""
    instances: tuple[str, ...]
    """The provider instances in which it changed something."""


def choose_run(store: Store, run: str | None) -> ChosenRun:
    """This run, or the last one. Raises UsageError if there is none."""
    if run is None:
        newest, _ = list_recent_runs(store, 1)
        if not newest:
            raise UsageError(f"{store.sink.location} has no run that could be undone")
        return _make_chosen(newest[0].facts.run, newest[0].changes)
    reading = find_run(store, run)
    if run in reading.runs:
        return _make_chosen(run, reading.changes)
    near = suggest(run, reading.runs)
    raise UsageError(
        f"the audit log has no run {run} that sent anything",
        f"{near} {RUNS} {read_archived(store.sink.sealed).sentence}".strip(),
    )


def _make_chosen(run: str, changes: Iterable[LoggedChange]) -> ChosenRun:
    instances = {change.identity.instance for change in changes if change.run == run}
    return ChosenRun(run, tuple(sorted(instances)))


def read_run(scene: Scene, run: str) -> RunRecord:
    """What the log says about a run. Raises PlanRefused for one that is not finished."""
    sink, state = scene.space.sink, scene.ledger.state
    anchor = find_anchor(sink, state if state.audit_head else None)
    identities: set[Identity] = set()
    planned: Mapping[Identity, Change] = {}
    for glance in read_present(sink, anchor):
        if glance.kind == RecordKind.PLAN and glance.run == run:
            plan = read_recorded_plan(glance.read_whole().body["plan"], run)
            planned = {change.identity: change for change in plan.changes}
        elif glance.kind in _STEPS and "step" in glance.body and get_run(glance) == run:
            identities.add(get_identity(glance))
        glance.forget()
    reading = tell_changes(read_present(sink, anchor), identities.__contains__)
    _refuse_unfinished(scene, run, reading)
    steps: dict[Identity, list[LoggedChange]] = {}
    since: dict[Identity, list[LoggedChange]] = {}
    for change in name_writers(reading, state.providers, find_fleet_root()):
        if change.run == run and change.outcome in SUCCEEDED:
            steps.setdefault(change.identity, []).append(change)
        elif change.identity in steps and change.outcome not in ("failed", "skipped"):
            since.setdefault(change.identity, []).append(change)
    return RunRecord(
        reading.runs[run],
        planned,
        {identity: tuple(changes) for identity, changes in steps.items()},
        {identity: tuple(changes) for identity, changes in since.items()},
    )


def _refuse_unfinished(scene: Scene, run: str, reading: ToldChanges) -> None:
    index = scene.log_index
    is_open = index.open_run is not None and run in index.runs
    is_open = is_open and index.runs[run].approval == index.open_run.approval  # type: ignore[union-attr]
    # A request of the run can still arrive, after which the values that came back would be lost
    # again.
    if any(get_run(intent) == run for intent in index.open_intents) or (
        is_open and run not in reading.ends
    ):
        raise PlanRefused(
            f"run {run} is not finished: what became of its last requests is not known yet",
            "Finish it first: run `kafkaform apply`, which finds that out. Nothing was sent.",
        )


# ── what comes back ─────────────────────────────────────────────────────────────────────


def plan_undo(scene: Scene, run: str) -> Plan:
    """The plan that brings back what a run changed. Raises PlanRefused, UsageError."""
    record = read_run(scene, run)
    readings = _read_objects(scene, record.steps)
    goals, left_out = _choose_goals(scene, record, readings)
    plan = _plan_goals(scene, record, goals)
    # What a system cannot take back, only the rules of its provider know.
    # Each round drops a value or an object, so there are no more rounds than those.
    for _ in range(sum(len(goal.values) or 1 for goal in goals)):
        impossible = [c for c in plan.changes if c.block is Block.IMPOSSIBLE]
        if not impossible:
            break
        goals, dropped = _drop_impossible(goals, impossible)
        left_out += dropped
        plan = _plan_goals(scene, record, goals)
    for item in left_out:
        scene.announce(Note(item.text))
    if any(_is_declarable(scene, change.identity) for change in plan.effective):
        commit = record.facts.commit
        scene.announce(Note(REVERT.format(commit=f" (commit {commit[:9]})" if commit else "")))
    return plan


def _read_objects(scene: Scene, identities: Collection[Identity]) -> Mapping[Identity, Reading]:
    """Read the objects in one read per provider instance; those of others are left out."""
    readings: dict[Identity, Reading] = {}
    types = scene.space.types
    for instance, session in scene.sessions.items():
        ids = sorted(i for i in identities if i.instance == instance and i.kind in types)
        if ids:
            readings.update(session.read(ids))
            session.prove()
    return hide_all_reported(readings, scene.ledger.state)


def _choose_goals(
    scene: Scene, record: RunRecord, readings: Mapping[Identity, Reading]
) -> tuple[list[Goal], list[LeftOut]]:
    goals: list[Goal] = []
    left_out: list[LeftOut] = []
    for identity, steps in record.steps.items():
        row = scene.ledger.state.objects.get(identity)
        address = row.owners[0] if row else steps[-1].address
        reading = readings.get(identity)
        since = record.since.get(identity, ())
        chosen: Goal | str
        if not isinstance(reading, Observed | Absent):
            chosen = "it cannot be read now"
        elif not (_is_declarable(scene, identity) or scene.space.types[identity.kind].restorable):
            # No block can declare it, so there is no plan that could bring it back.
            chosen = "only a command changes it; repeat the command with the old values"
        else:
            goal = Goal(identity, address, reading, before=record.planned.get(identity))
            if steps[0].action == Action.CREATE:
                chosen = _uncreate(goal, steps, since, row, scene)
            elif steps[-1].action == Action.DELETE:
                chosen = _undelete(goal, since, scene)
            else:
                chosen = _unset(goal, steps, since, scene, left_out)
        if isinstance(chosen, str):
            if chosen:
                left_out.append(LeftOut(address, chosen))
        else:
            goals.append(chosen)
    return goals, left_out


def _is_declarable(scene: Scene, identity: Identity) -> bool:
    """Whether blocks can declare such an object."""
    provider = scene.space.providers.get(identity.instance)
    return provider is not None and identity.kind in provider.types


def _uncreate(
    goal: Goal,
    steps: Sequence[LoggedChange],
    since: Sequence[LoggedChange],
    row: Row | None,
    scene: Scene,
) -> Goal | str:
    """Delete what the run created; or why it stays, "" if it is gone."""
    if not isinstance(goal.reading, Observed):
        return ""
    # A deletion would destroy what others have done to the object since.
    if since:
        return f"the run created it, and {_tell_later(since[-1])}"
    if row is None:
        return "the run created it, but the state does not own it, so an undo does not delete it"
    live = _flatten_live(scene, goal.reading)
    for value in _merge_values(steps):
        path = parse_path(value.path)
        if not _is_as_left(value, live.get(path)):
            return f"the run created it, and {value.path} was {_tell_outside(steps)}"
    return replace(goal, action=Action.DELETE)


def _undelete(goal: Goal, since: Sequence[LoggedChange], scene: Scene) -> Goal | str:
    """Create again what the run deleted; or why not."""
    if isinstance(goal.reading, Observed):
        later = _tell_later(since[-1]) if since else "it was created again outside kafkaform"
        return f"the run deleted it, and {later}"
    attributes = goal.before.before if goal.before is not None else None
    # A log whose old records are archived has no plan of the run, and so not what was deleted.
    if goal.before is None or attributes is None:
        return "the run deleted it, and the log does not have what it was like"
    kind = scene.space.types[goal.identity.kind]
    secret = goal.before.row_before.secret_version is not None
    needed = [a.name for a in kind.schema.attributes.values() if a.secret and a.required]
    hidden = [item.path for item in goal.before.paths if item.sensitive]
    # An object without its secret would look restored and let nobody log in.
    if secret or needed or hidden or any(isinstance(v, SecretRef) for v in attributes.values()):
        return "the run deleted it, and secrets are not recorded: declare it again, and apply that"
    return replace(goal, action=Action.CREATE)


def _unset(
    goal: Goal,
    steps: Sequence[LoggedChange],
    since: Sequence[LoggedChange],
    scene: Scene,
    left_out: list[LeftOut],
) -> Goal | str:
    """Set the values that the run found; or why nothing comes back."""
    values = [v for v in _merge_values(steps) if v.path.partition(".")[0] not in BOOKKEEPING]
    if not values:
        if steps[-1].action in _RECORDS_ONLY:
            return f"the run only recorded it ({steps[-1].action}), which sent nothing"
        return "the run sent a secret, or changed only what the state records; nothing comes back"
    live: Mapping[Path, Value] = {}
    back: dict[Path, Value] = {}
    if isinstance(goal.reading, Observed):
        live = _flatten_live(scene, goal.reading)
    elif since or _is_declarable(scene, goal.identity):
        return _tell_later(since[-1]) if since else "it does not exist any more"
    for value in values:
        path = parse_path(value.path)
        later = next((c for c in reversed(since) if _touches(c, value.path)), None)
        reason = ""
        if value.sensitive:
            reason = "its value is not recorded"
        elif live.get(path) == value.before:
            continue  # it is as it was already
        elif later is not None:
            reason = _tell_later(later, value.path)
        elif not _is_as_left(value, live.get(path)):
            reason = f"it was {_tell_outside([*steps, *since])}"
        if reason:
            left_out.append(LeftOut(f"{goal.address} {value.path}", reason))
        else:
            back[path] = value.before
    action = Action.UPDATE if isinstance(goal.reading, Observed) else Action.CREATE
    return replace(goal, values=back, action=action) if back else ""


def _merge_values(steps: Iterable[LoggedChange]) -> tuple[LoggedValue, ...]:
    """What a run found at each path, and what it left."""
    merged: dict[str, LoggedValue] = {}
    for value in (value for change in steps for value in change.values):
        first = merged.get(value.path, value)
        # A run can change a value twice: what it found comes first in the log, what it left comes
        # last.
        merged[value.path] = replace(value, before=first.before)
    return tuple(merged.values())


def _touches(change: LoggedChange, path: str) -> bool:
    return not change.values or any(value.path in ("", path) for value in change.values)


def _is_as_left(value: LoggedValue, live: Value) -> bool:
    """Whether a path is as the run left it, as far as anybody can see."""
    bookkeeping = value.path.partition(".")[0] in BOOKKEEPING
    return value.sensitive or bookkeeping or live == value.after


def _flatten_live(scene: Scene, reading: Observed) -> Mapping[Path, Value]:
    kind = scene.space.types[reading.identity.kind]
    facts = scene.sessions[reading.identity.instance].facts
    return flatten(kind.canonical(compute_destination(reading), facts))


def _tell_later(change: LoggedChange, path: str = "") -> str:
    """Who changed an object, or one of its values, after the run."""
    time = _render_time(change.time)
    if change.action == OUTSIDE:
        since = f"between {_render_time(change.since)} and {time}" if change.since else f"by {time}"
        if change.actor:
            return f"{change.actor} changed it from another state since ({since}, run {change.run})"
        return f"it was changed outside kafkaform since ({since}; who is unknown)"
    verb = {Action.DELETE: "deleted", Action.CREATE: "created"}.get(change.action, "changed")  # type: ignore[call-overload]
    return f"{change.actor} {verb} it since ({time}, {change.action}, run {change.run})"


def _tell_outside(changes: Sequence[LoggedChange]) -> str:
    looked = _render_time(changes[-1].time)
    return f"changed outside kafkaform since (after {looked}; who is unknown)"


def _render_time(time: str | None) -> str:
    return f"{(time or '')[:16].replace('T', ' ')} UTC"


def _drop_impossible(
    goals: Sequence[Goal], impossible: Sequence[Change]
) -> tuple[list[Goal], list[LeftOut]]:
    """The goals without what cannot be, and why that is so."""
    blocked = {change.identity: change for change in impossible}
    possible: list[Goal] = []
    left_out: list[LeftOut] = []
    for goal in goals:
        change = blocked.get(goal.identity)
        if change is None or change.blocked is None:
            possible.append(goal)
            continue
        finding = change.blocked
        remaining = {path: v for path, v in goal.values.items() if path != finding.path}
        name = goal.address
        if len(remaining) < len(goal.values):
            name = f"{goal.address} {render_path(finding.path)}"
            if remaining:
                possible.append(replace(goal, values=remaining))
        left_out.append(LeftOut(name, f"it cannot come back: {finding.text}"))
    return possible, left_out


# ── the plan ────────────────────────────────────────────────────────────────────────────


def _plan_goals(scene: Scene, record: RunRecord, goals: Sequence[Goal]) -> Plan:
    """The plan of these goals, judged like any other."""
    space, state = scene.space, scene.planned
    world: dict[str, InstanceWorld] = {}
    for goal in goals:
        instance = goal.identity.instance
        observed = world.setdefault(instance, InstanceWorld(scene.sessions[instance].facts, {}))
        world[instance] = replace(
            observed, readings={**observed.readings, goal.identity: goal.reading}
        )
    managed = [
        goal
        for goal in goals
        if _is_declarable(scene, goal.identity)
        and (goal.action is not Action.UPDATE or _find_row(scene, goal))
    ]
    desired = _make_desired(scene, managed)
    managed_world = {
        instance: replace(
            observed,
            readings={g.identity: g.reading for g in managed if g.identity.instance == instance},
        )
        for instance, observed in world.items()
    }
    providers = {instance: space.providers[instance] for instance in world}
    options = scene.ask.options
    # With all rows, the plan would release every object that the undo does not declare.
    concerned = {goal.identity for goal in managed}
    own = replace(state, objects={i: row for i, row in state.objects.items() if i in concerned})
    drafts = remake_changes(
        options, desired, own, managed_world, list_pending(scene.log_index), providers
    )
    reason = f"undo of run {record.facts.run}"
    changes = [
        _keep_ownership(scene, goal, drafts[goal.identity], reason)
        if goal.identity in drafts
        else _amend_unmanaged(scene, goal, reason)
        for goal in goals
    ]
    facts = {instance: observed.facts for instance, observed in world.items()}
    ordered = order_by_uses(changes, space.types, facts)
    lifted = space.policies.list_lifted(find_today(space.clock))
    look = scene.reached.look_further(space, world)
    header = make_header(scene)
    plan = plan_changes(ordered, world, state, providers, look, header, options, tuple(lifted))
    return judge_by_policies(plan, space)


def _find_row(scene: Scene, goal: Goal) -> Row | None:
    return scene.ledger.state.objects.get(goal.identity)


def _make_desired(scene: Scene, goals: Sequence[Goal]) -> Desired:
    """What the goals say, as blocks would."""
    declared: list[Declared] = []
    removed: list[Removed] = []
    for goal in goals:
        row = _find_row(scene, goal)
        if goal.action is Action.DELETE:
            owners = row.owners if row else ()
            removed += [Removed(parse_address(owner), True, TYPED) for owner in owners]
        elif goal.action is Action.CREATE:
            declared += _declare_again(scene, goal)
        elif row is not None:
            declared += _declare_values(scene, goal, row)
    return Desired(tuple(declared), scene.space.desired.providers, tuple(removed))


def _declare_again(scene: Scene, goal: Goal) -> Iterator[Declared]:
    """The blocks of an object that the run deleted, under the addresses that owned it."""
    change = goal.before
    assert change is not None and change.before is not None  # `_undelete` has looked
    kind = scene.space.types[goal.identity.kind]
    written = kind.written(change.before) if kind.written else change.before
    attributes = FrozenMap(dict.fromkeys(kind.schema.attributes)).with_items(written)
    explicit = change.row_before.protected == "explicit"
    for owner in [parse_address(owner) for owner in change.row_before.owners or (goal.address,)]:
        yield Declared(
            goal.identity,
            owner,
            attributes,
            TYPED,
            Lifecycle(prevent_destroy=True if explicit else None, park=change.park),
            tuple(map(parse_address, change.depends_on)),
            change.owner,
            change.labels,
        )


def _declare_values(scene: Scene, goal: Goal, row: Row) -> Iterator[Declared]:
    """The blocks of an object that manage only what comes back."""
    attributes = _overlay(scene, goal)
    only = tuple(glob.escape(render_path(path)) for path in goal.values)
    for owner in row.owners:
        yield Declared(
            goal.identity,
            parse_address(owner),
            attributes,
            TYPED,
            Lifecycle(ignore_changes_except=only, park=row.park),
            owner=row.owner,
            labels=row.labels,
            secret_version=row.secret_version,
        )


def _overlay(scene: Scene, goal: Goal) -> FrozenMap:
    """The live attributes with the values that come back, as a block would have them."""
    assert isinstance(goal.reading, Observed)  # `_unset` has looked
    kind = scene.space.types[goal.identity.kind]
    facts = scene.sessions[goal.identity.instance].facts
    live = kind.canonical(compute_destination(goal.reading), facts)
    target = lay_over(live, goal.values, _nest_values(goal.values))
    # An attribute that excludes one that comes back must not decide about it.
    names = {path[0] for path in goal.values}
    excluded = {n for pair in kind.schema.conflicts if names & {*pair} for n in pair} - names
    target = target.with_items(dict.fromkeys(excluded & target.keys()))
    written = kind.written(target) if kind.written else target
    return FrozenMap(dict.fromkeys(kind.schema.attributes)).with_items(written)


def _nest_values(values: Mapping[Path, Value]) -> FrozenMap:
    """Paths and values as attributes."""
    nested: dict[str, Value] = {path[0]: v for path, v in values.items() if len(path) == 1}
    for path, value in values.items():
        if len(path) == 2 and value is not None:
            inner = nested.get(path[0])
            items = inner if isinstance(inner, FrozenMap) else EMPTY
            nested[path[0]] = items.with_items({path[1]: value})
    return FrozenMap(nested)


def _keep_ownership(scene: Scene, goal: Goal, draft: Change, reason: str) -> Change:
    """The planned change, under the ownership that the object has or had."""
    draft = replace(draft, range=None, reason=reason)
    row = _find_row(scene, goal)
    if goal.action is Action.CREATE and goal.before is not None:
        before = goal.before.row_before
        kind = scene.space.types[goal.identity.kind]
        empty = "; created again, without the data that it had" if kind.protect else ""
        after = replace(draft.row_after, protected=before.protected or draft.row_after.protected)
        return replace(draft, row_after=after, reason=f"{reason}{empty}")
    if goal.action is not Action.UPDATE or row is None:
        return draft
    # What others changed since is neither taken back nor taken over: the next plan shows it.
    recorded = flatten(row.attributes)
    foreign_paths = {
        path
        for path, value in flatten(draft.after).items()
        if path not in goal.values and recorded.get(path) != value
    }
    return replace(
        draft,
        row_after=row.ownership,
        depends_on=row.depends_on,
        theirs=tuple(sorted({*draft.theirs, *foreign_paths})),
    )


def _make_again(goal: Goal, kind: ResourceType) -> FrozenMap | None:
    """The attributes of an object that no block declares, as the run found it."""
    before = goal.before.before if goal.before is not None else None
    if before is None:
        return None
    target = lay_over(before, goal.values, _nest_values(goal.values))
    return kind.written(target) if kind.written else target


def _amend_unmanaged(scene: Scene, goal: Goal, reason: str) -> Change:
    """The change of an object that the state does not have, as an `alter` makes it."""
    kind = scene.space.types[goal.identity.kind]
    facts = scene.sessions[goal.identity.instance].facts

    def edit(attributes: FrozenMap | None) -> FrozenMap | None:
        if goal.action is Action.CREATE:
            return _make_again(goal, kind)
        assert attributes is not None and isinstance(goal.reading, Observed)
        # The overlay has all live values, so what it lacks is what comes back as not set.
        target = kind.target(_overlay(scene, goal), goal.reading, facts, False)
        return lay_over(attributes, goal.values, target)

    change = amend(goal.identity, goal.address, goal.reading, kind, facts, edit)
    return replace(change, row_after=Ownership(), reason=reason)
