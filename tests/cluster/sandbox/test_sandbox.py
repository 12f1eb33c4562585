"""A real Kafka, started and ended the way a user does it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from typer.testing import CliRunner

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import app, count_brokers
from kafkaform.core.errors import ConnectError, KafkaformError, UsageError
from kafkaform.core.progress import Event, Message, ignore_event
from kafkaform.sandbox import brokers, lifecycle, process
from kafkaform.sandbox.brokers import PortTaken, SandboxState
from kafkaform.sandbox.record import Ports, Sandbox, SandboxOptions

pytestmark = pytest.mark.timeout(300)  # the first run on a computer downloads 46 MB


def admin(box: Sandbox, user: str, password: str, mechanism: str, tls: bool = False) -> AdminClient:
    trust = {"ssl.ca.location": str(box.ca_file)} if tls else {}
    servers = (box.bootstrap_tls if tls else None) or box.bootstrap
    return AdminClient(
        {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "log_level": 0,
            **trust,
        }
    )


def create_topic(client: AdminClient, name: str) -> None:
    client.create_topics([NewTopic(name, 1)])[name].result(60)


def replicas_of(client: AdminClient, name: str) -> list[int]:
    """The replicas of partition 0, as soon as a broker tells: reads lag behind writes."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = client.list_topics(name, timeout=60).topics[name].partitions
        if 0 in found:
            return sorted(found[0].replicas)
        time.sleep(0.2)
    return []


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.fixture(scope="module")
def one(module_home: Path, own_brokers: None) -> Iterator[Sandbox]:
    """One broker that the tests of this module share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_HEAP_OPTS", "-Xms200m -Xmx400m")
        box = sandbox.up(
            SandboxOptions("one", config=(("num.partitions", "5"),)), count_brokers, ignore_event
        )
    yield box
    sandbox.down("one")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_admin_may_and_ci_may_not(one: Sandbox, mechanism: str) -> None:
    """Both users log in with every mechanism; only the super user creates topics."""
    name = f"by-{mechanism}"
    create_topic(admin(one, "admin", one.admin_password, mechanism), name)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        create_topic(admin(one, "ci", one.ci_password, mechanism), f"{name}-ci")


def test_status_and_env_of_a_running_sandbox(one: Sandbox) -> None:
    """`status` counts the broker and its data; `env` shows a file of a configuration,
    or the properties and exports that are asked for."""
    shown = invoke("status", "--name", "one")
    assert "running" in shown
    assert "1 of 1 alive" in shown
    assert sandbox.read_status("one").data_bytes > 0
    shown = {form: invoke("env", "--name", "one", "--format", form) for form in sandbox.Format}
    assert invoke("env", "--name", "one") == shown[sandbox.Format.PROVIDER]
    assert sandbox.locate_properties(one).read_text() == shown[sandbox.Format.PROPERTIES]
    assert f"export KAFKAFORM_SANDBOX_PASSWORD={one.admin_password}" in shown[sandbox.Format.SHELL]


def test_up_again_finds_it_running(one: Sandbox) -> None:
    """The same `up` twice is one sandbox; with other options it is refused."""
    assert sandbox.up(one.make_options(), count_brokers, ignore_event) == one
    with pytest.raises(UsageError, match="--tls, --config"):
        sandbox.up(SandboxOptions("one", tls=True), count_brokers, ignore_event)


def test_passwords_are_on_no_command_line(one: Sandbox) -> None:
    """Everybody on the computer can list processes and must not learn a password that way."""
    (own,) = one.list_processes()
    command = Path(f"/proc/{own.pid}/cmdline")
    if not command.exists():
        pytest.skip("no /proc on this system")
    assert b"kafka.Kafka" in command.read_bytes()
    assert one.admin_password.encode() not in command.read_bytes()


def test_kafkas_variable_sets_the_heap(one: Sandbox) -> None:
    """KAFKA_HEAP_OPTS, as for Kafka's own scripts. Of two sizes Java takes the last one."""
    (own,) = one.list_processes()
    command = Path(f"/proc/{own.pid}/cmdline")
    if not command.exists():
        pytest.skip("no /proc on this system")
    heaps = [word for word in command.read_text().split("\0") if word.startswith("-Xm")]
    assert heaps[-2:] == ["-Xms200m", "-Xmx400m"]


