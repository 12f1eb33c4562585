"""Refuse a plan that is not what was reviewed: the plan was altered, was made for another state or
system, takes away what is not proven to be ours, or its objects have changed since.

Only objects that the plan changes are looked at, so that other people's merges do not make a review
stale. Directly before the first request, each of them is compared as a whole: everything that the
plan shows of it or hides because it stays as it is. Before later requests, only what the changes
write is compared, because the run itself may have altered the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ..audit.index import LogIndex, Origin
from ..audit.writes import ObjectWrites
from ..core.change import PARK, Action, Change, Ownership, Path
from ..core.clock import Clock
from ..core.errors import OtherSystem, PlanRefused
from ..core.resource import Absent, Failed, FaultClass, Hidden, Identity, Observed, Reading
from ..core.text import inline, make_sentence
from ..core.value import EMPTY, Value
from ..plan.diff import equals_target, flatten, render_leaf, render_path, render_sides
from ..plan.model import RULE, Mode, Plan, compute_approval, is_same_change
from ..plan.observe import (
    AGREEMENT_SECONDS,
    Views,
    await_agreement,
    describe_disagreement,
    hide_all_reported,
    resolve_absence,
)
from ..provider.contract import Provider, ResourceType, Session, collect_types
from ..state.model import Row, State
from .ledger import make_bookkeeping_step
from .report import PLAIN_APPLY, Rerun
from .verify import canonicalize_reading

REPLAN_ADVICE = "Plan again and have the new plan reviewed."

"""Identities -> for each the paths that the audit log shows as written or taken over by us."""
SHOWN = 5
"""How many objects, and how many values of one object, an error names."""
Readings = Mapping[Identity, Reading]
Remake = Callable[[Readings], Mapping[Identity, Change]]
"""Readings -> the changes that a plan would have for these objects now."""
Tell = Callable[[Mapping[Identity, Collection[Path]]], Mapping[Identity, str]]
"""Changed paths of each object -> who changed them, as text, as far as that is known."""
RETURNED = "it was to be forgotten because it was gone, and that is no longer certain"


def refuse_if_altered(plan: Plan, providers: Mapping[str, Provider]) -> None:
    """Raises PlanRefused for a plan whose approval or steps do not follow from its changes, because
    the file was altered by hand, and for one that was approved by other rules than today's."""
    if plan.rule != RULE:
        raise PlanRefused(
            "the plan was approved under the rules of another version of kafkaform, which covered "
            "other parts of a plan",
            REPLAN_ADVICE,
        )
    if not _is_consistent(plan, providers):
        raise PlanRefused(
            "the plan was altered: its approval or its steps do not match its changes",
            REPLAN_ADVICE,
        )


def refuse_if_foreign(plan: Plan, state: State, sessions: Mapping[str, Session]) -> None:
    """Raises PlanRefused for a plan of another state, and OtherSystem for one of another system."""
    if plan.lineage != state.lineage:
        raise PlanRefused("the plan was made for another state", REPLAN_ADVICE)
    needed = {c.identity.instance for c in plan.effective if c.action is not Action.FORGET}
    for instance, planned in plan.instances.items():
        if instance not in sessions and instance in needed:
            raise PlanRefused(
                f'provider instance "{instance}" is not configured here', REPLAN_ADVICE
            )
        # Nothing is sent to a system that was left out of the plan, or cannot be reached now.
        if instance not in sessions or not planned.facts.scope_id:
            continue
        refuse_other_system(plan, instance, sessions[instance])
        scope = planned.facts.scope_id
        recorded = state.providers.get(instance, scope)
        if recorded != scope:
            words = sessions[instance].words
            raise PlanRefused(
                f'"{instance}" is {words.system} {scope}, but this state belongs to '
                f"{words.system} {recorded}",
                f"{words.check_address[:-1]} and the folder.",
            )


