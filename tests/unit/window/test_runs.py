"""The page of a run: what it changed, who ran it and how it ended, with the records behind it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.audit.journal import make_discharge_body, make_obligation_body, make_run_end_body
from kafkaform.audit.records import RecordKind
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.change import Outcome, OutcomeStatus, PathChange
from kafkaform.core.resource import Identity
from kafkaform.window.page import make_id
from kafkaform.window.server import find_page
from kafkaform.workflow.stores import AUDIT_FILE

from ...kit.audit_story import (
    MOVE,
    OLD,
    ORDERS,
    USER,
    Ticking,
    begin,
    conclude,
    end,
    intend,
    journal,
    written,
)
from ...kit.markup import Page
from .world import acl, make_folder, make_sources


def read(folder: Path, path: str, query: str = "") -> str:
    found = find_page(make_sources(folder), path, query, "/root/")
    assert found is not None, path
    texts = (text for trail, text in Page(found).texts if "main" in trail)
    return " ".join(" ".join(texts).split())


@pytest.fixture
def story(tmp_path: Path) -> Path:
    """A run that dies in the middle, one that settles it, and an edit of the state."""
    written(tmp_path / AUDIT_FILE)
    return tmp_path


def read_run(folder: Path, run: str, query: str = "") -> str:
    return read(folder, f"log/{make_id(run)}", query)


def test_a_run_is_summed_up(tmp_path: Path) -> None:
    """Who, what, when, the end, the numbers by kind, and each object with its values."""
    text = read_run(make_folder(tmp_path / "folder"), "run-1")
    assert "By ada@ci" in text and "Command apply" in text and "Approved by expect" in text
    assert "Began 2026-01-01 00:00:01" in text and "Ended 2026-01-01 00:00:06" in text
    assert "Result complete Steps 2 applied, 1 failed" in text
    assert "Host runner-7" in text and "Version 0.1.0" in text
    assert "kafka_topic create applied 1 kafka_topic delete failed 1" in text
    assert "orders kafka_topic create applied" in text
    assert "partitions = 12; config.retention.ms = 1 d (86400000)" in text
    assert "old kafka_topic delete failed partitions: 3 → (not set); Cluster authorization" in text
    assert "Its 8 records in the log" in text and "The plan of this run" in text


def test_a_step_without_an_outcome_is_unknown(tmp_path: Path) -> None:
    """Nobody knows what came of it, and a password is only said to be sent."""
    text = read_run(make_folder(tmp_path / "folder"), "run-2")
    assert "Result not complete" in text
    assert "ada SCRAM-SHA-512 kafka_user_scram_credential update unknown" in text
    assert "password = (sensitive)" in text and "OLD" not in text


def test_what_later_runs_found_out_belongs_to_the_run(story: Path) -> None:
    """A run that died has no end, but what became of its steps is known now, and by which run."""
    text = read_run(story, "run-1")
    assert (
        "Ended no end in the log Result it did not end" in text and "Settled by run run-2" in text
    )
    assert "old kafka_topic delete applied" in text, "recovered"
    assert "big kafka_topic update applied replication_factor: 2 → 3" in text, "discharged"
    later = read_run(story, "run-2")
    assert "old kafka_topic delete of run run-1 applied" in later
    assert "big kafka_topic end of earlier work applied" in later
    assert "2 objects checked, 1 not visible yet" in later


def test_steps_that_were_not_sent_are_counted(tmp_path: Path) -> None:
    """They have no record of their own, so the page leads to the plan that has them."""
    log = journal(LocalSink(tmp_path / AUDIT_FILE), "run-1", Ticking())
    begin(log)
    counts = {"failed": 1, "skipped": 7}
    body = make_run_end_body("a1" * 32, complete=False, counts=counts)
    log.write(RecordKind.RUN_END, body)
    text = read_run(tmp_path, "run-1")
    assert "7 steps not sent; the plan of this run has them." in text
    assert "Result not complete Steps 1 failed, 7 skipped" in text


def test_an_edit_of_the_state_is_a_run(story: Path) -> None:
    """It says which command it was, and what left the state."""
    text = read_run(story, "run-3")
    assert "orders kafka_topic state rm removed from the state" in text


def test_acls_of_a_run_are_sentences(tmp_path: Path) -> None:
    """Neither the key nor its seven fields are shown, in the summary and in the records."""
    identity = acl("User:ci", "Read", "orders").identity
    log = journal(LocalSink(tmp_path / AUDIT_FILE), "run-1", Ticking())
    begin(log)
    subject = replace(
        ORDERS, identity=identity, paths=(PathChange(("acl_principal",), None, "User:ci"),)
    )
    intend(log, subject, None)
    conclude(log, subject)
    for path in ("log", "records"):
        text = read(tmp_path, f"{path}/{make_id('run-1')}")
        assert 'Allow User:ci Read on topic "orders" from any host' in text
        assert "acl_principal" not in text and identity.key not in text
    lists = (read(tmp_path, f"objects/{make_id(str(identity))}"),)
    assert all(identity.key not in text for text in lists)


def test_a_long_run_has_pages(tmp_path: Path) -> None:
    """Each object is on one page, and leads to its record."""
    log = journal(LocalSink(tmp_path / AUDIT_FILE), "run-1", Ticking())
    begin(log)
    for number in range(450):
        name = f"t{number:03d}"
        subject = replace(ORDERS, identity=Identity("kafka", "kafka_topic", name), step=name)
        intend(log, subject, None)
        conclude(log, subject)
    end(log)
    names, links = list[str](), list[str]()
    for first in (0, 200, 400):
        page = find_page(make_sources(tmp_path), f"log/{make_id('run-1')}", f"first={first}", "/")
        assert page is not None and "kafka_topic" in page
        names += [text for trail, text in Page(page).texts if "td" in trail and text[:1] == "t"]
        links += [str(a["href"]) for a in Page(page).all("a") if "/records/" in str(a["href"])]
    assert names == [f"t{number:03d}" for number in range(450)]
    last = links[-1].removeprefix("/").partition("?")
    assert last[2] == "first=800"
    assert "t449" in read(tmp_path, last[0], last[2])


def test_long_work_of_this_run_ends_its_step(tmp_path: Path) -> None:
    """What was started and has ended is applied; what still runs is started."""
    log = journal(LocalSink(tmp_path / AUDIT_FILE), "run-1", Ticking())
    begin(log)
    other = replace(MOVE, identity=OLD.identity, step="old", address=OLD.address)
    for subject, ticket in ((MOVE, "big-0"), (other, "old-0")):
        intend(log, subject, None)
        conclude(log, subject, "started", ticket=ticket)
        body = make_obligation_body(subject, ticket, "move")
        record = log.write(RecordKind.OBLIGATION, body)
        if subject is MOVE:
            ended = Outcome(ticket, OutcomeStatus.APPLIED)
            log.write(RecordKind.DISCHARGED, make_discharge_body(record, ended))
    text = read_run(tmp_path, "run-1")
    assert "big kafka_topic update applied" in text and "old kafka_topic update started" in text


def test_a_log_that_ends_badly_is_shown_up_to_there(tmp_path: Path) -> None:
    """The summary has what is sound, and says that the rest is not."""
    folder = make_folder(tmp_path / "folder")
    lines = (folder / AUDIT_FILE).read_bytes().splitlines(keepends=True)
    bad = lines[6].replace(b"delete", b"Delete")
    (folder / AUDIT_FILE).write_bytes(b"".join([*lines[:6], bad, *lines[7:]]))
    text = read_run(folder, "run-1")
    assert "orders kafka_topic create applied" in text and "its content was changed" in text
    assert USER.identity.key not in text
