"""Answers of brokers as a test writes them down, for what the product sends through a `Wire`."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from kafka.protocol import admin, consumer, metadata
from kafka.protocol.metadata import MetadataRequest

from kafkaform.core.resource import Facts
from kafkaform_kafka.inspect.source import DescribeSource
from kafkaform_kafka.protocol.cluster_facts import KafkaFacts
from kafkaform_kafka.wire import groups
from kafkaform_kafka.wire.client import RequestUnanswered, Unsupported
from kafkaform_kafka.wire.fast_decoding import NamedTopics

MODULES = (admin, consumer, metadata, groups)
LOST = RequestUnanswered("waited 10 s", timed_out=True)
TOO_OLD = Unsupported("no version in common")

Answers = Mapping[str, Mapping[str, Any]]
"""API -> broker id, or "" for any other one -> the fields of its answer, or what is raised."""


def fill(kind: Any, fields: Mapping[str, Any]) -> Any:
    """A structure of the protocol from plain data; fields that are left out have their defaults."""
    values = {}
    for name, value in fields.items():
        inner = getattr(kind.fields[name], "data_class", None)
        if inner is not None and isinstance(value, list):
            values[name] = [fill(inner, each) for each in value]
        elif inner is not None and isinstance(value, Mapping):
            values[name] = fill(inner, value)
        else:
            values[name] = value
    return kind(**values)


def read_names(request: NamedTopics) -> list[str]:
    """The topics that a request names, each with less than 127 characters."""
    names, at = [], 1
    for _ in range(request.data[0] - 1):
        start = at + 17  # behind the id and the length
        end = start + request.data[start - 1] - 1
        names.append(request.data[start:end].decode())
        at = end + 1
    return names


class ScriptedWire:
    """Answers what it was told to, and keeps the requests."""

    def __init__(self, answers: Answers) -> None:
        self.answers = {api: dict(by_node) for api, by_node in answers.items()}
        self.sent: list[tuple[str, str | None, Any]] = []

    def send(self, request: Any, timeout: float, node: str | None = None) -> Any:
        if isinstance(request, NamedTopics):
            rows = [MetadataRequest.MetadataRequestTopic(name=name) for name in read_names(request)]
            request = MetadataRequest(topics=rows)
        api = type(request).__name__.removesuffix("Request")
        assert timeout > 0
        self.sent.append((api, node, request))
        by_node = self.answers[api]
        answer = by_node.get(node or "", by_node.get(""))
        assert answer is not None, f"nobody expects {api} at {node}"
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        (kind,) = (
            getattr(module, f"{api}Response")
            for module in MODULES
            if hasattr(module, f"{api}Response")
        )
        return fill(kind, answer)


def script(
    answers: Answers, nodes: tuple[str, ...] = ("1",), rights: tuple[str, ...] = ("Describe",)
) -> tuple[DescribeSource, ScriptedWire]:
    """A cluster with these live brokers. rights: ours on the cluster."""
    rows = [{"broker_id": int(node), "host": "h", "port": 1} for node in nodes]
    wire = ScriptedWire({"DescribeCluster": {"": {"error_code": 0, "brokers": rows}}, **answers})
    facts = Facts("c", nodes, values=KafkaFacts(rights=rights))
    context: Any = SimpleNamespace(wire=wire, facts=facts, timeout=10.0)
    return DescribeSource(context, lambda *_: None), wire  # type: ignore[arg-type,return-value]
