"""How many topics, partitions, replicas and bytes a plan adds or frees, and what that costs."""

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
from .forecast import Forecast, alters_bytes


class Cost(Struct, frozen=True):
    """What one change costs a month."""

    amounts: Mapping[str, float]
    """`topics`, `partitions`, `replicas`, `bytes` -> how many it adds, negative for what it frees;
    of what has a price."""
    monthly: float
    """In the currency of the rates; negative for what it saves."""
    obstacle: str = ""
    """Why bytes are not counted, although they have a price: a clause about them."""


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
    priced = rates is not None and any(amounts.get(name) for name in rates.prices)
    return priced or is_size_priced(change, facts) or is_limited(change, facts)


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
        if cost.obstacle or any(cost.amounts.values()):
            costs[change.identity] = cost
    return costs


def _compute_cost(rates: Rates, forecast: Forecast | None, change: Change, facts: Facts) -> Cost:
    amounts: dict[str, float] = dict(count_amounts(change, facts))
    obstacle = ""
    if is_size_priced(change, facts):
        size = None if forecast is None else forecast.net.get(change.identity)
        if size is None:
            obstacle = "whose number is unknown"
        elif math.isinf(size):
            obstacle = "which nothing limits"
        else:
            amounts["bytes"] = size
    priced = {name: amounts[name] for name in rates.prices if name in amounts}
    monthly = sum(amount * rates.prices[name] for name, amount in priced.items())
    return Cost(priced, monthly, obstacle)
