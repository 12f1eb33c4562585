"""Encode names and decode configs quickly, for thousands of topics.

A topic reports all of its configs, and almost all of them are defaults. kafka-python makes an
object of each, which takes much longer than the broker's answer. This module skips the entries from
other sources, in the answers of DescribeConfigs and of CreateTopics. It also encodes requests,
because kafka-python needs as long for a name as the broker needs for the configs of that topic.
`tests/unit/kafka/wire/test_fast_decoding.py` compares both ways with kafka-python's own and tests
the private parts on which they depend: the class of a request's header, which waits for the answer,
tells `connections.py` how to decode it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any

from kafka.protocol.admin import CreateTopicsRequest, DescribeConfigsRequest
from kafka.protocol.api_header import RequestHeader
from kafka.protocol.metadata import MetadataRequest
from msgspec import Struct

from .answers import ConfigEntry, ItemAnswer, id_text
from .client import Wire

# The first version with compact lengths and tagged fields (KIP-482), and the highest there is.
VERSION = 4
"""The only version of DescribeConfigs that is decoded here."""
# The first version that answers with the counts and configs of the new topic (KIP-525), and the
# first one with compact lengths.
CREATE_VERSION = 5
"""The lowest version of CreateTopics that is decoded here."""
_ID_VERSION = 7
"""The first version of CreateTopics that answers with topic ids (KIP-516)."""
# Version 10 has topic ids, version 11 lost the rights on the cluster (KIP-700); 12 and 13 kept this
# form.
METADATA_VERSION = 11
"""The lowest version of Metadata that `NamedTopics` fits."""
OWN = 1
"""The config source of a topic's own override (DYNAMIC_TOPIC_CONFIG)."""
TOPIC = 2
"""The resource type of topics."""
_SHIFTS = 28
"""By how many bits the last of the five bytes of a 32-bit varint is shifted."""
_WRONG_LENGTH = "the answer has another length than it says"


class Answers(Struct, frozen=True):
    """A decoded answer."""

    # kafka-python reads it from every answer, and pauses the connection if it is not 0.
    throttle_time_ms: int
    results: Mapping[str, ItemAnswer]
    """By the name of the topic."""


def parse_described(data: bytes, version: int) -> Answers:
    """What an answer of DescribeConfigs says about each topic, with its own overrides only. Raises
    ValueError or IndexError for malformed bytes."""
    assert version == VERSION
    throttle = int.from_bytes(data[:4], "big")
    count, at = _parse_number(data, 4)
    results: dict[str, ItemAnswer] = {}
    usual: dict[int, bytes] = {}
    for _ in range(count - 1):
        code = int.from_bytes(data[at : at + 2], "big", signed=True)
        message, at = _parse_text(data, at + 2)
        name, at = _parse_text(data, at + 1)  # past the resource's type
        configs, at = _parse_entries(data, at, usual, details=True)
        at = _skip_tags(data, at)
        results[name or ""] = ItemAnswer(code, message, configs=configs or ())
    if _skip_tags(data, at) != len(data):
        raise ValueError(_WRONG_LENGTH)
    return Answers(throttle, results)


def parse_created(data: bytes, version: int) -> Answers:
    """What an answer of CreateTopics says about each topic, with its own overrides only. Raises
    ValueError or IndexError for malformed bytes."""
    throttle = int.from_bytes(data[:4], "big")
    count, at = _parse_number(data, 4)
    results: dict[str, ItemAnswer] = {}
    usual: dict[int, bytes] = {}
    for _ in range(count - 1):
        name, at = _parse_text(data, at)
        topic_id = None
        if version >= _ID_VERSION:
            topic_id = id_text(uuid.UUID(bytes=data[at : at + 16]))
            at += 16
        code = int.from_bytes(data[at : at + 2], "big", signed=True)
        message, at = _parse_text(data, at + 2)
        partitions = int.from_bytes(data[at : at + 4], "big", signed=True)
        factor = int.from_bytes(data[at + 4 : at + 6], "big", signed=True)
        configs, at = _parse_entries(data, at + 6, usual)
        # Without DescribeConfigs on the topic, the counts are -1 and the list of configs is empty,
        # which does not mean that it has none (KIP-525).
        withheld, at = _parse_config_error(data, at)
        results[name or ""] = ItemAnswer(
            code,
            message,
            topic_id,
            partitions if partitions > 0 else None,
            factor if factor > 0 else None,
            None if withheld else configs,
        )
    if _skip_tags(data, at) != len(data):
        raise ValueError(_WRONG_LENGTH)
    return Answers(throttle, results)


class _DescribeHeader(RequestHeader, init=False):  # type: ignore[misc, call-arg]  # untyped
    parse_answer = staticmethod(parse_described)


class _CreateHeader(RequestHeader, init=False):  # type: ignore[misc, call-arg]  # untyped
    parse_answer = staticmethod(parse_created)


