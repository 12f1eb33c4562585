"""The controller mutation quota of the simulated cluster (KIP-599).

The limits are the client quotas of the simulated cluster, whoever set them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from msgspec import Struct, field

from kafkaform.core.value import EMPTY

from ...simulation.controller import Charge
from ...simulation.world import Changes, SimulatedWorld
from . import keys
from . import resource_type as quotas
from .levels import LevelLimit, Quotas, find_applying


class _Bucket(Struct):
    """The tokens of those who share one limit, and the time of the last refill."""

    tokens: float
    filled: float


class Mutations(Struct):
    """The token buckets of a simulated controller."""

    world: SimulatedWorld
    """The committed objects."""
    commit: Callable[[Changes], None]
    """Appends changes to the log."""
    # Kafka's defaults: controller.quota.window.num, controller.quota.window.size.seconds.
    samples: int = 11
    seconds: int = 1
    _buckets: dict[tuple[str | None, str | None], _Bucket] = field(default_factory=dict)

    def limit(self, entity: Mapping[str, str | None], rate: Decimal | int | None) -> None:
        """Set or (with None) remove the controller_mutation_rate of an entity. entity: `user`,
        `client-id` or both -> a name, None for the default."""
        object_key = quotas.KIND, quotas.entity_key(entity)
        config = (self.world.get(object_key) or EMPTY).without([keys.MUTATION_RATE])
        if rate is not None:
            config = config.with_items({keys.MUTATION_RATE: quotas.make_exact(Decimal(rate))})
        self.commit({object_key: config or None})

    def charge(self, user: str, client_id: str, now: float) -> Charge:
        """The function that charges the items of one request by this user at this time."""
        # Looked up once, when the first item spends: no request changes both limits and topics.
        limits: list[LevelLimit | None] = []

        def spend(mutations: int) -> float | None:
            if not limits:
                limits.append(find_applying(keys.MUTATION_RATE, user, client_id, self._limits()))
            limit = limits[0]
            if limit is None or limit.value is None:
                return None
            rate = float(limit.value)
            burst = rate * self.samples * self.seconds
            bucket = self._buckets.setdefault(limit.sharers, _Bucket(burst, now))
            bucket.tokens = min(burst, bucket.tokens + rate * (now - bucket.filled))
            bucket.filled = now
            # As in Kafka, an item passes while the bucket is not below zero, however large it is,
            # and a refusal names whole milliseconds: 0 of them, if hardly anything is missing.
            if bucket.tokens < 0:
                return round(-bucket.tokens / rate, 3)
            bucket.tokens -= mutations
            return None

        return spend

    def _limits(self) -> Quotas:
        return {
            quotas.parse_entity_key(name): {item: Decimal(str(config[item])) for item in config}
            for name, config in self.world.of(quotas.KIND).items()
        }
