"""Landing files into bronze: what is sound, what is set aside and why, and what stops a build."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkaform.audit.records import KINDS as LOG_KINDS
from kafkaform.audit.records import MEMBERS as LOG_MEMBERS
from kafkaform.audit.records import decode, digest_line, match_last_members
from kafkaform.core.errors import KafkaformError
from kafkaform.core.landing import FORMAT, STATE, LandedRow, Meta
from kafkaform.core.objects import Folder
from kafkaform.fleet.build.intake import BRONZE, BuildStamp, Write, list_ready, take_in
from kafkaform.fleet.landed.snapshots import KINDS, MEMBERS
from kafkaform.fleet.tables.definitions import TABLES
from kafkaform.inventory.landing import land_register, land_rows

from ..kit.fleet.frames import frame
from ..kit.fleet.landings import (
    HOUR,
    START,
    Landing,
    at,
    audit_rows,
    collected,
    in_order,
    log,
    moment,
    row,
    step,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


GOLDEN = Path(__file__).parent.parent / "cases" / "audit" / "golden.jsonl"
LINEAGE = "0d9c6f5e-lineage"
STAMP = BuildStamp("b1", datetime(2026, 1, 5, tzinfo=UTC))
Tables = Mapping[str, list[dict[str, Any]]]

SOUND = log(
    "sound",
    [
        ("run_begin", 'r "1"\\', {"scopes": {}, "_actor": 'ada "\\hash":" \u00e9'}),
        ("intent", "r", step('o"},"hash":"')),
        ("recover", "r", {"torn": []}),
    ],
)


def lacking(*names: str, **other: Any) -> bytes:
    """An intent, soundly sealed, that lacks something, or has something else."""
    body = {n: v for n, v in {**step("t"), **other}.items() if n not in names}
    return log("bad", [("intent", "r", body)])[0]


BAD = [
    (b"{", "not_json"),
    (b"", "not_json"),
    (b"\xff\xfe", "not_json"),
    (b'"text"', "not_a_record"),
    (b"[1]", "not_a_record"),
    (b"{}", "missing_key"),
    (SOUND[0].replace(b'"seq":1,', b""), "missing_key"),
    (SOUND[0].replace(b'"time":', b'"shape":2,"time":'), "newer_format"),
    (log("bad", [("dream", "r", {})])[0], "newer_format"),
    (SOUND[0].replace(b'"seq":1,', b'"seq":"1",'), "bad_value"),
    (SOUND[0].replace(b'"seq":1,', b'"seq": 1,'), "bad_value"),
    (SOUND[0], "bad_value"),
    (log("bad", [("plan", "r", {"_time": "yesterday"})])[0], "bad_value"),
    (SOUND[1].replace(b'"attempt":1', b'"attempt":2'), "bad_hash"),
    (SOUND[1].replace(b'"seq":2,', b'"seq":3,'), "bad_hash"),
    (SOUND[1].replace(b'"prev":"', b'"prev":"0')[:-1] + b"}", "bad_value"),
    (lacking("scope_id"), "missing_key"),
    (lacking("step"), "missing_key"),
    (lacking("paths"), "missing_key"),
    (lacking(attempt="first"), "missing_key"),
    (lacking(omitted_bytes=5), None),
]
"""A line of the log `bad`, and why it is none. SOUND is of another one."""


def mutated(dice: random.Random) -> list[bytes]:
    """Sound lines with one byte changed, left out or put in."""
    found = []
    for _ in range(250):
        line = bytearray(dice.choice(SOUND))
        at = dice.randrange(len(line))
        piece = dice.choice((b"", b"0", b'"', b"\\", b"}", b"e", bytes([dice.randrange(32, 127)])))
        line[at : at + dice.randint(0, 1)] = piece
        found.append(bytes(line))
    return found


def is_record(line: bytes, lineage: str) -> bool:
    """What the log's own reader says."""
    match = match_last_members(line)
    if match is None or digest_line(line, match) != match["hash"]:
        return False
    try:
        return decode(line).body.get("lineage") == lineage
    except ValueError:
        return False


