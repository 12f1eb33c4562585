"""Refuse a plan if the world is no longer the one that was reviewed: one difference is enough.

Only what the plan touches is compared, so that other people's merges do not make a review stale.
Each attribute that a change writes is compared as a whole: an entry that somebody added to a map
that the block owns is noticed, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from ..audit.index import LogIndex
from ..core.change import Action, Change, Ownership, Path
from ..core.errors import OtherSystem, PlanRefused
from ..core.resource import Absent, Failed, FaultClass, Hidden, Identity, Observed, Reading
from ..core.value import EMPTY
from ..plan.approval import RULE, compute_approval
from ..plan.diff import flatten, render_path
from ..plan.model import Mode, Plan
from ..plan.observe import resolve_absence
from ..provider.contract import Provider, ResourceType, Session, collect_types
from ..state.model import State
from .again import APPLY, Again
from .judge import canonicalize_reading
from .ledger import make_bookkeeping_step
from .provenance import find_origin

AGAIN = "Plan again and have the new plan reviewed."
SHOWN = 5


def refuse_if_altered(plan: Plan, providers: Mapping[str, Provider]) -> None:
    """Raises PlanRefused for a plan whose approval or steps do not follow from its changes, because
    the file was altered by hand, and for one that was approved by other rules than today's."""
    if plan.rule != RULE:
        raise PlanRefused(
            "the plan was approved under the rules of another version of kafkaform, which covered "
            "other parts of a plan",
            AGAIN,
        )
    if not _is_consistent(plan, providers):
        raise PlanRefused(
            "the plan was altered: its approval or its steps do not match its changes", AGAIN
        )


def refuse_if_foreign(plan: Plan, state: State, sessions: Mapping[str, Session]) -> None:
    """Raises PlanRefused for a plan of another state, and OtherSystem for one of another system."""
    if plan.lineage != state.lineage:
        raise PlanRefused("the plan was made for another state", AGAIN)
    needed = {c.identity.instance for c in plan.effective if c.action is not Action.FORGET}
    for instance, planned in plan.instances.items():
        if instance not in sessions and instance in needed:
            raise PlanRefused(f'provider instance "{instance}" is not configured here', AGAIN)
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
        kept = all(flatten(c.after).keys() >= {*c.theirs} for c in plan.effective)
        return (
            kept
            and _fits_mode(plan)
            and compute_approval(plan) == plan.approval
            and not _has_altered_steps(plan, providers)
        )
    except (AttributeError, LookupError, TypeError, ValueError):
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


Written = Callable[[Collection[Identity]], Mapping[Identity, Collection[Path]]]
"""Identities -> for each the paths that the audit log shows as written or taken over by us."""


def refuse_unproven_removals(
    changes: Iterable[Change],
    state: State,
    index: LogIndex,
    sessions: Mapping[str, Session],
    types: Mapping[str, ResourceType],
    written: Written,
) -> None:
    """Raises PlanRefused for a change that takes away what is not proven to be ours.

    A deletion, a release, and an update that removes a path need a row with a valid origin: the
    record that made, adopted or imported that very object in the system that answers. From an
    object that others share (`ResourceType.left`), a deletion or release removes only paths that
    the log shows as ours. So a row that was written into the state by hand takes nothing away.
    """
    asked = [c for c in changes if not c.adopts and (c.takes_away or c.removed)]
    for change in asked:
        if not _is_proven(change, state, index, sessions):
            what = "be deleted" if change.action is Action.DELETE else "lose values"
            raise PlanRefused(
                f"{change.address} would {what}, but the audit log does not show that kafkaform "
                "created, adopted or imported this object",
                "If the object is yours, take it out of the state (`kafkaform state rm`), adopt it "
                "again, and then remove it.",
            )
    shared = [c for c in asked if c.takes_away and types[c.identity.kind].left is not None]
    ours = written({change.identity for change in shared}) if shared else {}
    for change in shared:
        mine = ours.get(change.identity, ())
        foreign = sorted(render_path(path) for path in change.removed if path not in mine)
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


def refuse_if_stale(
    changes: Sequence[Change],
    sessions: Mapping[str, Session],
    types: Mapping[str, ResourceType],
    state: State,
    applied: Mapping[str, str | None],
    again: Again = APPLY,
) -> None:
    """Read every touched object again and compare. Raises PlanRefused naming what differs, or what
    could not be read, which says nothing about the plan.

    applied: step id -> incarnation that it made, for steps that this run or the run that it resumes
    has applied; again: how the user goes on.
    """
    _refuse_without_session(changes, sessions)
    readings = list(_read_changes(changes, sessions))
    _refuse_unread(readings, again)
    problems: dict[str, list[Change]] = {}
    for change, reading in readings:
        problem = _find_row_problem(change, state, applied) or _find_live_problem(
            change, reading, types, sessions, applied
        )
        if problem:
            problems.setdefault(problem, []).append(change)
    if problems:
        texts = [f"{_render_names(changes)}: {problem}" for problem, changes in problems.items()]
        more = sum(map(len, list(problems.values())[SHOWN:]))
        listed = "; ".join(texts[:SHOWN]) + (f"; and {more:,} more" if more > 0 else "")
        raise PlanRefused(f"the plan is stale: {listed}", again.anew)


