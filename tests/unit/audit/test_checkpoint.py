"""A checkpoint and the records after it say the same as all records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kafkaform.audit import index
from kafkaform.audit.checkpoint import (
    Checked,
    check_checkpoints,
    parse_checkpoint,
    render_checkpoint,
)
from kafkaform.audit.index import LogIndex, MendedLog, index_log
from kafkaform.audit.journal import make_checkpoint_body
from kafkaform.audit.records import Record, RecordKind, decode, seal_record
from kafkaform.core.head import Head
from kafkaform.core.value import FrozenMap

from ...kit import audit_story as story
from ...kit.audit_story import LINEAGE, MemorySink
from ...kit.random_logs import DRAWS, Draw, write_log
from ...kit.simulated.memory_store import Fate, MemoryObjects

LOGS = sorted(story.GOLDEN.parent.glob("*.jsonl"))


def name(covered: LogIndex, content: bytes) -> Record:
    """The record that names this checkpoint."""
    body = make_checkpoint_body(covered.head, "0" * 64, len(content))
    return seal_record(
        covered.head,
        time="2026-01-01T00:00:00.000000Z",
        run="run",
        actor="me",
        kind=str(RecordKind.CHECKPOINT),
        body=body.with_items({"lineage": LINEAGE}),
    )


def store(covered: LogIndex) -> LogIndex:
    """The index as a later process reads it."""
    content = render_checkpoint(covered, LINEAGE)
    return parse_checkpoint(content, name(covered, content))


def compare_every_cut(records: list[Record]) -> int:
    """Compare the index of all records with that from each cut on. Returns how often."""
    compared = 0
    for cut in range(1, len(records)):
        covered = index_log(records[:cut], Head(cut, ""))
        start = store(covered)
        assert start == covered
        for saved in (Head(cut, ""), Head((cut + len(records)) // 2, "")):
            whole = index_log(records, saved)
            try:
                resumed = index_log(records[cut:], saved, start)
            except MendedLog:
                continue  # then all is read
            assert resumed == whole
            assert list(resumed.runs) == list(whole.runs)
            compared += 1
    return compared


@given(DRAWS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_cut_of_random_logs(monkeypatch: pytest.MonkeyPatch, draws: list[Draw]) -> None:
    """Open intents, open runs, obligations, edits, scopes, proofs and writes are the same whether
    the log was read as a whole or from any record on, also if only a few runs are kept."""
    for kept in (2, 1000):
        monkeypatch.setattr(index, "KEPT_RUNS", kept)
        compare_every_cut(write_log(draws))


def test_every_cut_of_the_story() -> None:
    """The same for the log of two real runs."""
    sink = MemorySink()
    story.tell(sink)
    records = story.records_of(sink)
    assert compare_every_cut(records) == 2 * (len(records) - 1)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_every_cut_of_older_logs(path: Path) -> None:
    """The same for logs of every version that the tests keep, also if they do not tell owners or
    rows."""
    records = [decode(line) for line in path.read_bytes().splitlines()]
    assert compare_every_cut(records) == 2 * (len(records) - 1)


def test_records_that_were_put_behind_others_need_the_whole_log() -> None:
    """What `audit mend` appended may follow from a deletion that a checkpoint has no room for."""
    records = write_log([(5, 0, 0, 0), (15, 0, 0, 0)])
    covered = index_log(records[:4])
    with pytest.raises(MendedLog):
        index_log(records[4:], None, store(covered))


def test_a_checkpoint_of_a_branch_that_ended_is_not_missed() -> None:
    """What `audit mend` has put behind other records names a checkpoint that nobody reads."""
    sink: Any = MemorySink()
    sink.sealed = MemoryObjects(Fate())
    log = story.journal(sink, "run-1")
    story.begin(log)
    was = FrozenMap(seq=2, time="2020-01-01T00:00:00.000000Z", hash="0" * 64)
    body = make_checkpoint_body(Head(1, "0" * 64), "0" * 64, 9)
    log.write(RecordKind.CHECKPOINT, body.with_items({"forked": was}))
    assert check_checkpoints(sink) == Checked()
    log.write(RecordKind.CHECKPOINT, make_checkpoint_body(log.head, "0" * 64, 9))
    assert str(check_checkpoints(sink).missing).endswith("checkpoints/00000000000000000004.json.gz")