def refuse_other_system(plan: Plan, instance: str, session: Session) -> None:
    """Raises OtherSystem if the instance is another system than it was for this plan."""
    scope, planned = session.facts.scope_id, plan.instances[instance].facts.scope_id
    if scope != planned:
        words = session.words
        raise OtherSystem(
            f'"{instance}" is {words.system} {scope}, but the plan was made for {words.system} '
            f"{planned}",
            words.check_address,
        )


def _is_consistent(plan: Plan, providers: Mapping[str, Provider]) -> bool:
    """True if approval and steps follow from the changes."""
    # A forged file may lack any part, and a provider's functions were not written for that.
    try:
        complete = all(flatten(c.after).keys() >= {*c.theirs} for c in plan.effective)
        return (
            complete
            and _fits_mode(plan)
            and compute_approval(plan) == plan.approval
            and not _has_altered_steps(plan, providers)
        )
    except (AttributeError, LookupError, TypeError, ValueError):
        # A plan that somebody edited can lack any member, and then it is not the approved one.
        return False


def _fits_mode(plan: Plan) -> bool:
    """True if only a refresh-only plan refreshes, and if it does nothing else."""
    if plan.options.mode is Mode.REFRESH:
        allowed = (Action.REFRESH, Action.FORGET)
        return not plan.removals and all(change.action in allowed for change in plan.effective)
    return not any(change.action is Action.REFRESH for change in plan.effective)


def _has_altered_steps(plan: Plan, providers: Mapping[str, Provider]) -> bool:
    types = collect_types(providers.values())
    # Refreshing and forgetting are matters of the state alone, which no provider is asked about.
    return any(
        change.steps
        != (
            ()
            if change.action in (Action.REFRESH, Action.FORGET)
            else types[change.identity.kind].steps(
                change, plan.instances[change.identity.instance].facts
            )
        )
        for change in plan.effective
    )


def refuse_unproven_removals(
    changes: Iterable[Change],
    state: State,
    index: LogIndex,
    sessions: Mapping[str, Session],
    types: Mapping[str, ResourceType],
) -> None:
    """Raises PlanRefused for a change that takes away what is not proven to be ours.

    A deletion, a release, and an update that removes a path need a row with a valid origin: the
    record that made, adopted or imported that very object in the system that answers. From an
    object that others share (`ResourceType.left`), a deletion or release removes only paths that
    the log shows as ours. So a row that was written into the state by hand takes nothing away.
    """
    removing = [c for c in changes if not c.adopts and (c.takes_away or c.removed)]
    for change in removing:
        if not _is_proven(change, state, index, sessions):
            loss = "be deleted" if change.action is Action.DELETE else "lose values"
            raise PlanRefused(
                f"{change.address} would {loss}, but the audit log does not show that kafkaform "
                "created, adopted or imported this object",
                "If the object is yours, take it out of the state (`kafkaform state rm`), adopt it "
                "again, and then remove it.",
            )
    shared = [c for c in removing if c.takes_away and types[c.identity.kind].left is not None]
    for change in shared:
        own_paths = index.writes.get(change.identity, ObjectWrites()).own_paths
        foreign = sorted(render_path(path) for path in change.removed if path not in own_paths)
        if foreign:
            raise PlanRefused(
                f"{change.address} would lose {', '.join(foreign)}, but the audit log does not "
                "show that kafkaform set or took over these values: the state claims more than was "
                "done",
                "If the object is yours, take it out of the state (`kafkaform state rm`), adopt it "
                "again, and then remove it.",
            )


def _is_proven(
    change: Change, state: State, index: LogIndex, sessions: Mapping[str, Session]
) -> bool:
    row = state.objects.get(change.identity)
    session = sessions.get(change.identity.instance)
    scope = session.facts.scope_id if session else ""
    return row is not None and find_origin(index, row, scope) is not None


def find_origin(index: LogIndex, row: Row, scope_id: str) -> Origin | None:
    """The valid origin of this very object in this system, None if nothing proves that it is ours.

    index: that of the whole log; scope_id: that of the system that answers.
    """
    # Compared as a whole: a row that was edited by hand could name the origin of another object,
    # and the state could name another system.
    origin = index.origins.get(row.origin)
    return origin if origin == Origin(row.identity, row.incarnation, scope_id) else None


