"""Configs that are read the short way are those that kafka-python reads."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.admin import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from kafka.protocol.metadata import MetadataRequest
from msgspec.structs import replace

from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.answers import ConfigEntry, ItemAnswer, id_text
from kafkaform_kafka.wire.client import RequestUnanswered
from kafkaform_kafka.wire.configs import describe_configs
from kafkaform_kafka.wire.fast_decoding import (
    CREATE_VERSION,
    OWN,
    VERSION,
    Answers,
    NamedTopics,
    OwnConfigs,
    describe_own,
    parse_created,
    parse_described,
)
from kafkaform_kafka.wire.topics import create_topics, delete_topics

from ....kit.kafka.sessions import eventually
from ....kit.quick import examples

RESULT = DescribeConfigsResponse.DescribeConfigsResult
ENTRY = RESULT.DescribeConfigsResourceResult
SYNONYM = ENTRY.DescribeConfigsSynonym
CREATED = CreateTopicsResponse.CreatableTopicResult
SETTING = CREATED.CreatableTopicConfigs
CREATE_VERSIONS = st.integers(CREATE_VERSION, 7)

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
made_entries = st.builds(
    lambda name, value, source, sensitive, locked: SETTING(
        name=name,
        value=value,
        read_only=locked,
        config_source=source,
        is_sensitive=sensitive,
    ),
    texts,
    st.none() | texts,
    st.integers(-1, 8),
    st.booleans(),
    st.booleans(),
)
made_topics = st.builds(
    lambda name, topic_id, code, message, withheld, partitions, factor, configs: CREATED(
        name=name,
        topic_id=topic_id,
        error_code=code,
        error_message=message,
        num_partitions=partitions,
        replication_factor=factor,
        configs=configs,
        **withheld,
    ),
    texts,
    st.uuids() | st.just(UUID(int=0)),
    st.integers(-1, 133),
    st.none() | texts,
    st.just({}) | st.builds(lambda code: {"topic_config_error_code": code}, st.integers(-1, 133)),
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**15 - 1),
    st.none() | st.lists(made_entries, max_size=6),
)
# Topics of one cluster list the same configs, of which each overrides some.
similar_topics = st.builds(
    lambda rows: [
        CREATED(
            name=str(number),
            topic_id=UUID(int=number),
            error_code=0,
            configs=[
                SETTING(name=f"key.{at}", value=value, config_source=source)
                for at, (value, source) in enumerate(row)
            ],
        )
        for number, row in enumerate(rows)
    ],
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(("1", "2", "12")), st.sampled_from((OWN, 4, 5))), max_size=4
        ),
        max_size=6,
    ),
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
    found = parse_described(encoded(rows, throttle), VERSION)
    assert said(found.results) == expected(rows)
    assert found.throttle_time_ms == throttle


def encode_created(rows: list[Any], version: int, throttle: int = 0) -> bytes:
    message = CreateTopicsResponse(throttle_time_ms=throttle, topics=rows)
    return bytes(message.encode(version=version))


def decode_the_long_way(data: bytes, version: int) -> Answers:
    """What kafka-python reads in an answer of CreateTopics."""
    return convert_created(CreateTopicsResponse[version].decode(data))


def convert_created(answer: Any) -> Answers:
    """kafka-python's own objects in the form of the short way."""
    return Answers(
        answer.throttle_time_ms,
        {
            row.name: ItemAnswer(
                row.error_code,
                row.error_message,
                id_text(row.topic_id) if answer.API_VERSION >= 7 else None,
                row.num_partitions if row.num_partitions > 0 else None,
                row.replication_factor if row.replication_factor > 0 else None,
                None
                if row.topic_config_error_code or row.configs is None
                else tuple(
                    ConfigEntry(e.name, e.value, OWN, None, e.is_sensitive, e.read_only)
                    for e in row.configs
                    if e.config_source == OWN
                ),
            )
            for row in answer.topics
        },
    )


@settings(max_examples=examples(60))
@given(
    st.lists(made_topics, max_size=4) | similar_topics, CREATE_VERSIONS, st.integers(0, 2**31 - 1)
)
def test_created_topics_are_read_as_kafka_python_reads_them(
    rows: list[Any], version: int, throttle: int
) -> None:
    """Ids, counts, withheld configs, fields that nobody knows, and topics that list the same
    entries as the one before."""
    data = encode_created(rows, version, throttle)
    assert parse_created(data, version) == decode_the_long_way(data, version)


@pytest.mark.parametrize("size", [126, 127, 128, 300])
def test_many_created_topics_with_many_configs(size: int) -> None:
    """Counts and lengths of one byte and of two."""
    configs = [
        SETTING(name="k" * size, value="v" * size, config_source=5 - n % 5) for n in range(size)
    ]
    rows = [CREATED(name=f"t{n}", topic_id=UUID(int=n), configs=configs) for n in range(size)]
    data = encode_created(rows, 7)
    assert parse_created(data, 7) == decode_the_long_way(data, 7)


@given(st.lists(results, min_size=1, max_size=2), st.data())
def test_an_answer_that_ends_early_is_refused(rows: list[Any], data: st.DataObject) -> None:
    """The connection takes these two errors for an answer without sense."""
    whole = encoded(rows)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises((ValueError, IndexError)):  # also UnicodeDecodeError, which is one
        parse_described(cut, VERSION)


