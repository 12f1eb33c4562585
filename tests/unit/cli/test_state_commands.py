"""`state rm|mv`, `lock show`, `audit verify|show|head` on a folder with a state and a log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.apply.recovery import replay_log
from kafkaform.audit.index import index_log
from kafkaform.audit.records import Record, RecordKind, read_glances
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.cli.app import run_command_line
from kafkaform.core.clock import SystemClock
from kafkaform.core.head import parse_head
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.model import State, set_head

from ...kit import audit_story as story
from ...kit.states import state_of, topic
from ..state.test_local import INFO


class Folder:
    """A configuration folder's two files."""

    def __init__(self, path: Path) -> None:
        self.backend = LocalBackend(path / "kafkaform.state.json")
        self.sink = LocalSink(path / "kafkaform.audit.jsonl")

    def state(self) -> State:
        return self.backend.load().state or State("none")

    def owners(self) -> set[str]:
        return {owner for row in self.state().objects.values() for owner in row.owners}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """State and log that fit: two topics, anchored at the end of a complete run."""
    monkeypatch.chdir(tmp_path)
    made = Folder(tmp_path)
    log = story.journal(made.sink, "run-1")
    story.begin(log)
    story.end(log)
    rows = topic("a", 'kafka_topic.t["a"]'), topic("b", "kafka_topic.b")
    state = set_head(state_of(*rows), log.head)
    made.backend.save(State(story.LINEAGE, 3, state.objects, audit_head=state.audit_head), None)
    return made


def test_rm_and_mv_are_recorded(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """Both edit the state, move the serial by one and leave a record that the state anchors."""
    assert run_command_line(["state", "mv", 'kafka_topic.t["a"]', "kafka_topic.a"]) == 0
    assert folder.owners() == {"kafka_topic.a", "kafka_topic.b"}
    assert run_command_line(["state", "rm", "kafka_topic.b"]) == 0
    assert folder.owners() == {"kafka_topic.a"}
    assert folder.state().serial == 5
    *_, moved, removed = story.records_of(folder.sink)
    assert [moved.body["reason"], removed.body["reason"]] == ["state mv", "state rm"]
    assert [item["key"] for item in removed.body["objects"]] == ["b"]
    assert folder.state().audit_head == parse_head(f"{removed.seq}:{removed.hash}")
    capsys.readouterr()
    assert run_command_line(["state", "list"]) == 0
    assert capsys.readouterr().out == "kafka_topic.a\n"


def test_edit_waits_for_recovery(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """An outcome that the state lacks is not lost by an edit: it has to be taken in first."""
    story.conclude(story.journal(folder.sink, "run-2"), story.ORDERS, incarnation="id-1")
    assert run_command_line(["state", "rm", "kafka_topic.b"]) == 6
    assert "kafkaform apply" in capsys.readouterr().err
    assert "kafka_topic.b" in folder.owners()


def test_edit_refuses_a_changed_log(folder: Folder) -> None:
    """Nothing is added to a log that fails its check."""
    data = folder.sink.path.read_bytes()
    folder.sink.path.write_bytes(data.replace(b"runner-7", b"runner-8"))
    assert run_command_line(["state", "rm", "kafka_topic.b"]) == 9
    assert len(folder.sink.path.read_bytes()) == len(data)


def test_edit_under_a_lock(folder: Folder) -> None:
    """An edit while another run holds the state ends with 7 and changes nothing."""
    with folder.backend.lock(INFO, 0, SystemClock()):
        assert run_command_line(["state", "rm", "kafka_topic.b"]) == 7
    assert "kafka_topic.b" in folder.owners()


def test_lock_show(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """The holder is named while there is one."""
    with folder.backend.lock(INFO, 0, SystemClock()):
        assert run_command_line(["lock", "show"]) == 0
    held = capsys.readouterr().out
    assert "ada" in held
    assert "run-1" in held
    assert run_command_line(["lock", "show"]) == 0
    assert "not locked" in capsys.readouterr().out


def test_audit_commands(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """verify finds a cut tail by the state's anchor; head prints what verify takes."""
    assert run_command_line(["audit", "verify"]) == 0
    capsys.readouterr()
    assert run_command_line(["audit", "head"]) == 0
    head = capsys.readouterr().out.strip()
    assert parse_head(head) == folder.state().audit_head
    assert run_command_line(["audit", "verify", "--anchor", head]) == 0
    capsys.readouterr()
    assert run_command_line(["audit", "show", "--records", "--json", "--last", "2"]) == 0
    assert [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()] == [3, 4]
    whole = folder.sink.path.read_bytes()
    folder.sink.path.write_bytes(whole[: whole.rfind(b"\n", 0, -1) + 1])
    assert run_command_line(["audit", "verify"]) == 9
    assert "record 4" in capsys.readouterr().err


def test_a_forgotten_provider_leaves_nothing_open(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its objects, the system that it was and the steps that a run left open are gone; the log
    stays sound, and an older state catches up with all of it."""
    older = folder.backend.load()
    log = story.journal(folder.sink, "run-2")
    story.begin(log)
    story.intend(log, story.ORDERS)
    assert run_command_line(["state", "rm", "--provider", "kafka"]) == 0
    assert "1 step of earlier runs ended without a known result" in capsys.readouterr().out
    assert not folder.state().objects and not folder.state().providers
    found = index_log(read_glances(folder.sink.lines(), "log"))
    assert not found.open_intents and not found.scopes and not found.origins
    assert run_command_line(["audit", "verify"]) == 0
    assert older.state is not None
    caught_up = replay_log(replace(found, unsaved=list_edits(folder.sink)), older.state).state
    assert not caught_up.objects and not caught_up.providers


def list_edits(sink: LocalSink) -> tuple[Record, ...]:
    return tuple(record for record in story.records_of(sink) if record.kind == RecordKind.STATE)
