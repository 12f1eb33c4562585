"""Reviews all changes of one cluster together: ACL changes, mutation quotas, vendors' rules.

Each review runs only if the plan has changes of its kind. To say something about all changes of a
new kind, add a row to `_WARNINGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kafkaform.core.change import Change
from kafkaform.core.legacy import Review
from kafkaform.core.resource import Depth, Facts, Sweep

from ..kinds.quota import resource_type as quotas
from ..kinds.user import resource_type as scram
from ..vendors.detection import load_profile
from ..vendors.rules import judge_changes
from . import mutation_quota

_WARNINGS: Mapping[str, Callable[[Sequence[Change], Facts], tuple[str, ...]]] = {
    quotas.KIND: quotas.callback_warnings,
    scram.KIND: scram.own_warnings,
}
"""Kind -> the warnings about all changes of that kind together."""


def review_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The listings that `review` needs for these changes."""
    spends = any(map(mutation_quota.compute_spending, changes))
    return {quotas.KIND: Depth.FULL} if spends else {}


def review(
    changes: Sequence[Change],
    sweeps: Mapping[str, Sweep],
    facts: Facts,
) -> Review:
    """Block changes that cannot stand together, each with its first reason."""
    kinds = {change.identity.kind for change in changes}
    name = facts.values.get("profile")
    vendor = judge_changes(load_profile(str(name)), changes) if name else Review()
    return Review(
        blocks=vendor.blocks,
        notes=vendor.notes,
        warnings=(
            *vendor.warnings,
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
