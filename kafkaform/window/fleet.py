"""The fleet's tables, as the newest build has them, and its report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.errors import KafkaformError
from ..core.resource import Identity
from ..core.text import render_count
from ..fleet import report, tables
from ..fleet.report.rows import INTERNAL, expand_mask, render_utc, to_text
from ..fleet.tables.definitions import GOLD, TABLES, quote_text
from ..workflow.fleet.runs import need_reader
from .page import (
    Cell,
    WindowPage,
    WindowSection,
    WindowTable,
    cut_rows,
    describe_object,
    make_id,
    make_pager,
    make_table,
)
from .sources import Query, Sources, read_number

if TYPE_CHECKING:
    from ..fleet.tables.reader import Build, Gold

NO_ROOT = (
    "No fleet data is configured. Start the window with --fleet-root, set "
    "KAFKAFORM_FLEET_ROOT, or write root into the fleet block of fleet.hcl.",
)
USE = "unused_topics"
"""The table that says who reads and writes each topic."""
REPORT = make_id("report")
"""The id of the report's page."""


def make_page(sources: Sources, query: Query) -> WindowPage:
    """List the tables of the newest build, or say why that is impossible."""
    if sources.fleet_root is None:
        return WindowPage("fleet", "Fleet", "", (WindowSection("tables", "Tables", NO_ROOT),))
    try:
        gold = open_gold(sources.fleet_root)
    except KafkaformError as error:
        warning = f"{error.message}. {error.advice}"
        return WindowPage(
            "fleet", "Fleet", "", (WindowSection("tables", "Tables", warning=warning),)
        )
    return show_build(gold.build)


def open_gold(root: str) -> Gold:
    """The newest build. Raises UsageError if packages or the build are missing, StorageError."""
    need_reader()
    return tables.reader.Gold(tables.reader.read_current(root))


def list_tables(build: Build) -> tuple[str, ...]:
    """The tables of a build that are for people."""
    return tuple(name for name in GOLD if name in build.tables)


def show_build(build: Build) -> WindowPage:
    """The listing of a build."""
    facts = (
        ("Build", Cell(build.name, style="code")),
        ("Newest snapshot in it", Cell(render_utc(build.as_of))),
        ("Made", Cell(render_utc(build.ended))),
    )
    rows = [
        (
            Cell(name, f"fleet/{make_id(name)}"),
            Cell(f"{build.tables[name].rows:,}", style="number"),
            Cell(", ".join(TABLES[name].key)),
        )
        for name in list_tables(build)
    ]
    table = make_table("Tables", ("Table", "Rows", "One row for each"), rows)
    links = (Cell("The report of this build", f"report/{REPORT}"),)
    section = WindowSection("tables", "Tables", facts=facts, tables=(table,), links=links)
    return WindowPage("fleet", "Fleet", build.root, (section,))


def make_table_page(sources: Sources, id: str, query: Query) -> WindowPage | None:
    """Rows of one table; None if the build has no such table."""
    if sources.fleet_root is None:
        return None
    gold = open_gold(sources.fleet_root)
    name = next((name for name in list_tables(gold.build) if make_id(name) == id), None)
    if name is None:
        return None
    total = gold.build.tables[name].rows
    row_slice = cut_rows(total, read_number(query, "first"))
    return show_rows(name, read_rows(gold, name, row_slice), row_slice, total)


def read_rows(gold: Gold, name: str, row_slice: slice) -> Sequence[dict[str, Any]]:
    """These rows of a table, ordered by its key."""
    # Every word of this query comes from the definitions of the tables.
    columns, key = _quote(list_columns(name)), _quote(TABLES[name].key)
    order = f" order by {key}" if key else ""
    limit = f" limit {row_slice.stop - row_slice.start} offset {row_slice.start}"
    return gold.read_rows(f"select {columns} from {name}{order}{limit}")


def _quote(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def list_columns(name: str) -> tuple[str, ...]:
    """The columns of a table that are for people."""
    return tuple(column for column in TABLES[name].names if column not in INTERNAL.get(name, ()))


def show_rows(
    name: str, rows: Sequence[dict[str, Any]], row_slice: slice, total: int
) -> WindowPage:
    """The page of these rows."""
    columns = list_columns(name)
    cells = tuple(tuple(_make_cell(row, column) for column in columns) for row in rows)
    pager = make_pager(f"fleet/{make_id(name)}", row_slice, total)
    table = WindowTable(name, columns, cells, total, pager)
    links = (Cell("All tables", "fleet"),)
    section = WindowSection("rows", "Rows", tables=(table,), links=links)
    return WindowPage("fleet", name, render_count(total, "row"), (section,))


def _make_cell(row: Mapping[str, Any], column: str) -> Cell:
    if column == "key" and row.get("kind"):
        return Cell(describe_object(Identity("", str(row["kind"]), str(row["key"]))))
    return Cell(to_text(expand_mask(column, row[column])))


def show_topic_use(root: str, scope: str, topic: str) -> WindowSection:
    """Who uses a topic, as the snapshots of its cluster show. scope: the id of the cluster."""
    try:
        gold = open_gold(root)
        gold.require(USE)
        rows = gold.read_rows(
            f"select {USE}.* from {USE} join cluster on cluster.cluster = {USE}.cluster "
            f"where cluster.cluster_id = {quote_text(scope)} and {USE}.topic = {quote_text(topic)}"
        )
    except KafkaformError as error:
        return WindowSection("use", "Use", warning=f"{error.message}. {error.advice}")
    if not rows:
        lead = ("The newest build of the fleet has no snapshot of this topic.",)
        return WindowSection("use", "Use", lead)
    row = rows[0]
    groups = sorted(row["committed"] or ())
    facts = (
        ("Verdict", Cell(str(row["verdict"]).replace("_", " "))),
        ("Cluster", Cell(row["cluster"])),
        ("As of", Cell(render_utc(row["as_of"]))),
    )
    table = make_table(
        "Consumer groups with offsets", ("Group",), [(Cell(group),) for group in groups]
    )
    lead = (f"By the fleet's snapshots: {'; '.join(row['evidence'])}.",)
    links = (Cell("All topics of the fleet", f"fleet/{make_id(USE)}"),)
    group_tables = (table,) if groups else ()
    return WindowSection("use", "Use", lead, facts=facts, tables=group_tables, links=links)


def render_report(sources: Sources, id: str, root: str) -> str | None:
    """The report of the newest build, as `fleet report` writes it."""
    if sources.fleet_root is None or id != REPORT:
        return None
    gold = open_gold(sources.fleet_root)  # first, because it says what to install
    return report.documents.render_html(report.documents.make_report(gold))
