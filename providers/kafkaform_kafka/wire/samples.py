"""Whether the records of a partition have keys: Fetch (v4 to v12) of one batch, of which no more is
decoded than the length of one key. Nothing of a record is kept, logged or shown.

The format is that of Kafka 0.11 and later (KIP-98). Producers compress whole batches, so the first
bytes of a batch have to be decompressed, and no more of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from enum import Enum

from kafka import codec
from kafka.protocol.consumer import FetchRequest
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords
from kafka.record.util import decode_varint
from msgspec import Struct

from kafkaform.core.lazy import load

from .client import Wire

_START = 64
"""Bytes of the first record that are decoded: five numbers are before its key."""
_MARKERS = 5
"""Batches without records that are skipped: markers of transactions, and what compaction left."""


class Sample(Enum):
    """What one record says."""

    KEY = "it has a key"
    NO_KEY = "it has no key"
    NONE = "there is no record"


class KeySample(Struct, frozen=True):
    """The sample of one partition, or why there is none."""

    code: int
    """Of the error that the broker answered with; 0 for none."""
    sample: Sample = Sample.NONE
    unreadable: str = ""
    """The compression that this installation cannot read; empty if it can."""
    broken: bool = False
    """The batch cannot be decoded: it is damaged, or older than Kafka 0.11."""


def sample_key(
    wire: Wire, topic: str, number: int, offset: int, node: str, timeout: float
) -> KeySample:
    """Whether the first record of a batch has a key: of the batch of a partition with this offset,
    or of the next one with records. node: the broker that leads it; timeout: seconds."""
    for _ in range(_MARKERS):
        row = FetchRequest.FetchTopic
        # A broker sends the whole first batch, however small the limits are (KIP-74).
        partition = row.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1,
            isolation_level=0,
            topics=[row(topic=topic, partitions=[partition])],
            max_version=12,
        )
        response = wire.send(request, timeout, node)
        code = response.error_code or response.responses[0].partitions[0].error_code
        if code:
            return KeySample(code)
        batches = MemoryRecords(bytes(response.responses[0].partitions[0].records or b""))
        if not batches.has_next():
            return KeySample(0)
        batch = batches.next_batch()
        if not isinstance(batch, DefaultRecordBatch):
            return KeySample(0, broken=True)
        if not batch.is_control_batch and batch.records_count > 0:
            return _read_key(batch)
        offset = batch.next_offset
    return KeySample(0)


def _read_key(batch: DefaultRecordBatch) -> KeySample:
    name, decompress = _CODECS.get(batch.compression_type, ("", _refuse))
    try:
        return _read_start(decompress(bytes(batch._buffer[batch._pos :])))
    except ImportError:
        return KeySample(0, unreadable=name)
    except Exception:  # noqa: BLE001  # each library has errors of its own for damaged bytes
        return KeySample(0, broken=True)


def _read_start(start: bytes) -> KeySample:
    # Length, attributes, timestamp and offset of the record, then the length of its key.
    position = length = 0
    for _ in range(5):
        length, position = decode_varint(start, position)
    return KeySample(0, Sample.KEY if length >= 0 else Sample.NO_KEY)


def _refuse(_: bytes) -> bytes:
    raise ValueError("a compression that Kafka does not have")


def _start_gzip(body: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(body, _START)


# What follows is loaded on use, because only the codecs extra has it.


def _start_snappy(body: bytes) -> bytes:
    load("snappy:decompress")  # `kafka.codec` uses it, and fails without it in its own way.
    return bytes(codec.snappy_decode(body)[:_START])


def _start_lz4(body: bytes) -> bytes:
    decompressor = load("lz4.frame:LZ4FrameDecompressor")()
    return bytes(decompressor.decompress(body, max_length=_START))


def _start_zstd(body: bytes) -> bytes:
    return bytes(load("zstandard:ZstdDecompressor")().stream_reader(body).read(_START))


_CODECS: Mapping[int, tuple[str, Callable[[bytes], bytes]]] = {
    0: ("none", lambda body: body[:_START]),
    1: ("gzip", _start_gzip),
    2: ("snappy", _start_snappy),
    3: ("lz4", _start_lz4),
    4: ("zstd", _start_zstd),
}
"""Number in the attributes of a batch -> name, and the function that decompresses its beginning."""
