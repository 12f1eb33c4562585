"""Whether a record has a key, from the bytes that a broker sends."""

from __future__ import annotations

import gzip
import os
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from kafkaform_kafka.wire.samples import KeySample, Sample, sample_key

GZIP = 1
"""The number of the compression in a batch."""


def build_batch(*keys: bytes | None, codec: int = 0, value: bytes = b"v") -> bytes:
    batch = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 100_000_000)
    for number, key in enumerate(keys):
        batch.append(number, 1_700_000_000_000, key, value, [])
    return bytes(batch.build())


def sample(*answers: bytes, code: int = 0) -> tuple[KeySample, list[int]]:
    """The sample of a broker that sends these bytes one after the other, and the offsets that were
    asked for."""
    waiting, offsets = list(answers), []

    def send(request: Any, timeout: float, node: str) -> Any:
        [row] = request.topics
        offsets.append(row.partitions[0].fetch_offset)
        partition = SimpleNamespace(error_code=code, records=waiting.pop(0) if waiting else b"")
        topic = SimpleNamespace(partitions=[partition])
        return SimpleNamespace(error_code=0, responses=[topic])

    wire: Any = SimpleNamespace(send=send)
    return sample_key(wire, "orders", 0, 7, "1", 5.0), offsets


@pytest.mark.parametrize("codec", [0, GZIP])
def test_the_first_record_decides(codec: int) -> None:
    """A key of no bytes is a key; later records of the batch count for nothing."""
    for key, said in ((b"k" * 200, Sample.KEY), (b"", Sample.KEY), (None, Sample.NO_KEY)):
        answer, offsets = sample(build_batch(key, b"other", codec=codec))
        assert (answer, offsets) == (KeySample(0, said), [7])


def test_only_the_beginning_is_decompressed() -> None:
    """A batch that decompresses to 50 MB costs nothing."""
    batch = build_batch(b"k", codec=GZIP, value=bytes(50_000_000))
    assert sample(batch)[0] == KeySample(0, Sample.KEY)


def test_markers_are_skipped() -> None:
    """They are no records, and the next batch is asked for."""
    marker = bytearray(build_batch(b"0000"))
    # The lower byte of the attributes: control batch, transactional.
    marker[22] |= 0x30
    answer, offsets = sample(bytes(marker), build_batch(None))
    assert (answer, offsets) == (KeySample(0, Sample.NO_KEY), [7, 1])
    assert sample(bytes(marker))[0] == KeySample(0, Sample.NONE)
    assert len(sample(*[bytes(marker)] * 20)[1]) == 5, "not for ever"


def test_an_empty_answer_is_no_record() -> None:
    """Also one that is cut."""
    assert sample(b"")[0] == KeySample(0)
    assert sample(build_batch(b"k")[:-1])[0] == KeySample(0)


def test_an_error_of_the_broker_is_kept() -> None:
    """Such as a right that is missing."""
    assert sample(code=29)[0] == KeySample(29)


def test_damaged_and_old_batches_are_no_sample() -> None:
    """What the libraries raise ends nothing, and nothing is concluded."""
    packed = bytearray(build_batch(b"k", codec=GZIP, value=bytes(1_000)))
    packed[61:] = os.urandom(len(packed) - 61)
    assert gzip.compress(b"")[:2] != bytes(packed[61:63])
    assert sample(bytes(packed))[0].broken
    unknown = bytearray(build_batch(b"k"))
    unknown[22] |= 0x07
    assert sample(bytes(unknown))[0].broken
    endless = bytearray(build_batch(b"k"))
    endless[61:] = b"\xff" * (len(endless) - 61)
    assert sample(bytes(endless))[0].broken
    old = LegacyRecordBatchBuilder(1, 0, 1_000)
    old.append(0, 1_700_000_000_000, b"k", b"v")
    assert sample(bytes(old.build()))[0].broken
