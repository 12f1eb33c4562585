"""Client quotas as the cluster shows them: all of them, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    Hidden,
    Identity,
    Reading,
    Sweep,
)

from ...cluster.context import ClusterContext
from ...cluster.exchange import attempt
from ...protocol.faults import code_name, fault_of, name_right
from ...wire.quotas import QuotaRow, QuotaRows, describe_quotas
from . import resource_type as quotas

_API = "DescribeClientQuotas"
_DENIED = 31


def sweep_quotas(context: ClusterContext, depth: Depth) -> Sweep:
    """Every quota with all of its keys, or the fault: the cluster tells all quotas or none."""
    rows = _read_rows(context, None)
    if isinstance(rows, Fault):
        return Sweep(quotas.KIND, depth, (), Coverage(CoverageKind.FAILED, rows))
    return quotas.make_quota_sweep(
        context.instance, depth, ((row.entity, row.values) for row in rows)
    )


def read_quotas(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These quotas, out of all of them: no filter of the request can name more than one entity.
    node: the broker whose view is wanted, None for any."""
    rows = _read_rows(context, node)
    if isinstance(rows, Fault):
        return {identity: _make_unread_reading(identity, rows) for identity in ids}
    seen = {
        item.identity: item
        for item in (quotas.observe_quota(context.instance, row.entity, row.values) for row in rows)
    }
    return {identity: seen.get(identity, Absent(identity)) for identity in ids}


def _read_rows(context: ClusterContext, node: str | None) -> Sequence[QuotaRow] | Fault:
    answer = attempt(_API, lambda: describe_quotas(context.wire, context.timeout, node), node)
    if isinstance(answer, QuotaRows) and answer.code:
        return fault_of(_API, answer.code, "", answer.message, node or "")
    return answer if isinstance(answer, Fault) else answer.rows


def _make_unread_reading(identity: Identity, fault: Fault) -> Reading:
    if fault.code == code_name(_DENIED):
        return Hidden(identity, name_right(_API, ""))
    return Failed(identity, fault)
