"""A Kafka whose metadata is in ZooKeeper: the same users, and nothing that others could read."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from msgspec.structs import replace

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.progress import Event, Message, ignore_event
from kafkaform.sandbox import process
from kafkaform.sandbox.brokers import SandboxState
from kafkaform.sandbox.record import Sandbox, SandboxOptions
from kafkaform.sandbox.versions import NO_ZOOKEEPER, find_newest

from ...kit.kafka.versions import require_java
from .test_sandbox import admin, create_topic, invoke, replicas_of

pytestmark = pytest.mark.timeout(600)
VERSION = find_newest(NO_ZOOKEEPER)
OLD = SandboxOptions(kafka_version=VERSION, zookeeper=True, ready_within=240.0)
"""A busy computer is no failure."""


@pytest.fixture(autouse=True, scope="module")
def old_java() -> None:
    """Without a Java for Kafka 3, none of this can be run."""
    require_java(VERSION)


@pytest.fixture(scope="module")
def old(module_home: Path, own_brokers: None, old_java: None) -> Iterator[Sandbox]:
    """A broker that the tests of this module share."""
    wanted = replace(OLD, name="old", tls=True)
    yield sandbox.up(wanted, count_brokers, ignore_event)
    sandbox.down("old")


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_admin_may_and_ci_may_not(old: Sandbox, mechanism: str, tls: bool) -> None:
    """Both users log in with every mechanism, also over TLS; only the super user creates topics."""
    name = f"by-{mechanism}-{tls}"
    create_topic(admin(old, "admin", old.admin_password, mechanism, tls), name)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        create_topic(admin(old, "ci", old.ci_password, mechanism, tls), f"{name}-ci")


def test_status_counts_both_and_knows_the_cluster(old: Sandbox) -> None:
    """The id of the cluster is the one that the broker got from ZooKeeper."""
    client = admin(old, "admin", old.admin_password, "PLAIN")
    assert old.cluster_id == client.describe_cluster(request_timeout=60).result().cluster_id
    shown = " ".join(invoke("status", "--name", "old").split())
    assert f"kafka {VERSION}, with ZooKeeper" in shown and "state running" in shown
    assert len(old.list_processes()) == 2


def test_zookeeper_answers_nobody_without_a_login(old: Sandbox) -> None:
    """Any local user can connect to it, and could read credentials and write ACLs."""
    with socket.create_connection(("127.0.0.1", old.brokers[0].ports.controller), 60) as one:
        hello = struct.pack(">iqiqi16s", 0, 0, 30_000, 0, 16, bytes(16))
        one.sendall(struct.pack(">i", len(hello)) + hello)
        assert read_frame(one)
        list_root = struct.pack(">iii1s?", 1, 8, 1, b"/", False)
        one.sendall(struct.pack(">i", len(list_root)) + list_root)
        answer = read_frame(one)
        # xid, zxid, error: session closed because the client must log in with SASL.
        assert not answer or struct.unpack_from(">iqi", answer)[2] == -124


def read_frame(connection: socket.socket) -> bytes:
    """The next answer, empty if the connection was closed."""
    with connection.makefile("rb") as stream:
        size = stream.read(4)
        return stream.read(struct.unpack(">i", size)[0]) if size else b""


@pytest.mark.usefixtures("own_brokers")
def test_kept_data_survives_a_crash(home: Path) -> None:
    """After a crash `up` waits until ZooKeeper has noticed; after `down`, it has nothing to wait
    for. The cluster stays the same."""
    wanted = replace(OLD, name="kept", keep_data=True)
    box = sandbox.up(wanted, count_brokers, ignore_event)
    told: list[Event] = []
    try:
        create_topic(admin(box, "admin", box.admin_password, "SCRAM-SHA-256"), "precious")
        stopped = sandbox.down("kept")
        assert stopped is not None and stopped.data_kept and len(stopped.ended) == 2
        again = sandbox.up(wanted, count_brokers, told.append)
        assert not any(isinstance(each, Message) and "waiting" in each.text for each in told)
        process.end_processes(again.list_processes(), grace=0)
        assert sandbox.read_status("kept").state is SandboxState.CRASHED
        third = sandbox.up(wanted, count_brokers, told.append)
        assert any(isinstance(each, Message) and "waiting" in each.text for each in told)
        client = admin(third, "admin", third.admin_password, "SCRAM-SHA-256")
        assert replicas_of(client, "precious") == [1]
        assert third.cluster_id == again.cluster_id == box.cluster_id
    finally:
        sandbox.down("kept", keep_data=False)
    assert not any(map(process.is_alive, third.list_processes()))
    assert not box.folder.exists()


@pytest.mark.usefixtures("own_brokers")
def test_without_an_authorizer_everybody_may_do_everything(home: Path) -> None:
    """Who can log in creates topics, and the provider block names no authorizer."""
    wanted = replace(OLD, name="open", authorizer=False)
    box = sandbox.up(wanted, count_brokers, ignore_event)
    try:
        create_topic(admin(box, "ci", box.ci_password, "PLAIN"), "anybodys")
        assert "authorizer" not in invoke("env", "--name", "open")
    finally:
        sandbox.down("open")
