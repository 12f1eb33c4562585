"""Kafka's frames as the proxy reads them, with kio's schemas: not those of the client under test.

A frame is a length (int32) and so many bytes. A request begins with api key, version (int16 each)
and correlation id (int32); an answer with the correlation id of its request.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

APIS = {
    2: "ListOffsets",
    3: "Metadata",
    9: "OffsetFetch",
    10: "FindCoordinator",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    55: "DescribeQuorum",
    60: "DescribeCluster",
    61: "DescribeProducers",
    74: "ListConfigResources",
}
WRITES = (
    "CreateTopics",
    "CreatePartitions",
    "IncrementalAlterConfigs",
    "AlterClientQuotas",
    "AlterUserScramCredentials",
    "CreateAcls",
    "DeleteAcls",
    "DeleteTopics",
    "AlterPartitionReassignments",
    "ElectLeaders",
)
TELLS_ADDRESSES = ("Metadata", "DescribeCluster")


@dataclass(frozen=True)
class Asked:
    """One request as it came. data: the frame without its length; dry: validate_only is set;
    body: the decoded request of those that write, else None."""

    api: str
    key: int
    version: int
    correlation: int
    data: bytes
    dry: bool = False
    body: Any = None

    @property
    def writes(self) -> bool:
        return self.api in WRITES and not self.dry


def asked(data: bytes) -> Asked:
    """Raises struct.error for what is no request."""
    key, version, correlation = struct.unpack_from(">hhi", data)
    api = APIS.get(key, f"api {key}")
    if api not in WRITES:
        return Asked(api, key, version, correlation, data)
    body = _read(load_request_schema(key, version), data[_head(data, key, version) :])
    dry = bool(getattr(body, "validate_only", False))
    return Asked(api, key, version, correlation, data, dry, body)


def read_body(request: Asked) -> Any:
    """The decoded body of a request."""
    head = _head(request.data, request.key, request.version)
    return _read(load_request_schema(request.key, request.version), request.data[head:])


def with_body(request: Asked, body: Any) -> bytes:
    """The same request with another body."""
    return request.data[: _head(request.data, request.key, request.version)] + _written(body)


def answer(request: Asked, data: bytes) -> Any:
    """The decoded answer. data: the frame without its length."""
    return _read(answer_class(request), data[_answer_head(request) :])


def answered(request: Asked, body: Any) -> bytes:
    """The frame of an answer to this request."""
    head = struct.pack(">i", request.correlation)
    return head + bytes(_answer_head(request) - len(head)) + _written(body)


def answer_class(request: Asked) -> Any:
    return load_response_schema(request.key, request.version)


def moved(request: Asked, data: bytes, ports: dict[int, int], host: str) -> bytes:
    """The answer with the listener of every broker moved. ports: where it is -> where to."""
    body = answer(request, data)
    rows = tuple(
        replace(row, host=host, port=type(row.port)(ports.get(row.port, row.port)))
        for row in body.brokers
    )
    return answered(request, replace(body, brokers=rows))


def _head(data: bytes, key: int, version: int) -> int:
    """Length of a request's header: the client's id, and no tags where there can be some."""
    (length,) = struct.unpack_from(">h", data, 8)
    flexible = load_request_schema(key, version).__flexible__
    return 10 + max(0, length) + bool(flexible)


def _answer_head(request: Asked) -> int:
    """An answer's header has a place for tags if it is flexible, but for ApiVersions' never."""
    return 5 if answer_class(request).__header_schema__.__version__ == 1 else 4


def _read(schema: Any, data: bytes) -> Any:
    return _reader(schema)(data, 0)[0]


def _written(body: Any) -> bytes:
    buffer = io.BytesIO()
    _writer(type(body))(buffer, body)
    return buffer.getvalue()


@cache
def _reader(schema: Any) -> Any:
    return entity_reader(schema)


@cache
def _writer(schema: Any) -> Any:
    return entity_writer(schema)
