"""Say which delete protection a destroy overrides, and which objects stay."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.change import Change
from .text import inline, render_count
from .view import PlanView

NAMES_SHOWN = 5


def describe_protection(seen: PlanView) -> Iterator[str]:
    """The sentences about protection in a plan that destroys; none if nothing is protected."""
    listed = {group.name: group.changes for group in seen.groups}
    # `destroy` asks for its deletions, so the protection that nobody chose does not stop it. The
    # reader must learn of it, because a plan of a removed block is blocked for the same object.
    overridden = _select_protected(listed.get("delete", ()), "default")
    if overridden:
        kinds = ", ".join(sorted({inline(change.identity.kind) for change in overridden}))
        objects = render_count(len(overridden), "object")
        yield f"It overrides the delete protection that is on by default for {objects} ({kinds})."
    kept = _select_protected(listed.get("kept", ()), "explicit")
    if kept:
        objects = render_count(len(kept), "object that stays", "objects that stay")
        names = ", ".join(inline(change.address) for change in kept[:NAMES_SHOWN])
        more = f" and {len(kept) - NAMES_SHOWN:,} more" if len(kept) > NAMES_SHOWN else ""
        yield f"prevent_destroy protects {objects}: {names}{more}."


def _select_protected(changes: tuple[Change, ...], protection: str) -> list[Change]:
    return [change for change in changes if change.row_before.protected == protection]
