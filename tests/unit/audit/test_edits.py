"""No edit of a log stays unseen: each is found by `audit verify`, at the record where it begins,
and neither `plan` nor `apply` goes on after it. `python -m tests.long audit_edits` tries all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaform.audit.records import verify_log
from kafkaform.core.errors import StorageError

from ...kit import log_edits as edits
from ...kit.simulated.engine import House, apply, desired, house, plan, removed, topic

CHANCE = random.Random(20261122)


@pytest.fixture(scope="module")
def log() -> list[bytes]:
    return edits.log()


def places(lines: edits.Lines, number: int) -> list[int]:
    """So many bytes of the file, of every record some."""
    size = len(edits.text(lines))
    return sorted({size * n // number for n in range(number)} | {size - 1})


def test_flipped_bits_are_found(log: list[bytes]) -> None:
    """Bits of bytes all over the log."""
    found = edits.tried(edits.flips(log, places(log, 600)), edits.head_of(log))
    assert found.tried >= 4_800 and found.missed == ()


def test_bytes_that_are_gone_or_doubled_are_found(log: list[bytes]) -> None:
    """Bytes all over the log, line breaks among them."""
    breaks = [place for place, byte in enumerate(edits.text(log)) if byte == 0x0A]
    found = edits.tried(edits.lost_bytes(log, [*places(log, 600), *breaks]), edits.head_of(log))
    assert found.tried >= 1_200 and found.missed == ()


def test_every_edit_of_whole_records_is_found(log: list[bytes]) -> None:
    """Dropped, swapped, doubled, put elsewhere, taken from another log, cut off, written anew."""
    found = edits.tried(edits.records(log), edits.head_of(log))
    assert found.tried >= 1_300 and found.missed == ()


def test_a_log_that_ends_anywhere_is_found_by_its_anchor(log: list[bytes]) -> None:
    """Every third byte, and each end of a record: half a record is no record."""
    ends = [len(edits.text(log[:number])) for number in range(len(log))]
    size = len(edits.text(log))
    found = edits.tried(edits.cuts(log, [*range(0, size, 3), *ends]), edits.head_of(log))
    assert found.tried >= 4_000 and found.missed == ()


def test_a_log_that_ends_anywhere_is_sound_without_its_anchor(
    log: list[bytes], tmp_path: Path
) -> None:
    """A crash at any byte leaves a log that verifies as far as it goes, and the next run goes on
    behind what it left."""
    found = edits.crashed(tmp_path, log, places(log, 60))
    assert found.tried >= 60 and found.missed == ()


def test_an_anchor_that_is_older_than_the_log_still_counts(log: list[bytes]) -> None:
    """What a pipeline kept weeks ago shows that the log was written anew since."""
    for number in range(1, len(log) + 1):
        old = edits.head_of(log[:number])
        assert verify_log(log, old).ok
        assert verify_log(edits.another(), old).seq == number


# ── plan and apply ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def kept() -> House:
    """Three topics were made, one changed, one deleted."""
    where = house()
    three = topic("a"), topic("b", config={"retention.ms": "1000"}), topic("c")
    apply(where, desired(*three))
    gone = removed("kafka_topic.c", destroy=True)
    apply(where, desired(topic("a", 2), three[1], removed=(gone,)))
    where.clock.advance(3600)
    assert plan(where, desired(*three[:1], three[1])).changes
    return where


def sample(lines: edits.Lines) -> Iterator[edits.Edit]:
    everything = [*edits.records(lines)]
    yield from CHANCE.sample(everything, 60)
    yield from edits.flips(lines, CHANCE.sample(range(len(edits.text(lines))), 40), [0])


def test_neither_plan_nor_apply_trusts_an_edited_log(kept: House) -> None:
    """Whatever was done to the log, both are refused with the number of the record, and nothing
    is sent or written."""
    sound, sent = tuple(kept.sink.whole), dict(kept.cluster.requests)
    state = kept.backend.data
    more = desired(topic("a", 3), topic("b"), topic("d"))
    for edit in sample(sound):
        lines = edit.data.split(b"\n")[:-1]
        kept.sink.whole = list(lines)
        for command in (plan, apply):
            with pytest.raises(StorageError, match=rf"record {edit.record}\b|is gone"):
                command(kept, more)
        assert kept.sink.whole == lines and kept.backend.data == state, edit.what
    assert kept.cluster.requests == sent
    kept.sink.whole = list(sound)
    assert apply(kept, more).report is not None
