"""Lines that are too large to be held are checked as all others, piece by piece."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from kafkaform.audit.records import (
    LongLine,
    RecordKind,
    encode,
    read_glances,
    read_line,
    read_records,
    seal_record,
    verify_log,
)
from kafkaform.audit.sinks import local, spans
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.errors import StorageError
from kafkaform.core.head import GENESIS, Head
from kafkaform.core.value import FrozenMap

SMALL = 1 << 10


def log(path: Path, *sizes: int) -> LocalSink:
    """A log whose records have bodies of these sizes, with a forged ending in each."""
    head, lines = GENESIS, []
    for size in sizes:
        body = FrozenMap(lineage="l", text='"hash":"' + "x" * size)
        record = seal_record(
            head,
            time="2026-01-01T00:00:00.000000Z",
            run="r",
            actor="a",
            kind=RecordKind.STATE,
            body=body,
        )
        lines.append(encode(record))
        head = Head(record.seq, record.hash)
    sink = LocalSink(path / "log.jsonl")
    sink.append(lines)
    return sink


def test_a_long_line_is_checked_without_being_held(tmp_path: Path) -> None:
    """Verifying a log with a record of 32 MB, and looking over it, takes a fraction of that."""
    sink = log(tmp_path, 10, 32 << 20, 10)
    tracemalloc.start()
    assert verify_log(sink.lines()).records == 3
    assert [seen.kind for seen in read_glances(sink.lines(), "log")] == ["state"] * 3
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


def test_lines_of_every_length_around_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a line is held or not, it says the same, to the byte."""
    monkeypatch.setattr(local, "LONG", SMALL)
    monkeypatch.setattr(spans, "LONG", SMALL)
    monkeypatch.setattr(spans, "CHUNK", SMALL)
    sink = log(tmp_path, *range(SMALL - 400, SMALL + 20), *range(2 * SMALL - 400, 2 * SMALL + 20))
    lines = list(sink.lines())
    assert {type(line) for line in lines} == {bytes, LongLine}
    assert [read_line(line) for line in lines] == sink.path.read_bytes().splitlines()
    assert verify_log(lines).records == len(lines)
    bodies = [record.body for record in read_records(lines, "log")]
    assert bodies == [seen.body for seen in read_glances(lines, "log")]


def test_any_change_of_a_long_line_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed byte at the start, in the middle and at the end of a line that is not held."""
    monkeypatch.setattr(local, "LONG", SMALL)
    monkeypatch.setattr(spans, "LONG", SMALL)
    monkeypatch.setattr(spans, "CHUNK", SMALL)
    sink = log(tmp_path, 10, 8 * SMALL, 10)
    sound = sink.path.read_bytes()
    start = sound.index(b"\n") + 1
    end = sound.index(b"\n", start)
    for place in (start, start + 40, *range(start + SMALL, end, SMALL // 3), end - 1):
        changed = sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :]
        sink.path.write_bytes(changed)
        assert verify_log(sink.lines()).seq == 2, place


def test_a_long_line_that_was_torn_off_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash within a long append: what is whole counts, the rest does not."""
    monkeypatch.setattr(local, "LONG", SMALL)
    monkeypatch.setattr(spans, "LONG", SMALL)
    sink = log(tmp_path, 10, 8 * SMALL)
    whole = sink.path.read_bytes()
    for lost in (1, SMALL, 4 * SMALL):
        sink.path.write_bytes(whole[:-lost])
        assert verify_log(sink.lines()).records == 1


def test_a_long_line_that_changes_after_it_was_checked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read again later must be what was checked: another text, a shorter file, none."""
    monkeypatch.setattr(local, "LONG", SMALL)
    monkeypatch.setattr(spans, "LONG", SMALL)
    sink = log(tmp_path, 8 * SMALL)
    sound = sink.path.read_bytes()
    (seen,) = read_glances(sink.lines(), "log")
    assert seen.read_whole().hash == seen.hash
    for text in (sound.replace(b"xxx", b"xyx", 1), sound[: 2 * SMALL]):
        sink.path.write_bytes(text)
        with pytest.raises(StorageError, match="changed while the log was read"):
            seen.read_whole()
    sink.path.unlink()
    with pytest.raises(StorageError, match="changed while the log was read"):
        seen.body  # noqa: B018  # looking is what reads it
