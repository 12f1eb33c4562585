"""The approval of a plan: digests over everything that an apply would do.

They cover whatever decides what is sent, recorded or owned. Counts, serial, audit head, impact,
drift, versions and times are shown but not approved, so that other people's merges do not make a
review stale. docs/formats/plan.md says for each field whether it is covered.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import force_setattr, replace

from ..core.canonical import digest
from ..core.change import Change, Path
from ..core.finding import Harm
from ..core.value import EMPTY, FrozenMap
from .diff import lay_over
from .model import Plan

# A digest of older rules covered less than a reviewer relies on today, and cannot be computed again
# from a new plan. So a plan under it is refused, and only its open run is recovered.
RULE = 3
"""The rules by which approvals are made today. Rule 1 left out what is kept for others, losses,
owner, labels, dependencies, waivers, and recorded attributes other than the changed paths; rule 2
had what somebody loses as texts only."""


def digest_change(change: Change, scope_id: str, lineage: str) -> str:
    """SHA-256 over one change: the object and its system, every path before and after, what is
    recorded, who loses what, and the steps. Hexadecimal."""
    try:
        stored_digest = change._digest
        if stored_digest[:2] == (scope_id, lineage):
            return stored_digest[2]
    except AttributeError:
        pass
    value = _compute_digest(change, scope_id, lineage)
    force_setattr(change, "_digest", (scope_id, lineage, value))
    return value


def _compute_digest(change: Change, scope_id: str, lineage: str) -> str:
    before, after = change.before, change.after
    if change.theirs:
        # What is kept for others may come and go between the review and the apply.
        before, after = _drop_paths(before, change.theirs), _drop_paths(after, change.theirs)
    return digest(
        {
            "scope_id": scope_id,
            "lineage": lineage,
            "identity": change.identity,
            "address": change.address,
            "incarnation": change.incarnation,
            "action": change.action.value,
            "adopts": change.adopts,
            "before": before,
            "after": after,
            "paths": [[c.path, c.before, c.after, c.sensitive] for c in change.paths],
            "row": [change.row_before, change.row_after],
            "owner": change.owner,
            "labels": change.labels,
            "depends_on": change.depends_on,
            "losses": [
                [finding.text, finding.access]
                for finding in change.findings
                if finding.harm is Harm.ACCESS_LOST
            ],
            "steps": change.steps,
        }
    )


def is_same_change(change: Change, counterpart: Change) -> bool:
    """True if an approval of one covers the other, apart from what is judged by a review or follows
    from the rest: losses, dependencies and steps."""
    bare = (replace(item, findings=(), depends_on=(), steps=()) for item in (change, counterpart))
    first, second = (digest_change(item, "", "") for item in bare)
    return first == second and change.effective and counterpart.effective


def _drop_paths(attributes: FrozenMap | None, paths: Sequence[Path]) -> FrozenMap | None:
    if attributes is None:
        return None
    return lay_over(attributes, [path for path in paths if path[0] in attributes], EMPTY)


def compute_approval(plan: Plan) -> str:
    """SHA-256 over the changes that an apply makes, the settings of earlier runs that it removes,
    the systems, the waivers that the user accepted, the policies of --policy, and the objects that
    are left out because something could not be read. Hexadecimal."""
    scopes = plan.scopes
    # Left out without any, so that the approval of such a plan is as it always was.
    policies = {"policies": plan.policies.digest} if plan.policies.digest else {}
    left_out = [[change.identity, change.address] for change in plan.left_out]
    unread = {"left_out": sorted(map(digest, left_out))} if left_out else {}
    if plan.unevaluated:
        unread["unevaluated"] = list(plan.unevaluated)
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
            # Digests are sorted, not changes: the order of a plan decides nothing.
            "removals": sorted(digest(removal) for removal in plan.removals),
            "changes": sorted(changes),
            **policies,
            **unread,
        }
    )


def seal_plan(plan: Plan) -> Plan:
    """The plan with the approval that follows from its contents."""
    return replace(plan, approval=compute_approval(plan), rule=RULE)
