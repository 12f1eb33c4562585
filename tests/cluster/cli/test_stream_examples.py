"""The examples with a schema registry and connectors as their READMEs say, on real servers."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from kafkaform.sandbox import Sandbox

from ...conftest import Broker
from ...kit.commands.example import Copy
from ...kit.commands.server import Job, get_server
from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.truth import Observer
from ...kit.servers import PATIENCE, Client, Registry, Worker, wait_until

pytestmark = pytest.mark.timeout(600)
FIELD = ',\n    { "name": "cents", "type": "long"%s }\n  ]'
LINES = '{"id": "1", "customer": "ann"}\n{"id": "2", "customer": "bob"}\n'

NO_COORDINATOR = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._WAIT_COORD,
)
NAMES = ("shop.orders", "shop.payments", "web.clicks")
SUBJECTS = (*(f"{name}-value" for name in NAMES), "shop.Money")
CONNECTORS = ("shop.orders.source", *(f"{name}.archive" for name in NAMES))


@pytest.fixture
def primary(own_brokers: None) -> Iterator[Sandbox]:
    with own_sandbox(f"primary-{os.getpid()}") as box:
        yield box


def list_connectors(worker: Worker) -> list[str]:
    return sorted(worker.open_client().ask("GET", "/connectors")[1])


def destroy(example: Copy) -> None:
    state = json.loads((example.folder / "kafkaform.state.json").read_text())
    confirmed = (word for one in state["providers"].values() for word in ("--confirm", one))
    example.run("destroy", *confirmed)


@pytest.fixture
def stream(tmp_path: Path, broker: Broker, registry: Registry, connect: Worker) -> Copy:
    """The example, with two lines in the file from which a topic is filled."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "old-orders.txt").write_text(LINES)
    env = {
        "KAFKAFORM_SANDBOX_PASSWORD": broker.admin_password,
        "KF_VAR_bootstrap": broker.bootstrap,
        "KF_VAR_registry": registry.url,
        "KF_VAR_connect": connect.url,
        "KF_VAR_folder": str(folder),
        "KF_VAR_purge": "true",
    }
    return Copy("20-stream", tmp_path, env)


def wait_for_records(example: Copy) -> None:
    """Until the sink has written both lines: each of them at least once, as connectors promise."""
    archive = Path(example.env["KF_VAR_folder"], "orders.txt")
    wanted = set(LINES.splitlines(keepends=True))
    wait_until(lambda: archive.exists() and wanted <= set(archive.open()))
    assert set(archive.open()) == wanted


def kill_at_intent(example: Copy, kind: str) -> None:
    """Apply, and end the command as soon as its log says that it will send something of this
    kind."""
    before = count_intents(example, kind)
    running = get_server().start(Job(("apply", "--auto-approve"), str(example.folder), example.env))
    try:
        wait_until(
            lambda: running.poll() is not None or count_intents(example, kind) > before,
            pause=0.002,
        )
    finally:
        running.send_signal(signal.SIGKILL)
        ended = running.finish()
    assert ended.code == -signal.SIGKILL, ended.out


def count_intents(example: Copy, kind: str) -> int:
    log = example.folder / "kafkaform.audit.jsonl"
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return sum(one["kind"] == "intent" and one["body"]["kind"] == kind for one in records)


def test_a_stream_from_nothing_to_running_records(
    stream: Copy, broker: Broker, registry: Registry, connect: Worker
) -> None:
    """Topics, schemas, rights and connectors are one plan; records run from a file to a file. An
    incompatible schema is refused in the plan with its field, a compatible one is a new version.
    In the end everything goes in one plan, connectors first."""
    example, schemas = stream, Client(registry.url)
    example.run("fmt", "--check", "--recursive")
    example.run("init")
    module = example.folder / "modules/stream/main.kf.hcl"
    given = module.read_text()
    module.write_text(given.replace('group     = "connect-', 'group     = "other-'))
    said = " ".join(example.run("plan").split())
    assert "it fails: User:connect lacks Read on Group connect-shop.orders.archive" in said
    module.write_text(given)
    assert "lacks" not in example.run("plan")
    example.applied()
    wait_for_records(example)
    assert set(CONNECTORS) <= set(list_connectors(connect))
    subjects = schemas.ask("GET", "/subjects")[1]
    assert set(SUBJECTS) <= set(subjects)

    file = example.folder / "schemas/order.avsc"
    whole = file.read_text()
    file.write_text(whole.replace("\n  ]", FIELD % ""))
    said = example.run("plan", expect=8)
    assert "field cents is not written" in said and "shop.orders-value" in said
    file.write_text(whole.replace("\n  ]", FIELD % ', "default": 0'))
    example.applied()
    assert schemas.ask("GET", "/subjects/shop.orders-value/versions")[1] == [1, 2]

    money = example.folder / "schemas/money.avsc"
    money.write_text(
        money.read_text().replace("\n  ]", FIELD.replace("cents", "scale") % ', "default": 2')
    )
    said = example.run("plan")
    example.applied()
    assert "version 2 of shop.Money is the one that this plan registers" in " ".join(said.split())
    payments = schemas.ask("GET", "/subjects/shop.payments-value/versions/latest")[1]
    assert payments["references"] == [{"name": "shop.Money", "subject": "shop.Money", "version": 2}]

    destroy(example)
    assert not set(CONNECTORS) & set(list_connectors(connect))
    assert not set(SUBJECTS) & set(schemas.ask("GET", "/subjects")[1])
    observer = Observer(broker.bootstrap, broker.admin_password)
    assert not {*observer.topics("shop."), *observer.topics("web.")}
    observer.close()


