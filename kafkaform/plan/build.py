"""How a plan is made. `make_plan` is the story; every line of it is one idea.

Declared, observed and recorded objects meet in claims. Each claim becomes one change. The
selection narrows the changes; rules, guards and the provider's review block what must not happen.
What is left gets its steps, and the approval digest covers exactly that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.change import Change
from ..core.diagnostics import has_errors
from ..core.errors import ConfigurationError
from ..core.resource import Desired, Identity, Pending, World
from ..provider.contract import Provider
from ..state.model import State
from .approval import seal_plan
from .case import open_cases
from .guards import apply_guards
from .instances import PlanHeader, collect_known_types, describe_instances, refuse_other_scopes
from .lifecycle import decide
from .model import Mode, Options, Plan
from .observe import Look, note_disagreements, note_progress
from .outputs import compare_outputs
from .ownership import make_claims
from .review import add_impacts, add_steps, check_change, review_changes
from .risks import add_risks
from .select import narrow_changes
from .uses import order_by_uses, tell_missing_rights


def make_plan(
    desired: Desired,
    world: World,
    state: State,
    pending: Sequence[Pending],
    providers: Mapping[str, Provider],
    look: Look,
    options: Options,
    header: PlanHeader,
) -> Plan:
    """The plan that brings the world to what is desired.

    pending: what earlier runs left open; providers: provider instance -> its provider. Raises
    PlanRefused if an instance answers with another scope id than the state recorded,
    ConfigurationError for faults of import blocks, UsageError for a selection that names nothing.
    """
    refuse_other_scopes(world, state, providers)
    types = collect_known_types(providers, state)
    facts = {instance: seen.facts for instance, seen in world.items()}
    claims, faults = make_claims(desired, state, types, options)
    if has_errors(faults):
        raise ConfigurationError("the import blocks have faults", diagnostics=faults)
    cases = open_cases(claims, world, types, pending, providers, options)
    changes: Sequence[Change] = [decide(case) for case in cases]
    changes = order_by_uses(note_disagreements(changes, world, types, providers), types, facts)
    # The selection comes before everything that judges, so that --exclude can go around an object
    # that nobody can read, and a guard counts only what the plan would do.
    changes = narrow_changes(changes, options)
    # A refresh sends nothing that has to be judged, and applies no outputs.
    refreshes = options.mode is Mode.REFRESH
    warnings: Mapping[str, tuple[str, ...]] = {}
    if refreshes:
        # Values without requests have units, and no risks.
        changes = [add_risks(change, types, facts) for change in changes]
    else:
        changes = [add_risks(check_change(one, types, facts), types, facts) for one in changes]
        changes = apply_guards(changes, desired, state, options)
        changes, warnings = review_changes(changes, providers, look, facts, options.accept)
        changes = tell_missing_rights(changes, types, providers, look, facts)
        changes = [add_steps(change, types, facts) for change in changes]
        changes = add_impacts(changes, look, providers, state)
    listed = tuple(change for change in changes if change.is_listed)
    return seal_plan(
        Plan(
            lineage=state.lineage,
            serial=state.serial,
            configuration=desired.digest,
            instances=describe_instances(world, header, warnings),
            changes=listed,
            unchanged=len(changes) - len(listed),
            options=options,
            outputs=() if refreshes else compare_outputs(desired, state),
            diagnostics=desired.diagnostics,
            pending=tuple(note_progress(item, world) for item in pending),
            audit_head=header.audit_head,
            created=header.created,
            kafkaform_version=header.kafkaform_version,
            sources=desired.sources,
        )
    )


def remake_changes(
    plan: Plan,
    desired: Desired,
    state: State,
    seen: World,
    pending: Sequence[Pending],
    providers: Mapping[str, Provider],
) -> Mapping[Identity, Change]:
    """The changes that a new plan would have for the objects that were seen, before anything judges
    them. plan: made from this configuration, with its options."""
    types = collect_known_types(providers, state)
    wanted = {identity for one in seen.values() for identity in one.readings}
    claims = make_claims(desired, state, types, plan.options)[0]
    mine = [claim for claim in claims if claim.identity in wanted]
    cases = open_cases(mine, seen, types, pending, providers, plan.options)
    return {case.claim.identity: decide(case) for case in cases}
