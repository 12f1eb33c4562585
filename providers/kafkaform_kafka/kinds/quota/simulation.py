"""Client quotas of the simulated cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from msgspec import Struct, field

from kafkaform.core.resource import Coverage, CoverageKind, Depth, Hidden, Identity, Reading, Sweep
from kafkaform.core.value import EMPTY, FrozenMap

from ...protocol import faults
from ..simulation import (
    CLUSTER,
    AdminAnswer,
    AdminCall,
    Changes,
    Charge,
    Item,
    ItemVerdict,
    Key,
    ReadScene,
    Refusal,
    RequestResult,
    SimulatedKind,
    SimulatedReads,
    SimulatedWorld,
    require,
    run_batch,
)
from . import limits
from . import resource_type as quotas
from .limits import LevelLimit, find_applying

_ALTER, _DESCRIBE = "AlterClientQuotas", "DescribeClientQuotas"


def quota_key(entity: Mapping[str, str | None]) -> Key:
    """The key of this entity in the simulated world; its value is a FrozenMap of exact numbers."""
    return quotas.KIND, quotas.entity_key(entity)


def alter_quotas(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """AlterClientQuotas: all keys of an entity or none of them."""
    return run_batch(
        call, items, lambda item: quota_key(item["entity"]), lambda item: _alter_item(call, item)
    )


def _alter_item(call: AdminCall, item: Item) -> ItemVerdict:
    require(call.user.may("AlterConfigs", CLUSTER), 31)
    put, gone = item["set"], tuple(item["remove"])
    if len({*put, *gone}) != len(put) + len(gone):
        raise Refusal(42, "the request names a quota key twice")
    for name, value in put.items():
        _require_fitting(_require_key(name, item["entity"]), value)
    live = call.world.get(quota_key(item["entity"])) or EMPTY
    limits = live.without(gone).with_items({name: quotas.make_exact(put[name]) for name in put})
    return AdminAnswer(made=limits or None), limits or None, max(1, len(put) + len(gone))


def _require_key(name: str, entity: Mapping[str, str | None]) -> limits.QuotaKey:
    # Only keys that are set are checked: removing an unknown key does nothing.
    row = limits.QUOTA_KEYS.get(name)
    if row is None or row.ip != (quotas.IP in entity):
        raise Refusal(42, f"Invalid configuration key {name}")
    return row


def _require_fitting(row: limits.QuotaKey, value: Decimal) -> None:
    if value <= 0:
        raise Refusal(42, f"Quota {row.name} must be greater than 0")
    if row.whole and value != int(value):
        raise Refusal(42, f"{row.name} must be a whole number")
    if row.most is not None and value > row.most:
        raise Refusal(42, f"Proposed value for {row.name} is too large")


def _sweep(scene: ReadScene, depth: Depth) -> Sweep:
    if not _may_see(scene):
        coverage = Coverage(CoverageKind.FAILED, faults.fault_of(_DESCRIBE, 31, ""))
        return Sweep(quotas.KIND, depth, (), coverage)
    rows = (
        (quotas.parse_entity_key(name), _to_decimals(config))
        for name, config in scene.objects(quotas.KIND).items()
    )
    return quotas.make_quota_sweep(scene.instance, depth, rows)


def _read(scene: ReadScene, identity: Identity) -> Reading:
    if not _may_see(scene):
        return Hidden(identity, faults.name_right(_DESCRIBE, ""))
    limits = scene.objects(quotas.KIND)

    def get(key: str) -> Mapping[str, Decimal] | None:
        return _to_decimals(limits[key]) if key in limits else None

    return quotas.make_reading(identity, get, scene.facts)


def _may_see(scene: ReadScene) -> bool:
    return scene.user.may("DescribeConfigs", CLUSTER)


def _to_decimals(config: FrozenMap) -> Mapping[str, Decimal]:
    return {name: Decimal(str(value)) for name, value in config.items()}


SIMULATED = SimulatedKind(
    reads=SimulatedReads(_DESCRIBE, _DESCRIBE, _DESCRIBE, _sweep, _read),
    handlers={_ALTER: alter_quotas},
)


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
        config = (self.world.get(object_key) or EMPTY).without([limits.MUTATION_RATE])
        if rate is not None:
            config = config.with_items({limits.MUTATION_RATE: quotas.make_exact(Decimal(rate))})
        self.commit({object_key: config or None})

    def charge(self, user: str, client_id: str, now: float) -> Charge:
        """The function that charges the items of one request by this user at this time."""
        # Looked up once, when the first item spends: no request changes both limits and topics.
        looked_up: list[LevelLimit | None] = []

        def spend(mutations: int) -> float | None:
            if not looked_up:
                stored = {
                    quotas.parse_entity_key(name): {
                        key: Decimal(str(config[key])) for key in config
                    }
                    for name, config in self.world.of(quotas.KIND).items()
                }
                looked_up.append(find_applying(limits.MUTATION_RATE, user, client_id, stored))
            limit = looked_up[0]
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