def test_a_killed_apply_is_finished_by_the_next_one(
    stream: Copy, registry: Registry, connect: Worker
) -> None:
    """It dies with a request to each of the servers under way. The next apply finds out what
    happened, and in the end everything is there once."""
    main = stream.folder / "main.kf.hcl"
    # How long a request can be under way decides how long a later run waits for its effect.
    short = r'\1\n  operation_timeout = "10s"'
    main.write_text(re.sub(r'(provider "\w+" {)', short, main.read_text()))
    kill_at_intent(stream, "kafka_connect_connector")
    kill_at_intent(stream, "schema_registry_schema")
    stream.applied()
    wait_for_records(stream)
    schemas = Client(registry.url)
    versions = [schemas.ask("GET", f"/subjects/{name}/versions")[1] for name in SUBJECTS]
    assert [len(each) for each in versions] == [1] * len(SUBJECTS)
    assert set(CONNECTORS) <= set(list_connectors(connect))
    destroy(stream)


def make_settings(bootstrap: str, password: str) -> dict[str, str]:
    """Of the super user, for Kafka's own client."""
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": password,
    }


def commit(group: Consumer, position: TopicPartition) -> bool:
    """False while no broker coordinates the group: its first member has it created."""
    try:
        group.commit(offsets=[position], asynchronous=False)
    except KafkaException as error:
        assert error.args[0].code() in NO_COORDINATOR, error
        return False
    return True


def test_a_cluster_is_copied_to_another(
    tmp_path: Path, broker: Broker, connect: Worker, primary: Sandbox
) -> None:
    """Records arrive in the other cluster, and a group's offsets, too. The passwords of both
    clusters are in no file of kafkaform's and in no answer of Connect."""
    (connect.secrets / "primary.properties").write_text(f"admin={primary.admin_password}\n")
    env = {
        "KF_VAR_primary": primary.bootstrap,
        "KAFKA_PRIMARY_PASSWORD": primary.admin_password,
        "KF_VAR_backup": broker.bootstrap,
        "KAFKA_BACKUP_PASSWORD": broker.admin_password,
        "KF_VAR_connect": connect.url,
        "KF_VAR_secrets": str(connect.secrets),
    }
    example = Copy("21-mirror", tmp_path, env)
    example.run("fmt", "--check")
    example.applied()
    here = make_settings(primary.bootstrap, primary.admin_password)
    there = make_settings(broker.bootstrap, broker.admin_password)
    producer = Producer(here)
    producer.produce("shop.orders", b"an order", partition=0)
    assert producer.flush(PATIENCE) == 0
    reader = Consumer(there | {"group.id": "unused", "auto.offset.reset": "earliest"})
    reader.assign([TopicPartition("primary.shop.orders", 0, 0)])
    found: list[bytes | None] = []

    def has_arrived() -> bool:
        record = reader.poll(1)
        found.extend([record.value()] if record is not None and record.error() is None else [])
        return bool(found)

    wait_until(has_arrived)
    reader.close()
    assert found == [b"an order"]
    with closing(Consumer(here | {"group.id": "billing"})) as group:
        wait_until(lambda: commit(group, TopicPartition("shop.orders", 0, 1)))
    with closing(Consumer(there | {"group.id": "billing"})) as group:
        copied = TopicPartition("primary.shop.orders", 0)
        wait_until(lambda: group.committed([copied], PATIENCE)[0].offset == 1)
    files = [file.read_text() for file in example.folder.rglob("*") if file.is_file()]
    files += [json.dumps(connect.open_client().ask("GET", "/connectors?expand=info"))]
    passwords = (primary.admin_password, broker.admin_password)
    assert not [text for text in files if any(one in text for one in passwords)]
    destroy(example)
    assert not [one for one in list_connectors(connect) if one.startswith("mirror.")]
