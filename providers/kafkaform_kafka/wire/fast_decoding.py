"""Encode names and decode configs quickly, for thousands of topics.

A topic reports all of its configs, and almost all of them are defaults. kafka-python makes an
object of each, which takes much longer than the broker's answer. This module skips the entries from
other sources. It also encodes requests, because kafka-python needs as long for a name as the broker
needs for the configs of that topic. `tests/unit/kafka/wire/test_fast_decoding.py` compares both
ways with kafka-python's own and tests the private parts on which they depend: the header of a
request chooses the class of its answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.metadata import MetadataRequest

from .answers import ConfigEntry, ItemAnswer
from .client import Wire

# The first version with compact lengths and tagged fields (KIP-482), and the highest there is.
VERSION = 4
"""The only version of DescribeConfigs that is decoded here."""
# Version 10 has topic ids, version 11 lost the rights on the cluster (KIP-700); 12 and 13 kept this
# form.
METADATA_VERSION = 11
"""The lowest version of Metadata that `encode_metadata_request` fits."""
OWN = 1
"""The config source of a topic's own override (DYNAMIC_TOPIC_CONFIG)."""
TOPIC = 2
"""The resource type of topics."""
_SHIFTS = 28
"""By how many bits the last of the five bytes of a 32-bit varint is shifted."""


class _Response:
    """Has the methods that kafka-python calls on the class of an answer. source: the config source
    of the entries to keep."""

    def __init__(self, source: int) -> None:
        self._source = source
        self.parse_header = DescribeConfigsResponse[VERSION].parse_header

    def decode(self, data: Any) -> _Answers:
        """The answer. Raises ValueError for malformed bytes, as kafka-python expects."""
        try:
            return _parse_answers(bytes(data.read()), self._source)
        except IndexError:
            raise ValueError("the answer ends early") from None


class _FastHeader:
    """The header of a request, except for the class of its answer."""

    def __init__(self, header: Any, response: _Response) -> None:
        self._header = header
        self._response = response

    def __getattr__(self, name: str) -> Any:
        return getattr(self._header, name)

    def get_response_class(self) -> _Response:
        return self._response


class _Request(DescribeConfigsRequest, init=False):  # type: ignore[misc, call-arg]  # untyped
    _header: Any

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(min_version=VERSION, max_version=VERSION)
        self.names = names

    def with_header(self, **given: Any) -> None:
        super().with_header(**given)
        self._header = _FastHeader(self._header, _Response(OWN))

    def encode(self, version: Any = None, header: bool = False, framed: bool = False) -> bytes:
        return _frame_request(
            encode_describe_request(self.names), self._header if header else None, framed
        )


class NamedTopics(MetadataRequest, init=False):  # type: ignore[misc, call-arg]  # untyped
    """A Metadata request for these topics. operations: ask also for our rights on each."""

    _header: Any

    def __init__(self, names: Sequence[str], operations: bool) -> None:
        super().__init__(min_version=METADATA_VERSION)
        self.names, self.operations = names, operations

    def encode(self, version: Any = None, header: bool = False, framed: bool = False) -> bytes:
        data = encode_metadata_request(self.names, self.operations)
        return _frame_request(data, self._header if header else None, framed)


class _Answers:
    """A decoded answer, by resource name."""

    def __init__(self, throttle_time_ms: int, results: Mapping[str, ItemAnswer]) -> None:
        # kafka-python reads this from every answer, and pauses the connection if it is not 0.
        self.throttle_time_ms = throttle_time_ms
        self.results = results


def describe_own(
    wire: Wire, names: Sequence[str], timeout: float, node: str | None = None
) -> Mapping[str, ItemAnswer]:
    """The overrides of these topics, by name. timeout: seconds. Raises the errors of `Wire.send`;
    Unsupported if the broker does not have this version."""
    answers: _Answers = wire.send(_Request(names), timeout, node)
    return answers.results


def encode_describe_request(names: Sequence[str]) -> bytes:
    """The request for all configs of these topics, without synonyms and documentation."""
    rows = []
    for name in names:
        text = name.encode()
        rows.append(TOPIC.to_bytes(1, "big") + _encode_number(len(text) + 1) + text + b"\0\0")
    return _encode_number(len(names) + 1) + b"".join(rows) + b"\0\0\0"


