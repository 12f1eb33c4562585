"""Whatever is done to a log after it was written is found, and the first bad record named."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaform.audit.records import (
    ChainVerdict,
    RecordKind,
    decode,
    encode,
    parse_time,
    read_records,
    render_time,
    seal_record,
    verify_log,
)
from kafkaform.core.errors import StorageError
from kafkaform.core.head import GENESIS, Head, parse_head
from kafkaform.core.value import FrozenMap

from ...kit import audit_story as story
from ...kit.audit_story import MemorySink


@pytest.fixture(scope="module")
def log() -> list[bytes]:
    sink = MemorySink()
    story.tell(sink)
    return sink.stored


def small() -> list[bytes]:
    """Three short records, so that every byte of them can be tried."""
    head, lines = GENESIS, []
    for number in range(3):
        record = seal_record(
            head,
            time=render_time(number),
            run="r",
            actor="a",
            kind=RecordKind.STATE,
            body=FrozenMap(lineage="l", hash='"hash":"x"', n=number),
        )
        lines.append(encode(record))
        head = Head(record.seq, record.hash)
    return lines


def resealed(lines: list[bytes], start: Head) -> list[bytes]:
    """The same records with hashes that fit again, as a forger would write them."""
    result = []
    for line in lines:
        r = decode(line)
        new = seal_record(start, time=r.time, run=r.run, actor=r.actor, kind=r.kind, body=r.body)
        result.append(encode(new))
        start = Head(new.seq, new.hash)
    return result


def head_of(lines: list[bytes]) -> Head:
    return verify_log(lines).head


def test_every_changed_byte_is_found() -> None:
    """Any bit flip, blank, zero or line break at any position of a log is found, at the latest
    in the record where it was made."""
    data = b"\n".join(small()) + b"\n"
    anchor = head_of(small())
    for position, byte in enumerate(data):
        record = data.count(b"\n", 0, position) + 1
        for other in {*(byte ^ (1 << bit) for bit in range(8)), 0x20, 0x00, 0x0A} - {byte}:
            changed = data[:position] + bytes([other]) + data[position + 1 :]
            *lines, torn = changed.split(b"\n")
            verdict = verify_log(lines, anchor)
            assert not verdict.ok or torn
            assert verdict.seq is not None
            assert verdict.seq <= record


def test_each_dropped_record_is_found(log: list[bytes]) -> None:
    """Leaving out a record is found at its place; the last one against the anchor."""
    for position in range(len(log)):
        verdict = verify_log(log[:position] + log[position + 1 :], head_of(log))
        assert verdict.seq == position + 1
        assert "missing" in verdict.problem or "known to exist" in verdict.problem


def test_each_swap_is_found(log: list[bytes]) -> None:
    """Two records in the wrong order are found at the first of them."""
    for position in range(len(log) - 1):
        swapped = [*log]
        swapped[position : position + 2] = reversed(swapped[position : position + 2])
        assert verify_log(swapped).seq == position + 1


def test_each_insertion_is_found(log: list[bytes]) -> None:
    """A record that is repeated, or forged to fit the one before it, is found."""
    for position in range(1, len(log)):
        doubled = verify_log([*log[:position], log[position - 1], *log[position:]])
        assert doubled.seq == position + 1
        assert "inserted" in doubled.problem
        forged = resealed([log[0]], head_of(log[:position]))
        assert verify_log([*log[:position], *forged, *log[position:]]).seq == position + 2


def test_a_replaced_record_is_found(log: list[bytes]) -> None:
    """A record with other content and a hash that fits it breaks the link of the next one."""
    for position in range(len(log) - 1):
        start = head_of(log[:position])
        [forged] = resealed([log[position].replace(b"ada@ci", b"bob@ci")], start)
        verdict = verify_log([*log[:position], forged, *log[position + 1 :]])
        assert verdict.seq == position + 2
        assert "replaced" in verdict.problem


def test_a_cut_tail_is_found_with_an_anchor_only(log: list[bytes]) -> None:
    """Every shorter log is sound in itself, and refused by a head that is kept elsewhere."""
    anchor = head_of(log)
    for length in range(len(log)):
        assert verify_log(log[:length]).ok
        verdict = verify_log(log[:length], anchor)
        assert verdict.seq == length + 1
        assert f"record {anchor.seq} is known" in verdict.problem


def test_a_log_written_anew_is_found_with_an_anchor(log: list[bytes]) -> None:
    """A whole new chain is refused at the anchored record; a longer log is welcome."""
    forged = resealed([line.replace(b"ada@ci", b"bob@ci") for line in log], GENESIS)
    anchor = head_of(log[:9])
    assert verify_log(forged).ok
    assert verify_log(forged, anchor).seq == 9
    assert verify_log(log, anchor).ok


def test_sound_log(log: list[bytes]) -> None:
    """A log as it was written is sound, and so is an empty one."""
    assert verify_log(log, head_of(log)).ok
    assert verify_log([]) == ChainVerdict(0, GENESIS)


def test_trusted_hands_out_only_what_is_sound(log: list[bytes]) -> None:
    """Reading stops with the name of the log and the record at the first fault."""
    seen = []
    with pytest.raises(StorageError, match=r"log\.jsonl: record 4: its content was changed"):
        for record in read_records(
            [*log[:3], log[3].replace(b"ada", b"eve"), *log[4:]], "log.jsonl"
        ):
            seen.append(record.seq)
    assert seen == [1, 2, 3]
    with pytest.raises(StorageError, match="known to exist"):
        list(read_records(log[:3], "log.jsonl", head_of(log)))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data | {"kind": "gossip"},
        lambda data: data | {"body": []},
        lambda data: data | {"extra": 1},
        lambda data: data | {"seq": "1"},
    ],
)
def test_lines_that_are_no_records(change: Callable[[dict[str, object]], object]) -> None:
    """A line without exactly a record's members, or of an unknown kind, does not decode."""
    with pytest.raises(ValueError, match="it|kind|is not"):
        decode(json.dumps(change(json.loads(small()[0]))).encode())


