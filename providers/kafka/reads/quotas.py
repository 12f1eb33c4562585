"""Client quotas as the cluster shows them: all of them, or none."""

from __future__ import annotations

from decimal import Decimal

from kafkaform.core.resource import Coverage, CoverageKind, Depth, Fault, Sweep

from .. import quotas
from ..context import Context
from ..exchange import attempt
from ..faults import fault_of
from ..wire.quotas import QuotaRows, describe_quotas


def sweep_quotas(context: Context, depth: Depth) -> Sweep:
    """Every quota with all of its keys, or the fault: the cluster tells all quotas or none."""
    api = "DescribeClientQuotas"
    answer = attempt(api, lambda: describe_quotas(context.wire, context.timeout))
    if isinstance(answer, QuotaRows) and answer.code:
        answer = fault_of(api, answer.code, "", answer.message)
    if isinstance(answer, Fault):
        return Sweep(quotas.KIND, depth, (), Coverage(CoverageKind.FAILED, answer))
    exact = (
        (row.entity, {key: Decimal(repr(value)) for key, value in row.values.items()})
        for row in answer.rows
    )
    return quotas.listing(context.instance, depth, exact)
