"""The section of the report on capacity: limits, disks, growth by cluster and owner, and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import log
from typing import Any

from .figures import (
    CHART_ROWS,
    CLUSTER,
    COST_COLUMNS,
    OWNER,
    SIZE_COLUMNS,
    STORAGE_COLUMNS,
    TRAFFIC_COLUMNS,
    UNITS,
    AtLeast,
    Bar,
    Chart,
    ColumnKind,
    GridColumn,
    Outline,
    SectionAnswers,
    SectionBlock,
    SectionPiece,
    Series,
    join_words,
    make_grid,
    render_count,
)
from .questions import COST_PARTS

_KIBI = 1024
_REPLICAS = (Series("applied", "replicas", "R"),)
_GROWTH = (Series("pending", "replicas more a day", "G"),)
_CLUSTERS = (
    CLUSTER,
    *SIZE_COLUMNS,
    GridColumn("limit_replicas", "Limit, replicas", ColumnKind.NUMBER, "not declared"),
    GridColumn("growth_per_day", "Replicas more a day", ColumnKind.NUMBER, "unknown"),
    GridColumn("breach_on", "Full on", ColumnKind.DAY, "not in sight"),
    GridColumn("below_rf", "Topics with few replicas", ColumnKind.NUMBER, "unknown"),
    *STORAGE_COLUMNS,
    *COST_COLUMNS,
)
_DISKS = (
    CLUSTER,
    GridColumn("broker", "Broker", ColumnKind.NUMBER),
    GridColumn("log_dirs", "Directories", ColumnKind.CODE),
    GridColumn("used_share", "Used", ColumnKind.SHARE, "unknown"),
    GridColumn("usable_bytes", "Free", ColumnKind.BYTES, "unknown"),
    GridColumn("used_per_day", "Growth a day", ColumnKind.BYTES, "unknown"),
    GridColumn("full_on", "Full on", ColumnKind.DAY, "not in sight"),
    GridColumn("total_bytes", "Size", ColumnKind.BYTES, "unknown"),
    GridColumn("failed", "Failed", ColumnKind.FLAG),
)
_TOPIC_GROWTH = (
    CLUSTER,
    GridColumn("topic", "Topic", ColumnKind.KEY),
    OWNER,
    GridColumn("bytes", "Size", ColumnKind.BYTES, "not measured"),
    GridColumn("bytes_per_day", "Growth a day", ColumnKind.BYTES, "unknown"),
    GridColumn("records_per_day", "Records a day", ColumnKind.NUMBER, "unknown"),
    GridColumn("bytes_skew", "Largest partition, times the average", ColumnKind.NUMBER, "unknown"),
    GridColumn("records_skew", "The same by records", ColumnKind.NUMBER, "unknown"),
    *TRAFFIC_COLUMNS,
    GridColumn("partitions", "Partitions", ColumnKind.NUMBER, "unknown"),
)
_OWNERS = (
    OWNER,
    *COST_COLUMNS,
    GridColumn("uncounted", "Not in the cost", ColumnKind.LONG),
    GridColumn("clusters", "Clusters", ColumnKind.NUMBER),
    *STORAGE_COLUMNS,
    *TRAFFIC_COLUMNS,
    *SIZE_COLUMNS,
)


def show_capacity(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on capacity."""
    rows = [{**row, "cost": _mark_cost(row)} for row in answers["capacity_clusters"]]
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
    grown = sorted(
        (row for row in rows if (row["growth_per_day"] or 0) > 0),
        key=lambda row: (-row["growth_per_day"], row["cluster"]),
    )
    growth = Chart(
        "capacity-growth",
        "What grew: replicas more a day, most first",
        "replicas a day",
        "cluster",
        _GROWTH,
        tuple(
            Bar(row["cluster"], (round(row["growth_per_day"], 2),)) for row in grown[:CHART_ROWS]
        ),
        more=max(0, len(grown) - CHART_ROWS),
    )
    leads = (lead,) if rows else ("No cluster was measured.",)
    return SectionBlock(leads, (chart, growth), (table,))


