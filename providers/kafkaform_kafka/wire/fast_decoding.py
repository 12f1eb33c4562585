"""What thousands of topics need: names that are written, and configs that are read, the short way.

A topic tells all of its configs, and almost every one is a default. Making an object of each of
them takes kafka-python much longer than the broker needs to answer, so here an entry from another
source is stepped over; writing a name takes it as long as the broker needs for the configs behind
it. `tests/unit/kafka/wire/test_fast_decoding.py` holds the inner parts of kafka-python that this
needs (a request's header chooses the class of its answer), and that both ways say and read the
same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.metadata import MetadataRequest

from .answers import ConfigEntry, ItemAnswer
from .client import Wire

VERSION = 4
"""The only one that is read here: the first with lengths of variable size."""
METADATA_VERSION = 11
"""From here on a request is written as `encode_metadata_request` writes it."""
OWN = 1
"""The source of a topic's own override."""
TOPIC = 2
"""The type of the resource."""
_SHIFTS = 28
"""The last of the five bytes of 32 bits is shifted so far."""


class _Response:
    """What kafka-python takes for the class of an answer. source: of the entries to keep."""

    def __init__(self, source: int) -> None:
        self._source = source
        self.parse_header = DescribeConfigsResponse[VERSION].parse_header

    def decode(self, data: Any) -> _Answers:
        """Raises ValueError for what is no such answer, as kafka-python expects."""
        try:
            return _parse_answers(bytes(data.read()), self._source)
        except IndexError:
            raise ValueError("the answer ends early") from None


class _FastHeader:
    """A request's header that asks for another class of answer."""

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
    """Metadata of these topics. operations: also ask what we may do with each."""

    _header: Any

    def __init__(self, names: Sequence[str], operations: bool) -> None:
        super().__init__(min_version=METADATA_VERSION)
        self.names, self.operations = names, operations

    def encode(self, version: Any = None, header: bool = False, framed: bool = False) -> bytes:
        data = encode_metadata_request(self.names, self.operations)
        return _frame_request(data, self._header if header else None, framed)


class _Answers:
    """throttle_time_ms: what kafka-python looks for in every answer."""

    def __init__(self, throttle_time_ms: int, results: Mapping[str, ItemAnswer]) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results


def describe_own(
    wire: Wire, names: Sequence[str], timeout: float, node: str | None = None
) -> Mapping[str, ItemAnswer]:
    """The overrides of these topics by name. timeout: seconds. Raises what `Wire.send` does:
    Unsupported for a broker that lacks this version."""
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
    """The request for the metadata of these topics, which makes none."""
    rows = [_encode_number(len(names) + 1)]
    for name in names:
        text = name.encode()
        rows.append(b"\0" * 16 + _encode_number(len(text) + 1) + text + b"\0")  # no id, no tags
    return b"".join(rows) + bytes((False, operations, 0))


def _frame_request(data: bytes, header: Any, framed: bool) -> bytes:
    if header is not None:
        data = bytes(header.encode(flexible=True)) + data
    return len(data).to_bytes(4, "big") + data if framed else data


def _encode_number(number: int) -> bytes:
    """A number of variable size: the reverse of `_parse_number`."""
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
    """One topic's entries from this source. Lengths are mostly one byte, and this is the loop
    that everything waits for, so it takes them itself."""
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
    """An unsigned number of variable size, and the place after it. It has 32 bits: one without an
    end would grow with the answer, and the time that it takes with its square."""
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
