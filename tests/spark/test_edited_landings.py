"""Landing files that somebody edited and sealed again, each member of each record in turn: a build
rejects each file with a named reason or reads it, and no cluster loses a row for another one."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from kafkaform.audit.records import digest_line, match_last_members
from kafkaform.core.landing import META, ROWS
from kafkaform.core.objects import Folder
from kafkaform.fleet.build.driver import DATASETS, BuildOptions, run_build
from kafkaform.fleet.spark.store import TableStore

from ..kit.fleet.landings import Landing, at, collected, log, moment, row, step
from ..reliability.hostile import edited

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkaform.fleet.tables.manifest import Manifest

SHARE = 1 if "KAFKAFORM_LONG" in os.environ else 5
"""One of how many edits is tried."""
HUGE = "x" * 1_000_000
DEEP = (b"[" * 100_000, b'{"a":' * 100_000)
LONG_NUMBER = b"9" * 5_000
REASONS = frozenset(
    ("not_json", "not_a_record", "missing_key", "bad_value", "newer_format")
    + ("bad_checksum", "bad_hash")
)
COVERED = {"kafka_topic": "complete"}
NAMES = ("a", "b", "c")
ROW: Mapping[str, Any] = row(
    "kafka_topic",
    "a",
    {"partitions": "1", "config.retention.ms": "5"},
    **{"instance": "kafka", "scope_id": "scope-x", "address": "kafka_topic.a"},
    **{"owner": "o", "incarnation": "i"},
)
RECORDS = (
    ("run_begin", {"command": "apply", "host": "h", "commit": "c", "scopes": {"kafka": "scope-x"}}),
    ("validate", {"steps": [{"step": "s", "error": {"code": "X", "message": "m"}}]}),
    ("intent", step("a")),
    ("outcome", {**step("a"), "outcome": "applied", "error": {"code": "X", "message": "m"}}),
    ("recover", {**step("a"), "outcome": "unknown", "of_run": "r"}),
    ("run_end", {"complete": True, "counts": {"applied": 1}}),
)
Rows = list[dict[str, Any]]


def texts(data: Mapping[str, Any]) -> Iterator[bytes]:
    """The record with each edit: another value, type or size, left out, twice; and no records."""
    for _, body in list(edited.edits(data))[::SHARE]:
        yield json.dumps(body).encode()
    for name, value in data.items():
        yield json.dumps({**data, name: HUGE}).encode()
        for again in (value, 7):
            yield _with_member(data, name, json.dumps(again).encode())
    yield _with_member(data, "n", LONG_NUMBER)
    yield from (b"", b"\xff\xfe", b"NaN", b'{"a":', LONG_NUMBER, *DEEP)


def _with_member(data: Mapping[str, Any], name: str, value: bytes) -> bytes:
    return json.dumps(data).encode()[:-1] + b"," + json.dumps(name).encode() + b":" + value + b"}"


# ── what lands ──────────────────────────────────────────────────────────────────────────


def lay_rows(landing: Landing) -> dict[str, bytes]:
    """Snapshots with an edited row, sealed again; stem -> that row."""
    found = {}
    good = json.dumps(row("kafka_topic", "good", {}, scope_id="scope-x")).encode()
    for number, line in enumerate(texts(ROW)):
        source = ("live", "state", "desired")[number % 3]
        data = good + b"\n" + line + b"\n"
        about: dict[str, Any] = {"sha256": hashlib.sha256(data).hexdigest(), "rows": 2}
        about |= {"scope_id": f"id{number}"} if source == "live" else {"scopes": {"kafka": "x"}}
        stem = landing.snapshot(source, f"row{number}", 1, [], coverage=COVERED, **about)
        landing.write(stem + ROWS, data)
        found[stem] = line
    return found


def lay_metas(landing: Landing) -> dict[str, bytes]:
    """Snapshots with an edited `.meta.json`; stem -> that file."""
    found = {}
    more = {"scope_id": "s", "coverage": COVERED, "scopes": {"kafka": "s"}, "error": "e"}
    like = landing.root / landing.snapshot("live", "like", 1, [ROW], **more)
    rows = like.with_name(like.name + ROWS).read_bytes()
    about = json.loads(like.with_name(like.name + META).read_bytes())
    for number, data in enumerate(texts(about)):
        subject = f"meta{number}"
        data = data.replace(b'"subject": "like"', f'"subject": "{subject}"'.encode())
        stem = f"live/{subject}/{like.name}"
        landing.write(stem + ROWS, rows)
        landing.write(stem + META, data + b"\n")
        found[stem] = data
    return found


def lay_logs(landing: Landing) -> dict[str, list[bytes]]:
    """A log for each sort of record, of edits of it that are sealed again; lineage -> lines."""
    found = {}
    for kind, members in RECORDS:
        (line,) = log(kind, [(kind, "r", members)])
        record = json.loads(line)
        huge = {**record, "body": {**record["body"], "key": HUGE}}
        lines = [*_list_sealed(record), edited.chained_log([huge]).rstrip(b"\n")]
        lines += [line.replace(b"{", b'{"actor":"x",', 1), line[:-1] + b',"time":"x"}', b""]
        lines += [line.replace(b'"seq":1,', b'"seq":' + LONG_NUMBER + b","), b"\xff", *DEEP]
        landing.audit(kind, 1, lines)
        found[kind] = lines
    return found


def _list_sealed(record: dict[str, Any]) -> list[bytes]:
    """Each with a place of its own, so that no two are rivals for one."""
    places = [one for _, one in edited.edits({**record, "seq": 0})][:: SHARE * 2]
    numbered = (
        {**one, "seq": n} if isinstance(one, dict) and one.get("seq") == 0 else one
        for n, one in enumerate(places, 1)
    )
    return [edited.chained_log([one]).rstrip(b"\n") for one in numbered]


def lay_registers(landing: Landing) -> None:
    """Registers of all sorts under the names of earlier ones, a copy of one, and the newest."""
    about = {"format": 1, "taken": at(1), "clusters": [{"name": "a"}], "rates": None}
    for number, data in enumerate(texts(about)):
        landing.write(f"register/20250101T{number:06}.000000Z.json", data + b"\n")
    sound = landing.register(5, clusters=[{"name": name} for name in NAMES])
    copy = (landing.root / sound).read_bytes()
    landing.write("register/20250201T000000.000000Z.json", copy)


def lay_sound(landing: Landing) -> None:
    """What must be there afterwards: three clusters, and a state with its configuration and log."""
    for name in NAMES:
        about: dict[str, Any] = {"scope_id": f"scope-{name}", "coverage": COVERED}
        topics = [row("kafka_topic", key, {"partitions": "1"}) for key in "xyz"]
        landing.snapshot("live", name, 1, topics, **about)
        landing.snapshot("live", name, 2, topics[1:], **about)
    mine = row("kafka_topic", "z", {"partitions": "1"}, instance="kafka", scope_id="scope-a")
    for source in ("state", "desired"):
        landing.snapshot(source, "sound", 2, [mine], scopes={"kafka": "scope-a"})
    body = step("x", scope_id="scope-a")
    records = [("intent", "r", body), ("outcome", "r", {**body, "outcome": "applied"})]
    landing.audit("sound", 1, log("sound", records))


# ── what becomes of it ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Built:
    """rows, metas: stem -> the edited text; logs: lineage -> lines; read: the rows of a table."""

    rows: Mapping[str, bytes]
    metas: Mapping[str, bytes]
    logs: Mapping[str, list[bytes]]
    read: Callable[[str], Rows]

    def list_reasons(self) -> dict[str, dict[int | None, str]]:
        """File -> position -> why it was rejected."""
        found: dict[str, dict[int | None, str]] = defaultdict(dict)
        for one in self.read("quarantine"):
            found[one["_file"]][one["position"]] = one["reason"]
        return found

    def list_rows(self) -> dict[str, Rows]:
        found: dict[str, Rows] = defaultdict(list)
        for one in self.read("snapshot_raw"):
            found[one["_file"].removesuffix(ROWS)].append(one)
        return found

    def list_snapshots(self) -> dict[str, dict[str, Any]]:
        rows = self.read("snapshot")
        return {f"{one['source']}/{one['subject']}/{one['snapshot']}": one for one in rows}


@pytest.fixture(scope="module")
def built(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """One build of everything, with every table."""
    root = tmp_path_factory.mktemp("edited")
    landing = Landing(root / "landing")
    lay_sound(landing)
    rows, metas, logs = lay_rows(landing), lay_metas(landing), lay_logs(landing)
    lay_registers(landing)
    made: Manifest = run_build(
        lambda _: spark, Folder(root), str(root), DATASETS, BuildOptions("1", max_corrupt=1.0)
    ).manifest
    store = TableStore(spark, str(root))

    @cache
    def read(table: str) -> Rows:
        return collected(store.read(table, made.tables[table].version))

    return Built(rows, metas, logs, read)


def test_each_edited_row_is_rejected_or_read(built: Built) -> None:
    """A rejected row takes its snapshot with it, which has failed and is not empty; of others each
    member is what it was made to be, as text."""
    reasons, rows, snapshots = built.list_reasons(), built.list_rows(), built.list_snapshots()
    rejected = 0
    for stem, line in built.rows.items():
        why, found, about = reasons[stem + ROWS], rows[stem], snapshots[stem]
        if why:
            rejected += 1
            assert set(why) == {2} and set(why.values()) <= REASONS, line[:200]
            assert (found, about["sha256"], about["complete"]) == ([], None, False), line[:200]
            assert about["coverage"] == {"kafka_topic": "failed"} and about["error"]
        else:
            wanted = json.loads(line)
            (one,) = (each for each in found if each["key"] != "good")
            assert about["complete"] and len(found) == 2, line[:200]
            if wanted["attrs"] != 7:  # that is there twice: its first value counts
                attrs = {name: _read(value) for name, value in wanted["attrs"].items()}
                assert {name: _read(value) for name, value in one["attrs"].items()} == attrs
            for name in ROW.keys() - {"attrs"}:
                assert _read(one[name]) == _read(wanted.get(name)), line[:200]
    assert 20 < rejected < len(built.rows) - 20


def _read(value: Any) -> Any:
    """A member as it reads in a table: what is no text as JSON."""
    if value is None or isinstance(value, str):
        return value and value.encode("utf-8", "replace").decode()
    return json.dumps(value, separators=(",", ":"))


def test_each_edited_meta_is_rejected_or_read(built: Built) -> None:
    """A snapshot whose `.meta.json` is rejected does not exist; one that is read says what its file
    says, and nothing of it is made up."""
    reasons, rows, snapshots = built.list_reasons(), built.list_rows(), built.list_snapshots()
    rejected = 0
    for stem, data in built.metas.items():
        why = {**reasons[stem + META], **reasons[stem + ROWS]}
        about = snapshots.get(stem)
        if why:
            rejected += 1
            assert set(why.values()) <= REASONS and not rows[stem], data[:300]
            assert about is None or about["sha256"] is None, data[:300]
        else:
            assert about is not None, data[:300]
            said = json.loads(data)
            assert about["coverage"] == said.get("coverage", {}), data[:300]
            assert len(rows[stem]) == (about["rows"] if about["sha256"] else 0)
            assert about["captured_at"] == moment(1)
    assert 50 < rejected < len(built.metas) - 10


def test_each_edited_record_is_rejected_or_read(built: Built) -> None:
    """A line that its hash does not fit is never read; a rejected one has its number and reason."""
    reasons, lines = built.list_reasons(), defaultdict(set)
    for one in built.read("audit_raw"):
        if one["seq"] is not None:
            lines[one["lineage"]].add(one["line"])
    for lineage, texts_ in built.logs.items():
        why = reasons[f"audit/{lineage}/{1:012d}-{len(texts_):012d}{ROWS}"]
        read = [n for n, text in enumerate(texts_, 1) if n not in why]
        assert set(why.values()) <= REASONS and set(why) <= set(range(1, len(texts_) + 1))
        for number in read:
            text = texts_[number - 1]
            match = match_last_members(text)
            assert match is not None and digest_line(text, match) == match["hash"], text[:200]
            assert text.decode() in lines[lineage]
        assert read and len(lines[lineage]) == len({texts_[n - 1] for n in read})
    assert {one["lineage"] for one in built.read("event")} >= {"intent", "outcome", "recover"}


def test_registers_that_are_none_are_rejected(built: Built) -> None:
    """Also a copy of a sound one under another name, which would have the same key."""
    assert [one["taken"] for one in built.read("register_raw")] == [moment(5)]
    bad = {file: why for file, why in built.list_reasons().items() if file.startswith("register/")}
    assert len(bad) > 50 and {r for why in bad.values() for r in why.values()} <= REASONS
    assert bad["register/20250201T000000.000000Z.json"] == {1: "bad_value"}


def test_nobody_else_loses_a_row(built: Built) -> None:
    """Sound clusters have their objects, their history and their drift, and a sound log its events,
    whatever landed beside them."""
    live = [(one["cluster"], one["key"]) for one in built.read("live") if one["cluster"] in NAMES]
    assert sorted(live) == [(name, key) for name in NAMES for key in "yz"]
    gone = {one["cluster"] for one in built.read("history") if one["key"] == "x" and one["deleted"]}
    assert gone == set(NAMES)
    drift = {one["key"]: one for one in built.read("drift") if one["cluster"] == "a"}
    assert drift["z"]["drift_class"] == "in_sync" and "y" in drift
    events = [one["event_id"] for one in built.read("event") if one["lineage"] == "sound"]
    assert sorted(events) == ["sound/1", "sound/2"]
    chains = {one["lineage"]: one["chain"] for one in built.read("run")}
    assert chains["sound"] == "sound" and chains["intent"] == "broken"
    status = {one["cluster"]: one["status"] for one in built.read("cluster")}
    assert [status[name] for name in NAMES] == ["read", "read", "read"]