def lay(landing: Landing) -> None:
    landing.audit(LINEAGE, 1, GOLDEN.read_bytes().splitlines())
    landing.audit("bad", 1, [line for line, _ in BAD])
    landing.audit("sound", 1, SOUND)
    landing.audit("sound", 4, mutated(random.Random(5)))
    landing.write("audit/cut/000000000001-000000000001.jsonl", SOUND[0][:-1])
    topics = [row("kafka_topic", "a", {"p": "1"}, scope_id="s"), row("kafka_topic", "b", {})]
    coverage = {"kafka_topic": "complete"}
    landing.snapshot("live", "good", 1, topics, coverage=coverage, scope_id="s")
    landing.snapshot("live", "empty", 1, [])
    landing.snapshot("live", "failed", 1, None, error="no broker answered")
    by_the_real_writer(Folder(landing.root.parent))
    bad_rows = [topics[0], {"kind": "kafka_topic"}, {"attrs": 1, "kind": "x", "key": "y"}]
    landing.snapshot("desired", "holed", 1, [*topics, *bad_rows], coverage=coverage)
    changed = landing.root / f"{landing.snapshot('live', 'changed', 1, topics)}.jsonl"
    changed.write_bytes(changed.read_bytes().replace(b'"1"', b'"2"'))
    cut = landing.root / f"{landing.snapshot('live', 'cut', 1, topics)}.jsonl"
    cut.write_bytes(cut.read_bytes()[:-5])
    (landing.root / f"{landing.snapshot('live', 'gone', 1, topics)}.jsonl").unlink()
    landing.snapshot("live", "miscounted", 1, topics, rows=3)
    landing.snapshot("live", "newer", 1, topics, format=2)
    landing.snapshot("live", "elsewhere", 1, topics, subject="good")
    landing.snapshot("live", "untimely", 1, topics, ended="soon")
    landing.snapshot("live", "unsure", 1, topics, complete=None)
    landing.write("live/torn/1.meta.json", b'{"so')
    landing.register(2, format=2)
    landing.register(3, taken=None)


def by_the_real_writer(place: Folder) -> None:
    """What `fleet snapshot` writes."""
    meta = Meta(STATE, "l1", "1", at(0.9), at(1), True, scopes={"kafka": "s"})
    rows = (
        LandedRow("kafka_topic", "a", {"p": "1"}, scope_id="s"),
        LandedRow("kafka_topic", "b", {}),
    )
    land_rows(place, meta, rows)
    land_register(place, START + HOUR, {"format": FORMAT, "clusters": ({"name": "good"},)})


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    """In a folder whose name looks like a pattern."""
    made = Landing(tmp_path_factory.mktemp("land") / "a [b]*{c}/register/landing")
    lay(made)
    return made


def into(new: dict[str, DataFrame]) -> Write:
    """Keeps what is to be written."""

    def write(table: str, rows: DataFrame) -> DataFrame:
        return new.setdefault(table, rows)

    return write


@pytest.fixture(scope="module")
def taken(spark: SparkSession, landing: Landing) -> Tables:
    """Files in disorder, and some named twice, which changes nothing."""
    files = list(list_ready(landing.files(), ()))
    random.Random(2).shuffle(files)
    new: dict[str, DataFrame] = {}
    take_in(spark, str(landing.root), files + files[:9], STAMP, 1.0, {}, into(new))
    assert set(new) == set(BRONZE)
    assert all(tuple(new[name].columns) == TABLES[name].names for name in BRONZE)
    return {name: collected(rows) for name, rows in new.items()}


# -- pure


def test_the_log_and_its_reader_agree() -> None:
    """Kinds and members of records are the same on both sides."""
    assert set(KINDS) == set(LOG_KINDS)
    assert set(MEMBERS) == LOG_MEMBERS


