"""Sections on what is used, how much there is of it, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from .charts import Bar, Chart, Series
from .drift import CHART_ROWS
from .grids import CLUSTER, OWNER, SIZES, SPENT, Column, Kind, grid
from .sections import Block, Known, Outline, Piece, count

_VERDICTS = (
    Series("candidate", "candidate", "C"),
    Series("in_use", "in use", "I"),
    Series("too_new", "too new", "T"),
    Series("unknown", "insufficient evidence", "?"),
)
_VERDICT_OF: Mapping[str, str] = {"insufficient_evidence": "unknown"}
_TOPICS = (
    CLUSTER,
    Column("topic", "Topic", Kind.KEY),
    Column("confidence", "Confidence", Kind.SHARE),
    Column("idle_since", "Idle since", Kind.TIME, "unknown"),
    Column("empty", "Empty", Kind.FLAG, "unknown"),
    Column("written", "Written", Kind.FLAG, "unknown"),
    Column("read", "Read", Kind.FLAG, "unknown"),
    Column("granted", "Granted", Kind.FLAG, "unknown"),
    Column("partitions", "Partitions", Kind.NUMBER, "unknown"),
    Column("bytes", "Size", Kind.BYTES, "not measured"),
    OWNER,
    Column("evidence", "Evidence", Kind.LONG),
)
_REPLICAS = (Series("applied", "replicas", "R"),)
_CLUSTERS = (
    CLUSTER,
    *SIZES,
    Column("limit_replicas", "Limit", Kind.NUMBER, "not declared"),
    Column("growth_per_day", "Growth a day", Kind.NUMBER, "unknown"),
    Column("breach_on", "Full on", Kind.DAY, "not in sight"),
    Column("below_rf", "Few replicas", Kind.NUMBER, "unknown"),
    *SPENT,
)
_OWNERS = (
    OWNER,
    Column("clusters", "Clusters", Kind.NUMBER),
    *SIZES,
    *SPENT,
)


def idle(known: Known, as_of: datetime) -> Block:
    counts = {
        _VERDICT_OF.get(row["verdict"], row["verdict"]): int(row["topics"])
        for row in known["unused_verdicts"]
    }
    candidates, unknown = counts.get("candidate", 0), counts.get("unknown", 0)
    bars = (Bar("all topics", tuple(counts.get(s.key, 0) for s in _VERDICTS)),) if counts else ()
    lead = f"{count(candidates, 'topic')} may be unused: ask the owner before anything is deleted."
    rest = f" For {count(unknown, 'topic')} there is not enough evidence." if unknown else ""
    return Block(
        ((lead if candidates else "No topic is a candidate for removal.") + rest,),
        (Chart("unused-topics", "Topics by verdict", "topics", "fleet", _VERDICTS, bars),),
        (grid("Candidates, most certain first", _TOPICS, known["unused_rows"], "unused_topics"),),
    )


def full(known: Known, as_of: datetime) -> Block:
    rows = known["capacity_clusters"]
    table = grid("Capacity by cluster, fullest first", _CLUSTERS, rows, "capacity")
    bars = tuple(
        Bar(row["cluster"], (row["replicas"],), _breach(row["breach_on"]), row["limit_replicas"])
        for row in rows[:CHART_ROWS]
    )
    soon = sum(1 for row in rows if row["breach_on"])
    lead = (
        f"{count(soon, 'cluster')} will reach the declared limit of replicas at the present growth."
        if soon
        else "No cluster is seen to reach a declared limit of replicas."
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
    return Block((lead,) if rows else ("No cluster was measured.",), (chart,), (table,))


def _breach(day: object) -> str:
    return f"full {day}" if day else ""


def cost(known: Known, as_of: datetime) -> Block:
    rows = known["capacity_owners"]
    table = grid("Cost by owner", _OWNERS, rows, "capacity")
    paid = [row for row in rows if row["cost"] is not None]
    currencies = sorted({row["currency"] for row in paid if row["currency"]})
    charts = tuple(
        _costs(number, currency, [row for row in paid if row["currency"] == currency])
        for number, currency in enumerate(currencies)
    )
    sums = (
        f"{total_cost:,.2f} {currency} a month"
        for currency in currencies
        if (total_cost := sum(row["cost"] for row in paid if row["currency"] == currency))
    )
    lead = ", ".join(sums)
    return Block((f"By the declared rates: {lead}.",) if lead else (), charts, (table,))


def _costs(number: int, currency: str, rows: list[Mapping[str, object]]) -> Chart:
    """number: of the currency, which may be any text, and no two charts may have one name."""
    series = (Series("pending", f"{currency} a month", "M"),)
    bars = tuple(
        Bar(str(row["owner"] or "none"), (float(str(row["cost"])),)) for row in rows[:CHART_ROWS]
    )
    place = f"capacity-cost-{number}"
    more = max(0, len(rows) - len(bars))
    return Chart(place, f"Cost by owner, {currency}", currency, "owner", series, bars, more=more)


UNUSED = Outline(
    "unused",
    "Unused topics",
    "Topics that nobody has written or read for the grace days, by several signals. A candidate "
    "is a question to its owner, never a verdict.",
    (Piece("unused topics", ("unused_verdicts", "unused_rows"), idle),),
)
CAPACITY = Outline(
    "capacity",
    "Capacity and cost",
    "Replicas against the limit that fleet.hcl declares, and cost by its rates.",
    (
        Piece("capacity", ("capacity_clusters",), full),
        Piece("cost", ("capacity_owners",), cost),
    ),
)
