"""Reviews all changes of one cluster together: ACL changes, mutation quotas, vendors' rules.

Each review runs only if the plan has changes of its kind. To say something about all changes of a
new kind, add a row to `_WARNINGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import BlockerKind, Review
from kafkaform.core.resource import Depth, Facts, Identity, Sweep

from ..authority import lockout
from ..authority.effects import describe_acl
from ..kinds.acl import resource_type as acls
from ..kinds.kind import KindRights
from ..kinds.quota import resource_type as quotas
from ..kinds.user import resource_type as scram
from ..vendors.detection import load_profile
from ..vendors.rules import judge_changes
from . import acl_changes, mutation_quota

_WARNINGS: Mapping[str, Callable[[Sequence[Change], Facts], tuple[str, ...]]] = {
    acls.KIND: acls.describe_order,
    quotas.KIND: quotas.callback_warnings,
    scram.KIND: scram.own_warnings,
}
"""Kind -> the warnings about all changes of that kind together."""


def review_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The listings that `review` needs for these changes."""
    kinds = {change.identity.kind for change in changes}
    spends = any(map(mutation_quota.compute_spending, changes))
    return {
        **({quotas.KIND: Depth.FULL} if spends else {}),
        **(acl_changes.needs(changes) if acls.KIND in kinds else {}),
    }


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
    name = facts.values.get("profile")
    vendor = judge_changes(load_profile(str(name)), changes) if name else Review()
    return Review(
        blocks={**access.blocks, **vendor.blocks},
        unless=access.unless,
        notes=_join_notes(access.notes, notes, vendor.notes),
        losses=access.losses,
        risks=access.risks,
        warnings=(
            *vendor.warnings,
            *access.warnings,
            *mutation_quota.quota_warnings(changes, sweeps.get(quotas.KIND), facts),
            *(
                text
                for kind in _WARNINGS
                if kind in kinds
                for text in _WARNINGS[kind](changes, facts)
            ),
        ),
        limit=mutation_quota.find_limit(changes, sweeps.get(quotas.KIND), facts),
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
