"""How much a plan spends of the controller mutation quota (KIP-599).

Creating, adding or deleting one partition is one mutation. The controller keeps a token bucket that
contains up to rate x samples x seconds and fills at the rate. It accepts a request item while the
bucket is not below empty, however much the item spends, and otherwise refuses it with
THROTTLING_QUOTA_EXCEEDED (89).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from kafkaform.core.change import Action, Change, RateLimit
from kafkaform.core.resource import Depth, Facts, Sweep
from kafkaform.core.value import EMPTY, FrozenMap

from ..kinds.quota import resource_type as quotas
from ..kinds.quota.limits import MUTATION_RATE, entity_text, find_applying, sharers_text
from ..kinds.topic import resource_type as topics
from ..protocol.cluster_facts import KafkaFacts

_SPENDING = frozenset({"CreateTopics", "CreatePartitions", "DeleteTopics"})
ANONYMOUS = "ANONYMOUS"
"""The user name of every client on a listener without authentication."""


class Spending(Struct, frozen=True):
    """The mutations that one change spends."""

    dry: int
    """Mutations of its dry run."""
    real: int
    """Mutations of its real request."""
    is_exact: bool = True
    """False if the number of partitions is unknown: `dry` and `real` are then lower bounds."""


class MutationQuota(Struct, frozen=True):
    """The mutation quota that applies to our requests."""

    rate: float
    """Mutations per second."""
    window: int
    """Seconds in which an empty bucket fills."""
    assumed: bool
    """True if the window is Kafka's default because the cluster does not report its own."""
    entity: str
    """The quota's entity, in words."""
    sharers: str
    """The clients that spend from the same bucket, in words."""

    @property
    def burst(self) -> float:
        """Mutations that a full bucket lets through at once."""
        return self.rate * self.window


def compute_spending(change: Change) -> Spending | None:
    """The mutations of a change; None if it neither creates, adds nor deletes partitions."""
    if change.identity.kind != topics.KIND or not change.effective:
        return None
    before, after = ((side or EMPTY).get("partitions") for side in (change.before, change.after))
    # KIP-599 charges `validate_only` requests too, so a create and an increase pay twice. A delete
    # has no dry run.
    if change.action is Action.CREATE:
        return Spending(after or 1, after or 1, after is not None)
    if change.action is Action.DELETE:
        return Spending(0, before or 1, before is not None)
    if change.action is Action.UPDATE and before and after and after > before:
        return Spending(after - before, after - before)
    return None


def find_quota(sweep: Sweep | None, facts: Facts) -> MutationQuota | None:
    """The mutation quota of our own requests; None if there is none, or if we cannot see it."""
    # A custom client.quota.callback.class decides by itself, so the stored quotas prove nothing.
    cluster = KafkaFacts.of(facts)
    if sweep is None or not sweep.items or cluster.quota_callback:
        return None
    if facts.principal:
        # Quota entities name users without the type of the principal.
        user = facts.principal.partition(":")[2]
    elif cluster.security_protocol == "PLAINTEXT":
        user = ANONYMOUS
    else:
        return None
    limit = find_applying(MUTATION_RATE, user, cluster.client_id, quotas.index_quotas(sweep))
    # The cluster stores infinity and NaN too (KIP-546), and never throttles by them.
    if limit is None or limit.value is None or not limit.value.is_finite():
        return None
    window = cluster.mutation_window
    return MutationQuota(
        float(limit.value),
        window.samples * window.seconds,
        window.assumed,
        entity_text(limit.entity),
        sharers_text(*limit.sharers),
    )


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The quotas, if one of these changes spends from one."""
    return {quotas.KIND: Depth.FULL} if any(map(compute_spending, changes)) else {}


def find_limit(changes: Sequence[Change], sweep: Sweep | None, facts: Facts) -> RateLimit | None:
    """What the controller takes of these changes; None if it limits nothing, or if we cannot see
    it."""
    spent = {change.identity: item for change in changes if (item := compute_spending(change))}
    quota = find_quota(sweep, facts) if spent else None
    if quota is None or quota.rate <= 0:
        return None
    costs = {identity: item.real for identity, item in spent.items()}
    return RateLimit(_SPENDING, quota.rate, quota.burst, costs)


class Assessment(Struct, frozen=True):
    """What a plan spends that has to be told."""

    text: str
    """One sentence without its final stop."""
    figures: FrozenMap
    """`mutations` of the dry run and the apply together, `burst` that goes through at once, and
    `seconds` of the delay, 0 if there is none for certain."""


def assess_spending(
    changes: Sequence[Change], sweep: Sweep | None, facts: Facts
) -> Assessment | None:
    """What the changes spend, if that is more than half of what the quota lets through at once."""
    spent = [item for item in map(compute_spending, changes) if item is not None]
    quota = find_quota(sweep, facts) if spent else None
    if quota is None or sum(item.dry + item.real for item in spent) <= quota.burst / 2:
        return None
    dry, real = [item.dry for item in spent if item.dry], [item.real for item in spent]
    total, least = sum(dry) + sum(real), "" if all(item.is_exact for item in spent) else "at least "
    # The last item passes however large it is. Which one is last depends on the order of the
    # steps, so the smallest is assumed.
    waiting = total - min(real)
    seconds = math.ceil((waiting - quota.burst) / quota.rate) if waiting > quota.burst else 0
    assumed = " (if the window is Kafka's default)" if quota.assumed else ""
    text = (
        f"the dry run and the apply spend {least}{total:,} controller mutations, and "
        f"{MUTATION_RATE} = {_render_number(quota.rate)} of {quota.entity} lets "
        f"{_render_number(quota.burst)} through at once{assumed}: "
    )
    if seconds:
        waits = sum(dry) - min(dry, default=0) > quota.burst
        text += (
            f"the cluster delays {'the dry run and the apply' if waits else 'the apply'} by up to "
            f"{_render_duration(seconds)}, even if nobody else spends any"
        )
    else:
        text += (
            f"mutations of {quota.sharers} in the last {quota.window} s count too, so the cluster "
            "can delay the dry run and the apply"
        )
    figures = FrozenMap(mutations=total, burst=math.floor(quota.burst), seconds=seconds)
    return Assessment(text, figures)


_UNITS = ((3600, "h"), (60, "min"), (1, "s"))


def _render_duration(seconds: int) -> str:
    """`about 40 s`, `about 12 min`, rounded up."""
    size, unit = next((pair for pair in _UNITS if seconds > 2 * pair[0]), _UNITS[-1])
    return f"about {max(1, math.ceil(seconds / size)):,} {unit}"


def _render_number(value: float) -> str:
    return f"{value:,.12g}"
