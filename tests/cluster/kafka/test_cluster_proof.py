"""Who answers is asked on each connection and around each write, by both clients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol import admin as requests
from kio.schema.errors import ErrorCode

from kafkaform.core.errors import ConnectError, OtherSystem, exit_code
from kafkaform_kafka import wire
from kafkaform_kafka.connection.settings import ClusterProof
from kafkaform_kafka.protocol.apis import APIS
from kafkaform_kafka.session import KafkaSession, open_session
from kafkaform_kafka.wire import groups, security
from kafkaform_kafka.wire.client import CHANGES
from kafkaform_kafka.wire.configs import describe_quotas
from kafkaform_kafka.wire.topics import create_topics

from ...kit.kafka.sessions import gone, login
from ...kit.proxy.frames import Asked, answer, answered
from ...kit.proxy.proxy import Proxy, proxying
from ...reliability.network.test_faults import _elsewhere

OTHER = "another-cluster-000000"
PROOF = {"ApiVersions", "SaslHandshake", "SaslAuthenticate", "DescribeCluster"}
"""What a connection carries until the cluster behind it is proven. One that was about to open can
do so at any time."""
TIMEOUT = 10.0


@pytest.fixture
def proxy(broker: Any) -> Iterator[Proxy]:
    """The broker behind an address that may come to lead elsewhere."""
    with proxying(int(broker.bootstrap.rpartition(":")[2])) as made:
        yield made


@pytest.fixture
def session(broker: Any, proxy: Proxy) -> Iterator[KafkaSession]:
    """A session behind it."""
    opened = open_session(login(broker, "admin", servers=(proxy.bootstrap,)))
    yield opened
    opened.close()


def written(proxy: Proxy) -> list[str]:
    """Requests that change something and came."""
    return [passed.request.api for passed in proxy.passed if passed.request.writes]


def create(session: KafkaSession, name: str) -> None:
    payload = {"name": name, "partitions": 1, "replication_factor": 1}
    whole = {**payload, "assignment": None, "configs": {}}
    create_topics(session.context.wire, [whole], TIMEOUT, validate_only=False)


def test_a_write_is_not_sent_to_another_cluster(
    session: KafkaSession, proxy: Proxy, prefix: str
) -> None:
    """A connection that is open comes to lead to another cluster: the write is not sent, the error
    names both clusters, the address and the instance, and from then on nothing is sent at all, but
    for what proves a connection that was about to open."""
    proxy.arm()
    proxy.tamper = _elsewhere
    with pytest.raises(OtherSystem) as refused:
        create(session, prefix)
    assert written(proxy) == []
    assert refused.value.message == (
        f'{proxy.bootstrap} answers as cluster {OTHER}, and provider instance "kafka" was opened '
        f"for cluster {session.facts.scope_id}"
    )
    assert exit_code(refused.value) == 4
    proxy.tamper = None
    proxy.arm()
    for call in (session.prove, lambda: describe_quotas(session.context.wire, TIMEOUT)):
        with pytest.raises(OtherSystem):
            call()
    assert {passed.request.api for passed in proxy.passed} <= PROOF


def test_an_answer_of_another_cluster_is_not_believed(
    session: KafkaSession, proxy: Proxy, prefix: str
) -> None:
    """It begins to answer between the question who is there and the write: what it says of the
    write is no outcome."""
    asked: list[str] = []

    def later(request: Asked, data: bytes) -> bytes:
        asked.append(request.api)
        return _elsewhere(request, data) if "CreateTopics" in asked else data

    proxy.arm()
    proxy.tamper = later
    with pytest.raises(OtherSystem):
        create(session, prefix)
    sent = asked.index("CreateTopics")
    before, after = asked[:sent], asked[sent + 1 :]
    assert "DescribeCluster" in before and "DescribeCluster" in after
    assert {*before, *after} <= PROOF


def test_what_was_read_is_proven(session: KafkaSession, proxy: Proxy) -> None:
    """`prove` asks on the open connections."""
    session.prove()
    proxy.tamper = _elsewhere
    with pytest.raises(OtherSystem):
        session.prove()


def test_a_new_connection_carries_nothing_before_its_proof(
    session: KafkaSession, proxy: Proxy
) -> None:
    """The connection is lost, and the next one leads to another cluster: it is asked for its
    version, the login and its cluster's id, and nothing else."""
    proxy.tamper = _elsewhere
    wire = session.context.wire
    pool = wire._pool
    proxy.arm()
    pool.run(lambda: [one.close() for one in pool.least_used_connections()])
    with pytest.raises(OtherSystem):
        describe_quotas(wire, TIMEOUT)
    came = {passed.request.api for passed in proxy.passed}
    assert came <= PROOF