def show_disks(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on disks."""
    rows = answers["disk_rows"]
    table = make_grid("Disks, first full first", _DISKS, rows, "disks")
    soon = sum(1 for row in rows if row["full_on"] is not None)
    failed = sum(1 for row in rows if row["failed"])
    leads = (
        f"{render_count(failed, 'log directory', 'log directories')} failed." if failed else "",
        f"{render_count(soon, 'disk')} will be full within five years if they fill as they did."
        if soon
        else "No disk is expected to be full.",
    )
    known_leads = tuple(filter(None, leads)) if rows else ("No disk was measured.",)
    return SectionBlock(known_leads, grids=(table,))


def show_growth(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on the growth of topics and on uneven partitions."""
    rows = answers["growth_rows"]
    table = make_grid("Topics, fastest growing first", _TOPIC_GROWTH, rows, "topic_growth")
    return SectionBlock(grids=(table,))


def show_owner_growth(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on how fast the topics of each owner grow."""
    rows = answers["capacity_owners"]
    grown = sorted(
        (row for row in rows if (row["bytes_per_day"] or 0) > 0),
        key=lambda row: (-row["bytes_per_day"], row["owner"] or ""),
    )
    most = grown[0]["bytes_per_day"] if grown else 1
    exponent = min(max(int(log(most, _KIBI)), 0), len(UNITS) - 1)
    unit = f"{UNITS[exponent]} a day"
    sizes = ((row, round(row["bytes_per_day"] / _KIBI**exponent, 2)) for row in grown)
    # What is 0.00 of the unit is no bar.
    bars = [Bar(row["owner"] or "none", (size,)) for row, size in sizes if size][:CHART_ROWS]
    chart = Chart(
        "capacity-growth-owners",
        f"What grew: {unit} on disks by owner, most first",
        unit,
        "owner",
        (Series("pending", f"{UNITS[exponent]} more a day", "G"),),
        tuple(bars),
        more=len(grown) - len(bars),
    )
    unknown = [row["owner"] or "none" for row in rows if row["bytes_per_day"] is None]
    names = join_words((*unknown[:_NAMED], *_count_more(len(unknown) - _NAMED)))
    lead = f"Growth is not known of all topics of {names}, so the chart lacks them."
    return SectionBlock((lead,) if unknown else (), (chart,))


_NAMED = 3
"""How many owners a sentence names."""


def _count_more(count: int) -> tuple[str, ...]:
    return (f"{count:,} more",) if count > 0 else ()


def _mark_cost(row: Mapping[str, Any]) -> float | None:
    """The cost of a row, marked if it lacks something."""
    # Builds of earlier versions have only costs of which all is known.
    cost: float | None = row["cost"] if row["cost_at_least"] is None else row["cost_at_least"]
    return AtLeast(cost) if cost is not None and row["unpriced_topics"] else cost


def _list_uncounted(row: Mapping[str, Any]) -> str:
    """`ingress and egress of 3 topics`."""
    words = [_PART_WORDS.get(name, name) for name in COST_PARTS if row[f"unknown_{name}"]]
    if not words:
        return ""
    return f"{join_words(words)} of {render_count(int(row['unpriced_topics']), 'topic')}"


_PART_WORDS: Mapping[str, str] = {"bytes": "size"}


def show_cost(answers: SectionAnswers, as_of: datetime) -> SectionBlock:
    """The section part on cost."""
    rows = [
        {**row, "cost": _mark_cost(row), "uncounted": _list_uncounted(row)}
        for row in answers["capacity_owners"]
    ]
    table = make_grid("Cost by owner, most first", _OWNERS, rows, "capacity")
    paid = [row for row in rows if row["cost"] is not None]
    by_currency = {
        currency: [row for row in paid if row["currency"] == currency]
        for currency in sorted({row["currency"] for row in paid if row["currency"]})
    }
    charts = tuple(
        _chart_costs(number, currency, currency_rows)
        for number, (currency, currency_rows) in enumerate(by_currency.items())
    )
    sums = [_sum_costs(currency, currency_rows) for currency, currency_rows in by_currency.items()]
    total = {f"unknown_{name}": any(row[f"unknown_{name}"] for row in rows) for name in COST_PARTS}
    uncounted = _list_uncounted(
        {**total, "unpriced_topics": sum(row["unpriced_topics"] or 0 for row in rows)}
    )
    leads = (
        f"By the declared rates, all owners together: {', '.join(sums)}." if sums else "",
        f"Not in it, because nobody knows it: {uncounted}." if uncounted else "",
    )
    return SectionBlock(tuple(filter(None, leads)), charts, (table,))


def _sum_costs(currency: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """`at least 1,234.50 EUR a month`."""
    at_least = "at least " if any(isinstance(row["cost"], AtLeast) for row in rows) else ""
    return f"{at_least}{sum(row['cost'] for row in rows):,.2f} {currency} a month"


def _chart_costs(number: int, currency: str, rows: Sequence[Mapping[str, Any]]) -> Chart:
    """number: of the currency. Names of charts must differ, and a currency may be any text."""
    series = (Series("pending", f"{currency} a month", "M"),)
    bars = tuple(
        Bar(
            row["owner"] or "none",
            (float(row["cost"]),),
            "or more" if isinstance(row["cost"], AtLeast) else "",
        )
        for row in rows[:CHART_ROWS]
    )
    anchor = f"capacity-cost-{number}"
    hidden = max(0, len(rows) - len(bars))
    return Chart(anchor, f"Cost by owner, {currency}", currency, "owner", series, bars, more=hidden)


CAPACITY = Outline(
    "capacity",
    "Capacity and cost",
    "Replicas against the limit that fleet.hcl declares, disks and topics as they grew in the last "
    "31 days, and cost by the rates of fleet.hcl. Ingress is what producers write, egress what "
    "groups with committed offsets read; copies between brokers are in neither.",
    (
        SectionPiece("capacity", ("capacity_clusters",), show_capacity),
        SectionPiece("growth by owner", ("capacity_owners",), show_owner_growth),
        SectionPiece("disks", ("disk_rows",), show_disks),
        SectionPiece("growth", ("growth_rows",), show_growth),
        SectionPiece("cost", ("capacity_owners",), show_cost),
    ),
)
