"""What a log says about values: pure functions over its records."""

from __future__ import annotations

import pytest

from kafkaform.audit.history import list_names, read_tail, tell_changes
from kafkaform.audit.records import read_records
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.errors import StorageError
from kafkaform.core.value import FrozenMap

from ...kit import audit_story as story


def stored(sink: story.MemorySink) -> list[story.Record]:
    return list(read_records(sink.lines(), "the log"))


@pytest.fixture
def log() -> story.MemorySink:
    """Two runs, one of which died."""
    sink = story.MemorySink()
    story.tell(sink)
    return sink


def test_each_step_has_its_end_and_its_run(log: story.MemorySink) -> None:
    """Also one that a later run found out; a password has no values, and a failure its reason."""
    told = tell_changes(stored(log))
    assert [(c.address, c.action, c.outcome, c.run) for c in told.changes] == [
        ("kafka_topic.orders", "create", "applied", "run-1"),
        ('kafka_user_scram_credential.users["ada"]', "update", "failed", "run-1"),
        ("kafka_topic.big", "update", "started", "run-1"),
        ("kafka_topic.old", "delete", "applied", "run-1"),
        ("", "state rm", "recorded", "run-3"),
    ]
    password = told.changes[1]
    assert password.error == "Cluster authorization failed."
    assert [(v.before, v.after) for v in password.values if v.sensitive] == [(None, None)]
    assert told.runs["run-1"].commit == "e5" * 20 and told.ends == {"run-2": True}


def test_a_step_without_an_end_is_unknown(log: story.MemorySink) -> None:
    """Until a later run has found out what became of it."""
    died = [record for record in stored(log) if record.run == "run-1"]
    assert tell_changes(died).changes[-1].outcome == "unknown"


def test_all_names_are_known(log: story.MemorySink) -> None:
    """Those of objects that are gone, too."""
    names = list_names(stored(log))
    assert names[story.OLD.identity] == {"kafka_topic.old"}
    assert len(names) == 4


def test_a_superseded_step_is_no_change_from_outside() -> None:
    """Nobody knows whether it was carried out, so what is found next proves nothing."""
    sink = story.MemorySink()
    clock = story.Ticking()
    first = story.journal(sink, "run-1", clock)
    story.begin(first)
    story.intend(first, story.ORDERS)
    story.conclude(first, story.ORDERS)
    path = story.PathChange(("config", "retention.ms"), "86400000", "1")
    update = story.replace(story.ORDERS, action="update", paths=(path,), step="x#1")
    target = story.MADE.with_items({"config": FrozenMap({"retention.ms": "1"})})
    story.intend(first, update, target)
    ended = story.make_outcome_body(update, "failed", story.DENIED)
    recover = story.make_recover_body(ended, "run-1")
    second = story.journal(sink, "run-2", clock)
    second.write(story.RecordKind.RECOVER, recover)
    again = story.replace(update, paths=(story.replace(path, before="1", after="2"),))
    story.intend(second, again, target)
    assert "outside" not in [change.action for change in tell_changes(stored(sink)).changes]
    story.conclude(second, again)
    third = story.journal(sink, "run-3", clock)
    foreign = story.replace(again, paths=(story.replace(path, before="7", after="8"),))
    story.intend(third, foreign, target)
    outside = [c for c in tell_changes(stored(sink)).changes if c.action == "outside"]
    assert [(v.before, v.after) for c in outside for v in c.values] == [("2", "7")]


def test_the_end_of_a_log_is_checked_as_far_as_it_is_read(
    log: story.MemorySink, tmp_path: story.Path
) -> None:
    """From any record on; a line that was changed is refused."""
    whole = [record.seq for record in stored(log)]
    sink = LocalSink(tmp_path / "kafkaform.audit.jsonl")
    sink.append(log.stored)
    for after in range(len(whole) + 1):
        read = read_tail(sink.lines(after), sink.location, after)
        assert [glance.seq for glance in read] == whole[after:]
    lines = list(log.stored)
    lines[-2] = lines[-2].replace(b"lineage", b"lineagf")
    with pytest.raises(StorageError):
        list(read_tail(iter(lines[5:]), "the log", 5))