class _EncodedRequest:
    """A request whose content is encoded when it is made."""

    data: bytes
    _header: Any

    def encode(self, version: Any = None, header: bool = False, framed: bool = False) -> bytes:
        data = self.data
        if header:
            data = bytes(self._header.encode(flexible=True)) + data
        return len(data).to_bytes(4, "big") + data if framed else data


class OwnConfigs(_EncodedRequest, DescribeConfigsRequest, init=False):  # type: ignore[misc, call-arg]  # untyped
    """A DescribeConfigs request for all configs of these topics, without synonyms and
    documentation, whose answer is `Answers`."""

    header_class = _DescribeHeader

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(min_version=VERSION, max_version=VERSION)
        rows = [_encode_number(len(names) + 1)]
        for name in names:
            text = name.encode()
            rows.append(TOPIC.to_bytes(1, "big") + _encode_number(len(text) + 1) + text + b"\0\0")
        self.data = b"".join(rows) + b"\0\0\0"


class NamedTopics(_EncodedRequest, MetadataRequest, init=False):  # type: ignore[misc, call-arg]  # untyped
    """A Metadata request for these topics. operations: ask also for our rights on each."""

    def __init__(self, names: Sequence[str], operations: bool) -> None:
        super().__init__(min_version=METADATA_VERSION)
        rows = [_encode_number(len(names) + 1)]
        for name in names:
            text = name.encode()
            rows.append(b"\0" * 16 + _encode_number(len(text) + 1) + text + b"\0")  # no id, no tags
        # The first flag is allow_auto_topic_creation. Without it as False, a broker with
        # auto.create.topics.enable, which is Kafka's default, creates each topic that it is asked
        # about.
        self.data = b"".join(rows) + bytes((False, operations, 0))


class NewTopics(CreateTopicsRequest, init=False):  # type: ignore[misc, call-arg]  # untyped
    """A CreateTopics request of at least CREATE_VERSION, whose answer is `Answers`."""

    header_class = _CreateHeader


def describe_own(
    wire: Wire, names: Sequence[str], timeout: float, node: str | None = None
) -> Mapping[str, ItemAnswer]:
    """The overrides of these topics, by name. timeout: seconds. Raises the errors of `Wire.send`;
    Unsupported if the broker does not have this version."""
    answers: Answers = wire.send(OwnConfigs(names), timeout, node)
    return answers.results


def _encode_number(number: int) -> bytes:
    """An unsigned varint, which `_parse_number` decodes."""
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)


def _parse_entries(
    data: bytes, at: int, usual: dict[int, bytes], details: bool = False
) -> tuple[tuple[ConfigEntry, ...] | None, int]:
    """The overrides of one topic, None for a null list, and the position after all entries.
    usual: position in the list -> the bytes of the last entry there that was no override; details:
    whether synonyms, type and documentation follow in each entry."""
    # Everything waits for this loop, which runs for each config of each topic. Lengths are almost
    # always one byte, so they are decoded here, without a call of `_parse_number`.
    entries = []
    count, at = _parse_number(data, at)
    for index in range(count - 1):
        # A broker lists the configs of all topics in the same order, and most values are defaults.
        # The same bytes at the beginning of an entry are the same entry, since it says itself how
        # long it is.
        skipped = usual.get(index)
        if skipped is not None and data.startswith(skipped, at):
            at += len(skipped)
            continue
        begin = at
        size = data[at]
        size, at = (size, at + 1) if size < 128 else _parse_number(data, at)
        at += size - 1
        size = data[at]
        size, at = (size, at + 1) if size < 128 else _parse_number(data, at)
        at += size - 1 if size else 0
        flags = at  # read_only, config_source, is_sensitive
        at += 3
        if details:
            at = _skip_details(data, at)
        at = _skip_tags(data, at)
        if data[flags + 1] == OWN:
            name, value_at = _parse_text(data, begin)
            value, _ = _parse_text(data, value_at)
            sensitive, read_only = bool(data[flags + 2]), bool(data[flags])
            # Thousands of topics have the same few names and values.
            name, value = intern(name or ""), None if value is None else intern(value)
            entries.append(ConfigEntry(name, value, OWN, None, sensitive, read_only))
        else:
            usual[index] = data[begin:at]
    return (tuple(entries) if count else None), at


def _skip_details(data: bytes, at: int) -> int:
    """The position after the synonyms, the type and the documentation of an entry."""
    count, at = _parse_number(data, at)
    for _ in range(count - 1):
        _, at = _parse_text(data, at)
        _, at = _parse_text(data, at)
        at = _skip_tags(data, at + 1)
    size, at = _parse_number(data, at + 1)
    return at + (size - 1 if size else 0)


def _parse_config_error(data: bytes, at: int) -> tuple[int, int]:
    """topicConfigErrorCode (tag 0), 0 without it, and the position after all tags. Another code
    means that the configs are withheld."""
    error = 0
    count, at = _parse_number(data, at)
    for _ in range(count):
        tag, at = _parse_number(data, at)
        size, at = _parse_number(data, at)
        if tag == 0:
            error = int.from_bytes(data[at : at + size], "big", signed=True)
        at += size
    return error, at


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
