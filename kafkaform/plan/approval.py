"""What a reviewer approves: digests over everything that an apply would do.

Counts, serial, audit head, impact, drift, evidence, versions and times are shown but not
approved, so other people's merges do not stale a review.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.canonical import digest
from ..core.change import Change
from ..core.value import FrozenMap
from .codec import to_data


def change_digest(change: Change, scope_id: str, lineage: str) -> str:
    """SHA-256 over one change: who, where, every path before and after, and its requests."""
    return digest(
        {
            "scope_id": scope_id,
            "lineage": lineage,
            "identity": to_data(change.identity),
            "incarnation": change.incarnation,
            "action": change.action.value,
            "adopts": change.adopts,
            "paths": [[c.path, c.before, c.after] for c in change.paths],
            "row": [to_data(change.row_before), to_data(change.row_after)],
            "steps": [[to_data(step.request), step.payload] for step in change.steps],
        }
    )


def approval(changes: Iterable[Change], scopes: FrozenMap, lineage: str) -> str:
    """SHA-256 over the sorted digests of all changes that are neither noop nor blocked.

    scopes: provider instance -> scope id.
    """
    return digest(
        sorted(
            change_digest(change, scopes[change.identity.instance], lineage)
            for change in changes
            if change.effective
        )
    )