class Recheck(Struct, frozen=True):
    """What a look at the objects of a plan works with."""

    plan: Plan
    """The plan that is applied."""
    sessions: Mapping[str, Session]
    """Provider instance -> its session."""
    types: Mapping[str, ResourceType]
    """Resource types by name."""
    state: State
    """The state as it is now."""
    clock: Clock
    """Limits the wait for nodes that disagree."""
    wait: Callable[[float], object]
    """Waits for seconds; raises if the run is to stop."""
    rerun: Rerun = PLAIN_APPLY
    """How the user goes on."""
    applied: Mapping[str, str | None] = EMPTY
    """Step id -> the incarnation that it made, for steps that this run or the run that it resumes
    has applied."""
    whole: bool = False
    """Objects are compared as a whole, and not only in what their changes write."""
    # Only the configuration says which additions of others a block leaves alone.
    remake: Remake | None = None
    """None if the plan was made from another configuration than this one."""
    tell: Tell | None = None
    """None if the log is not asked."""


class Difference(Struct, frozen=True):
    """One way in which an object is not as the plan saw it."""

    text: str
    """What was and what is, for people."""
    path: Path = ()
    """The value that differs; the empty path is the object itself."""


def refuse_if_stale(changes: Sequence[Change], recheck: Recheck) -> None:
    """Read the objects of these changes of the plan again and compare. Raises PlanRefused naming
    what differs, which nodes disagree, or what could not be read, which says nothing about the
    plan."""
    changes = [change for change in changes if not _is_recorded(change, recheck)]
    _refuse_without_session(changes, recheck.sessions)
    readings = _read_objects(changes, recheck)
    _refuse_unread(changes, readings, recheck.rerun)
    doubted = [c.identity for c in changes if _compare_live(c, readings, recheck)]
    disputed, agreed = _ask_all_nodes(doubted, recheck)
    readings = {**readings, **agreed}
    stale: dict[Identity, list[Difference]] = {}
    for change in changes:
        live = [] if change.identity in disputed else _compare_live(change, readings, recheck)
        if differences := [*_compare_row(change, recheck), *live]:
            stale[change.identity] = differences
    for identity in _find_harmless(changes, stale.keys(), readings, recheck):
        del stale[identity]
    if stale or disputed:
        raise _make_error(changes, stale, disputed, recheck)


def _is_recorded(change: Change, recheck: Recheck) -> bool:
    """True for a change of the state alone that was recorded already."""
    return not change.steps and make_bookkeeping_step(change).id in recheck.applied


def _refuse_without_session(changes: Sequence[Change], sessions: Mapping[str, Session]) -> None:
    for change in changes:
        # Forgetting needs no read, and so no session.
        if change.identity.instance not in sessions and change.action is not Action.FORGET:
            raise PlanRefused(
                f'{change.address} belongs to provider instance "{change.identity.instance}", '
                "which this configuration does not use",
                "Apply it from the configuration that it was planned for.",
            )


def _read_objects(changes: Sequence[Change], recheck: Recheck) -> dict[Identity, Reading]:
    readings: dict[Identity, Reading] = {}
    for instance, session in recheck.sessions.items():
        ids = [
            change.identity
            for change in changes
            if change.identity.instance == instance
            # What is forgotten on request is not looked at, so that an object that nobody can see
            # can be let go. Whether it was a request, only the configuration says.
            and (change.action is not Action.FORGET or recheck.remake is not None)
        ]
        if ids:
            readings.update(hide_all_reported(session.read(ids), recheck.state))
            session.prove()
    return readings


# ── what could not be read ──────────────────────────────────────────────────────────────


