"""How a plan is made. `make_plan` is the story; every line of it is one idea.

Declared, observed and recorded objects meet in claims. Each claim becomes one change. The
selection narrows the changes; rules, guards and the provider's review block what must not happen.
What is left gets its steps, and the approval digest covers exactly that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ..core.change import Change
from ..core.diagnostics import has_errors
from ..core.errors import ConfigurationError
from ..core.finding import Finding
from ..core.resource import Desired, Facts, Identity, Pending, World
from ..provider.contract import Provider, ResourceType, collect_types
from ..state.model import State
from .approval import seal_plan
from .case import collect_remarks, open_cases, outline_change, outline_unread
from .guards import apply_guards, guard_losses
from .instances import PlanHeader, compare_outputs, describe_instances, refuse_other_scopes
from .judge import judge_changes, judge_refreshes, load_books, survey_changes
from .lifecycle import decide
from .measure import add_impacts, add_steps, complete_paths
from .model import Mode, Options, Plan
from .observe import Look, note_disagreements, note_progress
from .ownership import make_claims
from .select import (
    hold_dependents,
    hold_for_untyped,
    narrow_changes,
    select_unread,
    set_untyped_aside,
)
from .uses import order_by_uses, tell_missing_rights, tell_missing_uses


def make_plan(
    desired: Desired,
    world: World,
    state: State,
    pending: Sequence[Pending],
    providers: Mapping[str, Provider],
    look: Look,
    options: Options,
    header: PlanHeader,
    lifted: Sequence[str] = (),
) -> Plan:
    """The plan that brings the world to what is desired.

    pending: what earlier runs left open; providers: provider instance -> its provider; lifted: what
    waivers accept besides `options.accept`. Raises PlanRefused if an instance answers with another
    scope id than recorded, ConfigurationError for faults of import blocks, UsageError for a
    selection that names nothing, StorageError for selected objects of unknown types.
    """
    refuse_other_scopes(world, state, providers)
    state, untyped = set_untyped_aside(state, providers, options)
    types = _collect_types(providers)
    facts = {instance: observation.facts for instance, observation in world.items()}
    claims, faults = make_claims(desired, state, types, options)
    if has_errors(faults):
        raise ConfigurationError("the import blocks have faults", diagnostics=faults)
    cases = tuple(open_cases(claims, world, types, pending, providers, options))
    changes: Sequence[Change] = list(map(decide, cases))
    changes = note_disagreements(changes, world, types, providers)
    changes = order_by_uses(changes, types, facts, outline_unread(changes, claims, types, facts))
    # Before all that judges, so that --exclude goes around an object that nobody can read.
    changes = narrow_changes(changes, options, look.unasked, untyped, desired.unread)
    changes = hold_for_untyped(hold_dependents(changes, desired.unread), untyped)
    # A refresh sends nothing that could be blocked, and its outputs are those of the last apply.
    refreshes = options.mode is Mode.REFRESH
    remarks: Mapping[str, tuple[Finding, ...]] = {}
    if refreshes:
        changes = _judge_refreshes(changes, state, providers, facts)
    else:
        wider = _accept_more(options, lifted)
        changes, remarks = _judge_changes(changes, desired, state, providers, look, wider)
    listed = tuple(change for change in changes if change.is_listed)
    return seal_plan(
        Plan(
            lineage=state.lineage,
            serial=state.serial,
            configuration=desired.digest,
            unevaluated=select_unread(desired.unread, options),
            instances=describe_instances(world, header, remarks, look, collect_remarks(cases)),
            changes=listed,
            unchanged=len(changes) - len(listed),
            options=options,
            outputs=() if refreshes else compare_outputs(desired, state, changes),
            diagnostics=desired.diagnostics,
            pending=tuple(note_progress(item, world) for item in pending),
            audit_head=header.audit_head,
            created=header.created,
            kafkaform_version=header.kafkaform_version,
            sources=desired.sources,
        )
    )


def _collect_types(providers: Mapping[str, Provider]) -> Mapping[str, ResourceType]:
    """The types of all providers by name."""
    return {name: kind for provider in providers.values() for name, kind in provider.types.items()}


def remake_changes(
    plan: Plan,
    desired: Desired,
    state: State,
    world: World,
    pending: Sequence[Pending],
    providers: Mapping[str, Provider],
) -> Mapping[Identity, Change]:
    """The changes that a new plan would have for the objects that were seen, before anything judges
    them. plan: made from this configuration, with its options."""
    state, _ = set_untyped_aside(state, providers, plan.options)
    types = collect_types(providers.values())
    identities = {identity for observation in world.values() for identity in observation.readings}
    claims = make_claims(desired, state, types, plan.options)[0]
    concerned = [claim for claim in claims if claim.identity in identities]
    cases = open_cases(concerned, world, types, pending, providers, plan.options)
    return {case.claim.identity: decide(case) for case in cases}


def _accept_more(options: Options, lifted: Sequence[str]) -> Options:
    return replace(options, accept=(*options.accept, *lifted)) if lifted else options


def _judge_refreshes(
    changes: Sequence[Change],
    state: State,
    providers: Mapping[str, Provider],
    facts: Mapping[str, Facts],
) -> Sequence[Change]:
    types = _collect_types(providers)
    changes = [complete_paths(change, types, facts) for change in changes]
    return judge_refreshes(changes, state, load_books(providers), facts)


def _judge_changes(
    changes: Sequence[Change],
    desired: Desired,
    state: State,
    providers: Mapping[str, Provider],
    look: Look,
    options: Options,
) -> tuple[Sequence[Change], Mapping[str, tuple[Finding, ...]]]:
    """The changes with all that rules and guards find about them and with their steps, and what
    the rules find about each provider instance."""
    types = _collect_types(providers)
    facts = {instance: observation.facts for instance, observation in look.world.items()}
    reached = {
        instance: provider for instance, provider in providers.items() if instance in look.sessions
    }
    books = load_books(providers)
    changes = judge_changes(
        [complete_paths(change, types, facts) for change in changes], books, facts
    )
    changes = apply_guards(changes, desired, state, options)
    changes, remarks = survey_changes(changes, reached, books, look, facts, options.accept)
    changes = guard_losses(changes, state, options)
    changes = tell_missing_uses(changes, types, reached, look, facts)
    changes = tell_missing_rights(changes, types, reached, look, facts)
    changes = [add_steps(change, types, facts) for change in changes]
    return hold_dependents(add_impacts(changes, look, providers, state)), remarks


def select_instances(
    desired: Desired, state: State, providers: Mapping[str, Provider], options: Options
) -> frozenset[str]:
    """The provider instances of the objects that the selection keeps, found before any is read.

    providers: also those of recorded objects. Raises UsageError for a selection that names nothing.
    """
    state, untyped = set_untyped_aside(state, providers, options)
    types = _collect_types(providers)
    claims = make_claims(desired, state, types, options)[0]
    names = sorted({claim.identity.instance for claim in claims})
    facts = {name: Facts(str(state.providers.get(name, ""))) for name in names}
    outlines = [
        outline_change(claim, types[claim.identity.kind], facts[claim.identity.instance])
        for claim in claims
    ]
    outlined = order_by_uses(outlines, types, facts)
    selected = narrow_changes(outlined, options, untyped=untyped, unread=desired.unread)
    return frozenset(change.identity.instance for change in selected)
