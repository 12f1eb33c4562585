"""Every command that reads the log, on a log whose old records are sealed, and on one whose oldest
records are in an archive: it answers from what is there, and says what was not read."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from kafkaform.audit import checkpoint
from kafkaform.audit.sink import SealLimits, load_manifest, read_manifest
from kafkaform.core.objects import Folder
from kafkaform.core.resource import Identity
from kafkaform.inventory.landing import land_log
from kafkaform.window.page import make_id
from kafkaform.window.server import find_page
from kafkaform.workflow import applying, audit_log, sealing
from kafkaform.workflow.sealing import seal_log
from kafkaform.workflow.stores import open_store
from kafkaform_kafka.publishing import PublishResult

from ...kit.commands.here import Here
from ...kit.markup import Page
from ...kit.sealing import TINY
from ..window.world import make_sources
from .test_history import LOG, cluster, there, topic

__all__ = ["cluster", "there"]

ARCHIVE, LOCATION = "cold", "kafkaform.audit"
ORDERS = Identity("kafka", "kafka_topic", "orders")


@pytest.fixture
def sealed(there: Here, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A folder whose applies seal what they can; the ids of its runs."""
    monkeypatch.setattr(applying, "seal_log", partial(seal_log, limits=TINY))
    monkeypatch.setattr(
        sealing, "archive_log", partial(sealing.archive_log, limits=SealLimits(grace=0.0))
    )
    monkeypatch.setattr(checkpoint, "SIZE", 1000)
    runs = [apply(there, number) for number in range(1, 7)]
    assert len(read_segments(there)) > 2
    return runs


def apply(there: Here, number: int) -> str:
    """An apply that sets another value; the id of the run."""
    there.write("main.kf.hcl", topic(retention_ms=f"{number}000000"))
    there.monkeypatch.setenv("KAFKAFORM_ACTOR", f"user-{number}")
    there.done("apply", "--auto-approve")
    return str(there.done("undo", "--json").lines[0]["run"])


@pytest.fixture
def archived(there: Here, sealed: list[str]) -> list[str]:
    """The same folder, after its old segments were moved."""
    there.done("audit", "archive", "--before", "2999-01-01", "--to", ARCHIVE)
    assert find_border(there) > 20
    return sealed


def read_segments(there: Here) -> Any:
    return read_manifest(Folder(there.path / LOCATION)).segments


def find_border(there: Here) -> int:
    """The last archived record."""
    return read_manifest(Folder(there.path / LOCATION)).archived.seq


def say_unread(there: Here) -> str:
    return f"Records 1 to {find_border(there):,} are archived in {there.path / ARCHIVE}"


def flatten(text: str) -> str:
    """The text without the breaks of its lines."""
    return " ".join(text.split())


def read_page(there: Here, path: str) -> str:
    """The text of a page of `serve`."""
    page = find_page(make_sources(there.path), path, "", "/root/")
    assert page is not None, path
    texts = (text for trail, text in Page(page).texts if "main" in trail)
    return " ".join(" ".join(texts).split())


def test_a_move_of_nothing_says_why(there: Here, sealed: list[str]) -> None:
    """No record is so old."""
    said = there.done("audit", "archive", "--before", "2020-01-01", "--to", ARCHIVE)
    assert said.out == f"Moved 0 segments to {ARCHIVE}: it is empty.\n"
    assert "Records 1 to " in said.err and "stay: the last one is of 20" in flatten(said.err)


# ── sealed ──────────────────────────────────────────────────────────────────────────────


def test_sealed_records_are_shown_like_all_others(there: Here, sealed: list[str]) -> None:
    """By `audit show`, `history`, `undo` and `export`; none of them speaks of an archive."""
    first, *_, last = sealed
    records = there.done("audit", "export").lines
    assert [row["seq"] for row in records] == list(range(1, len(records) + 1))
    assert len((there.path / LOG).read_bytes().splitlines()) < len(records)
    shown = there.done("audit", "show")
    assert len(shown.out.splitlines()) == len(sealed) and shown.err == ""
    assert first in there.done("audit", "show", "--run", first).out
    assert len(there.done("audit", "show", "--records", "--run", first, "--json").lines) > 3
    document = there.json("history", "topic/orders", "--json")
    assert [change["run"] for change in document["objects"][0]["changes"]] == sealed
    assert document["archived_records"] == 0
    assert there.done("audit", "head").out.startswith(f"{len(records)}:")
    assert "nothing to mend" in there.done("audit", "mend").out
    there.done("state", "pull", "--out", "copy.state.json")
    copied = there.done("audit", "export", "--state", "copy.state.json").lines
    assert copied == records
    said = there.done("undo", first, "--auto-approve").text
    assert "Not undone: kafka_topic.orders" in said or "Destroy" in said or "nothing" in said
    assert last in there.done("undo").out


def test_serve_shows_a_sealed_log(there: Here, sealed: list[str]) -> None:
    """Its verification, each of its runs with plan and records, and the object's history."""
    text = read_page(there, "log")
    assert "Every record is as it was written" in text and "archived" not in text
    for number, run in enumerate(sealed, 1):
        assert run in text
        for path in ("log", "records"):
            assert f"user-{number}" in read_page(there, f"{path}/{make_id(run)}")
        assert find_page(make_sources(there.path), f"recorded/{make_id(run)}", "", "/") is not None
    story = read_page(there, f"objects/{make_id(str(ORDERS))}")
    assert all(run in story for run in sealed)


