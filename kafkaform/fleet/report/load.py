"""Sections of the report on use, capacity and cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from .drift import CHART_ROWS
from .figures import (
    CLUSTER,
    COST_COLUMNS,
    OWNER,
    SIZE_COLUMNS,
    Bar,
    Chart,
    ColumnKind,
    GridColumn,
    Outline,
    SectionAnswers,
    SectionBlock,
    SectionPiece,
    Series,
    make_grid,
    render_count,
)

_VERDICTS = (
    Series("candidate", "candidate", "C"),
    Series("in_use", "in use", "I"),
    Series("too_new", "too new", "T"),
    Series("unknown", "insufficient evidence", "?"),
)
_VERDICT_OF: Mapping[str, str] = {"insufficient_evidence": "unknown"}
_TOPICS = (
    CLUSTER,
    GridColumn("topic", "Topic", ColumnKind.KEY),
    GridColumn("confidence", "Confidence", ColumnKind.SHARE),
    GridColumn("idle_since", "Idle since", ColumnKind.TIME, "unknown"),
    GridColumn("empty", "Empty", ColumnKind.FLAG, "unknown"),
    GridColumn("written", "Written", ColumnKind.FLAG, "unknown"),
    GridColumn("read", "Read", ColumnKind.FLAG, "unknown"),
    GridColumn("granted", "Granted", ColumnKind.FLAG, "unknown"),
    GridColumn("partitions", "Partitions", ColumnKind.NUMBER, "unknown"),
    GridColumn("bytes", "Size", ColumnKind.BYTES, "not measured"),
    OWNER,
    GridColumn("evidence", "Evidence", ColumnKind.LONG),
)
_REPLICAS = (Series("applied", "replicas", "R"),)
_CLUSTERS = (
    CLUSTER,
    *SIZE_COLUMNS,
    GridColumn("limit_replicas", "Limit", ColumnKind.NUMBER, "not declared"),
    GridColumn("growth_per_day", "Growth a day", ColumnKind.NUMBER, "unknown"),
    GridColumn("breach_on", "Full on", ColumnKind.DAY, "not in sight"),
    GridColumn("below_rf", "Few replicas", ColumnKind.NUMBER, "unknown"),
    *COST_COLUMNS,
)
_OWNERS = (
    OWNER,
    GridColumn("clusters", "Clusters", ColumnKind.NUMBER),
    *SIZE_COLUMNS,
    *COST_COLUMNS,
)


def show_unused_topics(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on unused topics."""
    counts = {
        _VERDICT_OF.get(row["verdict"], row["verdict"]): int(row["topics"])
        for row in answers["unused_verdicts"]
    }
    candidates, unknown = counts.get("candidate", 0), counts.get("unknown", 0)
    bars = (Bar("all topics", tuple(counts.get(s.key, 0) for s in _VERDICTS)),) if counts else ()
    lead = (
        f"{render_count(candidates, 'topic')} may be unused: ask the owner before anything "
        "is deleted."
    )
    unknown_text = (
        f" For {render_count(unknown, 'topic')} there is not enough evidence." if unknown else ""
    )
    return SectionBlock(
        ((lead if candidates else "No topic is a candidate for removal.") + unknown_text,),
        (Chart("unused-topics", "Topics by verdict", "topics", "fleet", _VERDICTS, bars),),
        (
            make_grid(
                "Candidates, most certain first", _TOPICS, answers["unused_rows"], "unused_topics"
            ),
        ),
    )


def show_capacity(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on capacity."""
    rows = answers["capacity_clusters"]
    table = make_grid("Capacity by cluster, fullest first", _CLUSTERS, rows, "capacity")
    bars = tuple(
        Bar(
            row["cluster"],
            (row["replicas"],),
            f"full {row['breach_on']}" if row["breach_on"] else "",
            row["limit_replicas"],
        )
        for row in rows[:CHART_ROWS]
    )
    soon = sum(1 for row in rows if row["breach_on"])
    lead = (
        f"{render_count(soon, 'cluster')} will reach the declared limit of replicas at the "
        "present growth."
        if soon
        else "No cluster is expected to reach its declared limit of replicas."
    )
    chart = Chart(
        "capacity-clusters",
        "Replicas against the declared limit",
        "replicas",
        "cluster",
        _REPLICAS,
        bars,
        more=max(0, table.total - len(bars)),
    )
    return SectionBlock((lead,) if rows else ("No cluster was measured.",), (chart,), (table,))


def show_cost(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on cost."""
    rows = answers["capacity_owners"]
    table = make_grid("Cost by owner", _OWNERS, rows, "capacity")
    paid = [row for row in rows if row["cost"] is not None]
    currencies = sorted({row["currency"] for row in paid if row["currency"]})
    charts = tuple(
        _chart_costs(number, currency, [row for row in paid if row["currency"] == currency])
        for number, currency in enumerate(currencies)
    )
    sums = (
        f"{total_cost:,.2f} {currency} a month"
        for currency in currencies
        if (total_cost := sum(row["cost"] for row in paid if row["currency"] == currency))
    )
    lead = ", ".join(sums)
    return SectionBlock((f"By the declared rates: {lead}.",) if lead else (), charts, (table,))


def _chart_costs(number: int, currency: str, rows: list[Mapping[str, object]]) -> Chart:
    """number: of the currency. Names of charts must differ, and a currency may be any text."""
    series = (Series("pending", f"{currency} a month", "M"),)
    bars = tuple(
        Bar(str(row["owner"] or "none"), (float(str(row["cost"])),)) for row in rows[:CHART_ROWS]
    )
    anchor = f"capacity-cost-{number}"
    hidden = max(0, len(rows) - len(bars))
    return Chart(anchor, f"Cost by owner, {currency}", currency, "owner", series, bars, more=hidden)


UNUSED = Outline(
    "unused",
    "Unused topics",
    "Topics that nobody has written or read during the grace days, by several signals. A candidate "
    "is a question to its owner, never a verdict.",
    (SectionPiece("unused topics", ("unused_verdicts", "unused_rows"), show_unused_topics),),
)
CAPACITY = Outline(
    "capacity",
    "Capacity and cost",
    "Replicas against the limit that fleet.hcl declares, and cost by its rates.",
    (
        SectionPiece("capacity", ("capacity_clusters",), show_capacity),
        SectionPiece("cost", ("capacity_owners",), show_cost),
    ),
)
