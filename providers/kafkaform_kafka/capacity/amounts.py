"""How many topics, partitions, replicas and bytes a plan adds or frees, how much more is written,
and what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct

from kafkaform.core.change import Action, Change
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.value import EMPTY, FrozenMap

from ..kinds.topic import placement
from ..kinds.topic import resource_type as topics
from ..protocol.cluster_facts import KafkaFacts
from ..protocol.rates import GUIDANCE, Rates, ReplicaLimits, read_rates
from .forecast import Forecast, alters_bytes, find_expected_rate

INGRESS, EGRESS = "ingress_per_day", "egress_per_day"
UNKNOWN, UNLIMITED = "whose amount is unknown", "which nothing limits"
"""Why something that has a price is left out. Of both, the greater text holds for a sum."""


class Cost(Struct, frozen=True):
    """What one change costs a month."""

    amounts: Mapping[str, float]
    """What has a price, as in `Rates.prices` -> how many it adds, negative for what it frees."""
    monthly: float
    """In the currency of the rates; negative for what it saves."""
    obstacles: Mapping[str, str] = {}
    """What has a price and is not counted, named in the same way -> why: a clause about it."""


def count_amounts(change: Change, facts: Facts) -> Mapping[str, int]:
    """How many topics, partitions and replicas a change adds; empty if the numbers are unknown."""
    if change.identity.kind != topics.KIND or not change.effective:
        return {}
    before, after = (
        EMPTY if change.action is absent else side or EMPTY
        for side, absent in ((change.before, Action.CREATE), (change.after, Action.DELETE))
    )
    partitions = [_count_partitions(side) for side in (before, after)]
    replicas = [_count_replicas(side) for side in (before, after)]
    if None in partitions or None in replicas:
        return {}
    added = {
        "topics": int(change.action is Action.CREATE) - int(change.action is Action.DELETE),
        "partitions": (partitions[1] or 0) - (partitions[0] or 0),
        "replicas": (replicas[1] or 0) - (replicas[0] or 0),
    }
    return added if change.action in _COUNTING else {}


_COUNTING = (Action.CREATE, Action.UPDATE, Action.DELETE)


def _count_partitions(side: FrozenMap) -> int | None:
    """The partitions of a topic, 0 for none; None if the cluster chooses the number."""
    count = side.get("partitions") if side else 0
    return count if isinstance(count, int) else None


def _count_replicas(side: FrozenMap) -> int | None:
    rows = placement.get_rows(side)
    count, factor = _count_partitions(side), side.get("replication_factor") if side else 0
    if count is None or not isinstance(factor, int) or factor < 0:
        return None
    # Partitions that the change adds have no rows yet.
    return sum(map(len, rows)) + (count - len(rows)) * factor


def find_limits(facts: Facts) -> ReplicaLimits | None:
    """How many replicas the cluster is to hold: as declared, or as Kafka's developers recommend;
    None if there is no limit."""
    cluster = KafkaFacts.of(facts)
    if cluster.limits is not UNSET:
        return cluster.limits
    return GUIDANCE if cluster.zookeeper else None


def find_rates(facts: Facts) -> Rates | None:
    """What things cost, None if nothing has a price."""
    block = KafkaFacts.of(facts).rates
    rates = None if block is UNSET else read_rates(block)
    return rates if rates is not None and rates.prices else None


def needs_count(change: Change, facts: Facts) -> bool:
    """True if the change adds or frees something that has a price, or adds to what has a limit."""
    rates = find_rates(facts)
    amounts = {} if rates is None else count_amounts(change, facts)
    priced = rates is not None and any(
        amounts.get(name) or name in _TRAFFIC and moves_traffic(change) for name in rates.prices
    )
    return priced or is_size_priced(change, facts) or is_limited(change, facts)


_TRAFFIC = (INGRESS, EGRESS)


def moves_traffic(change: Change) -> bool:
    """True if clients write or read more or less because of the change: a topic comes or goes."""
    comes_or_goes = change.action in (Action.CREATE, Action.DELETE)
    return comes_or_goes and change.effective and change.identity.kind == topics.KIND


def is_size_priced(change: Change, facts: Facts) -> bool:
    """True if bytes have a price, and the change alters how many there are."""
    rates = find_rates(facts)
    priced = rates is not None and "bytes" in rates.prices
    return priced and change.effective and alters_bytes(change, facts)


def is_limited(change: Change, facts: Facts) -> bool:
    """True if the change adds replicas to a cluster that has a limit of them."""
    limited = find_limits(facts) is not None
    return limited and count_amounts(change, facts).get("replicas", 0) > 0


def compute_costs(
    forecast: Forecast | None, changes: Sequence[Change], facts: Facts
) -> Mapping[Identity, Cost]:
    """Object -> what its change costs a month; without changes that cost and save nothing."""
    rates = find_rates(facts)
    if rates is None:
        return {}
    costs = {}
    for change in changes:
        cost = _compute_cost(rates, forecast, change, facts)
        if cost.obstacles or any(cost.amounts.values()):
            costs[change.identity] = cost
    return costs


def _compute_cost(rates: Rates, forecast: Forecast | None, change: Change, facts: Facts) -> Cost:
    amounts: dict[str, float | None] = dict(count_amounts(change, facts))
    if is_size_priced(change, facts):
        amounts["bytes"] = None if forecast is None else forecast.net.get(change.identity)
    if moves_traffic(change):
        # What a block expects is written. Nobody declares how much is read, and what is no longer
        # written once a topic is deleted, no plan measures.
        amounts[INGRESS] = find_expected_rate(change) if change.action is Action.CREATE else None
        amounts[EGRESS] = None
    counted, obstacles, monthly = {}, {}, 0.0
    for name, price in rates.prices.items():
        amount = amounts.get(name, 0)
        if amount is None or math.isinf(amount):
            obstacles[name] = UNKNOWN if amount is None else UNLIMITED
        elif name in amounts:
            counted[name] = amount
            monthly += amount * price
    return Cost(counted, monthly, obstacles)
