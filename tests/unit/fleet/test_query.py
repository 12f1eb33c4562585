"""SQL, histories and status over small builds."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafkaform.cli.app import run_command_line
from kafkaform.core.errors import StorageError, UsageError
from kafkaform.fleet.answers import history
from kafkaform.fleet.answers.query import run_query
from kafkaform.fleet.report.rows import Sheet
from kafkaform.fleet.tables import reader
from kafkaform.fleet.tables.reader import Gold

from ...kit.fleet import sample
from ...kit.fleet.lake import NOW, publish

SECONDS = 60
CROSS = (
    "select count(*) from generate_series(1, 100000000) a cross join "
    "generate_series(1, 100000000) b where a.value + b.value = -1"
)
RECURSIVE = (
    "with recursive t as (select 1 as n union all select n + 1 from t) select count(*) from t"
)
HOUR = timedelta(hours=1)
TOPIC = {"cluster": "a", "kind": "kafka_topic", "key": "orders"}


def at(hours: float) -> datetime:
    return NOW + hours * HOUR


def event(number: int, hours: float, outcome: str, **more: Any) -> dict[str, Any]:
    return TOPIC | {
        "event_id": f"l/{number}",
        "ts": at(hours),
        "run": f"r{number}",
        "actor": "mia",
        "record": "outcome",
        "action": "update",
        "outcome": outcome,
        "commit": "c0ffee",
        "changes": [],
        **more,
    }


HISTORY = [
    TOPIC | {"attrs": {"p": "1"}, "valid_from": at(0), "valid_to": at(6), "deleted": False},
    TOPIC
    | {"attrs": {"p": "2", "q": "x"}, "seen_before": at(0), "valid_from": at(6)}
    | {"valid_to": at(12), "deleted": False},
    TOPIC
    | {"attrs": {"p": "2"}, "seen_before": at(6), "valid_from": at(12), "valid_to": at(18)}
    | {"deleted": True},
]
ATTRIBUTED = [
    TOPIC
    | {"path": "p", "before": "1", "after": "2", "window_start": at(0), "window_end": at(6)}
    | {"verdict": "applied", "event_id": "l/1", "run": "r1", "actor": "mia", "commit": "c0ffee"},
    TOPIC
    | {"path": "q", "before": None, "after": "x", "window_start": at(0), "window_end": at(6)}
    | {"verdict": "out_of_band", "event_id": ""},
    TOPIC
    | {"path": "", "before": "present", "after": "absent", "window_start": at(12)}
    | {"window_end": at(18), "verdict": "out_of_band", "event_id": ""},
]
CHANGE = {"path": "p", "before": "1", "after": "9", "sensitive": False}
SECRET = {"path": "password", "before": None, "after": None, "sensitive": True}
EVENTS = [
    event(1, 3, "applied"),
    event(2, 4, "failed", error_code="POLICY_VIOLATION", changes=[CHANGE, SECRET]),
    event(3, 20, "applied", action="create"),
    event(4, 20, None, record="intent"),  # type: ignore[arg-type]
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    tables = sample.tables(Random(1)) | {
        "history": HISTORY,
        "change_attribution": ATTRIBUTED,
        "event": EVENTS,
    }
    publish(folder, "b-1", tables)
    return folder


@pytest.fixture
def tables(root: Path) -> Gold:
    return Gold(reader.read_current(str(root)))


# ── query ───────────────────────────────────────────────────────────────────────────────


def test_queries(tables: Gold) -> None:
    """Joins, maps, times and the column `cluster` at any place."""
    assert run_query(
        tables, "select path, cluster from change_attribution where path = 'p'"
    ) == Sheet(("path", "cluster"), (("p", "a"),))
    sql = """
      -- a comment; with a semicolon
      with first as (select key, attrs['p'] as p, valid_from from history)
      select e.run, f.p from first f join event e on e.key = f.key
      where e.ts > f.valid_from + interval '2 hours' and f.p = '1' and e.outcome = 'applied'
      order by e.run"""
    assert run_query(tables, sql).rows == (("r1", "1"), ("r3", "1"))
    assert run_query(tables, "(select attrs from history order by valid_from limit 1)").rows == (
        ({"p": "1"},),
    )
    assert run_query(tables, "select 1 as n where false") == Sheet(("n",), ())


@pytest.mark.parametrize("number", range(16))
def test_the_queries_of_the_documents_run(tables: Gold, number: int) -> None:
    """Each SQL block of docs/fleet/report.md, on tables that have rows for it."""
    text = (Path(__file__).parents[3] / "docs/fleet/report.md").read_text("utf-8")
    blocks = re.findall(r"^```sql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 16
    # The sample has neither leaders of brokers nor a registry that belongs to a cluster.
    assert run_query(tables, blocks[number]).rows or number in (10, 14)


@pytest.mark.parametrize(
    "sql",
    [
        "drop table drift",
        "copy drift to 'out.csv'",
        "/* select */ copy drift to 'out.csv'",
        "-- select\ninsert into drift select * from drift",
        "create table x as select 1",
        "create external table x stored as csv location 'x.csv'",
        "set datafusion.execution.batch_size = 1",
        "explain select 1",
        "delete from drift",
        "select * into x from drift",
        "",
    ],
)
def test_only_queries_are_run(
    tables: Gold, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No statement that writes or sets anything gets to the engine."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"only queries|would create a table"):
        run_query(tables, sql)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "sql",
    [
        "select 1; drop table drift",
        "with a as (select 1) insert into drift select * from drift",
        "with a as (select 1) update drift set n = 1",
        "select * from '/etc/passwd'",
        "select * from read_csv('/etc/passwd')",
    ],
)
def test_what_hides_behind_a_query_is_refused_too(tables: Gold, sql: str) -> None:
    """By the engine: one statement, and tables that were registered."""
    with pytest.raises(UsageError):
        run_query(tables, sql)


@pytest.mark.parametrize(
    ("sql", "message", "advice"),
    [
        ("select * from drfit", "no table drfit", "Did you mean drift?"),
        ("select * from zzz", "no table zzz", "There are apply_reliability, capacity"),
        ("select * from gold.drift", "no table gold.drift", "Write drift"),
        ("select * from desired", "b-1 has no table desired", "--only desired"),
        ("select clustr from drift", "no column clustr", "Did you mean cluster?"),
        ("select d.nope from drift d", "no column d.nope", "drift has cluster, kind"),
        ("select frist_seen from drift", "no column frist_seen", "Did you mean first_seen?"),
        (
            "select 1 from drift where kind = topic",
            "no column topic",
            "single quotes: 'topic'. drift",
        ),
        ("select cluster from drift where x = 1", "no column x", "'x'. drift has"),
        ("selec 1", "only queries", "SELECT"),
        ("select 1 +", "cannot be run", "DataFusion"),
        ("select cast(cluster as int) from drift", "Cannot cast", ""),
        ("select nope(1)", "Invalid function 'nope'", "DataFusion"),
    ],
)
def test_errors_of_queries(tables: Gold, sql: str, message: str, advice: str) -> None:
    """They name what is wrong and what there is."""
    with pytest.raises(UsageError) as caught:
        run_query(tables, sql)
    assert message in caught.value.message
    assert advice in caught.value.advice


def test_a_query_of_files_that_are_gone(tmp_path: Path) -> None:
    """An error of storage: the query was right."""
    publish(tmp_path, "b-1", {"drift": [TOPIC]})
    for file in (tmp_path / "tables" / "gold" / "drift").glob("*.parquet"):
        file.unlink()
    with pytest.raises(StorageError, match="cannot read"):
        run_query(Gold(reader.read_current(str(tmp_path))), "select * from drift")


# ── history ─────────────────────────────────────────────────────────────────────────────


def told(sheet: Sheet) -> list[tuple[float, str, str, str | None, str | None, str]]:
    rows = [dict(zip(sheet.names, row, strict=True)) for row in sheet.rows]
    names = ("what", "path", "before", "after", "mark")
    return [((row["at"] - NOW) / HOUR, *(row[name] for name in names)) for row in rows]


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("absent", "present", "appeared"),
        ("present", "absent", "gone"),
        ("present", "present", "replaced"),
    ],
)
def test_an_object_comes_and_goes(before: str, after: str, what: str) -> None:
    """In the words that `change_attribution` has for an object as a whole."""
    row = dict.fromkeys(("actor", "run", "commit")) | ATTRIBUTED[-1]
    row |= {"before": before, "after": after}
    (entry,) = history.build_timeline((), (row,), ())
    assert entry.what == what


def test_history_is_one_line_of_time(tables: Gold) -> None:
    """Snapshots, attribution and events of one object, each change once, at the best time."""
    failed = "failed: POLICY_VIOLATION"
    assert told(history.read_history(tables, "a", "topic/orders")) == [
        (0, "first seen", "", None, None, ""),
        (3, "changed", "p", "1", "2", "applied"),
        (4, "update", "p", "1", "9", failed),
        (4, "update", "password", "(sensitive)", "(sensitive)", failed),
        (6, "changed", "q", None, "x", "OUT OF BAND"),
        (12, "changed", "q", "x", None, "not judged"),
        (18, "gone", "", "present", "absent", "OUT OF BAND"),
        (20, "create", "", None, None, "applied, in no snapshot yet"),
    ]


def test_history_names_who_and_when(tables: Gold) -> None:
    """An event gives the exact time, actor, run and commit; without one there is a window."""
    sheet = history.read_history(tables, "a", "kafka_topic/orders")
    rows = [dict(zip(sheet.names, row, strict=True)) for row in sheet.rows]
    assert {name: rows[1][name] for name in ("actor", "run", "commit", "not_before")} == {
        "actor": "mia",
        "run": "r1",
        "commit": "c0ffee",
        "not_before": None,
    }
    assert (rows[4]["actor"], rows[4]["not_before"]) == (None, at(0))


def test_history_since(tables: Gold) -> None:
    """The time is counted back from the newest capture."""
    assert [
        row[0] for row in told(history.read_history(tables, "a", "topic/orders", -5 * HOUR))
    ] == [
        6,
        12,
        18,
        20,
    ]
    # NOW is that capture; a table without any row would look as if nothing were known.
    late = history.read_history(tables, "a", "topic/orders", -99 * HOUR)
    assert [row[0] for row in told(late)] == [20]


@pytest.mark.parametrize(
    ("cluster", "key", "message", "advice"),
    [
        ("b", "topic/orders", "no snapshot of cluster 'b'", "There are a."),
        ("a", "topic/order", "never had topic/order", "There are orders."),
        ("a", "acl/orders", "no objects of kind 'acl'", "There are topic."),
        ("a'; --", "topic/o'rders", "no snapshot of cluster", "There are a."),
        ("a", "orders", "is not an object", "topic/orders"),
    ],
)
def test_history_of_nothing(
    tables: Gold, cluster: str, key: str, message: str, advice: str
) -> None:
    """It says which part is not known."""
    with pytest.raises(UsageError) as caught:
        history.read_history(tables, cluster, key)
    assert message in caught.value.message
    assert advice in caught.value.advice


def oracle(states: list[Mapping[str, str] | None]) -> list[tuple[int, str, str]]:
    """What snapshots 0, 1, 2 … of one object show, step by step."""
    seen: list[tuple[int, str, str]] = []
    before: Mapping[str, str] | None = None
    for hour, now in enumerate(states):
        if before is None and now is not None:
            ever = any(what in ("first seen", "appeared") for _, what, _ in seen)
            seen.append((hour, "appeared" if ever or hour else "first seen", ""))
        elif before is not None and now is None:
            seen.append((hour, "gone", ""))
        elif before is not None and now is not None:
            differing = {p for p in before.keys() | now.keys() if before.get(p) != now.get(p)}
            seen += [(hour, "changed", path) for path in sorted(differing)]
        before = now
    return seen


def intervals(states: list[Mapping[str, str] | None]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for hour, now in enumerate(states):
        if rows and rows[-1]["valid_to"] is None and rows[-1]["attrs"] != now:
            rows[-1] |= {"valid_to": at(hour), "deleted": now is None}
        if now is not None and (not rows or rows[-1]["valid_to"] is not None):
            before = at(hour - 1) if hour else None
            rows.append({"attrs": now, "seen_before": before, "valid_from": at(hour)})
            rows[-1] |= {"valid_to": None, "deleted": False, "known_until": at(len(states))}
    return rows


def test_an_apply_that_no_snapshot_shows() -> None:
    """Only after the last snapshot may one still show it."""
    shown = intervals([{"p": "1"}, {"p": "1"}])
    events = [event(1, -5, "applied"), event(2, 1, "applied"), event(3, 9, "applied")]
    marks = [entry.mark for entry in history.build_timeline(shown, (), events) if entry.run]
    assert marks == [
        history.NOT_IN_SNAPSHOT,
        history.NOT_IN_SNAPSHOT,
        "applied, in no snapshot yet",
    ]


def test_intervals_against_an_oracle() -> None:
    """What snapshots alone show, for random lives of an object."""
    random = Random(5)
    for _ in range(500):
        states: list[Mapping[str, str] | None] = [
            None
            if random.random() < 0.3
            else {p: random.choice("ab") for p in "xyz" if random.random() < 0.6}
            for _ in range(random.randint(0, 8))
        ]
        rows = intervals(states)
        random.shuffle(rows)
        found = history.build_timeline(rows, (), ())
        assert [((e.at - NOW) / HOUR, e.what, e.path) for e in found] == oracle(states)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90m", 1.5), ("12h", 12), ("30d", 720), (" 2w ", 336)],
)
def test_spans(text: str, expected: float) -> None:
    """Minutes, hours, days and weeks."""
    assert history.parse_span(text) == expected * HOUR


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1.5h", "1y", "999999d"])
def test_spans_that_are_none(text: str) -> None:
    """Everything else is refused with an example."""
    with pytest.raises(UsageError, match="is not a duration"):
        history.parse_span(text)


# ── age ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "old", "incomplete"),
    [
        (("query", "select count(*) from drift"), True, False),
        (("query", "select count(*) from capacity", "--format", "json"), True, False),
        (("query", "select count(*) from quarantine"), False, False),
        (("query", "select count(*) from cluster"), False, False),
        (("who-can", "READ", "topic/orders"), False, True),
    ],
)
def test_the_age_of_old_rows_is_told(
    root: Path,
    words: tuple[str, ...],
    old: bool,
    incomplete: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On standard error: a program gets the rows alone. Only where a cluster's rows are asked
    for. `who-can` does not answer for such a cluster at all."""
    code = run_command_line(("fleet", *words, "--root", str(root)))
    said = capsys.readouterr()
    assert code == (5 if incomplete else 0), said.err
    line = (
        "edge-oslo may be old: stale, last read 2026-11-19 05:00 UTC, 3 d before the newest data."
    )
    assert (line in said.err) is old
    line = "Not known: edge-oslo: stale, last read 2026-11-19 05:00 UTC, 3 d before the newest data"
    assert (line in said.err) is incomplete
    assert "may be old" not in said.out
    if incomplete:
        told = [line.split() for line in said.out.splitlines() if line.startswith("edge-oslo")]
        assert told and all("allowed" not in words for words in told)
        assert all("2026-11-19T05:00:00Z" in words for words in told)


