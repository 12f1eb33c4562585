"""Client quotas as a listing shows them, the same from a real cluster and a simulated one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from kafkaform.core.canonical import dumps
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Identity, Observed, Sweep
from kafkaform.core.value import FrozenMap

from .quota_levels import Quotas

KIND = "kafka_quota"
MUTATION_RATE = "controller_mutation_rate"


def listing(
    instance: str,
    depth: Depth,
    rows: Iterable[tuple[Mapping[str, str | None], Mapping[str, Decimal]]],
) -> Sweep:
    """All quotas of a cluster. rows: entity and values. Who may see one sees all of them."""
    items = tuple(
        Observed(
            Identity(instance, KIND, dumps(entity)),
            FrozenMap({"entity": FrozenMap(entity), "config": FrozenMap(values)}),
        )
        for entity, values in rows
    )
    return Sweep(KIND, depth, items, Coverage(CoverageKind.COMPLETE))


def quotas_of(sweep: Sweep) -> Quotas:
    """The listing by entity."""
    return {item.attributes["entity"]: item.attributes["config"] for item in sweep.items}