def _refuse_unread(changes: Sequence[Change], readings: Readings, rerun: Rerun) -> None:
    """Raises PlanRefused if something could not be read, naming each cause once."""
    # A dead node fails ten thousand reads in the same way.
    causes: dict[str, list[Change]] = {}
    advice: dict[str, str] = {}
    for change in changes:
        reading = None if change.action is Action.FORGET else readings.get(change.identity)
        if isinstance(reading, Hidden):
            cause, do = f"needs {reading.right}", f"Grant {reading.right}."
        elif isinstance(reading, Failed):
            cause, do = f"{reading.fault.message} ({reading.fault.code})", _render_advice(reading)
        else:
            continue
        causes.setdefault(cause, []).append(change)
        advice.setdefault(cause, do)
    if causes:
        unread = "; ".join(
            f"{_render_names(changes)}: {reason}" for reason, changes in causes.items()
        )
        raise PlanRefused(
            f"objects of the plan could not be read: {unread}",
            " ".join((*dict.fromkeys(filter(None, advice.values())), rerun.repeat_advice)),
        )


def _render_advice(reading: Failed) -> str:
    """The advice of a fault as a sentence, unless it is to run the command again, which the caller
    says anyway."""
    fault = reading.fault
    if fault.kind in (FaultClass.AMBIGUOUS, FaultClass.NOT_APPLIED) or not fault.advice:
        return ""
    return make_sentence(fault.advice)


def _render_names(changes: Sequence[Change]) -> str:
    """The first few, and the number of the others."""
    hidden_count = len(changes) - SHOWN
    names = ", ".join(change.address for change in changes[:SHOWN])
    return f"{names} and {hidden_count:,} more" if hidden_count > 0 else names


# ── the row ─────────────────────────────────────────────────────────────────────────────


def _compare_row(change: Change, recheck: Recheck) -> Iterator[Difference]:
    """How the object's record in the state differs from the one that the plan saw."""
    if any(step.id in recheck.applied for step in change.steps):
        return
    row = recheck.state.objects.get(change.identity)
    pairs = [*_list_ownership(row, change), *(_list_books(row, change) if row else ())]
    differing = [(name, was, now) for name, was, now in pairs if was != now]
    if differing:
        named = ", ".join(render_sides(name, *map(_render_text, w)) for name, *w in differing)
        yield Difference(f"its record in the state changed: {named}")
    # Nothing else of a forgotten object is compared, so its id has to be: a later object of that
    # name is another one.
    elif change.action is Action.FORGET and row and row.incarnation != change.incarnation:
        yield Difference("its record in the state belongs to another object now")


def _list_ownership(row: Row | None, change: Change) -> Iterator[tuple[str, Value, Value]]:
    now, was = row.ownership if row else Ownership(), change.row_before
    yield "owners", was.owners, now.owners
    yield "protected", was.protected, now.protected
    yield "secret version", was.secret_version, now.secret_version


def _list_books(row: Row, change: Change) -> Iterator[tuple[str, Value, Value]]:
    """Owner, labels and the time of parking, as the plan saw them and as they are recorded now."""
    if change.adopts or change.action is Action.CREATE:
        return  # what an earlier row says does not count then
    before = {item.path: item.before for item in change.paths}
    yield "owner", before.get(("owner",), change.owner), row.owner
    yield PARK, before.get((PARK,), change.park), row.park
    for key in sorted({*row.labels, *change.labels}):
        was = before.get(("labels", key), change.labels.get(key))
        yield f"labels.{key}", was, row.labels.get(key)


def _render_text(value: Value) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else inline(str(value))


# ── the live object ─────────────────────────────────────────────────────────────────────


def _compare_live(change: Change, readings: Readings, recheck: Recheck) -> list[Difference]:
    """How the live object differs from the one that the plan saw."""
    reading = readings.get(change.identity)
    if change.action is Action.FORGET:
        return [] if reading is None or isinstance(reading, Absent) else [Difference(RETURNED)]
    if reading is None or isinstance(reading, Hidden | Failed):
        return []
    reading = resolve_absence(reading, change.before)
    assert isinstance(reading, Observed | Absent)
    applied = [step.id for step in change.steps if step.id in recheck.applied]
    if isinstance(reading, Absent):
        gone = change.action is Action.CREATE or (change.action is Action.DELETE and applied)
        return [] if gone else [Difference("it no longer exists")]
    if change.action is Action.CREATE:
        if change.row_after.is_shared and change.after and equals_target(change.after, reading):
            return []  # another folder was faster, and wanted the same
        incarnations = {recheck.applied[step_id] for step_id in applied}
        return [] if reading.incarnation in incarnations else [Difference("it exists now")]
    if reading.incarnation != change.incarnation:
        return [Difference("it was deleted and recreated")]
    return list(_compare_values(change, reading, recheck))


