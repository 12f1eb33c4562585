"""What happens to a recorded object that nothing declares any more (architecture §4.3)."""

from __future__ import annotations

from msgspec.structs import replace

from ..core.change import Action, Change, add_findings
from ..core.finding import Finding
from ..core.resource import Absent, Failed, Hidden, Observed
from ..core.value import EMPTY
from ..state.model import Row
from .case import Case, block_unreadable, start_change
from .diff import compare, compare_gone, flatten, lay_over, select_managed
from .model import Mode
from .ownership import Claim
from .rules import KEPT, LEFT_ALONE, PROTECTED, RENAMED


def release_object(case: Case) -> Change:
    """The change of a recorded object that nothing declares: delete, forget, or blocked."""
    claim, row, reading = case.claim, case.claim.row, case.reading
    assert row is not None  # a claim that nothing declares comes from a row
    forget = replace(
        start_change(case.claim, Action.FORGET), before=row.attributes, incarnation=row.incarnation
    )
    if claim.removed is not None and not claim.removed.destroy:
        # Before any reading is looked at: an object that nobody can see can still be let go.
        return replace(forget, reason="removed block without destroy")
    if isinstance(reading, Hidden | Failed):
        return block_unreadable(case, reading)
    if isinstance(reading, Absent):
        if reading.others is not None:
            return replace(forget, reason="what is left of it belongs to others")
        drift = compare_gone(row.attributes, case.kind.schema)
        return replace(forget, reason="it is already gone", drift=drift)
    if row.incarnation is not None and reading.incarnation != row.incarnation:
        # A name does not make it ours: whoever recreated the object may have data in it.
        note = "the live object with this name was recreated outside kafkaform and is left alone"
        gone = replace(forget, reason="the recorded object is gone")
        return add_findings(gone, LEFT_ALONE.find(note))
    return _make_delete(case, row, reading)


def _make_delete(case: Case, row: Row, live: Observed) -> Change:
    claim, kind = case.claim, case.kind
    lifted = case.mode is Mode.DESTROY
    own_attributes = lay_over(kind.canonical(live.attributes, case.facts), live.foreign, EMPTY)
    before = select_managed(own_attributes, row.attributes)
    after = kind.left(before, row.attributes) if kind.left else None
    change = replace(
        start_change(case.claim, Action.DELETE if after is None else Action.UPDATE),
        before=before,
        after=after,
        paths=compare(
            before,
            after,
            schema=kind.schema,
            fallbacks=live.fallbacks if kind.settings or after is not None else EMPTY,
        ),
        incarnation=live.incarnation,
        reason="destroy" if lifted else "removed block" if claim.removed else "no longer declared",
    )
    if after is not None:
        change = replace(
            change,
            findings=(KEPT.find("values that others set on it stay"),),
            theirs=tuple(sorted(flatten(after))),
        )
    reviewed = lifted or claim.removed is not None
    block = _block_protected(claim, row, reviewed=reviewed)
    return change if block is None else add_findings(change, block)


def _block_protected(claim: Claim, row: Row, *, reviewed: bool) -> Finding | None:
    """Why the object must not be deleted, None if it may be. reviewed: a `removed` block or
    `destroy` asks for the deletion."""
    if claim.renamed and row.protected != "no":
        owner = claim.renamed[0]
        return RENAMED.find(
            f"{owner} declares another object now, and kafkaform never renames or replaces an "
            "object",
            fix="To keep both, give the new object a block of its own. To let the old one go, "
            f"first run `kafkaform state mv '{owner}' {claim.identity.kind}.old`, then add a "
            f"`removed` block with from = {claim.identity.kind}.old.",
        )
    if row.protected == "explicit":
        return PROTECTED.find(
            "it is protected by prevent_destroy",
            fix="Set prevent_destroy = false in its block, apply that, then destroy it."
            if claim.standing
            else "Declare it again with prevent_destroy = false, apply that, then remove it.",
            asked=reviewed,
        )
    if row.protected == "default" and not reviewed:
        return PROTECTED.find(
            "removed from the configuration, but delete protection is on",
            fix=f"To delete it, add a `removed` block with from = {claim.address} and "
            "lifecycle { destroy = true }. Without that lifecycle it is kept, but no longer "
            "managed.",
        )
    return None
