"""What a reviewer approves: digests over everything that an apply would do.

Whatever decides what is sent, recorded or owned is in them. Counts, serial, audit head, impact,
drift, versions and times are shown but not approved, so other people's merges do not stale a
review. docs/formats/plan.md says of each field what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ..core.canonical import digest
from ..core.change import Change, Path
from ..core.value import EMPTY, FrozenMap, Value
from .codec import to_data
from .diff import lay_over
from .model import Plan, Removal

RULE = 2
"""How approvals are made today. 1: without what is kept for others, losses, owner, labels,
dependencies, waivers, and what the state records of an object beside its changed paths."""


def digest_change(change: Change, scope_id: str, lineage: str) -> str:
    """SHA-256 over one change: who, where, what is recorded of it, every path before and after,
    who loses what, and its steps."""
    return digest(
        {
            "scope_id": scope_id,
            "lineage": lineage,
            "identity": to_data(change.identity),
            "address": change.address,
            "incarnation": change.incarnation,
            "action": change.action.value,
            "adopts": change.adopts,
            "before": _drop_theirs(change.before, change.theirs),
            "after": _drop_theirs(change.after, change.theirs),
            "paths": [[c.path, c.before, c.after, c.sensitive] for c in change.paths],
            "row": [to_data(change.row_before), to_data(change.row_after)],
            "owner": change.owner,
            "labels": change.labels,
            "depends_on": change.depends_on,
            "losses": change.losses,
            "steps": to_data(change.steps),
        }
    )


def _drop_theirs(attributes: FrozenMap | None, theirs: Iterable[Path]) -> Value:
    """The attributes without what is kept for others, which may come and go meanwhile."""
    if attributes is None:
        return None
    return lay_over(attributes, [path for path in theirs if path[0] in attributes], EMPTY)


def compute_approval(plan: Plan) -> str:
    """SHA-256 over the changes that are neither noop nor blocked, what earlier runs owe and this
    one removes, the systems, and what the user accepted."""
    scopes = plan.scopes
    changes = (
        digest_change(change, scopes[change.identity.instance], plan.lineage)
        for change in plan.effective
    )
    return digest(
        {
            "rule": RULE,
            "lineage": plan.lineage,
            "scopes": scopes,
            "mode": plan.options.mode.value,
            "accept": sorted(plan.options.accept),
            "removals": sorted(map(_digest_removal, plan.removals)),
            "changes": sorted(changes),
        }
    )


def _digest_removal(removal: Removal) -> str:
    return digest(to_data(removal))


def seal_plan(plan: Plan) -> Plan:
    """The plan with the approval that follows from what it says."""
    return replace(plan, approval=compute_approval(plan), rule=RULE)
