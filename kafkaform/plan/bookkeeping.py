"""What a change leaves in a state row beside attributes: owners, protection, owner and labels."""

from __future__ import annotations

from ..core.change import Ownership, PathChange
from ..core.resource import Declared
from ..state.model import PROTECTIONS
from .case import Case


def compute_row_after(case: Case, *, adopted: bool) -> Ownership:
    """The ownership that the declarations give the row. adopted: a live object is taken over."""
    declared = case.claim.declared
    return Ownership(
        tuple(sorted({str(item.address) for item in declared})),
        max(
            (choose_protection(item, case, adopted=adopted) for item in declared),
            key=PROTECTIONS.index,
        ),
        declared[0].secret_version,
    )


def choose_protection(item: Declared, case: Case, *, adopted: bool) -> str:
    """The protection that one declaration asks for."""
    if item.lifecycle.prevent_destroy is not None:
        return "explicit" if item.lifecycle.prevent_destroy else "no"
    # What existed before kafkaform came is protected whatever the provider block says: somebody
    # else made it, and may still need it.
    default = adopted or case.facts.protect
    return "default" if case.kind.protect and default else "no"


def compare_bookkeeping(case: Case, *, taken_over: bool = False) -> tuple[PathChange, ...]:
    """Changes of owner and labels, which exist in the state only.

    taken: the object is created or taken over, so that nothing counts as recorded before.
    """
    item, row = case.claim.declared[0], None if taken_over else case.claim.row
    before = {("labels", key): value for key, value in row.labels.items()} if row else {}
    after = {("labels", key): value for key, value in item.labels.items()}
    paths = [
        PathChange(path, before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]
    owner = row.owner if row else None
    if owner != item.owner:
        paths.append(PathChange(("owner",), owner, item.owner))
    return tuple(paths)
