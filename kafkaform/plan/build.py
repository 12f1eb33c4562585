"""How a plan is made. `make_plan` is the story; every line of it is one idea.

Declared, observed and recorded objects meet in claims. Each claim becomes one change. The
selection narrows the changes; rules, guards and the provider's review block what must not happen.
What is left gets its steps, and the approval digest covers exactly that.

A command makes a plan without a configuration: it names objects and how they are to differ. Rules,
review and steps are those of every plan. Nothing is owned afterwards: such a change leaves no row
in the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import Action, Change, Impact, Ownership, Path, PathChange, add_findings
from ..core.diagnostics import has_errors
from ..core.errors import ConfigurationError, PlanRefused
from ..core.finding import UNREAD, Finding, Harm
from ..core.resource import (
    NO_OBJECTS,
    Absent,
    Desired,
    Facts,
    Failed,
    FolderObjects,
    Hidden,
    Identity,
    InstanceWorld,
    Output,
    Pending,
    Reading,
    World,
)
from ..core.secret import mask_secrets
from ..core.value import EMPTY, FrozenMap
from ..core.words import NEUTRAL
from ..provider.contract import Provider, ResourceType, collect_types
from ..state.model import State
from .claims import Case, collect_remarks, make_claims, open_cases, outline_change, outline_unread
from .consequences import tell_consequences, tell_managed_users
from .diff import compare, select_managed
from .judge import (
    apply_guards,
    guard_deletions,
    guard_losses,
    judge_changes,
    judge_refreshes,
    load_books,
    survey_changes,
)
from .lifecycle import decide
from .model import Mode, Options, OutputChange, Plan, PlanInstance, Unmanaged, seal_plan
from .observe import Look, compute_destination, note_disagreements, note_progress
from .parking import drop_idle_closures, list_waiting
from .rules import UNREADABLE, judge_boundary
from .select import (
    hold_dependents,
    hold_for_untyped,
    narrow_changes,
    select_unread,
    set_untyped_aside,
    wait_for,
)
from .uses import (
    name_users,
    order_by_uses,
    tell_missing_rights,
    tell_missing_uses,
)

NAMES_SHOWN = 10
"""How many unmanaged objects of a kind a plan names."""

MEASURED = (Harm.DATA_LOSS, Harm.MOVE)
"""Harms of which it is worth knowing how much data they are about."""
Edit = Callable[[FrozenMap | None], FrozenMap | None]
"""Attributes of an object (None: it does not exist) -> the wanted ones (None: remove it)."""


class PlanHeader(Struct, frozen=True):
    """What a plan says about itself. It is shown, never approved."""

    created: str
    """When the plan was made, RFC 3339, UTC."""
    kafkaform_version: str
    """The version that made it."""
    audit_head: str = ""
    """The end of the log that the plan follows from."""
    display: FrozenMap = FrozenMap()
    """Provider instance -> its connection settings, without secrets."""


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
    cases = _open_cases(desired, state, world, types, pending, providers, options)
    changes: Sequence[Change] = list(map(decide, cases))
    changes = note_disagreements(changes, world, types, providers)
    claims = [case.claim for case in cases]
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
        wider = replace(options, accept=(*options.accept, *lifted)) if lifted else options
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


def _open_cases(
    desired: Desired,
    state: State,
    world: World,
    types: Mapping[str, ResourceType],
    pending: Sequence[Pending],
    providers: Mapping[str, Provider],
    options: Options,
) -> tuple[Case, ...]:
    """The case of each object. Raises ConfigurationError for faults of import blocks."""
    desired = settle_closures(desired, state, world, types, pending, providers, options)
    claims, faults = make_claims(desired, state, types, options)
    if has_errors(faults):
        raise ConfigurationError("the import blocks have faults", diagnostics=faults)
    return tuple(open_cases(claims, world, types, pending, providers, options, desired.parked))


def _collect_types(providers: Mapping[str, Provider]) -> Mapping[str, ResourceType]:
    """The types of all providers by name."""
    return {name: kind for provider in providers.values() for name, kind in provider.types.items()}


def remake_changes(
    options: Options,
    desired: Desired,
    state: State,
    world: World,
    pending: Sequence[Pending],
    providers: Mapping[str, Provider],
) -> Mapping[Identity, Change]:
    """The changes that a new plan would have for the objects that were seen, before anything judges
    them. options: those of the plan."""
    state, _ = set_untyped_aside(state, providers, options)
    types = collect_types(providers.values())
    desired = settle_closures(desired, state, world, types, pending, providers, options)
    identities = {identity for observation in world.values() for identity in observation.readings}
    claims = make_claims(desired, state, types, options)[0]
    concerned = [claim for claim in claims if claim.identity in identities]
    cases = open_cases(concerned, world, types, pending, providers, options, desired.parked)
    return {case.claim.identity: decide(case) for case in cases}


def settle_closures(
    desired: Desired,
    state: State,
    world: World,
    types: Mapping[str, ResourceType],
    pending: Sequence[Pending],
    providers: Mapping[str, Provider],
    options: Options,
) -> Desired:
    """What is desired, with the closures of just those objects that wait for their deletion."""
    if not desired.parked:
        return desired
    claims = make_claims(desired, state, types, options)[0]
    candidates = [
        claim
        for claim in claims
        if claim.identity in desired.parked
        and claim.identity in world[claim.identity.instance].readings
    ]
    cases = open_cases(candidates, world, types, pending, providers, options, desired.parked)
    return drop_idle_closures(desired, list_waiting(map(decide, cases), desired.parked, state))


def _judge_refreshes(
    changes: Sequence[Change],
    state: State,
    providers: Mapping[str, Provider],
    facts: Mapping[str, Facts],
) -> Sequence[Change]:
    types = _collect_types(providers)
    changes = [complete_paths(change, types) for change in changes]
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
    changes = judge_changes([complete_paths(change, types) for change in changes], books, facts)
    changes = judge_boundary(changes, desired.fence, providers)
    changes = apply_guards(changes, desired, state, options)
    changes, remarks = survey_changes(changes, reached, books, look, facts, options.accept)
    changes, remarks = tell_consequences(changes, remarks, reached, look, options)
    changes = tell_managed_users(changes, providers, look, state)
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


# ── the parts of a plan ─────────────────────────────────────────────────────────────────


def refuse_other_scopes(world: World, state: State, providers: Mapping[str, Provider]) -> None:
    """Raises PlanRefused if an instance answers with another scope id than the state recorded."""
    # The state owns objects by their names. In another system, the same names can belong to
    # somebody else, and the plan would change or delete those objects.
    for instance, recorded in state.providers.items():
        scope = world[instance].facts.scope_id if instance in world else recorded
        if scope != recorded:
            words = providers[instance].words if instance in providers else NEUTRAL
            raise PlanRefused(
                f'provider instance "{instance}" answers as {words.system} {scope}, but this state '
                f"belongs to {words.system} {recorded}",
                f"{words.check_address} A new {words.system} needs a new state (another folder)."
                f"{words.advise_move(instance, recorded)}",
            )


def describe_instances(
    world: World,
    header: PlanHeader,
    remarks: Mapping[str, tuple[Finding, ...]],
    look: Look,
    settings: Mapping[str, tuple[Finding, ...]] = EMPTY,
) -> dict[str, PlanInstance]:
    """Each provider instance that the plan is about, as it was read. remarks: what
    rules found about the system; settings: what was read of its objects' settings."""
    return {
        instance: PlanInstance(
            observation.facts.recorded,
            header.display.get(instance, FrozenMap()),
            count_unmanaged(observation, look.elsewhere),
            (*remarks.get(instance, ()), *settings.get(instance, ())),
            mask_secrets(look.unread[instance].message) if instance in look.unread else "",
        )
        for instance, observation in world.items()
        if instance not in look.unasked
    }


