"""Lists client quotas and reads them by identity (DescribeClientQuotas, KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.resource import (
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

from ...cluster.context import ClusterContext, attempt
from ...protocol.faults import code_name, fault_of, name_right
from ...wire.quotas import QuotaRow, QuotaRows, describe_quotas
from . import resource_type as quotas

_API = "DescribeClientQuotas"
_DENIED = 31


def sweep_quotas(context: ClusterContext, depth: Depth) -> Sweep:
    """All quotas with all of their keys, or the fault of the request."""
    # DescribeConfigs on Cluster shows all quotas, without it none, so a listing is complete.
    rows = _read_rows(context, None)
    if isinstance(rows, Fault):
        return Sweep(quotas.KIND, depth, (), Coverage(CoverageKind.FAILED, rows))
    return quotas.make_quota_sweep(
        context.instance, depth, ((row.entity, row.values) for row in rows)
    )


def read_quotas(
    context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These quotas. node: the broker to ask, None for any."""
    # A filter of the request can name only one entity, so all quotas are read.
    rows = _read_rows(context, node)
    if isinstance(rows, Fault):
        return {identity: _make_unread_reading(identity, rows) for identity in ids}
    limits = {quotas.entity_key(row.entity): row.values for row in rows}
    return {identity: quotas.make_reading(identity, limits.get, context.facts) for identity in ids}


def _read_rows(context: ClusterContext, node: str | None) -> Sequence[QuotaRow] | Fault:
    answer = attempt(_API, lambda: describe_quotas(context.wire, context.timeout, node), node)
    if isinstance(answer, QuotaRows) and answer.code:
        return fault_of(_API, answer.code, "", answer.message, node or "")
    return answer if isinstance(answer, Fault) else answer.rows


def _make_unread_reading(identity: Identity, fault: Fault) -> Reading:
    if fault.code == code_name(_DENIED):
        return Hidden(identity, name_right(_API, ""))
    return Failed(identity, fault)