def test_rows_are_not_there_before_what_stands_beside_them() -> None:
    """Rows come with their `.meta.json`, and nothing comes twice or that is no landing file."""
    rows, meta = "live/a/1.jsonl", "live/a/1.meta.json"
    assert list_ready([rows], ()) == ()
    assert list_ready([rows, meta, meta], ()) == (rows, meta)
    assert list_ready([rows, meta], {rows}) == (rows, meta)
    assert list_ready([rows, meta], {meta}) == ()
    rest = ["audit/l/1-2.jsonl", "register/1.json", "audit/l/x.tmp", "other/a/1.meta.json"]
    assert list_ready(rest, {"register/1.json"}) == ("audit/l/1-2.jsonl",)


# -- audit


def test_the_golden_log_is_taken_in_as_it_stands(taken: Tables) -> None:
    """Each line whole, and its members as JSON has them; the body is its very text."""
    found = [r for r in taken["audit_raw"] if r["lineage"] == LINEAGE]
    stamps = {"_build": "b1", "_ingested_at": STAMP.read_at}
    lines = GOLDEN.read_bytes().splitlines()
    file = f"audit/{LINEAGE}/000000000001-{len(lines):012d}.jsonl"
    wanted = audit_rows(LINEAGE, lines, _file=file, **stamps)
    assert in_order(found) == in_order(wanted)
    odd = next(r for r in taken["audit_raw"] if r["lineage"] == "sound" and r["seq"] == 1)
    assert (odd["run"], odd["actor"]) == ('r "1"\\', 'ada "\\hash":" \u00e9')


def test_bad_lines_are_set_aside_with_their_reason(taken: Tables) -> None:
    """Each kind of fault by its name, with its line number; what is printable of it is shown."""
    found = {
        one["position"]: one["reason"]
        for one in taken["quarantine"]
        if one["_file"].startswith("audit/bad/")
    }
    wanted = {n: why or "bad_value" for n, (_, why) in enumerate(BAD, 1) if why}
    assert {n: why for n, why in found.items() if n in wanted} == wanted
    assert len(found) == len(wanted)
    rows = [one for one in taken["audit_raw"] if one["lineage"] == "bad"]
    assert sum(one["seq"] is None for one in rows) == len(wanted)
    assert all(len(one["text"] or "") <= 2048 for one in taken["quarantine"])


def test_a_changed_line_is_never_believed(taken: Tables) -> None:
    """250 changes of a byte: what the log's own reader refuses is refused, and nothing else."""
    place = "audit/sound/000000000004"
    lines = mutated(random.Random(5))
    bad = {r["position"] for r in taken["quarantine"] if r["_file"].startswith(place)}
    wanted = {n for n, line in enumerate(lines, 1) if not is_record(line, "sound")}
    assert bad == wanted
    assert 0 < len(lines) - len(wanted) < 100


def test_a_cut_last_line_is_set_aside(taken: Tables) -> None:
    """A file that ends within a line has that line, too."""
    found = [r for r in taken["quarantine"] if r["_file"].startswith("audit/cut/")]
    assert [(r["source"], r["reason"], r["position"]) for r in found] == [("audit", "not_json", 1)]


# -- snapshots and registers