def encode_metadata_request(names: Sequence[str], operations: bool) -> bytes:
    """The request for the metadata of these topics."""
    rows = [_encode_number(len(names) + 1)]
    for name in names:
        text = name.encode()
        rows.append(b"\0" * 16 + _encode_number(len(text) + 1) + text + b"\0")  # no id, no tags
    # The first flag is allow_auto_topic_creation. Without it as False, a broker with
    # auto.create.topics.enable, which is Kafka's default, creates each topic that it is asked
    # about.
    return b"".join(rows) + bytes((False, operations, 0))


def _frame_request(data: bytes, header: Any, framed: bool) -> bytes:
    if header is not None:
        data = bytes(header.encode(flexible=True)) + data
    return len(data).to_bytes(4, "big") + data if framed else data


def _encode_number(number: int) -> bytes:
    """An unsigned varint, which `_parse_number` decodes."""
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)


def _parse_answers(data: bytes, source: int) -> _Answers:
    throttle = int.from_bytes(data[:4], "big")
    count, at = _parse_number(data, 4)
    results: dict[str, ItemAnswer] = {}
    for _ in range(count - 1):
        code = int.from_bytes(data[at : at + 2], "big", signed=True)
        message, at = _parse_text(data, at + 2)
        name, at = _parse_text(data, at + 1)  # past the resource's type
        entries, at = _parse_entries(data, at, source)
        at = _skip_tags(data, at)
        results[name or ""] = ItemAnswer(code, message, configs=tuple(entries))
    if _skip_tags(data, at) != len(data):
        raise ValueError("the answer has another length than it says")
    return _Answers(throttle, results)


def _parse_entries(data: bytes, at: int, source: int) -> tuple[list[ConfigEntry], int]:
    """The entries of one topic that have this source."""
    # Everything waits for this loop, which runs for each config of each topic. Lengths are almost
    # always one byte, so they are decoded here, without a call of `_parse_number`.
    entries = []
    count, at = _parse_number(data, at)
    for _ in range(count - 1):
        begin = at
        size = data[at]
        size, at = (size, at + 1) if size < 128 else _parse_number(data, at)
        at += size - 1
        size = data[at]
        size, at = (size, at + 1) if size < 128 else _parse_number(data, at)
        at += size - 1 if size else 0
        if data[at + 1] == source:
            name, value_at = _parse_text(data, begin)
            value, _ = _parse_text(data, value_at)
            sensitive, read_only = bool(data[at + 2]), bool(data[at])
            entries.append(ConfigEntry(name or "", value, source, None, sensitive, read_only))
        at = _skip_synonyms(data, at + 3)
        size, at = _parse_number(data, at + 1)  # the documentation, after the type
        at = _skip_tags(data, at + (size - 1 if size else 0))
    return entries, at


def _skip_synonyms(data: bytes, at: int) -> int:
    count, at = _parse_number(data, at)
    for _ in range(count - 1):
        _, at = _parse_text(data, at)
        _, at = _parse_text(data, at)
        at = _skip_tags(data, at + 1)
    return at


def _skip_tags(data: bytes, at: int) -> int:
    count, at = _parse_number(data, at)
    for _ in range(count):
        _, at = _parse_number(data, at)
        size, at = _parse_number(data, at)
        at += size
    return at


def _parse_text(data: bytes, at: int) -> tuple[str | None, int]:
    size, at = _parse_number(data, at)
    if not size:
        return None, at
    end = at + size - 1
    if end > len(data):
        raise IndexError
    return data[at:end].decode(), end


def _parse_number(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint of 32 bits and the position after it. Raises ValueError if it is
    longer."""
    # Without that limit, the time for a number that does not end grows with the square of its
    # length: a broken or hostile answer would stop the thread that reads all connections.
    number = data[at]
    at += 1
    if number < 128:
        return number, at
    number &= 127
    shift = 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift > _SHIFTS:
            raise ValueError("a number has no end")