# ── status ──────────────────────────────────────────────────────────────────────────────


def test_status(root: Path) -> None:
    """Builds, coverage with ages, what failed and why, quarantine, tables."""
    found = history.read_status(str(root))
    assert found.complete is False
    assert found.sheets["Builds"].rows == (("b-1", True, NOW, NOW, 0.0, 22),)
    clusters = {row[:2]: row[2] for row in found.sheets["Clusters"].rows}
    assert clusters[("read", True)] == 8
    assert clusters[("failed", True)] == 1
    text = history.render_status(found)
    assert "coverage not complete" in text
    assert "no broker answered: edge-lima:9092" in text
    assert "there is no variable retention" in text
    assert "bad_checksum" in text


def test_status_of_a_whole_fleet(tmp_path: Path) -> None:
    """Unregistered clusters do not make a build incomplete; no table of clusters is unknown."""
    read = {"registered": True, "status": "read", "captured_at": NOW}
    other = {"cluster": "x", "registered": False, "status": "never"}
    publish(tmp_path, "b-1", {"cluster": [{"cluster": "a", **read}, other], "lineage": []})
    assert history.read_status(str(tmp_path)).complete is True
    publish(tmp_path, "b-2", {"drift": []})
    assert history.read_status(str(tmp_path)).complete is None


@pytest.mark.slow("waits until a query has computed for two seconds")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("sql", [CROSS, RECURSIVE], ids=["cross join", "recursive"])
def test_a_signal_ends_a_query(root: Path, sql: str, number: int) -> None:
    """The engine looks for no signals, and may keep Python from running a handler: the command
    ends all the same, with the code and the words of an interrupt, and so does the engine."""
    command = [sys.executable, "-m", "kafkaform", "fleet", "query", "--root", str(root), sql]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until(lambda: cpu_of_children(process.pid) > 2.0)
    process.send_signal(number)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (128 + number, ""), err
    assert "Interrupted; nothing was being changed." in err and "Traceback" not in err
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def cpu_of_children(pid: int) -> float:
    """Seconds that the children of a process have computed: beyond their start they query."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ticks = os.sysconf("SC_CLK_TCK")
    stats = [
        Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split() for child in children
    ]
    return sum((int(stat[11]) + int(stat[12])) / ticks for stat in stats)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
