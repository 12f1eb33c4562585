"""The report as frozen data, in the order in which its pages show it, coverage first, with the
sections on how applies ended and on how far the data can be trusted."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from ..tables.definitions import SCHEMA_VERSION
from ..tables.reader import Build
from .access import PERMISSIONS, QUOTAS, chart_findings
from .capacity import CAPACITY
from .cause_model import Cause
from .causes import list_missing, rank_causes
from .drift import CHANGES, CONSUMERS, DRIFT, UNUSED
from .figures import (
    CLUSTER,
    DETAIL,
    FINDING,
    OWNER,
    SEVERITY,
    Bar,
    Chart,
    ColumnKind,
    GridColumn,
    Outline,
    ReportGrid,
    ReportSection,
    SectionAnswers,
    SectionBlock,
    SectionPiece,
    Series,
    join_words,
    make_day_bars,
    make_grid,
    make_section,
    name_objects,
    render_count,
    sum_column,
)
from .questions import DAYS, KNOWN, UNKNOWN, Answers

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
    "mixed_releases": "brokers of different releases",
    "subject_without_topic": "subject without its topic",
    "topic_without_schema": "topic without a schema",
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
        else f"Nothing was applied in {DAYS} days to the clusters that were read."
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


STATUSES = (*KNOWN, *UNKNOWN)
"""Of clusters, from known to unknown."""

_CLUSTERS = (
    CLUSTER,
    GridColumn("status", "Status", ColumnKind.WORD),
    GridColumn("registered", "In fleet.hcl", ColumnKind.FLAG),
    GridColumn("captured_at", "Last read", ColumnKind.TIME, "never"),
    GridColumn("missing", "Not fully read", missing="–"),
    GridColumn("error", "Error of the newest snapshot", ColumnKind.LONG),
    GridColumn("failures", f"Applies in {DAYS} days, by their logs", missing="–"),
    GridColumn("command", "Read it", ColumnKind.CODE),
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
_READ = frozenset(KNOWN)
_OUTLINES = (DRIFT, CHANGES, PERMISSIONS, UNUSED, CONSUMERS, QUOTAS, CAPACITY, APPLIES, TRUST)


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
    clusters: ReportGrid
    states: ReportGrid

    @property
    def unknown(self) -> int:
        """How many clusters are in no figure of the report."""
        return sum(self.counts[status] for status in UNKNOWN)

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
    failures = {row["cluster"]: row for row in answers.get("failures_off") or ()}
    off = [
        {
            **row,
            "missing": _describe_missing(row),
            "failures": _describe_failures(failures.get(row["cluster"], {})),
            "command": f"kafkaform fleet snapshot --only {shlex.quote(row['cluster'])}"
            if row["registered"]
            else None,
        }
        for row in answers.get("clusters_off") or ()
    ]
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


def _describe_failures(row: Mapping[str, int]) -> str | None:
    """`12 steps failed, the outcome of 1 is unknown`, of a cluster in no figure."""
    texts = (
        f"{render_count(row['failed'], 'step')} failed" if row.get("failed") else "",
        f"the outcome of {row['unknown']:,} is unknown" if row.get("unknown") else "",
    )
    return ", ".join(filter(None, texts)) or None


class Number(Struct, frozen=True):
    """One of the numbers at the top."""

    title: str
    value: int | None
    """None: unknown."""
    before: int | None
    """In the build before."""
    least: bool
    """Clusters that could not be read may add to it."""
    place: str
    """The section with the details."""

    @property
    def change(self) -> int | None:
        """Since the build before. None: one of the two is not known."""
        if self.value is None or self.before is None:
            return None
        return self.value - self.before


class FleetReport(Struct, frozen=True):
    """Everything that a report shows."""

    build: str
    as_of: datetime
    ended: datetime
    previous: datetime | None
    """When the build before was. None: there is none that can be read."""
    redacted: bool
    """Principals are masked."""
    csv: str | None
    """How the names of the CSV files begin. None: there are none."""
    coverage: FleetCoverage
    causes: tuple[Cause, ...]
    """What to do first."""
    unjudged: tuple[str, ...]
    """What causes lack, because the build lacks tables."""
    numbers: tuple[Number, ...]
    sections: tuple[ReportSection, ...]
    schema_version: int = SCHEMA_VERSION


class _Count(Struct, frozen=True):
    """How a number is computed."""

    answer: str
    title: str
    place: str


_COUNTS = (
    _Count("differing", "objects differ from what is declared", "drift"),
    _Count("unmanaged", "objects that nobody manages", "drift"),
    _Count("outside", f"changes out of band in {DAYS} days", "changes"),
    _Count("policy_high", "rules broken, severity high", "permissions"),
    _Count("grants_high", "access findings, severity high", "permissions"),
    _Count("failed", f"steps of applies failed in {DAYS} days", "applies"),
)


def build_report(
    build: Build,
    answers: Answers,
    before: Answers | None = None,
    previous: Build | None = None,
    *,
    redacted: bool = False,
    csv: str | None = None,
) -> FleetReport:
    """Build the report. answers: to all questions; before: to NUMBERS, of the build `previous`."""
    coverage = compute_coverage(answers)
    return FleetReport(
        build=build.name,
        as_of=build.as_of,
        ended=build.ended,
        previous=previous.as_of if previous else None,
        redacted=redacted,
        csv=csv,
        coverage=coverage,
        causes=rank_causes(answers, build.as_of),
        unjudged=list_missing(answers),
        numbers=tuple(_make_number(count, answers, before or {}, coverage) for count in _COUNTS),
        sections=tuple(make_section(outline, answers, build.as_of) for outline in _OUTLINES),
    )


def _make_number(
    count: _Count, answers: Answers, before: Answers, coverage: FleetCoverage
) -> Number:
    value = _read_value(answers, count)
    least = coverage.unknown > 0 and value is not None
    return Number(count.title, value, _read_value(before, count), least, count.place)


def _read_value(answers: Answers, count: _Count) -> int | None:
    """None: no table has it, or no cluster was read that could show it."""
    rows, clusters = answers.get(count.answer), answers.get("clusters")
    if not rows or clusters is None:
        return None
    read = [row for row in clusters if row["status"] in _READ]
    return int(rows[0]["n"]) if sum_column(read, "clusters") else None