def test_a_sealed_log_lands_and_is_published_whole(
    there: Here, sealed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line by line what `audit show --records` has, each once."""
    lines = there.done("audit", "show", "--records", "--json", "--last", "1000").lines
    assert land(there) == lines
    assert land(there) == lines
    sent = publish_to(there, monkeypatch, 0)
    assert [json.loads(value) for _, value in sent] == lines
    assert [number for number, _ in publish_to(there, monkeypatch, 7)] == [
        line["seq"] for line in lines[7:]
    ]


def land(there: Here) -> list[Any]:
    """What a fleet's place has of the log after it landed again."""
    store, place = open_store(), Folder(there.path / "landed")
    state = store.backend.load().state
    assert state is not None
    land_log(place, state.lineage, store.sink, state.audit_head)
    files = sorted((there.path / "landed").rglob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def publish_to(
    there: Here, monkeypatch: pytest.MonkeyPatch, before: int
) -> list[tuple[int, bytes]]:
    """What is sent to a topic that has the records up to this one."""
    sent: list[tuple[int, bytes]] = []

    def publish(*arguments: Any) -> PublishResult:
        entries = [entry for entry in arguments[-1](before) if entry.number > before]
        sent.extend((entry.number, entry.value) for entry in entries)
        return PublishResult(before, entries[-1].number if entries else before)

    monkeypatch.setattr(audit_log, "publish", publish)
    there.done("audit", "publish", "--to-topic", "copies")
    return sent


# ── archived ────────────────────────────────────────────────────────────────────────────


def test_the_newest_changes_need_no_archive(there: Here, archived: list[str]) -> None:
    """What is there is shown; a question that goes further back is answered in part."""
    last = archived[-1]
    shown = there.done("audit", "show", "--last", "1")
    assert last in shown.out and shown.err == ""
    assert there.done("audit", "show", "--run", last).err == ""
    for words in ((), ("--run", archived[0]), ("--records",), ("topic/orders", "--json")):
        assert say_unread(there) in flatten(there.done("audit", "show", *words).err), words
    assert archived[0] not in there.done("audit", "show").out
    assert last in there.done("audit", "show").out
    there.done("audit", "head")
    there.done("audit", "verify")
    assert "nothing to mend" in there.done("audit", "mend").out
    assert there.run("plan").code == 0


def test_a_history_begins_behind_the_archive(there: Here, archived: list[str]) -> None:
    """It says what is missing, unless the time that was asked for needs none of it."""
    said = there.done("history", "topic/orders")
    assert archived[-1] in said.out and archived[0] not in said.out
    assert say_unread(there) in flatten(said.err)
    document = there.json("history", "topic/orders", "--json")
    assert document["archived_records"] == find_border(there)
    (item,) = document["objects"]
    newest = item["changes"][-1]["time"]
    since = there.json("history", "topic/orders", "--json", "--since", newest)
    assert since["archived_records"] == 0 and len(since["objects"][0]["changes"]) == 1
    assert say_unread(there) in flatten(there.fails("history", "topic/ordesr"))


def test_newer_runs_are_undone_without_the_archive(there: Here, archived: list[str]) -> None:
    """An archived run is not found, and it is said where it can be."""
    assert say_unread(there) in flatten(there.fails("undo", archived[0], "--auto-approve"))
    listed = there.done("undo")
    assert archived[-1] in listed.out and say_unread(there) in flatten(listed.err)
    there.done("undo", "--last", "--auto-approve")
    assert "5000000" in there.done("history", "topic/orders", "--path", "retention.ms").out


def test_what_needs_every_record_says_how_to_get_them(
    there: Here, archived: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No copy lacks the archived records without a word; after `--restore`, all work."""
    border = find_border(there)
    restore = f"audit archive --restore {there.path / ARCHIVE}"
    said = flatten(there.fails("audit", "export", code=9))
    assert f"records 1 to {border:,} are archived" in said
    assert f"--after {border}" in said and restore in said
    rows = there.done("audit", "export", "--after", str(border)).lines
    assert rows[0]["seq"] == border + 1
    assert restore in flatten(there.fails("state", "pull", "--out", "copy.state.json", code=9))
    assert not (there.path / "copy.state.json").exists()
    there.write("publish", "")
    with monkeypatch.context() as patched:
        assert publish_to(there, patched, border)[0][0] == border + 1
    with monkeypatch.context() as patched, pytest.raises(AssertionError, match="are archived in"):
        publish_to(there, patched, border - 1)
    there.done("audit", "archive", "--restore", ARCHIVE)
    assert len(there.done("audit", "export").lines) == border + len(rows)
    there.done("state", "pull", "--out", "copy.state.json")


def test_serve_shows_what_is_not_archived(there: Here, archived: list[str]) -> None:
    """The listing of runs and the history of an object say what they lack."""
    text = read_page(there, "log")
    assert say_unread(there) in text and archived[-1] in text and archived[0] not in text
    for path in ("log", "records"):
        assert "run_end" in read_page(there, f"{path}/{make_id(archived[-1])}") or path == "log"
    story = read_page(there, f"objects/{make_id(str(ORDERS))}")
    assert say_unread(there) in story and archived[-1] in story
    assert find_page(make_sources(there.path), f"log/{make_id(archived[0])}", "", "/") is None
    assert "5000000" in read_page(there, "drift") or read_page(there, "drift")


def test_a_log_lands_that_was_archived_after_it_had_landed(there: Here, sealed: list[str]) -> None:
    """The next pieces follow; a place that has none of it is told how to bring the records back."""
    before = land(there)
    there.done("audit", "archive", "--before", "2999-01-01", "--to", ARCHIVE)
    apply(there, 9)
    assert len(land(there)) > len(before)
    manifest, _ = load_manifest(Folder(there.path / LOCATION))
    assert manifest.archived.seq