def _compare_values(change: Change, reading: Observed, recheck: Recheck) -> Iterator[Difference]:
    """Each value that is neither as planned nor as this run wrote it."""
    kind = recheck.types[change.identity.kind]
    facts = recheck.sessions[change.identity.instance].facts
    live = canonicalize_reading(reading, kind, facts)
    names, expected = _list_names(change, recheck), _Expected.of(change, recheck)
    before, after = flatten(change.before), flatten(change.after)
    now = {p: v for p, v in flatten(live.attributes).items() if p[0] in names}
    foreign = live.foreign - before.keys() - after.keys()
    for path in sorted(now.keys() | {p for p in before if p[0] in names}):
        if path in expected.open or path in foreign or now.get(path) == before.get(path):
            continue
        # Reads lag behind writes, so what we wrote may show its value before or after.
        if path in expected.written and now.get(path) == after.get(path):
            continue
        sides = (render_leaf(path, side.get(path), kind) for side in (before, now))
        yield Difference(render_sides(render_path(path), *sides), path)


def _list_names(change: Change, recheck: Recheck) -> set[str]:
    """The attributes that have to be as the plan saw them."""
    started = any(step.id in recheck.applied for step in change.steps)
    if started or not recheck.whole:
        return {item.path[0] for item in change.paths} & {*(change.before or EMPTY)}
    managed = {name for name, value in (change.after or EMPTY).items() if value is not None}
    return managed | {*(change.before or EMPTY)}


class _Expected(Struct, frozen=True):
    """The paths of one object that may differ from what the plan saw."""

    written: Collection[Path]
    """What this run wrote."""
    open: Collection[Path]
    """What a run is still changing, what another change of the plan wrote to the same object of the
    system, and what a step about another object changed on its way."""

    @classmethod
    def of(cls, change: Change, recheck: Recheck) -> _Expected:
        """Those of this change."""
        applied, identity = recheck.applied, change.identity
        written = {p for step in change.steps if step.id in applied for p in step.paths}
        # A step that waits for another one starts from what that one left, and no record says what.
        halfway = {
            path
            for step in change.steps
            if step.id not in applied and any(need in applied for need in step.after)
            for path in step.paths
        }
        # An object and its settings that another block declares are one object of the system.
        beside = {
            path
            for planned in (recheck.plan.effective if applied else ())
            if planned.identity != identity
            and (planned.identity.instance, planned.identity.key)
            == (identity.instance, identity.key)
            for step in planned.steps
            if step.id in applied
            for path in step.paths
        }
        altered = {
            effect.path
            for planned in (recheck.plan.effective if applied else ())
            for step in planned.steps
            if step.id in applied
            for effect in step.alters
            if effect.identity == identity
        }
        return cls(written, halfway | beside | altered)


# ── a second opinion ────────────────────────────────────────────────────────────────────


def _ask_all_nodes(
    doubted: Sequence[Identity], recheck: Recheck
) -> tuple[Mapping[Identity, Views], Readings]:
    """The objects on which the nodes disagree even after a wait, and what they agree on for the
    others."""
    disputed: dict[Identity, Views] = {}
    agreed: dict[Identity, Reading] = {}
    for instance, session in recheck.sessions.items():
        ids = [identity for identity in doubted if identity.instance == instance]
        if not ids or len(session.live_nodes()) < 2:
            continue
        seconds = min(AGREEMENT_SECONDS, session.facts.operation_timeout)
        disputed.update(await_agreement(session, ids, seconds, recheck.clock, recheck.wait))
        if agreeing := [identity for identity in ids if identity not in disputed]:
            agreed.update(hide_all_reported(session.read(agreeing), recheck.state))
        session.prove()
    return disputed, agreed


