"""`audit verify`, `export` and `publish`: a log that was touched is refused at its first bad
record, and its copies for spreadsheets, programs and topics obey nobody."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from msgspec.structs import replace

from kafkaform.audit import checkpoint
from kafkaform.audit.journal import Journal
from kafkaform.audit.records import RecordKind
from kafkaform.audit.sink import SealLimits
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.resource import Fault, FaultClass, Identity
from kafkaform.core.value import FrozenMap
from kafkaform.workflow import applying, sealing
from kafkaform.workflow.audit_log import COLUMNS
from kafkaform.workflow.sealing import seal_log

from ...kit import audit_story as story
from ...kit import log_edits as edits
from ...kit.commands.folder import LOG, Folder
from ...kit.commands.here import Here
from ...kit.sealing import TINY
from ...unit.render.test_text import FORMULAS

HOSTILE = (*FORMULAS, "|x", "%0", "\t=1", "\r=1", "\n=1", ' " =1', "a,b", 'say "x"', "##[error]x")


# ── verify ──────────────────────────────────────────────────────────────────────────────


def test_verify_names_the_first_bad_record(here: Here) -> None:
    """Edits of every kind, without and against an anchor: exit 9, the log and the number."""
    lines = edits.log()
    log = here.write(LOG, edits.text(lines))
    anchor = str(edits.head_of(lines))
    assert here.done("audit", "head").out.strip() == anchor
    assert f"{len(lines)} records" in here.done("audit", "verify", "--anchor", anchor).out
    size = len(edits.text(lines))
    flipped = edits.flips(lines, range(0, size, size // 12), [1])
    for edit in (*flipped, *list(edits.records(lines))[::90]):
        log.write_bytes(edit.data)
        said = here.fails("audit", "verify", "--anchor", anchor, code=9)
        assert LOG in said and f"record {edit.record}:" in said, edit.what
        assert f"Sound before it: {edit.record - 1} record" in said


def test_neither_plan_nor_apply_nor_a_copy_trusts_an_edited_log(planned: Folder) -> None:
    """On a real cluster nothing is sent, and nothing but what is sound is copied."""
    log = planned.path / LOG
    sound = log.read_bytes()
    lines = sound.splitlines()
    commands = (
        ["plan"],
        ["apply", "-auto-approve"],
        ["apply", "plan.kfplan"],
        ["audit", "export"],
        ["audit", "publish", "--to-topic", f"{planned.prefix}a"],
    )
    dropped = edits.text([*lines[:3], *lines[4:]])
    swapped = edits.text([*lines[:3], lines[4], lines[3], *lines[5:]])
    forged = edits.text([*lines[:3], lines[3].replace(b'"body":{', b'"body":{ ', 1), *lines[4:]])
    for changed in (dropped, swapped, forged):
        log.write_bytes(changed)
        for command in commands:
            assert "record 4:" in planned.fails(9, *command)
        assert log.read_bytes() == changed
    log.write_bytes(sound)
    planned.done("apply", "plan.kfplan")


# ── export ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def hostile(here: Here) -> list[dict[str, Any]]:
    """A log whose names, actors and faults are all formulas."""
    sink = LocalSink(here.path / LOG)
    story.tell(sink)
    for text in HOSTILE:
        log = Journal(sink, story.Ticking(), "run-9", text, story.LINEAGE)
        fault = Fault(text, text, FaultClass.PERMISSION)
        named = Identity("kafka", "kafka_topic", text)
        subject = replace(story.ORDERS, address=text, identity=named)
        story.conclude(log, subject, "failed", fault=fault)
    return [json.loads(line) for line in sink.lines()]  # type: ignore[arg-type]


def test_a_spreadsheet_computes_nothing(here: Here, hostile: list[dict[str, Any]]) -> None:
    """Every cell of every record is text on one line, and the table has its columns."""
    said = here.done("audit", "export", "--csv").out
    head, *rows = csv.reader(io.StringIO(said), strict=True)
    assert tuple(head) == COLUMNS and len(rows) == len(hostile)
    assert all(len(row) == len(COLUMNS) for row in rows)
    for cell in (cell for row in rows for cell in row):
        assert cell.isprintable() or cell == ""
        assert cell.lstrip("\"' ")[:1] not in tuple("=+-@|%\t\r") or cell[0] == "'"
    last = dict(zip(head, rows[-1], strict=True))
    assert (last["lineage"], last["seq"]) == (story.LINEAGE, str(len(hostile)))
    assert last["outcome"] == "failed" and json.loads(last["paths"])[0]["path"] == "partitions"


def test_programs_get_every_record_as_it_is(here: Here, hostile: list[dict[str, Any]]) -> None:
    """A JSON object a line with the same columns, names to the letter, and no command for a build
    log; filters narrow it."""
    said = here.done("audit", "export")
    rows = said.lines
    assert len(rows) == len(hostile) and all(row.keys() == set(COLUMNS) for row in rows)
    for row, record in zip(rows, hostile, strict=True):
        assert (row["seq"], row["record"], row["hash"]) == (
            record["seq"],
            record["kind"],
            record["hash"],
        )
        assert row["actor"] == record["actor"]
        assert row["key"] == record["body"].get("key")
        assert all(isinstance(cell, str | int | bool | None) for cell in row.values())
    assert "##[" not in said.out
    later = here.done("audit", "export", "--run", "run-9", "--after", "25").lines
    assert [row["seq"] for row in later] == [r["seq"] for r in hostile if r["seq"] > 25]
    assert here.done("audit", "export", "--run", "nobody").out == ""


def test_no_log_is_no_rows(here: Here) -> None:
    """A folder without a log has a table without rows, and nothing to publish."""
    assert here.done("audit", "export").out == ""
    assert here.done("audit", "export", "--csv").out.strip() == ",".join(COLUMNS)


# ── publish ─────────────────────────────────────────────────────────────────────────────


def published(folder: Folder, topic: str) -> list[dict[str, Any]]:
    """The records of a topic with one partition, parsed."""
    broker = folder.broker
    reader = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": broker.admin_password,
            "group.id": f"{folder.prefix}look",
        }
    )
    place = TopicPartition(f"{folder.prefix}{topic}", 0)
    low, high = reader.get_watermark_offsets(place, timeout=60)
    reader.assign([TopicPartition(place.topic, 0, low)])
    found: list[dict[str, Any]] = []
    while len(found) < high - low:
        (message,) = reader.consume(1, timeout=60)
        found.append(json.loads(message.value() or b""))
    reader.close()
    return found


def test_publish_copies_what_the_topic_lacks(folder: Folder) -> None:
    """All at first, nothing the second time, and after another apply only its records; the values
    are the lines of the log, so that who reads them can check the chain."""
    folder.create("audit")
    folder.declare("a")
    folder.done("apply", "-auto-approve")
    to = ("audit", "publish", "--to-topic", f"{folder.prefix}audit")
    first = len(folder.records())
    assert f"Published {first} records" in folder.done(*to).out
    assert f"has all {first} records already" in folder.done(*to).out
    folder.declare("a", more='config = { "retention.ms" = "1000000" }')
    folder.done("apply", "-auto-approve")
    whole = folder.records()
    assert f"Published {len(whole) - first} records" in folder.done(*to).out
    assert published(folder, "audit") == whole
    said = folder.fails(1, "audit", "publish", "--to-topic", f"{folder.prefix}nowhere")
    assert f"{folder.prefix}nowhere" in said and "Declare it as a kafka_topic" in said


def test_a_sealed_log_is_published_whole_and_an_archived_one_from_where_the_topic_ends(
    folder: Folder,
) -> None:
    """Records in segments are copied like all others. Archived records are not needed if the topic
    has them; otherwise nothing is published, and the command says how to bring them back."""
    folder.monkeypatch.setattr(applying, "seal_log", partial(seal_log, limits=TINY))
    folder.monkeypatch.setattr(checkpoint, "SIZE", 1000)
    folder.create("audit")
    folder.create("late")
    cold = str(folder.path / "cold")

    def apply(number: int) -> None:
        folder.declare("a", more=f'config = {{ "retention.ms" = "{number}000000" }}')
        folder.done("apply", "-auto-approve")

    def read_all() -> list[dict[str, Any]]:
        return folder.done("audit", "show", "--records", "--json", "--last", "1000").lines

    for number in range(1, 5):
        apply(number)
    to = ("audit", "publish", "--to-topic", f"{folder.prefix}audit")
    whole = read_all()
    assert len(folder.records()) < len(whole), "nothing was sealed"
    assert f"Published {len(whole)} records" in folder.done(*to).out
    assert published(folder, "audit") == whole
    young = partial(sealing.archive_log, limits=SealLimits(grace=0.0))
    folder.monkeypatch.setattr(sealing, "archive_log", young)
    assert "Moved" in folder.done("audit", "archive", "--before", "2999-01-01", "--to", cold).out
    apply(5)
    folder.done(*to)
    said = folder.fails(9, "audit", "publish", "--to-topic", f"{folder.prefix}late")
    assert "are archived in" in said and f"audit archive --restore {cold}" in said
    assert published(folder, "late") == []
    folder.done("audit", "archive", "--restore", cold)
    assert published(folder, "audit") == read_all()


def test_publish_without_a_log(folder: Folder) -> None:
    """It says that there is none."""
    folder.declare("a")
    said = folder.fails(1, "audit", "publish", "--to-topic", f"{folder.prefix}a")
    assert "there is no log yet" in said


def test_a_record_of_megabytes_is_published_without_its_body(folder: Folder) -> None:
    """A plan of everything can be larger than a topic takes: the rest of it is there, the note
    says so, and what follows it arrives."""
    folder.create("audit")
    log = story.journal(LocalSink(folder.path / LOG), "run-1")
    log.write(RecordKind.STATE, FrozenMap(reason="x" * 2_000_000))
    log.write(RecordKind.STATE, FrozenMap(reason="small"))
    folder.declare("a")
    said = folder.done("audit", "publish", "--to-topic", f"{folder.prefix}audit")
    assert "Published 2 records" in said.out
    assert "1 record too large for a topic: published without the body" in said.err
    large, small = published(folder, "audit")
    line = (folder.path / LOG).read_bytes().splitlines()[0]
    assert large["body"] == {"lineage": story.LINEAGE, "omitted_bytes": len(line)}
    assert large["hash"] == small["prev"] == json.loads(line)["hash"]
    assert small["body"]["reason"] == "small"