@pytest.mark.usefixtures("own_brokers")
def test_three_brokers_with_tls(home: Path) -> None:
    """Three brokers in three racks answer over TLS, after a check of their certificate."""
    box = sandbox.up(SandboxOptions("three", brokers=3, tls=True), count_brokers, ignore_event)
    try:
        client = admin(box, "admin", box.admin_password, "SCRAM-SHA-512", tls=True)
        described = client.describe_cluster(request_timeout=60).result()
        assert sorted((node.id, node.rack) for node in described.nodes) == [
            (1, "r1"),
            (2, "r2"),
            (3, "r3"),
        ]
        assert described.cluster_id == box.cluster_id
        create_topic(client, "replicated")
        assert replicas_of(client, "replicated") == [1, 2, 3]
        assert "KAFKAFORM_SANDBOX_CA_FILE" in invoke("env", "--name", "three", "--format", "shell")
    finally:
        stopped = sandbox.down("three")
    assert stopped is not None
    assert len(stopped.ended) == 3
    assert not any(map(process.is_alive, box.list_processes()))
    assert not box.folder.exists()


@pytest.mark.usefixtures("own_brokers")
def test_kept_data_survives_down_and_a_crash(home: Path) -> None:
    """Topics are there again after `down --keep-data` and after a crash, at the same address."""
    wanted = SandboxOptions("kept", keep_data=True)
    box = sandbox.up(wanted, count_brokers, ignore_event)
    try:
        create_topic(admin(box, "admin", box.admin_password, "PLAIN"), "precious")
        stopped = sandbox.down("kept")
        assert stopped is not None and stopped.data_kept
        again = sandbox.up(wanted, count_brokers, ignore_event)
        assert (again.bootstrap, again.cluster_id) == (box.bootstrap, box.cluster_id)
        process.end_processes(again.list_processes(), grace=0)
        assert sandbox.read_status("kept").state is SandboxState.CRASHED
        third = sandbox.up(wanted, count_brokers, ignore_event)
        client = admin(third, "admin", third.admin_password, "PLAIN")
        assert replicas_of(client, "precious") == [1]
    finally:
        sandbox.down("kept", keep_data=False)
    assert not box.folder.exists()


@pytest.mark.usefixtures("own_brokers")
def test_broker_that_refuses_its_configuration_is_explained(home: Path) -> None:
    """The error shows the broker's own words without a stack trace, and nothing runs on."""
    with pytest.raises(KafkaformError) as caught:
        sandbox.up(
            SandboxOptions("bad", config=(("log.retention.ms", "soon"),)),
            count_brokers,
            ignore_event,
        )
    assert "Invalid value soon for configuration log.retention.ms" in caught.value.message
    assert "\tat " not in caught.value.message
    found = sandbox.read_status("bad")
    assert (found.state, found.alive) == (SandboxState.FAILED, ())
    assert sandbox.down("bad") is not None


@pytest.mark.usefixtures("own_brokers")
def test_sandbox_that_is_not_ready_in_time_is_cleaned_up(home: Path) -> None:
    """After the deadline its processes are gone, and the error has the last log lines."""
    with pytest.raises(ConnectError) as caught:
        sandbox.up(SandboxOptions("late", ready_within=1.0), lambda _: 0, ignore_event)
    assert "0 of 1 brokers answered within 1 seconds" in caught.value.message
    found = sandbox.read_status("late")
    assert (found.state, found.alive) == (SandboxState.FAILED, ())
    assert sandbox.read_last_lines(found.sandbox, 5) is not None
    sandbox.down("late")


@pytest.mark.usefixtures("own_brokers")
def test_port_that_was_taken_meanwhile_is_no_failure(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at a port and the broker's start anybody may take it: others are tried."""
    told: list[Event] = []
    real = brokers.allocate_ports
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = Ports(other.getsockname()[1], *brokers.find_free_ports(2))
        answers = [(taken,)]
        monkeypatch.setattr(
            brokers, "allocate_ports", lambda *asked: answers.pop() if answers else real(*asked)
        )
        box = sandbox.up(SandboxOptions("taken"), count_brokers, told.append)
    try:
        assert box.brokers[0].ports.client != taken.client
        assert Message("another program has taken one of its ports: trying others") in told
    finally:
        sandbox.down("taken")


@pytest.mark.usefixtures("own_brokers")
def test_port_that_is_always_taken_is_explained(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listener that the user fixed, say: after the third start the error is the broker's."""
    starts: list[Sandbox] = []

    def refused(prepared: Sandbox, *_: object) -> Sandbox:
        starts.append(prepared)
        raise PortTaken("Socket server failed to bind to 127.0.0.1:9092", "choose another")

    monkeypatch.setattr(lifecycle, "start_sandbox", refused)
    with pytest.raises(ConnectError, match="failed to bind"):
        sandbox.up(SandboxOptions("fixed"), count_brokers, ignore_event)
    assert len(starts) == 3
