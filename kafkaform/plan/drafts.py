"""What every decision about an object shares: its context, its bookkeeping, and not knowing."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.change import Action, Blocker, BlockerKind, Change, Ownership
from ..core.redaction import mask_secrets
from ..core.resource import Facts, Failed, Hidden, Identity, Pending
from ..core.value import FrozenMap
from ..core.words import Vocabulary
from ..provider.contract import ResourceType
from ..state.model import Row
from .model import Options
from .ownership import Claim


class DecisionContext(Struct, frozen=True):
    """What a decision may look at besides the claim and the reading."""

    types: Mapping[str, ResourceType]
    facts: Mapping[str, Facts]
    options: Options
    pending: Mapping[Identity, Pending] = field(default_factory=dict)
    words: Vocabulary = field(default_factory=dict)


def block_unreadable(claim: Claim, reading: Hidden | Failed) -> Change:
    """Nothing is decided about an object that could not be read; the block says why."""
    if isinstance(reading, Hidden):
        reason = f"it cannot be seen: the right {reading.right} is missing"
        advice = f"Grant {reading.right}, or leave it out with --exclude='{claim.address}'."
    else:
        fault = reading.fault
        # A server may repeat what it was sent, and a plan is saved and hashed as it is.
        why, todo = mask_secrets(fault.message), mask_secrets(fault.advice).rstrip(".")
        reason = f"it could not be read: {why} ({fault.code}{_render_place(fault.where)})"
        around = f"or leave it out with --exclude='{claim.address}'."
        advice = f"{todo or 'Try again'}; {around}"
    return Change(
        claim.identity,
        claim.address,
        Action.NOOP,
        row_before=read_ownership(claim.row),
        row_after=read_ownership(claim.row),
        blocked=Blocker(BlockerKind.UNREADABLE, reason, advice),
    )


def _render_place(where: str) -> str:
    return f", {where}" if where else ""


def read_ownership(row: Row | None) -> Ownership:
    """The bookkeeping part of a row; of no row, an empty one."""
    return Ownership(row.owners, row.protected, row.secret_version) if row else Ownership()


def select_managed(before: FrozenMap, after: FrozenMap) -> FrozenMap:
    """What is live of the attributes that `after` manages: the pre-image of a change."""
    return FrozenMap({n: v for n, v in before.items() if after.get(n) is not None})


def describe_change(change: Change, claim: Claim) -> Change:
    """The change with what is the same for every decision: who, where, after what."""
    if claim.declared:
        item = claim.declared[0]
        if change.range is item.range:
            return change
        needs = tuple(sorted({str(a) for d in claim.declared for a in d.depends_on}))
        return replace(
            change, owner=item.owner, labels=item.labels, depends_on=needs, range=item.range
        )
    row = claim.row
    assert row is not None  # a claim without a declaration comes from a row
    where = claim.removed.range if claim.removed else None
    return replace(
        change, owner=row.owner, labels=row.labels, depends_on=row.depends_on, range=where
    )