def test_snapshots_that_are_not_sound_count_as_failed(taken: Tables) -> None:
    """Rows that are not what was written are not there, and their snapshot has failed: nothing
    of it looks deleted."""
    found = {(r["source"], r["subject"]): r for r in taken["snapshot"]}
    state = {subject: row["sha256"] is not None for (_, subject), row in found.items()}
    sound = dict.fromkeys(("good", "empty", "l1"), True)
    unsound = ("failed", "holed", "changed", "cut", "gone", "miscounted")
    assert state == sound | dict.fromkeys(unsound, False)
    assert found["desired", "holed"]["coverage"] == {"kafka_topic": "failed"}
    assert found["live", "failed"]["error"] == "no broker answered"
    assert "quarantine" in found["live", "cut"]["error"]
    good = found["live", "good"]
    assert (good["captured_at"], good["rows"], good["complete"]) == (moment(1), 2, True)
    assert (good["scope_id"], good["coverage"]) == ("s", {"kafka_topic": "complete"})
    rows = taken["snapshot_raw"]
    assert {(r["subject"], r["key"]) for r in rows} == {
        (s, k) for s in ("good", "l1") for k in "ab"
    }
    assert [r["attrs"] for r in rows if r["key"] == "b"] == [{}, {}]


def test_why_snapshots_are_not_sound(taken: Tables) -> None:
    """By file, and where it is a line by its number."""
    found = {
        (r["source"], r["_file"].split("/")[1], r["reason"], r["position"])
        for r in taken["quarantine"]
        if r["source"] in ("live", "state", "desired")
    }
    whole = {("live", s, "bad_checksum", None) for s in ("changed", "cut", "gone", "miscounted")}
    lines = {("desired", "holed", "missing_key", n) for n in (4, 5)}
    metas = {
        ("newer", "newer_format"),
        ("elsewhere", "bad_value"),
        ("untimely", "bad_value"),
        ("unsure", "missing_key"),
        ("torn", "not_json"),
    }
    assert found == whole | lines | {("live", subject, reason, 1) for subject, reason in metas}


def test_registers(taken: Tables) -> None:
    """One row a register that this version can read."""
    assert [r["taken"] for r in taken["register_raw"]] == [moment(1)]
    assert taken["register_raw"][0]["body"].startswith('{"clusters":[{"name":"good"}]')
    bad = {r["_file"]: r["reason"] for r in taken["quarantine"] if r["source"] == "register"}
    assert bad == {
        "register/20260101T020000.000000Z.json": "newer_format",
        "register/20260101T030000.000000Z.json": "missing_key",
    }


# -- the whole


def test_too_many_bad_lines_stop_the_build(spark: SparkSession, landing: Landing) -> None:
    """The message names the worst file and the share."""
    files = [f for f in list_ready(landing.files(), ()) if "/sound/" in f or "/bad/" in f]
    with pytest.raises(KafkaformError, match="audit/sound/000000000004-") as caught:
        take_in(spark, str(landing.root), files, STAMP, 0.5, {}, into({}))
    assert "0.5" in caught.value.message
    assert "max_corrupt" in caught.value.advice


def test_what_a_topic_brought_is_set_aside_once(spark: SparkSession) -> None:
    """Its lines are judged from the table; those that are in quarantine are not put there again.
    A copy without its body is a record all the same."""
    whole = log("sound", [("plan", "r", {"plan": {}})])[0]
    short = whole.replace(
        b'{"lineage":"sound","plan":{}}', b'{"lineage":"sound","omitted_bytes":9}'
    )
    assert short != whole
    lines = [(n, "{" if n < 3 else short.decode()) for n in range(4)]
    raw = [
        {"line": line, "lineage": "sound", "origin": f"topic t/0/{n}", "_file": "topic t/0"}
        | {"_build": "b0", "_ingested_at": moment(0)}
        for n, line in lines
    ]
    known = {"source": "topic", "reason": "not_json", "position": 1, "_file": "topic t/0"}
    bronze = {
        "audit_raw": frame(spark, "audit_raw", raw + raw[:1]),
        "quarantine": frame(
            spark, "quarantine", [known | {"_build": "b0", "_ingested_at": moment(0)}]
        ),
    }
    new: dict[str, DataFrame] = {}
    take_in(spark, "nowhere", (), STAMP, 0.0, bronze, into(new))
    found = [(r["source"], r["position"], r["text"]) for r in collected(new["quarantine"])]
    assert sorted(found) == [("topic", 0, "{"), ("topic", 2, "{")]
