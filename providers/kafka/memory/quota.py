"""The controller mutation quota of the simulated cluster: quotas, and a bucket for each sharer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from kafkaform.core.dataclass import dataclass, field
from kafkaform.core.value import EMPTY, FrozenMap

from ..quota_levels import applying
from ..quotas import MUTATION_RATE

Charge = Callable[[int], float]
"""Mutations of one item -> 0, or seconds to wait: then nothing was spent and the item must be
refused."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled: float


@dataclass(slots=True)
class Mutations:
    """samples, seconds: the window, Kafka's default unless a test changes it."""

    samples: int = 11
    seconds: int = 1
    quotas: dict[FrozenMap, FrozenMap] = field(default_factory=dict)
    _buckets: dict[tuple[str | None, str | None], _Bucket] = field(default_factory=dict)

    def limit(self, entity: Mapping[str, str | None], rate: Decimal | int | None) -> None:
        """Set an entity's controller_mutation_rate, or remove it with None. entity: `user`,
        `client-id` or both -> a name, None for the default."""
        values = self.quotas.pop(FrozenMap(entity), EMPTY).without([MUTATION_RATE])
        if rate is not None:
            values = values.with_items({MUTATION_RATE: Decimal(rate)})
        if values:
            self.quotas[FrozenMap(entity)] = values

    def charge(self, user: str, client_id: str, now: float) -> Charge:
        """What an item of a request by this user at this time is asked."""

        def spend(mutations: int) -> float:
            found = applying(MUTATION_RATE, user, client_id, self.quotas)
            if found is None or found.value is None:
                return 0.0
            rate = float(found.value)
            burst = rate * self.samples * self.seconds
            bucket = self._buckets.setdefault(found.sharers, _Bucket(burst, now))
            bucket.tokens = min(burst, bucket.tokens + rate * (now - bucket.filled))
            bucket.filled = now
            if bucket.tokens < 0:
                return -bucket.tokens / rate
            bucket.tokens -= mutations
            return 0.0

        return spend
