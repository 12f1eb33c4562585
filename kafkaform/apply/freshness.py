"""Refuse a plan that was altered, was made for another state or system, or takes away what is not
proven to be ours. `recheck` compares the objects themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from ..audit.index import LogIndex, Origin
from ..core.change import Action, Change, Path
from ..core.errors import OtherSystem, PlanRefused
from ..core.resource import Identity
from ..plan.approval import RULE, compute_approval
from ..plan.diff import flatten, render_path
from ..plan.model import Mode, Plan
from ..provider.contract import Provider, ResourceType, Session, collect_types
from ..state.model import Row, State

AGAIN = "Plan again and have the new plan reviewed."


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
        complete = all(flatten(c.after).keys() >= {*c.theirs} for c in plan.effective)
        return (
            complete
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
    written_paths = written({change.identity for change in shared}) if shared else {}
    for change in shared:
        own_paths = written_paths.get(change.identity, ())
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
