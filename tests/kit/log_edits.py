"""Everything that somebody can do to a log after it was written, each edit with the number of the
record at which it has to be found."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkaform.audit.records import RecordKind, decode, encode, seal_record, verify_log
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.head import GENESIS, Head
from kafkaform.core.value import FrozenMap

from .audit_story import LINEAGE, MemorySink, journal, tell

Lines = Sequence[bytes]


@dataclass(frozen=True)
class Edit:
    """what: in words that replay it; data: the log afterwards; record: the first bad one."""

    what: str
    data: bytes
    record: int


@dataclass(frozen=True)
class Found:
    """tried: how many edits; missed: those that were not found, or not where they are."""

    tried: int
    missed: tuple[str, ...]


def log() -> list[bytes]:
    """Two runs, one of which died, with every kind of record."""
    sink = MemorySink()
    tell(sink)
    return sink.stored


def another() -> list[bytes]:
    """A log of the same length that is sound in itself: what a forger would write instead."""
    head, lines = GENESIS, []
    for old in map(decode, log()):
        new = seal_record(
            head, time=old.time, run=old.run, actor="eve", kind=old.kind, body=old.body
        )
        lines.append(encode(new))
        head = Head(new.seq, new.hash)
    return lines


def head_of(lines: Lines) -> Head:
    return verify_log(lines).head


def text(lines: Lines) -> bytes:
    """The lines as a file."""
    return b"".join(line + b"\n" for line in lines)


def tried(edits: Iterable[Edit], anchor: Head) -> Found:
    """Verify the log after each edit against the head that was kept elsewhere."""
    number, missed = 0, []
    for edit in edits:
        number += 1
        *whole, _ = edit.data.split(b"\n")
        verdict = verify_log(whole, anchor)
        if verdict.seq != edit.record or verdict.records != edit.record - 1:
            missed.append(f"{edit.what}: {verdict}, not record {edit.record}")
    return Found(number, tuple(missed))


# ── bytes ───────────────────────────────────────────────────────────────────────────────


def flips(lines: Lines, places: Iterable[int], bits: Iterable[int] = range(8)) -> Iterator[Edit]:
    """One bit of each of these bytes; places count from the start of the file."""
    data, bits = text(lines), tuple(bits)
    for place in places:
        record = data.count(b"\n", 0, place) + 1
        for bit in bits:
            byte = bytes([data[place] ^ 1 << bit])
            yield Edit(f"bit {bit} of {place}", data[:place] + byte + data[place + 1 :], record)


def lost_bytes(lines: Lines, places: Iterable[int]) -> Iterator[Edit]:
    """Each of these bytes left out, and each of them twice."""
    data = text(lines)
    for place in places:
        record = data.count(b"\n", 0, place) + 1
        yield Edit(f"without {place}", data[:place] + data[place + 1 :], record)
        # A line break too many is an empty record after the one that it ends.
        more = record + (data[place : place + 1] == b"\n")
        yield Edit(f"{place} twice", data[: place + 1] + data[place:], min(more, len(lines) + 1))


def cuts(lines: Lines, places: Iterable[int]) -> Iterator[Edit]:
    """The file ends before each of these bytes."""
    data = text(lines)
    for place in places:
        yield Edit(f"cut at {place}", data[:place], data.count(b"\n", 0, place) + 1)


# ── records ─────────────────────────────────────────────────────────────────────────────


def records(lines: Lines) -> Iterator[Edit]:
    """Each record dropped, swapped with each later one, put again at every place, replaced by and
    joined by each of another log, and every tail cut off or written anew."""
    yield from _dropped(lines)
    yield from _swapped(lines)
    yield from _inserted(lines, lines, "its own")
    yield from _inserted(lines, another(), "another log's")
    yield from _replaced(lines, another())
    yield from _rewritten(lines)


def _dropped(lines: Lines) -> Iterator[Edit]:
    for first in range(len(lines)):
        for last in range(first + 1, len(lines) + 1):
            left = [*lines[:first], *lines[last:]]
            yield Edit(f"without {first + 1} to {last}", text(left), first + 1)


def _swapped(lines: Lines) -> Iterator[Edit]:
    for one in range(len(lines)):
        for other in range(one + 1, len(lines)):
            swapped = [*lines]
            swapped[one], swapped[other] = lines[other], lines[one]
            yield Edit(f"{one + 1} and {other + 1} swapped", text(swapped), one + 1)


def _inserted(lines: Lines, strangers: Lines, whose: str) -> Iterator[Edit]:
    for number, stranger in enumerate(strangers):
        for place in range(len(lines)):
            if lines[place] == stranger:
                continue  # before itself is after itself
            more = [*lines[:place], stranger, *lines[place:]]
            # The first record of any log follows nothing, so only the next one shows the forgery.
            late = number == place == 0
            yield Edit(f"{whose} {number + 1} before {place + 1}", text(more), place + 1 + late)


def _replaced(lines: Lines, others: Lines) -> Iterator[Edit]:
    for place, other in enumerate(others):
        changed = [*lines[:place], other, *lines[place + 1 :]]
        yield Edit(f"{place + 1} is another log's", text(changed), place + 1 + (place == 0))


def _rewritten(lines: Lines) -> Iterator[Edit]:
    """From each record on the chain is made anew, as long as it was and longer: only the anchor,
    which names the last record, tells."""
    for start in range(len(lines)):
        head, forged = head_of(lines[:start]), [*lines[:start]]
        for old in [*map(decode, lines[start:]), decode(lines[-1])]:
            new = seal_record(
                head, time=old.time, run=old.run, actor="eve", kind=old.kind, body=old.body
            )
            forged.append(encode(new))
            head = Head(new.seq, new.hash)
        for length in (len(lines), len(lines) + 1):
            yield Edit(f"anew from {start + 1}", text(forged[:length]), len(lines))


# ── crashes ─────────────────────────────────────────────────────────────────────────────


def crashed(folder: Path, lines: Lines, places: Iterable[int]) -> Found:
    """The file ends at each of these bytes, and another run goes on: what was whole is there, what
    was torn is kept aside, and the chain holds from the first record to the new one."""
    data, number, missed = text(lines), 0, []
    for place in places:
        number += 1
        whole = data.count(b"\n", 0, place)
        here = folder / str(place)
        here.mkdir()
        sink = LocalSink(here / "log.jsonl")
        sink.path.write_bytes(data[:place])
        before = verify_log(sink.lines())
        journal(sink, "next").write(RecordKind.STATE, FrozenMap(lineage=LINEAGE))
        after = verify_log(sink.lines(), before.head if whole else None)
        torn = len(data[:place].rpartition(b"\n")[2])
        kept = sum(file.stat().st_size for file in here.glob(".kafkaform/torn-*"))
        if (before.records, after.seq, kept) != (whole, None, torn):
            missed.append(f"crashed at {place}: {before}, then {after}, {kept} of {torn} kept")
        shutil.rmtree(here)
    return Found(number, tuple(missed))
