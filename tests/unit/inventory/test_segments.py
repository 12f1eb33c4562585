"""Logs land as they are, piece by piece, and never if somebody had a hand in them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kafkaform.audit.journal import Journal
from kafkaform.audit.records import RecordKind, parse_line_head, verify_log
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.audit.sinks.objects import ObjectSink
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import StorageError
from kafkaform.core.head import Head
from kafkaform.core.objects import Folder
from kafkaform.core.value import FrozenMap
from kafkaform.inventory import landing
from kafkaform.inventory.landing import land_log
from kafkaform.state.backends.obstores import open_objects

from ...kit.sealing import remove, seal

LINEAGE = "5f3c0d5e-1111-4222-8333-444455556666"


class Log:
    """A log that grows by records of a given size."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sink = LocalSink(path)

    def grow(self, count: int, size: int = 10) -> None:
        journal = Journal(self.sink, SystemClock(), "run-1", "me", LINEAGE)
        body = FrozenMap(text="x" * size)
        journal.write_all([(RecordKind.VERIFY, body)] * count)

    @property
    def lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines(keepends=True)

    @property
    def head(self) -> Head:
        return parse_line_head(self.lines[-1].rstrip(), "the log")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "kafkaform.audit.jsonl")


@pytest.fixture
def place(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "root")


def pieces(place: Folder) -> Iterator[tuple[str, bytes]]:
    for entry in place.names("landing/audit"):
        found = place.read(entry.key)
        assert found is not None
        yield entry.key.rpartition("/")[2], found.data


def whole(place: Folder) -> bytes:
    return b"".join(data for _, data in pieces(place))


def test_pieces_are_the_log(log: Log, place: Folder) -> None:
    """However it grows between snapshots, the files together are its bytes, and each one's name
    says which records it holds."""
    chance = random.Random(5)
    for _ in range(8):
        log.grow(chance.randrange(1, 5), chance.randrange(200))
        land_log(place, LINEAGE, LocalSink(log.path), log.head)
    assert whole(place) == log.path.read_bytes()
    seen = 0
    for name, data in pieces(place):
        first, last = name.removesuffix(".jsonl").split("-")
        assert (len(first), int(first)) == (12, seen + 1)
        seen = int(last)
        assert data.count(b"\n") == int(last) - int(first) + 1
    assert verify_log(whole(place).splitlines()).head == log.head


def test_nothing_new_lands_nothing(log: Log, place: Folder) -> None:
    """A second snapshot of the same log writes no file; an empty log neither."""
    assert land_log(place, LINEAGE, log.sink, None) == ()
    log.grow(3)
    assert land_log(place, LINEAGE, log.sink, log.head) == (
        f"landing/audit/{LINEAGE}/000000000001-000000000003.jsonl",
    )
    assert land_log(place, LINEAGE, log.sink, log.head) == ()


def test_pieces_are_bounded(log: Log, place: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """By records and by bytes; one that is larger than a piece has one of its own."""
    monkeypatch.setattr(landing, "MAX_RECORDS", 4)
    monkeypatch.setattr(landing, "MAX_BYTES", 3000)
    log.grow(5)
    log.grow(1, 5000)
    log.grow(3, 1000)
    land_log(place, LINEAGE, log.sink, log.head)
    names = [name.removesuffix(".jsonl") for name, _ in pieces(place)]
    spans = [tuple(map(int, name.split("-"))) for name in names]
    assert spans == [(1, 4), (5, 5), (6, 6), (7, 8), (9, 9)]
    assert whole(place) == log.path.read_bytes()


def test_long_records_land_whole(log: Log, place: Folder) -> None:
    """A plan of everything is one line of megabytes, which readers do not hold."""
    log.grow(2)
    log.grow(1, 3 << 20)
    log.grow(1)
    land_log(place, LINEAGE, log.sink, log.head)
    assert whole(place) == log.path.read_bytes()


def changed(log: Log) -> None:
    data = log.path.read_bytes()
    log.path.write_bytes(data.replace(b'"run-1"', b'"run-2"', 1))


def cut(log: Log) -> None:
    log.path.write_bytes(b"".join(log.lines[:-2]))


def dropped(log: Log) -> None:
    lines = log.lines
    log.path.write_bytes(b"".join((*lines[:2], *lines[3:])))


def written_anew(log: Log) -> None:
    count = len(log.lines)
    log.path.unlink()
    log.sink = LocalSink(log.path)
    log.grow(count + 2, 3)


@pytest.mark.parametrize("tamper", [changed, cut, dropped, written_anew])
@pytest.mark.parametrize("landed", [False, True])
def test_a_log_that_is_not_trusted(log: Log, place: Folder, tamper: Any, landed: bool) -> None:
    """Changed, cut short, with a gap or made anew: nothing of it lands, what has landed stays."""
    log.grow(6)
    anchor = log.head
    if landed:
        land_log(place, LINEAGE, log.sink, anchor)
    before = list(pieces(place))
    tamper(log)
    with pytest.raises(StorageError):
        land_log(place, LINEAGE, LocalSink(log.path), anchor)
    assert list(pieces(place)) == before


@pytest.mark.parametrize("tamper", [cut, written_anew])
def test_without_an_anchor_the_landed_one_counts(log: Log, place: Folder, tamper: Any) -> None:
    """A state that is gone or forged cannot make another log of the one that landed."""
    log.grow(6)
    land_log(place, LINEAGE, log.sink, None)
    tamper(log)
    with pytest.raises(StorageError, match="landed"):
        land_log(place, LINEAGE, LocalSink(log.path), None)
    assert len(list(pieces(place))) == 1


def test_a_torn_end_waits(log: Log, place: Folder) -> None:
    """What an append has not finished is no record yet; it lands when it is one."""
    log.grow(2)
    sound = log.path.read_bytes()
    log.path.write_bytes(sound + b'{"body":{')
    land_log(place, LINEAGE, LocalSink(log.path), None)
    assert whole(place) == sound


def test_a_log_in_a_store(place: Folder) -> None:
    """Is read object by object and lands just so."""
    objects = open_objects(f"memory://{uuid4().hex}/s", {})
    journal = Journal(ObjectSink(objects), SystemClock(), "run-1", "me", LINEAGE)
    for count in (3, 1, 2):
        journal.write_all([(RecordKind.VERIFY, FrozenMap(n=count))] * count)
    land_log(place, LINEAGE, ObjectSink(objects), journal.head)
    stored = [objects.read(e.key) for e in objects.names("log")]
    assert whole(place) == b"".join(found.data for found in stored if found)
    assert [name for name, _ in pieces(place)] == ["000000000001-000000000006.jsonl"]


@pytest.mark.parametrize("landed_before", [False, True])
def test_a_sealed_log_lands_as_if_it_were_not(
    log: Log, place: Folder, *, landed_before: bool
) -> None:
    """Its lines come from segments and from the file; what landed before stays."""
    for _ in range(4):
        log.grow(3)
    lines, head = b"".join(log.lines), log.head
    if landed_before:
        land_log(place, LINEAGE, LocalSink(log.path), None)
    seal(log.sink, lineage=LINEAGE)
    remove(log.sink)
    assert len(log.lines) == 3
    land_log(place, LINEAGE, LocalSink(log.path), head)
    assert whole(place) == lines
    log.grow(1)
    land_log(place, LINEAGE, LocalSink(log.path), log.head)
    assert whole(place) == lines + log.lines[-1]
