"""What a plan spends of the controller mutation quota, and what to say if that is a lot of it.

Creating, adding or deleting one partition is one mutation, and `validate_only` spends as much as
the real request (KIP-599). The controller keeps a bucket that holds rate x samples x seconds and
fills at the rate. A request item is taken as long as the bucket is not below empty, however much
it then spends; else it is refused with THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from kafkaform.core.change import Action, Change
from kafkaform.core.resource import Facts, Sweep
from kafkaform.core.value import EMPTY, FrozenMap

from ..kinds.quota.keys import MUTATION_RATE
from ..kinds.quota.levels import entity_text, find_applying, sharers_text
from ..kinds.quota.resource_type import index_quotas
from ..kinds.topic import resource_type as topics

ANONYMOUS = "ANONYMOUS"
"""Who everybody is on a listener without a login."""


class Spending(Struct, frozen=True):
    """Mutations of one change. dry: of its dry run; real: of what is sent; known: False if the
    number of partitions is not, so that these are the least."""

    dry: int
    real: int
    known: bool = True


class MutationQuota(Struct, frozen=True):
    """rate: mutations a second; burst: how many a full bucket lets through at once; window:
    seconds that an empty bucket needs to fill; assumed: the window is Kafka's default, because
    the cluster does not tell its own; entity, sharers: whose it is, in words."""

    rate: float
    window: int
    assumed: bool
    entity: str
    sharers: str

    @property
    def burst(self) -> float:
        return self.rate * self.window


def compute_spending(change: Change) -> Spending | None:
    """What a change spends; None for one that makes, adds and deletes no partitions."""
    if change.identity.kind != topics.KIND or not change.effective:
        return None
    before, after = _count_partitions(change.before), _count_partitions(change.after)
    if change.action is Action.CREATE:
        return Spending(after or 1, after or 1, after is not None)
    if change.action is Action.DELETE:
        return Spending(0, before or 1, before is not None)
    if change.action is Action.UPDATE and before and after and after > before:
        return Spending(after - before, after - before)
    return None


def find_quota(sweep: Sweep | None, facts: Facts) -> MutationQuota | None:
    """The mutation quota of our own requests; None if there is none, or none that we can see."""
    user = _find_user(facts)
    if user is None or sweep is None or not sweep.items or facts.values.get("quota_callback"):
        return None
    found = find_applying(MUTATION_RATE, user, facts.values["client_id"], index_quotas(sweep))
    # The cluster stores infinity and NaN too, and never throttles by them.
    if found is None or found.value is None or not found.value.is_finite():
        return None
    window = facts.values["mutation_window"]
    return MutationQuota(
        float(found.value),
        window["samples"] * window["seconds"],
        window["assumed"],
        entity_text(found.entity),
        sharers_text(*found.sharers),
    )


def quota_warnings(changes: Sequence[Change], sweep: Sweep | None, facts: Facts) -> tuple[str, ...]:
    """One warning if the changes spend over half of what the quota lets through at once."""
    spent = [item for item in map(compute_spending, changes) if item is not None]
    quota = find_quota(sweep, facts) if spent else None
    if quota is None or sum(item.dry + item.real for item in spent) <= quota.burst / 2:
        return ()
    return (_render_warning(spent, quota),)


def _render_warning(spent: Sequence[Spending], quota: MutationQuota) -> str:
    dry, real = [item.dry for item in spent if item.dry], [item.real for item in spent]
    least = "" if all(item.known for item in spent) else "at least "
    assumed = " (if the window is Kafka's default)" if quota.assumed else ""
    return (
        f"the dry run and the apply together spend {least}{sum(dry) + sum(real):,} controller "
        "mutations (a partition created, added or deleted is one). "
        f"{MUTATION_RATE} = {_render_number(quota.rate)} of {quota.entity} lets "
        f"{_render_number(quota.burst)} through at once{assumed}. "
        f"{_describe_outcome(dry, real, quota)} "
        f"Have {MUTATION_RATE} raised, or apply in parts with --target=ADDRESS"
    )


def _describe_outcome(dry: Sequence[int], real: Sequence[int], quota: MutationQuota) -> str:
    """What the cluster will do if nobody else spends. The last item passes however large it is;
    which one that is, the order of the plan's steps decides, so the smallest is taken."""
    total = sum(dry) + sum(real)
    if total - min(real) > quota.burst:
        waits = "the dry run and the apply" if _waits(dry, quota) else "the apply"
        return (
            f"Even if none of it is spent before, the cluster can make {waits} wait, up to "
            f"{_render_duration(total - min(real), quota)} in all; a request that is still "
            "refused after "
            f"about ten operation timeouts fails{_describe_dry_run(dry, quota)}."
        )
    return (
        f"What {quota.sharers} spent in the last {quota.window} s counts too, so the cluster may "
        "still make the dry run and the apply wait."
    )


def _waits(dry: Sequence[int], quota: MutationQuota) -> bool:
    """True if the dry run alone is more than the quota lets through at once."""
    return sum(dry) - min(dry, default=0) > quota.burst


def _describe_dry_run(dry: Sequence[int], quota: MutationQuota) -> str:
    return ", and in the dry run nothing is sent then" if _waits(dry, quota) else ""


def _count_partitions(attributes: FrozenMap | None) -> int | None:
    count = (attributes or EMPTY).get("partitions")
    return count if isinstance(count, int) else None


def _find_user(facts: Facts) -> str | None:
    """Our name in quotas: the principal without its type."""
    if facts.principal:
        return facts.principal.partition(":")[2]
    return ANONYMOUS if facts.values.get("security_protocol") == "PLAINTEXT" else None


_UNITS = ((3600, "h"), (60, "min"), (1, "s"))


def _render_duration(mutations: int, quota: MutationQuota) -> str:
    """How long a full bucket takes for these: `about 40 s`, `about 12 min`, rounded up."""
    seconds = (mutations - quota.burst) / quota.rate
    size, unit = next((pair for pair in _UNITS if seconds > 2 * pair[0]), _UNITS[-1])
    return f"about {max(1, math.ceil(seconds / size)):,} {unit}"


def _render_number(value: float) -> str:
    return f"{value:,.12g}"
