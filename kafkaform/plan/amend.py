"""Plans without a configuration: somebody names objects and what shall be different of them.

The rules, the review and the steps are those of every plan. Nothing is owned afterwards: such a
change leaves no row in the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from ..core.change import Action, Blocker, BlockerKind, Change, Ownership
from ..core.redaction import mask_secrets
from ..core.resource import Absent, Facts, Failed, Hidden, Identity, Reading, World
from ..core.value import EMPTY, FrozenMap
from ..provider.contract import Provider, ResourceType, collect_types
from ..state.model import State
from .approval import seal_plan
from .build import PlanHeader, add_steps, check_change, describe_instances, is_shown, review_changes
from .diff import compare
from .drafts import select_managed
from .model import Options, Plan
from .observe import Look, compute_destination

Edit = Callable[[FrozenMap | None], FrozenMap | None]
"""The attributes of an object, None if it is not there -> what they shall be, None to remove it."""


def amend(
    identity: Identity,
    address: str,
    reading: Reading,
    kind: ResourceType,
    facts: Facts,
    edit: Edit,
    secret_version: str | None = None,
) -> Change:
    """The change of one object, without steps. address: what it is called in the plan;
    secret_version: a new one sends the secrets of what `edit` gives."""
    same = Change(identity, address, Action.NOOP)
    if isinstance(reading, Hidden | Failed):
        return replace(same, blocked=_block_unreadable(reading))
    owned = Ownership(secret_version=secret_version)
    if isinstance(reading, Absent) and reading.others is not None:
        reading = reading.others
    if isinstance(reading, Absent):
        after = _canonicalize(edit(None), kind, facts)
        if after is None:
            return same
        paths = compare(None, after, schema=kind.schema)
        return replace(same, action=Action.CREATE, after=after, paths=paths, row_after=owned)
    before = kind.canonical(compute_destination(reading), facts)
    after = _canonicalize(edit(before), kind, facts)
    there = replace(same, before=before, incarnation=reading.incarnation)
    if after is None:
        paths = compare(before, None, schema=kind.schema)
        return replace(there, action=Action.DELETE, paths=paths)
    paths = compare(before, after, schema=kind.schema, fallbacks=reading.fallbacks)
    if not paths and secret_version is None:
        return replace(there, after=after)
    return replace(
        there,
        action=Action.UPDATE,
        before=select_managed(before, after),
        after=after,
        paths=paths,
        row_after=owned,
    )


def _canonicalize(
    attributes: FrozenMap | None, kind: ResourceType, facts: Facts
) -> FrozenMap | None:
    return None if attributes is None else kind.canonical(attributes, facts)


def _block_unreadable(reading: Hidden | Failed) -> Blocker:
    if isinstance(reading, Hidden):
        return Blocker(
            BlockerKind.UNREADABLE,
            f"it cannot be seen: the right {reading.right} is missing",
            f"Grant {reading.right}, or run as a principal that has it.",
        )
    fault = reading.fault
    why, todo = mask_secrets(fault.message), mask_secrets(fault.advice)
    return Blocker(BlockerKind.UNREADABLE, f"it could not be read: {why} ({fault.code})", todo)


def plan_changes(
    drafts: Sequence[Change],
    world: World,
    state: State,
    providers: Mapping[str, Provider],
    look: Look,
    header: PlanHeader,
) -> Plan:
    """The plan of these changes: checked, reviewed, with their steps, approved as a whole."""
    types = collect_types(providers.values())
    facts = {instance: seen.facts for instance, seen in world.items()}
    judged, warnings = review_changes(
        [check_change(change, types, facts) for change in drafts], providers, look, facts
    )
    changes = tuple(add_steps(change, types, facts) for change in judged)
    shown = tuple(change for change in changes if is_shown(change) or change.notes)
    made = Plan(
        lineage=state.lineage,
        serial=state.serial,
        configuration="",
        instances=describe_instances(world, header, warnings),
        changes=shown,
        unchanged=len(changes) - len(shown),
        options=Options(),
        audit_head=header.audit_head,
        created=header.created,
        kafkaform_version=header.kafkaform_version,
    )
    return seal_plan(made)


def drop_if_empty(attributes: FrozenMap, *names: str) -> FrozenMap | None:
    """The attributes, or None if all of these maps are empty: then nothing is left of it."""
    return attributes if any(attributes.get(name) or EMPTY for name in names) else None
