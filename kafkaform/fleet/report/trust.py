"""Sections of the report on how applies ended, and on how far the data can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from .access import chart_findings
from .figures import (
    CLUSTER,
    DETAIL,
    FINDING,
    OWNER,
    SEVERITY,
    Chart,
    ColumnKind,
    GridColumn,
    Outline,
    SectionAnswers,
    SectionBlock,
    SectionPiece,
    Series,
    join_words,
    make_day_bars,
    make_grid,
    name_objects,
    render_count,
    sum_column,
)
from .questions import DAYS

_OUTCOMES = (
    Series("applied", "applied", "A"),
    Series("failed", "failed", "F"),
    Series("unknown", "unknown", "?"),
    Series("unclear", "skipped", "S"),
)
_COLUMN_OF: Mapping[str, str] = {"unclear": "skipped"}
_APPLIES = (
    CLUSTER,
    GridColumn("share", "Applied", ColumnKind.SHARE, "nothing sent"),
    GridColumn("steps", "Steps", ColumnKind.NUMBER),
    GridColumn("failed", "Failed", ColumnKind.NUMBER),
    GridColumn("unknown", "Unknown", ColumnKind.NUMBER),
    GridColumn("skipped", "Skipped", ColumnKind.NUMBER),
    GridColumn("retries", "Retries", ColumnKind.NUMBER),
    GridColumn("partial_runs", "Partial runs, at least", ColumnKind.NUMBER),
    GridColumn("validated_then_failed", "Failed after dry run", ColumnKind.NUMBER),
    GridColumn("p95_ms", "Slowest p95, ms", ColumnKind.NUMBER, "unknown"),
)
_ERRORS = (
    GridColumn("error_code", "Error", ColumnKind.CODE),
    GridColumn("failed", "Failed", ColumnKind.NUMBER),
    GridColumn("unknown", "Unknown", ColumnKind.NUMBER),
    GridColumn("clusters", "Clusters", ColumnKind.NUMBER),
)
_CHAINS = (
    GridColumn("chain", "Chain", ColumnKind.WORD),
    GridColumn("logs", "Logs", ColumnKind.NUMBER),
    GridColumn("runs", "Runs", ColumnKind.NUMBER),
    GridColumn("unended", "Runs without an end", ColumnKind.NUMBER),
)
_CONSISTENCY = (
    SEVERITY,
    FINDING,
    CLUSTER,
    GridColumn("object", "Object", ColumnKind.KEY, "the cluster"),
    DETAIL,
    OWNER,
)
_QUARANTINE = (
    GridColumn("source", "Source", ColumnKind.WORD),
    GridColumn("reason", "Reason", ColumnKind.WORD),
    GridColumn("lines", "Lines", ColumnKind.NUMBER),
    GridColumn("file", "First file", ColumnKind.CODE),
    GridColumn("newest", "Newest", ColumnKind.TIME),
)
_FINDINGS: Mapping[str, str] = {
    "unlike": "unlike on other clusters",
    "naming": "name does not match the pattern",
    "chain_broken": "audit log altered",
    "chain_gap": "audit log with a gap",
    "stale": "cluster not read lately",
    "failed": "cluster could not be read",
    "unregistered": "cluster not in fleet.hcl",
    "two_owners": "recorded in two states",
    "conflicting_event": "two versions of one event",
    "renamed": "two names for one cluster",
}


def show_applies(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on outcomes of applies."""
    days, clusters = answers["apply_days"], answers["apply_clusters"]
    values = {
        (row["day"], series.key): float(row[_COLUMN_OF.get(series.key, series.key)] or 0)
        for row in days
        for series in _OUTCOMES
    }
    bars = make_day_bars([row["day"] for row in days], values, _OUTCOMES)
    rows = [{**row, "share": _compute_share(row)} for row in clusters]
    sums = {name: sum_column(days, name) for name in ("applied", "failed", "unknown")}
    sent = sum(sums.values())
    lead = (
        f"{sums['applied'] / sent:.1%} of {render_count(sent, 'step')} were applied; "
        f"{sums['failed']:,} "
        f"failed, and the outcome of {sums['unknown']:,} is unknown."
        if sent
        else f"Nothing was applied in {DAYS} days."
    )
    title = f"Steps of applies by outcome and day, last {DAYS} days"
    return SectionBlock(
        (lead,),
        (Chart("applies-days", title, "steps", "day", _OUTCOMES, bars, days=True),),
        (
            make_grid(
                "Applies by cluster, most failures first", _APPLIES, rows, "apply_reliability"
            ),
            make_grid("Errors, most frequent first", _ERRORS, answers["apply_errors"]),
        ),
    )


def _compute_share(row: Mapping[str, int]) -> float | None:
    """Return the share of sent steps that were applied. Skipped ones were never sent."""
    sent = row["applied"] + row["failed"] + row["unknown"]
    return row["applied"] / sent if sent else None


def show_chains(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on audit logs."""
    rows = answers["chains"]
    bad = [
        f"{render_count(row['logs'], 'log')} {row['chain']}"
        for row in rows
        if row["chain"] != "sound"
    ]
    lead = f"Audit logs: {join_words(bad)}." if bad else "Every audit log that landed is sound."
    table = make_grid("Audit logs by the state of their hash chain", _CHAINS, rows)
    return SectionBlock((lead if rows else "No audit log has landed.",), (), (table,))


def show_consistency(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on consistency."""
    kinds = answers["consistency_kinds"]
    rows = [
        {**row, "what": _FINDINGS.get(row["finding"])}
        for row in name_objects(answers["consistency_rows"])
    ]
    everything = sum_column(kinds, "findings")
    lead = f"{render_count(everything, 'finding')} on consistency." if everything else ""
    chart = chart_findings(kinds, "consistency", "Consistency findings by kind", _FINDINGS)
    table = make_grid("Consistency findings", _CONSISTENCY, rows, "fleet_consistency")
    return SectionBlock((lead or "No findings on consistency.",), (chart,), (table,))


def show_quarantine(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on lines that were rejected."""
    rows = answers["quarantine"]
    lines = sum_column(rows, "lines")
    lead = (
        f"{render_count(lines, 'line')} could not be read and are in quarantine." if lines else ""
    )
    table = make_grid("Quarantine", _QUARANTINE, rows)
    return SectionBlock((lead or "Nothing is in quarantine.",), (), (table,))


APPLIES = Outline(
    "applies",
    "Applies",
    "How the changes that kafkaform sent ended. Unknown is a separate outcome: it may have "
    "happened.",
    (SectionPiece("applies", ("apply_days", "apply_clusters", "apply_errors"), show_applies),),
)
TRUST = Outline(
    "trust",
    "Audit logs, consistency and quarantine",
    "Whether the logs are complete, whether clusters agree, and which lines could not be read.",
    (
        SectionPiece("audit logs", ("chains",), show_chains),
        SectionPiece("consistency", ("consistency_kinds", "consistency_rows"), show_consistency),
        SectionPiece("quarantine", ("quarantine",), show_quarantine),
    ),
)
