"""Lists the names of the groups that we can see: each broker lists those that it coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from kafkaform.core.resource import (
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY

from ...cluster.context import ClusterContext, Reads, Requests, attempt, live_nodes
from ...protocol import listings
from ...protocol.faults import fault_of, name_right
from ...wire.usage import GroupRows, list_groups

_API = "ListGroups"


def sweep_groups(context: ClusterContext, depth: Depth) -> Sweep:
    """The names of the groups of all live brokers; the first fault if a broker does not answer."""
    names: set[str] = set()
    for node in live_nodes(context):
        rows = attempt(_API, partial(list_groups, context.wire, node, context.timeout), node)
        if isinstance(rows, GroupRows) and rows.code:
            rows = fault_of(_API, rows.code, "", None, node)
        if isinstance(rows, Fault):
            return Sweep(listings.GROUPS, depth, (), Coverage(CoverageKind.FAILED, rows))
        names |= {row.name for row in rows.groups}
    items = tuple(
        Observed(Identity(context.instance, listings.GROUPS, name), EMPTY) for name in sorted(names)
    )
    # Groups that we may not describe are left out without an error.
    return Sweep(listings.GROUPS, depth, items, Coverage(CoverageKind.VISIBLE_ONLY))


def read_groups(
    context: ClusterContext, ids: Sequence[Identity], _: str | None
) -> Mapping[Identity, Reading]:
    """Which of these groups can be seen."""
    sweep = sweep_groups(context, Depth.NAMES)
    if sweep.coverage.fault is not None:
        return {identity: Failed(identity, sweep.coverage.fault) for identity in ids}
    items: Mapping[Identity, Reading] = {item.identity: item for item in sweep.items}
    # A group that is missing from the listing may be there for others to see.
    return {
        identity: items.get(identity, Hidden(identity, name_right("DescribeGroups", identity.key)))
        for identity in ids
    }


REQUESTS = Requests(Reads(sweep_groups, read_groups))