def count_unmanaged(
    world: InstanceWorld, elsewhere: FolderObjects = NO_OBJECTS
) -> tuple[Unmanaged, ...]:
    """The live objects of each kind that nothing declares or records, without the system's own.
    elsewhere: what other folders declare or record."""
    unmanaged = []
    for kind, sweep in sorted(world.sweeps.items()):
        visible = sweep.derive(elsewhere.list_unclaimed)
        count = len(visible) - sum(identity in visible for identity in world.readings)
        keys = (identity.key for identity in visible if identity not in world.readings)
        if count:
            unmanaged.append(Unmanaged(kind, count, tuple(islice(keys, NAMES_SHOWN))))
    return tuple(unmanaged)


# ── outputs ─────────────────────────────────────────────────────────────────────────────


def compare_outputs(
    desired: Desired, state: State, changes: Iterable[Change]
) -> tuple[OutputChange, ...]:
    """The outputs that differ. One that waits for a computed value always does, unless an object
    could not be read: then it may be the value of that one, and stays as it is recorded."""
    unread = bool(desired.unread) or any(change.block in UNREAD for change in changes)
    # Plans are saved, shown and recorded in the log, so a sensitive value must not enter them.
    after = {
        output.name: replace(output, value=None) if output.sensitive else output
        for output in desired.outputs
    }
    before = {
        name: Output(name, data.get("value"), bool(data.get("sensitive")), False)
        for name, data in state.outputs.items()
    }
    return tuple(
        OutputChange(before.get(name), after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
        and not (unread and name in before and name in after and after[name].deferred)
    )


def complete_paths(change: Change, types: Mapping[str, ResourceType]) -> Change:
    """The change with the units of its values."""
    kind = types[change.identity.kind]
    if not (change.paths or change.drift):
        return change
    if kind.unit is not None:
        change = replace(
            change,
            paths=_add_units(change.paths, kind.unit),
            drift=_add_units(change.drift, kind.unit),
        )
    return change


def _add_units(
    paths: tuple[PathChange, ...], find_unit: Callable[[Path], str]
) -> tuple[PathChange, ...]:
    units = [find_unit(item.path) if item.path else "" for item in paths]
    if not any(units):
        return paths
    return tuple(
        replace(item, unit=unit) if unit else item for item, unit in zip(paths, units, strict=True)
    )


def add_steps(
    change: Change, types: Mapping[str, ResourceType], facts: Mapping[str, Facts]
) -> Change:
    """The change with the requests that make it true, if an apply makes it at all."""
    if not change.effective:
        return change
    # Only effective changes get steps, so a blocked one has nothing that could be sent by mistake.
    steps = types[change.identity.kind].steps(change, facts[change.identity.instance])
    return replace(change, steps=steps)


def add_impacts(
    changes: Sequence[Change], look: Look, providers: Mapping[str, Provider], state: State
) -> Sequence[Change]:
    """The changes, with how much data those would destroy or move that could do so, and with the
    objects that use what they delete."""
    endangered: dict[str, list[Change]] = {}
    deletes = False
    for change in changes:
        deletes = deletes or change.action is Action.DELETE
        if change.action is Action.DELETE or change.has_harm(*MEASURED):
            endangered.setdefault(change.identity.instance, []).append(change)
    if deletes:
        changes = name_users(changes, providers, look, state)
    impacts = {
        identity: impact
        for instance, group in endangered.items()
        for identity, impact in look.assess_impacts(instance, group).items()
    }
    if not impacts:
        return changes
    return [
        _add_impact(change, impacts[change.identity]) if change.identity in impacts else change
        for change in changes
    ]


def _add_impact(change: Change, impact: Impact) -> Change:
    measured = replace(change, impact=impact)
    if not impact.unasked or change.action is not Action.DELETE or not change.effective:
        return measured
    return wait_for(measured, f"who uses it is not known: {mask_secrets(impact.unasked)}")


# ── plans of commands ───────────────────────────────────────────────────────────────────


def amend(
    identity: Identity,
    address: str,
    reading: Reading,
    kind: ResourceType,
    facts: Facts,
    edit: Edit,
    secret_version: str | None = None,
) -> Change:
    """The change of one object, without steps.

    address: what the plan calls it; secret_version: a new one sends the secrets that `edit` gives.
    """
    unchanged = Change(identity, address, Action.NOOP)
    if isinstance(reading, Hidden | Failed):
        # To treat it as absent would create over what may exist, and undo values that nobody saw.
        return add_findings(unchanged, _block_unreadable(reading))
    owned = Ownership(secret_version=secret_version)
    if isinstance(reading, Absent) and reading.others is not None:
        reading = reading.others
    if isinstance(reading, Absent):
        target = edit(None)
        if target is None:
            return unchanged
        after = kind.canonical(target, facts)
        paths = compare(None, after, schema=kind.schema, fallbacks=reading.fallbacks)
        return replace(unchanged, action=Action.CREATE, after=after, paths=paths, row_after=owned)
    before = kind.canonical(compute_destination(reading), facts)
    target = edit(before)
    observed = replace(unchanged, before=before, incarnation=reading.incarnation)
    if target is None:
        below = reading.fallbacks if kind.settings else EMPTY
        paths = compare(before, None, schema=kind.schema, fallbacks=below)
        return replace(observed, action=Action.DELETE, paths=paths)
    after = kind.canonical(target, facts)
    paths = compare(before, after, schema=kind.schema, fallbacks=reading.fallbacks)
    if not paths and secret_version is None:
        return replace(observed, after=after)
    return replace(
        observed,
        action=Action.UPDATE,
        before=select_managed(before, after),
        after=after,
        paths=paths,
        row_after=owned,
    )


def _block_unreadable(reading: Hidden | Failed) -> Finding:
    if isinstance(reading, Hidden):
        return UNREADABLE.find(
            f"it cannot be seen: the right {reading.right} is missing",
            fix=f"Grant {reading.right}, or run as a principal that has it.",
        )
    fault = reading.fault
    cause, advice = mask_secrets(fault.message), mask_secrets(fault.advice)
    return UNREADABLE.find(f"it could not be read: {cause} ({fault.code})", fix=advice)


def plan_changes(
    drafts: Sequence[Change],
    world: World,
    state: State,
    providers: Mapping[str, Provider],
    look: Look,
    header: PlanHeader,
    options: Options,
    lifted: Sequence[str] = (),
) -> Plan:
    """The plan of these changes: judged and guarded like any other, with steps, approved as a
    whole. lifted: what waivers accept, as `--accept` names it."""
    types = collect_types(providers.values())
    facts = {instance: observation.facts for instance, observation in world.items()}
    books = load_books(providers)
    judged = judge_changes([complete_paths(change, types) for change in drafts], books, facts)
    wider = replace(options, accept=(*options.accept, *lifted))
    guarded = guard_deletions(judged, state, wider)
    surveyed, remarks = survey_changes(guarded, providers, books, look, facts, wider.accept)
    surveyed, remarks = tell_consequences(surveyed, remarks, providers, look, options)
    guarded = guard_losses(surveyed, state, wider)
    with_steps = [add_steps(change, types, facts) for change in guarded]
    changes = add_impacts(with_steps, look, providers, state)
    listed = tuple(change for change in changes if change.is_listed or change.findings)
    plan = Plan(
        lineage=state.lineage,
        serial=state.serial,
        configuration="",
        instances=describe_instances(world, header, remarks, look),
        changes=listed,
        unchanged=len(changes) - len(listed),
        options=options,
        audit_head=header.audit_head,
        created=header.created,
        kafkaform_version=header.kafkaform_version,
    )
    return seal_plan(plan)