def _find_harmless(
    changes: Sequence[Change],
    differing: Collection[Identity],
    readings: Readings,
    recheck: Recheck,
) -> list[Identity]:
    """The objects of which others changed only what the plan leaves to them: a new plan would have
    the very same change."""
    differing_readings = {
        identity: readings[identity] for identity in differing if identity in readings
    }
    if not differing_readings or recheck.remake is None:
        return []
    planned = {change.identity: change for change in changes}
    return [
        identity
        for identity, remade in recheck.remake(differing_readings).items()
        if is_same_change(remade, planned[identity])
    ]


# ── the error ───────────────────────────────────────────────────────────────────────────


def _make_error(
    changes: Sequence[Change],
    stale: Mapping[Identity, Sequence[Difference]],
    disputed: Mapping[Identity, Views],
    recheck: Recheck,
) -> PlanRefused:
    causes, advice = [], []
    if stale:
        causes.append(f"the plan is stale: {_render_stale(changes, stale, recheck)}")
        advice.append(recheck.rerun.new_plan_advice)
    if disputed:
        words = recheck.sessions[next(iter(disputed)).instance].words
        causes.append(f"the {words.node}s disagree: {_render_disputed(changes, disputed, recheck)}")
        advice.append(
            f"Wait a minute. {recheck.rerun.new_plan_advice} If a {words.node} still differs then, "
            "it does not follow the others: set the value that you want with `kafkaform alter`, "
            f"which reaches all {words.node}s."
        )
    return PlanRefused("; ".join(causes), " ".join(advice))


def _render_stale(
    changes: Iterable[Change], stale: Mapping[Identity, Sequence[Difference]], recheck: Recheck
) -> str:
    # Somebody who changed a thousand objects in the same way is one cause.
    groups: dict[str, list[Change]] = {}
    for change in changes:
        if change.identity in stale:
            text = _render_differences(stale[change.identity])
            groups.setdefault(text, []).append(change)
    listed = dict(list(groups.items())[:SHOWN])
    named = [change for group in listed.values() for change in group[:SHOWN]]
    paths = {c.identity: [item.path for item in stale[c.identity]] for c in named}
    writer_texts = recheck.tell(paths) if recheck.tell else {}
    texts = []
    for text, group in listed.items():
        writers = dict.fromkeys(writer_texts.get(change.identity, "") for change in group[:SHOWN])
        by = "; ".join(filter(None, writers))
        texts.append(f"{_render_names(group)}: {text}{f' ({by})' if by else ''}")
    hidden_count = sum(len(group) for group in list(groups.values())[SHOWN:])
    return "; ".join(texts) + (f"; and {hidden_count:,} more" if hidden_count > 0 else "")


def _render_differences(differences: Sequence[Difference]) -> str:
    hidden_count = len(differences) - SHOWN
    texts = [difference.text for difference in differences[:SHOWN]]
    return ", ".join(texts) + (f", and {hidden_count} more" if hidden_count > 0 else "")


def _render_disputed(
    changes: Iterable[Change], disputed: Mapping[Identity, Views], recheck: Recheck
) -> str:
    texts = []
    for change in [change for change in changes if change.identity in disputed][:SHOWN]:
        identity, session = change.identity, recheck.sessions[change.identity.instance]
        kind, noun = recheck.types[identity.kind], session.words.node
        differences = describe_disagreement(disputed[identity], kind, session.facts, noun)
        texts.append(f"{change.address}: {differences}")
    return _join_shown(texts, len(disputed))


def _join_shown(texts: Sequence[str], number: int) -> str:
    hidden_count = number - len(texts)
    return "; ".join(texts) + (f"; and {hidden_count} more" if hidden_count > 0 else "")
