"""A broker that means harm, or is broken: whatever it answers, nothing crashes, hangs or grows."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaError
from kafka.protocol.admin import CreateTopicsResponse, DescribeConfigsResponse

from kafkaform.core.resource import Fault as ResourceFault
from kafkaform_kafka.connection.settings import make_client_config
from kafkaform_kafka.kinds.context import attempt
from kafkaform_kafka.memory import throttled_items
from kafkaform_kafka.wire.client import RequestNotSent, RequestUnanswered, Wire
from kafkaform_kafka.wire.fast_decoding import OWN, VERSION, parse_created, parse_described
from kafkaform_kafka.wire.security import describe_acls

from ...kit.kafka.sessions import connect, login
from ...kit.proxy.faults import Fault
from ...kit.proxy.frames import Asked
from ...kit.proxy.proxy import Proxy, proxying
from ...kit.simulated.engine import apply, desired, topic
from ...kit.simulated.managed_topics import built, codes
from .siege import besiege

SEED = 20261122
FRAMES = 60
"""So many changed answers in every run; the long form has 300."""


@pytest.fixture(scope="module")
def proxy(broker: Any) -> Iterator[Proxy]:
    """Before the run's broker."""
    with proxying(int(broker.bootstrap.rpartition(":")[2])) as proxy:
        yield proxy


def test_no_answer_breaks_a_reading(broker: Any, proxy: Proxy) -> None:
    """Every kind is listed and read while answers are cut, grown, flipped, counted wrongly, named
    twice or not at all, full of control characters, errors that nobody knows or 10 MiB: each
    reading ends with what was read, or a fault with a class."""
    siege = besiege(broker, proxy, Random(SEED), FRAMES)
    assert siege.crashed == []
    assert len(siege.struck) >= FRAMES


def test_an_answer_without_sense_is_not_waited_for(broker: Any, proxy: Proxy) -> None:
    """An answer that cannot be decoded is lost when it comes, not when the time is over."""
    session = connect(broker, "admin", servers=(proxy.bootstrap,))
    proxy.arm(Fault("DescribeAcls", "garbage", times=3))  # a read is tried again
    with pytest.raises(RequestUnanswered, match="makes no sense") as lost:
        describe_acls(session.context.wire, 60.0)
    assert not lost.value.timed_out
    proxy.disarm()
    session.close()


def test_an_answer_with_an_endless_number(broker: Any, proxy: Proxy) -> None:
    """A megabyte of bytes that all say that the number goes on is refused as it comes: reading it
    would take the client's only thread hours, and no timeout would end that."""
    session = connect(broker, "admin", servers=(proxy.bootstrap,))
    proxy.tamper = lambda request, data: data[:9] + b"\xff" * 1_000_000
    with pytest.raises((RequestUnanswered, RequestNotSent), match="does not end"):
        describe_acls(session.context.wire, 5.0)
    proxy.tamper = None
    session.close()


@pytest.mark.parametrize("api", ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "Metadata"])
def test_a_beginning_with_an_endless_number(broker: Any, proxy: Proxy, api: str) -> None:
    """The same of what kafka-python asks first, even before the login: it does not read on and on
    behind our back, but tries again."""
    struck: list[str] = []

    def tamper(request: Asked, data: bytes) -> bytes:
        if request.api != api:
            return data
        struck.append(api)
        return data[:4] + b"\xff" * 900_000

    proxy.tamper = tamper
    try:
        with pytest.raises(RequestNotSent, match="Unable to bootstrap"):
            Wire(make_client_config(login(broker, "admin", servers=(proxy.bootstrap,))), 1)
    finally:
        proxy.tamper = None
    assert len(struck) > 1


def test_what_the_client_asks_on_its_own(broker: Any, proxy: Proxy) -> None:
    """kafka-python asks for the brokers when it begins, from time to time, and after each lost
    connection: while it reads that answer, nobody else is served."""
    session = connect(broker, "admin", servers=(proxy.bootstrap,))
    manager = session.context.wire._pool
    proxy.tamper = lambda request, data: (
        data[:9] + b"\xff" * 1_000_000 if request.api == "Metadata" else data
    )
    with pytest.raises(KafkaError, match="does not end"):
        manager.run(manager.cluster.refresh_metadata)
    proxy.tamper = None
    assert describe_acls(session.context.wire, 60.0) is not None
    session.close()


def test_a_broker_that_asks_for_weeks() -> None:
    """A throttle that is longer than anybody would wait is not waited for: the create failed,
    and its intent is closed."""
    where = built(desired(topic("z")))
    where.cluster.faults.schedule(throttled_items(2_147_483.0), "CreateTopics", times=99)
    start = where.clock.monotonic()
    done = apply(where, desired(topic("z"), topic("a")))
    assert codes(done) == {"a#1": "THROTTLING_QUOTA_EXCEEDED"}
    assert where.clock.monotonic() - start < 1_000
    assert where.index.open_intents == ()


def test_a_broker_that_wants_no_requests_for_now(broker: Any, proxy: Proxy) -> None:
    """An answer asks for a pause (KIP-219) that is longer than the patience of the next request:
    that one was not sent because of it, so it is sent later, and goes through after the pause."""
    session = connect(broker, "admin", servers=(proxy.bootstrap,))
    wire = session.context.wire
    proxy.arm(Fault("DescribeAcls", "pause", seconds=4.0))
    assert describe_acls(wire, 60.0) is not None
    fault = attempt("DescribeAcls", lambda: describe_acls(wire, 1.0))
    assert isinstance(fault, ResourceFault) and fault.is_for_now
    assert "throttles this client" in fault.message
    assert not isinstance(attempt("DescribeAcls", lambda: describe_acls(wire, 60.0)), ResourceFault)
    session.close()


@pytest.mark.parametrize(("parse", "version"), [(parse_described, VERSION), (parse_created, 7)])
def test_a_number_without_an_end(parse: Any, version: int) -> None:
    """The short way to read configs ends at the sixth byte of a number of variable size: it would
    take hours for a frame full of them."""
    with pytest.raises(ValueError, match="no end"):
        parse(bytes(4) + b"\xff" * 5_000_000, version)


@given(st.binary(max_size=200), st.integers(0, 200), st.binary(max_size=12))
def test_no_bytes_break_the_short_way(noise: bytes, at: int, put: bytes) -> None:
    """Any bytes, and any place of a real answer with others in it, are read or refused with the
    two errors that are made a fault of the answer."""
    result = DescribeConfigsResponse.DescribeConfigsResult
    entry = result.DescribeConfigsResourceResult
    topic = CreateTopicsResponse.CreatableTopicResult
    own, usual = {"name": "retention.ms", "config_source": OWN}, {"name": "a", "config_source": 5}
    described = DescribeConfigsResponse(
        throttle_time_ms=0,
        results=[
            result(
                error_code=0,
                resource_type=2,
                resource_name=name,
                configs=[entry(**each, value="1", synonyms=[]) for each in (usual, own)],
            )
            for name in "tu"
        ],
    )
    created = CreateTopicsResponse(
        throttle_time_ms=0,
        topics=[
            topic(
                name=name,
                topic_id=UUID(int=1),
                error_code=0,
                configs=[topic.CreatableTopicConfigs(**each, value="1") for each in (usual, own)],
            )
            for name in "tu"
        ],
    )
    for answer, version, parse in (
        (described, VERSION, parse_described),
        (created, 7, parse_created),
    ):
        data = bytes(answer.encode(version=version))
        for each in (noise, data[:at] + put + data[at:], data[:at] + put + data[at + len(put) :]):
            try:
                parse(each, version)
            except (IndexError, ValueError):
                continue