@given(st.lists(made_topics, min_size=1, max_size=2) | similar_topics, CREATE_VERSIONS, st.data())
def test_created_topics_that_end_early_are_refused(
    rows: list[Any], version: int, data: st.DataObject
) -> None:
    """Also in the middle of an entry that is known from the topic before."""
    whole = encode_created(rows, version)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises((ValueError, IndexError)):
        parse_created(cut, version)


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f"])
@pytest.mark.parametrize("at", [4, 5, 25, 32, 33, 34, 39])
def test_lengths_beyond_the_answer_are_refused_at_once(at: int, length: bytes) -> None:
    """The highest ones that there are, in place of a count, a name, a message, a value and tags."""
    configs = [SETTING(name="a", value="1", config_source=5)]
    data = encode_created([CREATED(name="t", topic_id=UUID(int=1), configs=configs)], 7)
    assert data[:4] + data[4:7] == bytes(4) + b"\x02\x02t"
    with pytest.raises((ValueError, IndexError)):
        parse_created(data[:at] + length + data[at + 1 :], 7)


def test_fields_of_later_releases_are_stepped_over() -> None:
    """Tags that nobody knows (KIP-482), in entries, in topics beside the one that is known, and in
    the answer."""
    tags = b"\x02\x05\x01x\x81\x02\x02yz"  # 5: x, 257: yz
    own, usual = b"\x02a\x021\0\x01\0" + tags, b"\x02b\x022\0\x05\0" + tags
    topics = [
        name + bytes(15) + b"\x01\0\0\0\0\0\0\x02\0\x01\x03" + own + usual + after
        for name, after in ((b"\x02t", tags), (b"\x02u", b"\x02\0\x02\0\x1d\x05\x01x"))
    ]
    data = bytes(4) + b"\x03" + b"".join(topics) + tags
    found = parse_created(data, 7)
    assert found == decode_the_long_way(data, 7)
    assert found.results["u"].configs is None
    assert found.results["t"].configs == (ConfigEntry("a", "1", OWN),)


def test_more_bytes_than_the_answer_has_are_refused() -> None:
    """What follows the last field can be a sign that something before it was read wrongly."""
    with pytest.raises(ValueError, match="another length"):
        parse_created(encode_created([CREATED(name="t")], 7) + b"\0", 7)


@given(many)
def test_the_request_is_what_kafka_python_would_send(names: list[str]) -> None:
    """Byte for byte, with lengths of one byte and of two."""
    row = DescribeConfigsRequest.DescribeConfigsResource
    rows = [row(resource_type=2, resource_name=n, configuration_keys=None) for n in names]
    request = DescribeConfigsRequest(
        resources=rows, include_synonyms=False, include_documentation=False
    )
    assert OwnConfigs(names).encode() == bytes(request.encode(version=VERSION))


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
    assert NamedTopics(names, operations).encode() == bytes(request.encode(version=version))


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


def test_a_broker_tells_what_it_would_make_both_ways_the_same(
    admin: KafkaSession, prefix: str
) -> None:
    """Overrides, none, a refused value: answers to the same dry run, but for the ids, which are
    drawn anew for each of them."""
    wire, row = admin.context.wire, CreateTopicsRequest.CreatableTopic
    asked = {
        f"{prefix}-made": {"retention.ms": "9", "cleanup.policy": "compact"},
        f"{prefix}-bare": {},
        f"{prefix}-refused": {"retention.ms": "x"},
    }
    topics = [
        {
            "name": name,
            "partitions": 2,
            "replication_factor": 1,
            "assignment": None,
            "configs": configs,
        }
        for name, configs in asked.items()
    ]
    short = create_topics(wire, topics, 20, validate_only=True).items
    request = CreateTopicsRequest(
        topics=[
            row(
                name=name,
                num_partitions=2,
                replication_factor=1,
                assignments=[],
                configs=[row.CreatableTopicConfig(name=k, value=v) for k, v in configs.items()],
            )
            for name, configs in asked.items()
        ],
        timeout_ms=20_000,
        validate_only=True,
        min_version=7,
    )
    long = convert_created(wire.send(request, 20)).results
    assert {name: replace(item, topic_id=None) for name, item in short.items()} == {
        name: replace(item, topic_id=None) for name, item in long.items()
    }
    made, bare, refused = (short[name] for name in asked)
    assert {(e.name, e.value) for e in made.configs or ()} == set(asked[f"{prefix}-made"].items())
    assert (made.partitions, made.replication_factor, made.code) == (2, 1, 0)
    assert bare.configs == () and made.topic_id != bare.topic_id is not None
    assert refused.code == 40 and refused.message


def test_a_config_without_a_name_is_no_answer() -> None:
    """kafka-python's decoder lets it pass; a read of it fails, and nothing else does."""
    nameless = [SimpleNamespace(name=None, config_source=OWN)]
    row = SimpleNamespace(resource_name="t", error_code=0, error_message=None, configs=nameless)
    wire: Any = SimpleNamespace(send=lambda *_: SimpleNamespace(results=[row]))
    with pytest.raises(RequestUnanswered, match="has no name"):
        describe_configs(wire, "topic", ["t"], 1)
