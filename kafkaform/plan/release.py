"""What happens to a recorded object that nothing declares any more (architecture §4.3)."""

from __future__ import annotations

from msgspec.structs import replace

from ..core.change import Action, Blocker, BlockerKind, Change
from ..core.resource import Absent, Failed, Hidden, Observed, Reading
from ..core.value import EMPTY
from ..state.model import Row
from .diff import compare, compare_gone, flatten, lay_over
from .drafts import DecisionContext, block_unreadable, read_ownership, select_managed
from .model import Mode
from .ownership import Claim


def release_object(claim: Claim, reading: Reading, context: DecisionContext) -> Change:
    """The change for a recorded object that nothing declares: delete, forget, or blocked."""
    row = claim.row
    assert row is not None  # a claim without a declaration comes from a row
    destroy = claim.removed is None or claim.removed.destroy
    forget = Change(
        claim.identity,
        claim.address,
        Action.FORGET,
        before=row.attributes,
        incarnation=row.incarnation,
        row_before=read_ownership(row),
    )
    if not destroy:
        return replace(forget, reason="removed block without destroy")
    if isinstance(reading, Hidden | Failed):
        return block_unreadable(claim, reading)
    if isinstance(reading, Absent):
        if reading.others is not None:
            return replace(forget, reason="all that is left of it belongs to others")
        drift = compare_gone(row.attributes, context.types[claim.identity.kind].schema)
        return replace(forget, reason="it is gone already", drift=drift)
    if row.incarnation is not None and reading.incarnation != row.incarnation:
        note = "the live object of this name was recreated outside and is left alone"
        return replace(forget, reason="the recorded object is gone", notes=(note,))
    return _make_delete(claim, row, reading, context)


def _make_delete(claim: Claim, row: Row, live: Observed, context: DecisionContext) -> Change:
    lifted = context.options.mode is Mode.DESTROY
    kind, facts = context.types[claim.identity.kind], context.facts[claim.identity.instance]
    ours = lay_over(kind.canonical(live.attributes, facts), live.foreign, EMPTY)
    before = select_managed(ours, row.attributes)
    after = kind.left(before, row.attributes) if kind.left else None
    change = Change(
        claim.identity,
        claim.address,
        Action.DELETE if after is None else Action.UPDATE,
        before=before,
        after=after,
        paths=compare(before, after, schema=kind.schema),
        incarnation=live.incarnation,
        row_before=read_ownership(row),
        reason="destroy" if lifted else "removed block" if claim.removed else "no longer declared",
    )
    if after is not None:
        change = replace(
            change,
            notes=("what others have set on it stays",),
            theirs=tuple(sorted(flatten(after))),
        )
    reviewed = lifted or claim.removed is not None
    return replace(change, blocked=_block_protected(claim, row, reviewed=reviewed))


def _block_protected(claim: Claim, row: Row, *, reviewed: bool) -> Blocker | None:
    if claim.renamed and row.protected != "no":
        owner = claim.renamed[0]
        return Blocker(
            BlockerKind.CONFLICT,
            f"{owner} declares another object now, and nothing is ever renamed or replaced",
            "Give the new object a block of its own, so that both stay. To let the old one go, "
            f"first run `kafkaform state mv '{owner}' {claim.identity.kind}.old`, then add a "
            f"`removed` block with from = {claim.identity.kind}.old.",
        )
    if row.protected == "explicit":
        return Blocker(
            BlockerKind.PROTECTED,
            "it is protected by prevent_destroy",
            "Set prevent_destroy = false in its block, apply that, then destroy it."
            if claim.standing
            else "Declare it again with prevent_destroy = false, apply that, then remove it.",
            asked=reviewed,
        )
    if row.protected == "default" and not reviewed:
        return Blocker(
            BlockerKind.PROTECTED,
            "its block is gone, and it is protected",
            f"To delete it, add a `removed` block with from = {claim.address} and "
            "lifecycle { destroy = true }; without the latter it is kept, unmanaged.",
        )
    return None