texts = st.text(max_size=12)
bodies = st.dictionaries(texts, st.none() | st.integers() | texts | st.booleans()).map(FrozenMap)


@given(st.lists(st.tuples(texts, texts, bodies), max_size=5))
def test_any_content_chains(entries: list[tuple[str, str, FrozenMap]]) -> None:
    """Names with quotes, line breaks or hashes in them neither break nor forge a line."""
    head, lines = GENESIS, []
    for run, actor, body in entries:
        record = seal_record(
            head, time=render_time(1.5), run=run, actor=actor, kind=RecordKind.INTENT, body=body
        )
        assert decode(encode(record)) == record
        lines.append(encode(record))
        head = Head(record.seq, record.hash)
    assert verify_log(lines, head if lines else None) == ChainVerdict(len(lines), head)
    assert not any(b"\n" in line for line in lines)


@given(st.integers(0, 4_000_000_000_000_000))
def test_times(microseconds: int) -> None:
    """Times are UTC with six digits and read back as they were."""
    text = render_time(microseconds / 1e6)
    assert len(text) == len("2026-01-01T00:00:00.000000Z")
    assert abs(parse_time(text) - microseconds / 1e6) < 2e-6


def test_heads_as_text() -> None:
    """What `audit head` prints is read back; anything else is refused."""
    head = Head(7, "ab" * 32)
    assert parse_head(f" {head}\n") == head
    for text in ("", "7", "7:ab", f"x:{'ab' * 32}", f"7:{'zz' * 32}", f"-7:{'ab' * 32}"):
        with pytest.raises(ValueError, match="not a head"):
            parse_head(text)


def test_several_anchors_are_held_to_in_one_pass(log: list[bytes]) -> None:
    """Each head that is known from elsewhere must be in the log, and a log is read only once."""
    first, last = head_of(log[:3]), head_of(log)
    assert verify_log(iter(log), first, None, last).ok
    assert verify_log(iter(log), Head(3, "0" * 64), last).seq == 3
    assert verify_log(iter(log), first, Head(len(log), "0" * 64)).seq == len(log)
    assert verify_log(iter(log[:-2]), last, first).seq == len(log) - 1
