"""Client quotas of the simulated cluster: listing, reading and altering them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Hidden,
    Identity,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ...protocol import faults
from ...simulation.controller import (
    Answer,
    Call,
    Item,
    Refusal,
    Result,
    Verdict,
    batch,
    require,
)
from ...simulation.rights import CLUSTER
from ...simulation.simulated_kind import Scene, SimulatedKind, SimulatedReads
from ...simulation.world import Key
from . import resource_type as quotas

_ALTER, _DESCRIBE = "AlterClientQuotas", "DescribeClientQuotas"


def key(entity: Mapping[str, str | None]) -> Key:
    """Where the world keeps this entity's config, a FrozenMap of exact numbers."""
    return quotas.KIND, quotas.key_of(entity)


def alter_quotas(call: Call, items: Sequence[Item]) -> Result:
    """All keys of an entity or none."""
    return batch(call, items, lambda item: key(item["entity"]), lambda item: _alter(call, item))


def _alter(call: Call, item: Item) -> Verdict:
    require(call.user.may("AlterConfigs", CLUSTER), 31)
    put, gone = item["set"], tuple(item["remove"])
    if len({*put, *gone}) != len(put) + len(gone):
        raise Refusal(42, "the request names a quota key twice")
    for name, value in put.items():
        _fits(_known(name, item["entity"]), value)
    live = call.world.get(key(item["entity"])) or EMPTY
    made = live.without(gone).with_items({name: quotas.exact(put[name]) for name in put})
    return Answer(made=made or None), made or None, max(1, len(put) + len(gone))


def _known(name: str, entity: Mapping[str, str | None]) -> quotas.QuotaKey:
    """Only for what is set: to remove an unknown key is to do nothing."""
    known = quotas.QUOTA_KEYS.get(name)
    if known is None or known.ip != (quotas.IP in entity):
        raise Refusal(42, f"Invalid configuration key {name}")
    return known


def _fits(known: quotas.QuotaKey, value: Decimal) -> None:
    if value <= 0:
        raise Refusal(42, f"Quota {known.name} must be greater than 0")
    if known.whole and value != int(value):
        raise Refusal(42, f"{known.name} must be a whole number")
    if known.most is not None and value > known.most:
        raise Refusal(42, f"Proposed value for {known.name} is too large")


def _sweep(scene: Scene, depth: Depth) -> Sweep:
    if not _may_see(scene):
        coverage = Coverage(CoverageKind.FAILED, faults.fault_of(_DESCRIBE, 31, ""))
        return Sweep(quotas.KIND, depth, (), coverage)
    rows = (
        (quotas.entity_from(name), _decimals(config))
        for name, config in scene.objects(quotas.KIND).items()
    )
    return quotas.listing(scene.instance, depth, rows)


def _read(scene: Scene, identity: Identity) -> Reading:
    if not _may_see(scene):
        return Hidden(identity, faults.right_for(_DESCRIBE, ""))
    config = scene.objects(quotas.KIND).get(identity.key)
    if config is None:
        return Absent(identity)
    return quotas.observed(scene.instance, quotas.entity_from(identity.key), _decimals(config))


def _may_see(scene: Scene) -> bool:
    return scene.user.may("DescribeConfigs", CLUSTER)


def _decimals(config: FrozenMap) -> Mapping[str, Decimal]:
    return {name: _decimal(value) for name, value in config.items()}


def _decimal(value: Value) -> Decimal:
    return Decimal(str(value))


SIMULATED = SimulatedKind(
    reads=SimulatedReads(_DESCRIBE, _DESCRIBE, _DESCRIBE, _sweep, _read),
    handlers={_ALTER: alter_quotas},
)