def _refuse_unread(readings: Iterable[tuple[Change, Reading | None]], again: Again) -> None:
    """Raises PlanRefused if something could not be read, naming each cause once."""
    # A dead node fails ten thousand reads in the same way.
    causes: dict[str, list[Change]] = {}
    advice: dict[str, str] = {}
    for change, reading in readings:
        if isinstance(reading, Hidden):
            cause, do = f"needs {reading.right}", f"Grant {reading.right}."
        elif isinstance(reading, Failed):
            cause, do = f"{reading.fault.message} ({reading.fault.code})", _render_advice(reading)
        else:
            continue
        causes.setdefault(cause, []).append(change)
        advice.setdefault(cause, do)
    if causes:
        unread = "; ".join(f"{_render_names(changes)}: {why}" for why, changes in causes.items())
        raise PlanRefused(
            f"objects of the plan could not be read: {unread}",
            " ".join((*dict.fromkeys(filter(None, advice.values())), again.repeat)),
        )


def _render_advice(reading: Failed) -> str:
    """The advice of a fault as a sentence, unless it is to run the command again, which the caller
    says anyway."""
    fault = reading.fault
    if fault.kind in (FaultClass.AMBIGUOUS, FaultClass.NOT_APPLIED) or not fault.advice:
        return ""
    return f"{fault.advice[0].upper()}{fault.advice[1:].rstrip('.')}."


def _render_names(changes: Sequence[Change]) -> str:
    """The first few, and the number of the others."""
    more = len(changes) - SHOWN
    names = ", ".join(change.address for change in changes[:SHOWN])
    return f"{names} and {more:,} more" if more > 0 else names


def _refuse_without_session(changes: Sequence[Change], sessions: Mapping[str, Session]) -> None:
    for change in changes:
        # Forgetting needs no read, and so no session.
        if change.identity.instance not in sessions and change.action is not Action.FORGET:
            raise PlanRefused(
                f'{change.address} belongs to provider instance "{change.identity.instance}", '
                "which this configuration does not use",
                "Apply it from the configuration that it was planned for.",
            )


def _read_changes(
    changes: Sequence[Change], sessions: Mapping[str, Session]
) -> Iterator[tuple[Change, Reading | None]]:
    readings: dict[Identity, Reading] = {}
    for instance, session in sessions.items():
        ids = [
            change.identity
            for change in changes
            # Forgetting needs no read, so an object that nobody can see can still be let go.
            if change.identity.instance == instance and change.action is not Action.FORGET
        ]
        if ids:
            readings.update(session.read(ids))
            session.prove()
    for change in changes:
        yield change, readings.get(change.identity)


def _find_row_problem(change: Change, state: State, applied: Collection[str]) -> str | None:
    if any(step.id in applied for step in change.steps or (make_bookkeeping_step(change),)):
        return None
    row = state.objects.get(change.identity)
    if (row.ownership if row else Ownership()) != change.row_before:
        return "its record in the state changed"
    # Nothing else of a forgotten object is compared, so its id has to be: a later object of that
    # name is another one.
    if change.action is Action.FORGET and row and row.incarnation != change.incarnation:
        return "its record in the state belongs to another object now"
    return None


def _find_live_problem(
    change: Change,
    reading: Reading | None,
    types: Mapping[str, ResourceType],
    sessions: Mapping[str, Session],
    applied: Mapping[str, str | None],
) -> str | None:
    if reading is None or isinstance(reading, Hidden | Failed):
        return None
    reading = resolve_absence(reading, change.before)
    assert isinstance(reading, Observed | Absent)
    done = [step.id for step in change.steps if step.id in applied]
    if isinstance(reading, Absent):
        if change.action is Action.CREATE or (change.action is Action.DELETE and done):
            return None
        return "it no longer exists"
    if change.action is Action.CREATE:
        made = {applied[step_id] for step_id in done}
        return None if reading.incarnation in made else "it exists now"
    if reading.incarnation != change.incarnation:
        return "it was deleted and recreated"
    facts = sessions[change.identity.instance].facts
    live = canonicalize_reading(reading, types[change.identity.kind], facts)
    written = {path for step in change.steps if step.id in applied for path in step.paths}
    # A step that waits for another one starts from what that one left, and no record says what.
    halfway = {
        path
        for step in change.steps
        if step.id not in applied and any(need in applied for need in step.after)
        for path in step.paths
    }
    return _find_difference(change, live, written, halfway)


def _find_difference(
    change: Change, live: Observed, written: Collection[Path], halfway: Collection[Path]
) -> str | None:
    """The first path of the touched attributes that is neither as planned nor as we wrote it.

    written: paths that this run wrote; halfway: paths that it is still changing.
    """
    names = {item.path[0] for item in change.paths}
    before, after = flatten(change.before), flatten(change.after or EMPTY)
    now = {p: v for p, v in flatten(live.attributes).items() if p[0] in names}
    managed = set(change.before or EMPTY)
    others = live.foreign - before.keys() - after.keys()
    for path in sorted(now.keys() | {p for p in before if p[0] in names}):
        if path[0] not in managed or path in halfway or path in others:
            continue
        if now.get(path) == before.get(path):
            continue
        # Reads lag behind writes, so what we wrote may show its value before or after.
        if path in written and now.get(path) == after.get(path):
            continue
        return f"{render_path(path)} changed"
    return None
