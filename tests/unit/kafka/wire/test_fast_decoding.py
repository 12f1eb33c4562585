"""Configs that are read the short way are those that kafka-python reads."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.metadata import MetadataRequest

from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.answers import ItemAnswer
from kafkaform_kafka.wire.client import RequestUnanswered
from kafkaform_kafka.wire.configs import describe_configs
from kafkaform_kafka.wire.fast_decoding import (
    OWN,
    VERSION,
    _parse_answers,
    _Response,
    describe_own,
    encode_describe_request,
    encode_metadata_request,
)
from kafkaform_kafka.wire.topics import create_topics, delete_topics

from ....kit.kafka.sessions import eventually
from ....kit.quick import examples

RESULT = DescribeConfigsResponse.DescribeConfigsResult
ENTRY = RESULT.DescribeConfigsResourceResult
SYNONYM = ENTRY.DescribeConfigsSynonym

many = st.lists(st.text(max_size=9), max_size=9) | st.sampled_from((["t"] * 130, ["é" * 130]))
texts = st.text(max_size=4) | st.integers(60, 70).map(lambda n: "é" * n)
synonyms = st.builds(
    lambda name, value, source: SYNONYM(name=name, value=value, source=source),
    texts,
    st.none() | texts,
    st.integers(1, 8),
)
entries = st.builds(
    lambda name, value, source, sensitive, locked, below, kind, doc: ENTRY(
        name=name,
        value=value,
        read_only=locked,
        config_source=source,
        is_sensitive=sensitive,
        synonyms=below,
        config_type=kind,
        documentation=doc,
    ),
    texts,
    st.none() | texts,
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
    st.lists(synonyms, max_size=3),
    st.integers(0, 9),
    st.none() | texts,
)
bare = st.builds(
    lambda name, value: ENTRY(name=name, value=value, config_source=OWN, synonyms=[]),
    st.text(max_size=3),
    st.none() | st.text(max_size=3),
)
results = st.builds(
    lambda code, message, name, configs: RESULT(
        error_code=code, error_message=message, resource_type=2, resource_name=name, configs=configs
    ),
    st.integers(-1, 133),
    st.none() | texts,
    texts,
    st.lists(entries, max_size=6) | st.lists(bare, min_size=127, max_size=129),
)


def encoded(rows: list[Any], throttle: int = 0) -> bytes:
    message = DescribeConfigsResponse(throttle_time_ms=throttle, results=rows)
    return bytes(message.encode(version=VERSION))


def expected(rows: list[Any]) -> Mapping[str, Any]:
    """What an answer says, taken from the objects that it was made of."""
    return {
        row.resource_name: (
            row.error_code,
            row.error_message,
            [
                (entry.name, entry.value, entry.is_sensitive, entry.read_only)
                for entry in row.configs
                if entry.config_source == OWN
            ],
        )
        for row in rows
    }


def said(answers: Mapping[str, ItemAnswer]) -> dict[str, Any]:
    return {
        name: (
            answer.code,
            answer.message,
            [(e.name, e.value, e.sensitive, e.read_only) for e in answer.configs or ()],
        )
        for name, answer in answers.items()
    }


@settings(max_examples=examples(40))
@given(st.lists(results, max_size=3), st.integers(0, 2**31 - 1))
def test_any_answer_is_read_as_it_was_written(rows: list[Any], throttle: int) -> None:
    """Names, values, errors and lengths of every size, next to entries that are stepped over."""
    found = _parse_answers(encoded(rows, throttle), OWN)
    assert said(found.results) == expected(rows)
    assert found.throttle_time_ms == throttle


@given(st.lists(results, min_size=1, max_size=2), st.data())
def test_an_answer_that_ends_early_is_refused(rows: list[Any], data: st.DataObject) -> None:
    """kafka-python turns a ValueError into a lost answer; nothing else may come out."""
    whole = encoded(rows)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(ValueError):  # also UnicodeDecodeError, which is one
        _Response(OWN).decode(BytesIO(cut))


@given(many)
def test_the_request_is_what_kafka_python_would_send(names: list[str]) -> None:
    """Byte for byte, with lengths of one byte and of two."""
    row = DescribeConfigsRequest.DescribeConfigsResource
    rows = [row(resource_type=2, resource_name=n, configuration_keys=None) for n in names]
    request = DescribeConfigsRequest(
        resources=rows, include_synonyms=False, include_documentation=False
    )
    assert encode_describe_request(names) == bytes(request.encode(version=VERSION))


@given(many, st.booleans(), st.integers(11, 13))
def test_metadata_is_asked_as_kafka_python_would_ask(
    names: list[str], operations: bool, version: int
) -> None:
    """Byte for byte, in every version that a broker may choose."""
    row = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=[row(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=operations,
    )
    assert encode_metadata_request(names, operations) == bytes(request.encode(version=version))


def test_a_broker_tells_both_ways_the_same(admin: KafkaSession, prefix: str) -> None:
    """Overrides, none, a missing topic: the short way against the long one."""
    wire, names = admin.context.wire, [prefix, f"{prefix}-bare"]
    made = create_topics(
        wire,
        [
            {
                "name": name,
                "partitions": 1,
                "replication_factor": 1,
                "assignment": None,
                "configs": {} if name.endswith("bare") else {"retention.ms": "9"},
            }
            for name in names
        ],
        20,
        validate_only=False,
    )
    asked = [*names, "there-is-no-such-topic"]
    short = eventually(lambda: said(describe_own(wire, asked, 10)), lambda s: s[names[0]][2])
    long = said(describe_configs(wire, "topic", asked, 10, source=OWN))
    assert short == long
    assert [row[2] for row in short.values()] == [[("retention.ms", "9", False, False)], [], []]
    delete_topics(wire, [answer.topic_id or "" for answer in made.items.values()], 20)


def test_a_config_without_a_name_is_no_answer() -> None:
    """kafka-python's decoder lets it pass; a read of it fails, and nothing else does."""
    nameless = [SimpleNamespace(name=None, config_source=OWN)]
    row = SimpleNamespace(resource_name="t", error_code=0, error_message=None, configs=nameless)
    wire: Any = SimpleNamespace(send=lambda *_: SimpleNamespace(results=[row]))
    with pytest.raises(RequestUnanswered, match="has no name"):
        describe_configs(wire, "topic", ["t"], 1)
