"""Show how much of the fleet the report knows. It comes before everything else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from .charts import Bar, Chart, Series
from .grids import CLUSTER, OWNER, ColumnKind, Grid, GridColumn, make_grid, sum_column
from .questions import Answers

STATUSES = ("read", "partial", "stale", "failed", "never")
"""Of clusters, from known to unknown."""
_UNKNOWN = ("stale", "failed", "never")

_CLUSTERS = (
    CLUSTER,
    GridColumn("status", "Status", ColumnKind.WORD),
    GridColumn("registered", "In fleet.hcl", ColumnKind.FLAG),
    GridColumn("captured_at", "Last read", ColumnKind.TIME, "never"),
    GridColumn("missing", "Not fully read", missing="–"),
    GridColumn("error", "Error of the newest snapshot", ColumnKind.LONG),
    OWNER,
)
_STATES = (
    GridColumn("state", "State", ColumnKind.CODE),
    GridColumn("state_at", "State landed", ColumnKind.TIME, "never"),
    GridColumn("desired_at", "Configuration landed", ColumnKind.TIME, "never"),
    GridColumn("error", "Why it is unknown", ColumnKind.LONG),
    OWNER,
)

_SERIES = (
    Series("read", "read", "R"),
    Series("partial", "read in part", "P"),
    Series("stale", "stale", "S"),
    Series("failed", "failed", "F"),
    Series("never", "never read", "N"),
)


class FleetCoverage(Struct, frozen=True):
    """How much is known."""

    expected: int | None
    """The number of registered clusters. None: not known."""
    counts: Mapping[str, int]
    """Registered clusters by status."""
    unregistered: int
    """Clusters that fleet.hcl does not name."""
    oldest: datetime | None
    """The oldest capture in use."""
    clusters: Grid
    states: Grid

    @property
    def unknown(self) -> int:
        """How many clusters are in no figure of the report."""
        return sum(self.counts[status] for status in _UNKNOWN)

    @property
    def chart(self) -> Chart:
        bar = Bar("expected clusters", tuple(self.counts[series.key] for series in _SERIES))
        return Chart("coverage-chart", "Clusters by status", "clusters", "fleet", _SERIES, (bar,))

    @property
    def whole(self) -> bool:
        """Every cluster and every configuration was read completely."""
        unread = sum(self.counts.values()) - self.counts["read"]
        return self.expected is not None and not unread and not self.states.total


def compute_coverage(answers: Answers) -> FleetCoverage:
    """Compute it from the answers to `clusters`, `clusters_off` and `states_off`."""
    rows = answers.get("clusters")
    expected = [row for row in rows or () if row["registered"]]
    counts = dict.fromkeys(STATUSES, 0)
    for row in expected:
        counts[row["status"]] += row["clusters"]
    used = [row["oldest"] for row in rows or () if row["oldest"] and row["status"] in STATUSES[:2]]
    off = [{**row, "missing": _describe_missing(row)} for row in answers.get("clusters_off") or ()]
    states = answers.get("states_off") or []
    return FleetCoverage(
        expected=None if rows is None else sum_column(expected, "clusters"),
        counts=counts,
        unregistered=sum_column(rows or (), "clusters") - sum_column(expected, "clusters"),
        oldest=min(used, default=None),
        clusters=make_grid(
            "Clusters that were not fully read, or are not in fleet.hcl", _CLUSTERS, off
        ),
        states=make_grid("States whose configuration is unknown", _STATES, states),
    )


def _describe_missing(row: Mapping[str, Any]) -> str | None:
    """Name the kinds that were not read completely: `kafka_acl (failed)`."""
    short = {
        kind: coverage
        for kind, coverage in (row["coverage"] or {}).items()
        if coverage != "complete"
    }
    return ", ".join(f"{kind} ({coverage})" for kind, coverage in sorted(short.items())) or None