def test_the_figures_of_a_deletion_are_proven(
    session: KafkaSession, proxy: Proxy, prefix: str
) -> None:
    """What a plan tells of records and groups counts only if the session's cluster answers after
    it, too."""
    doomed = gone(f"{prefix}none", None, 1)
    assert session.assess([doomed])
    proxy.tamper = _elsewhere
    with pytest.raises(OtherSystem):
        session.assess([doomed])


def test_a_foreign_id_is_not_taken_back() -> None:
    """The first foreign id stays, whatever comes later."""
    proof = ClusterProof("kafka.eu", "one")
    assert proof.hear("a:1", "one")
    proof.refuse()
    assert not proof.hear("b:1", "two")
    assert proof.hear("a:1", "one")
    with pytest.raises(OtherSystem, match='b:1 answers as cluster two.*"kafka.eu".*cluster one'):
        proof.refuse()


def test_every_write_is_in_the_table() -> None:
    """Each request by which `wire` changes something is proven, and each in the table is one."""
    texts = (path.read_text() for path in Path(wire.__file__).parent.glob("*.py"))
    used = {name for text in texts for name in re.findall(r"\b([A-Z]\w+)Request\b", text)}
    writing = (
        "Create",
        "Delete",
        "Alter",
        "Elect",
        "IncrementalAlter",
        "Update",
        "Add",
        "Remove",
        "Renew",
        "Expire",
        "OffsetCommit",
        "OffsetDelete",
    )
    changing = {name for name in used if name.startswith(writing)}
    assert changing == {api.name for api in APIS.values() if api.limits is not None}
    known = vars(requests) | vars(security) | vars(groups)
    assert {known[f"{name}Request"].API_KEY for name in changing} == CHANGES


def _without_the_api(request: Asked, data: bytes) -> bytes:
    if request.api != "ApiVersions":
        return data
    body = answer(request, data)
    rows = tuple(row for row in body.api_keys if row.api_key != 60)
    return answered(request, replace(body, api_keys=rows))


def _without_the_right(request: Asked, data: bytes) -> bytes:
    if request.api != "DescribeCluster":
        return data
    refused = ErrorCode.cluster_authorization_failed
    return answered(request, replace(answer(request, data), error_code=refused))


@pytest.mark.parametrize(
    ("tamper", "expected", "advice"),
    [
        (_without_the_api, "needs Kafka 2.8", "has to support DescribeCluster"),
        (_without_the_right, "a right on the cluster is missing", "allow it there"),
    ],
)
def test_whoever_does_not_answer_describe_cluster_is_named(
    broker: Any, proxy: Proxy, tamper: Any, expected: str, advice: str
) -> None:
    """The advice was to check bootstrap_servers, which are right: a proxy, or another system that
    speaks Kafka's protocol, does not let the request through."""
    proxy.tamper = tamper
    with pytest.raises(ConnectError) as refused:
        open_session(login(broker, "admin", servers=(proxy.bootstrap,)))
    assert expected in refused.value.message and proxy.bootstrap in refused.value.message
    assert advice in (refused.value.advice or "")
    assert "bootstrap_servers" not in str(refused.value.advice)
