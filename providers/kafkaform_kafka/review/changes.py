"""Reviews all ACL changes of one cluster together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import BlockerKind, Review
from kafkaform.core.resource import Depth, Facts, Identity, Sweep

from ..authority import lockout
from ..authority.effects import describe_acl
from ..kinds.acl import resource_type as acls
from ..kinds.kind import KindRights
from . import acl_changes


def review_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The listings that `review` needs for these changes."""
    kinds = {change.identity.kind for change in changes}
    return acl_changes.needs(changes) if acls.KIND in kinds else {}


def review(
    changes: Sequence[Change],
    sweeps: Mapping[str, Sweep],
    facts: Facts,
    kind_rights: Mapping[str, KindRights],
) -> Review:
    """Block changes that cannot stand together, each with its first reason.

    kind_rights: kind -> the rights that a plan must not take from the principal that runs it.
    """
    kinds = {change.identity.kind for change in changes}
    access = (
        acl_changes.review(changes, sweeps, facts, kind_rights) if acls.KIND in kinds else Review()
    )
    hidden = [one for one in changes if one.block is BlockerKind.UNREADABLE]
    notes = _note_hiding(hidden, changes, facts, kind_rights) if hidden else {}
    return Review(
        blocks=access.blocks,
        unless=access.unless,
        notes=_join_notes(access.notes, notes),
        losses=access.losses,
        risks=access.risks,
        warnings=(
            *access.warnings,
            *(acls.describe_order(changes, facts) if acls.KIND in kinds else ()),
        ),
    )


def _join_notes(*parts: Mapping[Identity, tuple[str, ...]]) -> Mapping[Identity, tuple[str, ...]]:
    """The notes of several reviews. The same object can have notes of each."""
    joined: dict[Identity, tuple[str, ...]] = {}
    for part in parts:
        for identity, notes in part.items():
            joined[identity] = (*joined.get(identity, ()), *notes)
    return joined


def _note_hiding(
    hidden: Sequence[Change],
    changes: Sequence[Change],
    facts: Facts,
    kind_rights: Mapping[str, KindRights],
) -> Mapping[Identity, tuple[str, ...]]:
    """For each hidden object, the managed ACL that hides it from our own principal."""
    notes = {}
    for identity, change, acl in lockout.find_hiding(hidden, changes, kind_rights, facts.principal):
        goes = change.action is Action.DELETE and change.blocked is None
        way = f", which this plan deletes: apply --target='{change.address}' first" if goes else ""
        notes[identity] = (f"{describe_acl(acl)} hides it ({change.address}{way})",)
    return notes
