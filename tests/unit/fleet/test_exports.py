"""Rows as text, JSON and CSV: exact, on one line, and safe in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkaform.core.errors import StorageError
from kafkaform.core.text import escape_formula, inline
from kafkaform.fleet.report.documents import render_rows, write_csv
from kafkaform.fleet.report.rows import (
    INTERNAL,
    Sheet,
    render_cell,
    render_csv,
    render_json,
    render_table,
    to_jsonable,
    to_text,
)
from kafkaform.fleet.tables import reader
from kafkaform.fleet.tables.definitions import GOLD, TABLES
from kafkaform.fleet.tables.reader import Gold
from kafkaform.render import text as render_text
from kafkaform.workflow.fleet.answers import format_history, format_sheet

from ...kit.fleet import sample
from ...kit.fleet.lake import NOW, publish

HOSTILE = (
    "=cmd|' /C calc'!A0",
    "+1",
    "-1+2",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    " =1",
    "\uff1d1",
    "<script>alert(1)</script>",
    "a\x1b[31mb",
    "a\u202eb",
    "a\nb",
    '"quoted", too',
    "back\\slash",
    "##[error]x",
)
EAST = timezone(timedelta(hours=3))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        (True, "true"),
        (0, "0"),
        (1.5, "1.5"),
        (datetime(2026, 1, 2, 3, 4, 5, 6, UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=EAST), "2026-01-02T00:04:05Z"),
        (datetime(2026, 1, 2), "2026-01-02T00:00:00Z"),
        (date(2026, 1, 2), "2026-01-02"),
        ({"b": 1, "a": None}, '{"a":null,"b":1}'),
        (["é\n", 2], '["\\u00e9\\n",2]'),
        ("a\u202eb\n", "a\\u202eb\\n"),
    ],
)
def test_values(value: object, expected: str) -> None:
    """Each kind of value, on one line."""
    assert to_text(value) == expected


def test_tables() -> None:
    """Numbers flush right, wide characters count twice, null is a dash, a last line counts."""
    sheet = Sheet(("name", "n"), (("é", 5), ("表", 12345), (None, None)))
    assert render_table(sheet) == "name      n\né         5\n表    12345\n-         -\n(3 rows)\n"
    assert render_table(Sheet(("a",), ())) == "a\n(0 rows)\n"


def test_json() -> None:
    """Canonical, with the version; what is no number is null."""
    sheet = Sheet(("a", "t"), ((float("nan"), NOW),))
    assert render_json(sheet) == (
        '{"columns":["a","t"],"rows":[{"a":null,"t":"2026-11-22T05:00:00Z"}],"schema_version":4}\n'
    )
    assert to_jsonable({1: (float("inf"), {"x": b"y"})}) == {"1": [None, {"x": "b'y'"}]}


@pytest.mark.parametrize("value", HOSTILE)
def test_csv_runs_nothing(value: str) -> None:
    """No cell begins as a formula does, also after what spreadsheets trim; the rest is kept."""
    rows = list(csv.reader(io.StringIO(render_csv(Sheet(("a", "b"), ((value, -5),))), newline="")))
    cell, number = rows[1]
    assert cell.strip().strip("\"'")[:1] not in tuple("=+-@|%\uff1d") or cell.startswith("'")
    assert cell.isprintable()
    assert number == "-5"


@given(st.text(max_size=30))
def test_csv_of_any_text(value: str) -> None:
    """Any text is one cell of one row, and the rule is the one of the other renderers."""
    table = render_csv(Sheet(("a", "b"), ((value, "x"),)))
    rows = list(csv.reader(io.StringIO(table, newline="")))
    assert rows == [["a", "b"], [escape_formula(inline(value)), "x"]]
    assert escape_formula(value) == render_text.escape_formula(value)
    assert inline(value) == render_text.inline(value)


def test_files(tmp_path: Path) -> None:
    """One file for each gold table of the build, ordered by key, twice the same, nothing else."""
    tables = {name: rows for name, rows in sample.tables(Random(3)).items() if name in GOLD}
    tables = sample.hostile(tables, HOSTILE[0])
    tables["drift"] = [{**row, "key": f"=k{n}"} for n, row in enumerate(tables["drift"][:40])]
    del tables["capacity"]
    tables["cluster"] = []
    publish(tmp_path / "root", "b-1", tables)
    out = tmp_path / "out"
    out.mkdir()
    paths = write_csv(Gold(reader.read_current(str(tmp_path / "root"))), out, "fleet")
    assert {path.name for path in out.iterdir()} == {
        f"fleet-{name}.csv" for name in GOLD if name != "capacity"
    }
    rows = list(csv.DictReader(read_lines(out / "fleet-drift.csv")))
    assert len(rows) == 40
    assert [row["key"] for row in rows] == sorted(f"'=k{n}" for n in range(40))
    assert tuple(rows[0]) == TABLES["drift"].names
    _only_what_people_read(out)
    before = [path.read_bytes() for path in paths]
    again = write_csv(Gold(reader.read_current(str(tmp_path / "root"))), out, "fleet")
    assert [path.read_bytes() for path in again] == before


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def _only_what_people_read(out: Path) -> None:
    """No column that only the next build needs, and operations in words."""
    (first, *_) = csv.DictReader(read_lines(out / "fleet-unused_topics.csv"))
    internal = INTERNAL["unused_topics"]
    assert internal < set(TABLES["unused_topics"].names)
    assert set(first) == set(TABLES["unused_topics"].names) - internal
    (row,) = csv.DictReader(read_lines(out / "fleet-effective_permissions.csv"))
    assert (row["effective"], row["deny"]) == ("Read", "")


@given(st.lists(st.text(max_size=12) | st.sampled_from(HOSTILE) | st.none(), min_size=1))
@example(["back\\slash"])
@example(['quo"ted'])
@example(["##[x]"])
def test_a_batch_gives_the_same_cells(values: list[str | None]) -> None:
    """Column by column as one by one, whatever is in the texts."""
    count = len(values)
    moment = datetime(2026, 1, 2, 3, 4, 5, 6, UTC)
    columns = {
        "text": pa.array(values, pa.string_view()),
        "list": pa.array([values[n:] or None for n in range(count)], pa.list_(pa.string_view())),
        "map": pa.array([{str(v): v} for v in values], pa.map_(pa.string(), pa.string())),
        "number": pa.array([-1.5, *[None] * (count - 1)]),
        "flag": pa.array([None, *[True] * (count - 1)], pa.bool_()),
        "time": pa.array([moment, *[None] * (count - 1)], pa.timestamp("us", "UTC")),
        "day": pa.array([moment.date(), *[None] * (count - 1)], pa.date32()),
        "deny_mask": pa.array([24] * count, pa.int32()),
    }
    batch = pa.record_batch(columns)
    found = [[str("" if v is None else v) for v in row] for row in render_rows(batch)]
    rows = (row.values() for row in reader.to_rows(batch))
    assert found == [[*map(render_cell, own), "Read, Write"] for *own, _ in rows]


def test_files_are_masked(tmp_path: Path) -> None:
    """The mask sees every row with the name of its table."""
    publish(tmp_path, "b-1", {"capacity": [{"cluster": "a", "subject": "cluster"}], "cluster": []})
    paths = write_csv(
        Gold(reader.read_current(str(tmp_path))),
        tmp_path,
        "x",
        lambda table, row: {**row, "cluster": table},
    )
    assert json.dumps(paths[0].read_text().splitlines()[1]).startswith('"capacity,cluster,')


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """The error names the file."""
    publish(tmp_path, "b-1", {"capacity": [], "cluster": []})
    with pytest.raises(StorageError, match=r"x-capacity\.csv: it does not exist"):
        write_csv(Gold(reader.read_current(str(tmp_path))), tmp_path / "no", "x")


def test_amounts_in_a_table_have_units() -> None:
    """From the name of a column, or from the attribute that a row is about; CSV and JSON keep the
    numbers alone."""
    sheet = Sheet(
        ("kind", "path", "desired", "live", "bytes", "p50_ms", "duration_ms"),
        (
            ("kafka_topic", "config.retention.ms", "604800000", None, 1_288_490_189, 1.5, 60_000),
            ("kafka_topic", "config.cleanup.policy", "delete", "compact", 12, None, 7),
        ),
    )
    head, first, second, _ = format_sheet(sheet, "table").splitlines()
    assert "7 d (604800000)  -  " in first
    assert "1.2 GiB (1288490189)" in first
    assert "1 min (60000)" in first
    assert second.split() == ["kafka_topic", "config.cleanup.policy", "delete", "compact"] + [
        *("12", "-", "7")
    ]
    assert " d " not in format_sheet(sheet, "csv")
    quotas = Sheet(("quota_key", "value"), (("producer_byte_rate", 1048576.0), ("x", 5.0)))
    assert "1 MiB/s (1048576" in format_sheet(quotas, "table")


@pytest.mark.parametrize("key", ["topic/orders", "kafka_topic/orders"])
def test_the_history_of_an_object_has_the_units_of_its_kind(key: str) -> None:
    """Its rows name the attribute and not the kind, which the key says. Files stay exact."""
    names = ("what", "path", "before", "after")
    row = ("changed", "config.retention.ms", "604800000", "2592000000")
    size = ("changed", "config.segment.bytes", None, "1048576")
    sheet = Sheet(names, (row, size, ("changed", "partitions", "3", "6")))
    text = format_history(sheet, "table", key)
    assert "7 d (604800000)" in text and "30 d (2592000000)" in text
    assert "1 MiB (1048576)" in text and "3" in text.splitlines()[3]
    assert "7 d" not in format_history(sheet, "csv", key)
