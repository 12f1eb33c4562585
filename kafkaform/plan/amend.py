"""Plans without a configuration: a command names objects and how they are to differ.

Rules, review and steps are those of every plan. Nothing is owned afterwards: such a change leaves
no row in the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from ..core.change import Action, Change, Ownership, add_findings
from ..core.finding import Finding
from ..core.redaction import mask_secrets
from ..core.resource import Absent, Facts, Failed, Hidden, Identity, Reading, World
from ..core.value import EMPTY, FrozenMap
from ..provider.contract import Provider, ResourceType, collect_types
from ..state.model import State
from .approval import seal_plan
from .diff import compare, select_managed
from .guards import guard_deletions, guard_losses
from .instances import PlanHeader, describe_instances
from .judge import judge_changes, load_books, survey_changes
from .measure import add_impacts, add_steps, complete_paths
from .model import Options, Plan
from .observe import Look, compute_destination
from .rules import UNREADABLE

Edit = Callable[[FrozenMap | None], FrozenMap | None]
"""Attributes of an object (None: it does not exist) -> the wanted ones (None: remove it)."""


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
    judged = judge_changes(
        [complete_paths(change, types, facts) for change in drafts], books, facts
    )
    wider = replace(options, accept=(*options.accept, *lifted))
    guarded = guard_deletions(judged, state, wider)
    surveyed, remarks = survey_changes(guarded, providers, books, look, facts, wider.accept)
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
