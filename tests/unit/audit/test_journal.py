"""The journal: numbered, chained, durable together, and of one state only."""

from __future__ import annotations

import pytest

from kafkaform.audit.records import RecordKind, verify_log
from kafkaform.core.errors import StorageError
from kafkaform.core.head import GENESIS, Head
from kafkaform.core.value import FrozenMap

from ...kit import audit_story as story
from ...kit.audit_story import MemorySink

BODY = FrozenMap(n=1)


def test_first_record() -> None:
    """A log starts at 1, after 64 zeros, and every body names its lineage."""
    log = story.journal(MemorySink(), "run-1")
    assert log.head == GENESIS
    record = log.write(RecordKind.STATE, BODY)
    assert (record.seq, record.prev, record.run) == (1, "0" * 64, "run-1")
    assert record.body == {"n": 1, "lineage": story.LINEAGE}
    assert log.head == Head(1, record.hash)


def test_the_next_run_goes_on() -> None:
    """A later run continues the numbers and the chain."""
    sink = MemorySink()
    story.journal(sink, "run-1").write_all([(RecordKind.STATE, BODY)] * 3)
    later = story.journal(sink, "run-2")
    assert later.write(RecordKind.STATE, BODY).seq == 4
    assert verify_log(sink.lines(), later.head).ok


def test_failed_append_moves_nothing() -> None:
    """The head is that of the last durable record."""
    sink = MemorySink()
    log = story.journal(sink, "run-1")
    log.write(RecordKind.STATE, BODY)
    head = log.head
    sink.full = True
    with pytest.raises(StorageError):
        log.write_all([(RecordKind.STATE, BODY)] * 2)
    assert log.head == head


def test_nothing_to_write() -> None:
    """An empty batch appends nothing."""
    sink = MemorySink()
    assert story.journal(sink, "run-1").write_all([]) == ()
    assert sink.stored == []


def test_log_of_another_state_is_refused() -> None:
    """A log whose lineage is not the state's is not written."""
    sink = MemorySink()
    story.journal(sink, "run-1").write(RecordKind.STATE, BODY)
    sink.stored[0] = sink.stored[0].replace(b"lineage", b"linenge")
    with pytest.raises(StorageError, match="the last record was changed"):
        story.journal(sink, "run-2")
    other = MemorySink()
    log = story.journal(other, "run-1")
    log.lineage = "other"
    log.write(RecordKind.STATE, BODY)
    with pytest.raises(StorageError, match="belongs to another state"):
        story.journal(other, "run-2")
