"""Sections on how applies went, and on how far the data itself can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from .access import findings
from .charts import Chart, Series, by_day
from .grids import CLUSTER, DETAIL, FINDING, OWNER, SEVERITY, Column, Kind, grid, total
from .questions import DAYS
from .sections import Block, Known, Outline, Piece, count, named, sentence

_OUTCOMES = (
    Series("applied", "applied", "A"),
    Series("failed", "failed", "F"),
    Series("unknown", "unknown", "?"),
    Series("unclear", "skipped", "S"),
)
_COLUMN_OF: Mapping[str, str] = {"unclear": "skipped"}
_APPLIES = (
    CLUSTER,
    Column("share", "Applied", Kind.SHARE, "nothing sent"),
    Column("steps", "Steps", Kind.NUMBER),
    Column("failed", "Failed", Kind.NUMBER),
    Column("unknown", "Unknown", Kind.NUMBER),
    Column("skipped", "Skipped", Kind.NUMBER),
    Column("retries", "Retries", Kind.NUMBER),
    Column("partial_runs", "Runs in part, at least", Kind.NUMBER),
    Column("validated_then_failed", "Failed after dry run", Kind.NUMBER),
    Column("p95_ms", "Slowest p95, ms", Kind.NUMBER, "unknown"),
)
_ERRORS = (
    Column("error_code", "Error", Kind.CODE),
    Column("failed", "Failed", Kind.NUMBER),
    Column("unknown", "Unknown", Kind.NUMBER),
    Column("clusters", "Clusters", Kind.NUMBER),
)
_CHAINS = (
    Column("chain", "Chain", Kind.WORD),
    Column("logs", "Logs", Kind.NUMBER),
    Column("runs", "Runs", Kind.NUMBER),
    Column("unended", "Runs without an end", Kind.NUMBER),
)
_CONSISTENCY = (
    SEVERITY,
    FINDING,
    CLUSTER,
    Column("object", "Object", Kind.KEY, "the cluster"),
    DETAIL,
    OWNER,
)
_QUARANTINE = (
    Column("source", "Source", Kind.WORD),
    Column("reason", "Reason", Kind.WORD),
    Column("lines", "Lines", Kind.NUMBER),
    Column("file", "First file", Kind.CODE),
    Column("newest", "Newest", Kind.TIME),
)
_FINDINGS: Mapping[str, str] = {
    "unlike": "unlike on other clusters",
    "naming": "name against the pattern",
    "chain_broken": "audit log altered",
    "chain_gap": "audit log with a gap",
    "stale": "cluster not read lately",
    "failed": "cluster could not be read",
    "unregistered": "cluster not in fleet.hcl",
    "two_owners": "recorded in two states",
    "conflicting_event": "one event told in two ways",
    "renamed": "two names for one cluster",
}


def applied(known: Known, as_of: datetime) -> Block:
    days, clusters = known["apply_days"], known["apply_clusters"]
    values = {
        (row["day"], series.key): float(row[_COLUMN_OF.get(series.key, series.key)] or 0)
        for row in days
        for series in _OUTCOMES
    }
    bars = by_day([row["day"] for row in days], values, _OUTCOMES)
    rows = [{**row, "share": _share(row)} for row in clusters]
    sums = {name: total(days, name) for name in ("applied", "failed", "unknown")}
    sent = sum(sums.values())
    lead = (
        f"{sums['applied'] / sent:.1%} of {count(sent, 'step')} were applied; {sums['failed']:,} "
        f"failed and of {sums['unknown']:,} the outcome is not known."
        if sent
        else f"Nothing was applied in {DAYS} days."
    )
    title = f"Steps of applies by outcome and day, last {DAYS} days"
    return Block(
        (lead,),
        (Chart("applies-days", title, "steps", "day", _OUTCOMES, bars, days=True),),
        (
            grid("Applies by cluster, most failures first", _APPLIES, rows, "apply_reliability"),
            grid("Errors, most frequent first", _ERRORS, known["apply_errors"]),
        ),
    )


def _share(row: Mapping[str, int]) -> float | None:
    sent = row["applied"] + row["failed"] + row["unknown"]
    return row["applied"] / sent if sent else None


def chained(known: Known, as_of: datetime) -> Block:
    rows = known["chains"]
    bad = [f"{count(row['logs'], 'log')} {row['chain']}" for row in rows if row["chain"] != "sound"]
    lead = f"Audit logs: {sentence(bad)}." if bad else "Every audit log that landed is sound."
    table = grid("Audit logs by the state of their hash chain", _CHAINS, rows)
    return Block((lead if rows else "No audit log has landed.",), (), (table,))


def consistent(known: Known, as_of: datetime) -> Block:
    kinds = known["consistency_kinds"]
    rows = [
        {**row, "what": _FINDINGS.get(row["finding"])} for row in named(known["consistency_rows"])
    ]
    everything = total(kinds, "findings")
    lead = f"{count(everything, 'finding')} on consistency." if everything else ""
    chart = findings(kinds, "consistency", "Consistency findings by kind", _FINDINGS)
    table = grid("Consistency findings", _CONSISTENCY, rows, "fleet_consistency")
    return Block((lead or "No findings on consistency.",), (chart,), (table,))


def quarantined(known: Known, as_of: datetime) -> Block:
    rows = known["quarantine"]
    lines = total(rows, "lines")
    lead = f"{count(lines, 'line')} could not be taken in and lie in quarantine." if lines else ""
    table = grid("Quarantine", _QUARANTINE, rows)
    return Block((lead or "Nothing is in quarantine.",), (), (table,))


APPLIES = Outline(
    "applies",
    "Applies",
    "How changes went that kafkaform sent. Unknown is an outcome of its own: it may have happened.",
    (Piece("applies", ("apply_days", "apply_clusters", "apply_errors"), applied),),
)
TRUST = Outline(
    "trust",
    "Audit logs, consistency and quarantine",
    "Whether the logs are whole, whether clusters agree, and which lines could not be read.",
    (
        Piece("audit logs", ("chains",), chained),
        Piece("consistency", ("consistency_kinds", "consistency_rows"), consistent),
        Piece("quarantine", ("quarantine",), quarantined),
    ),
)
