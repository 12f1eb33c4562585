"""The cluster seen through another client than the one under test, and worked on behind its
back."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers

OWN = 1
"""ConfigSource of a topic's own override."""
SECONDS = 30.0
MEMORY = "/dev/shm"
HELD = (("request.timeout.ms", "5000"),)
"""For brokers whose clients have a short operation_timeout. A broker keeps a request for so long
while it finds no controller, and an apply waits as long before it believes that nothing happened:
Kafka's own 30 s, of every request whose answer is lost."""
_URL_SAFE = str.maketrans("+/", "-_", "=")


@dataclass(frozen=True)
class Live:
    """One topic as the cluster shows it. config: its own overrides."""

    topic_id: str
    partitions: int
    config: Mapping[str, str]


@contextmanager
def own_sandbox(
    name: str, brokers: int = 1, config: tuple[tuple[str, str], ...] = ()
) -> Iterator[sandbox.Sandbox]:
    """Brokers that nobody else uses, ended and removed afterwards. Their data is kept in memory
    where that is possible: thousands of new logs are a matter of how fast a disk is."""
    folder = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=folder) as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", home)
        try:
            yield sandbox.up(
                sandbox.SandboxOptions(name, brokers, config=config, ready_within=90.0),
                count_brokers,
            )
        finally:
            sandbox.down(name)


def client(box: sandbox.Sandbox, bootstrap: str = "") -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": bootstrap or box.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": box.admin_password,
            "log_level": 0,
        }
    )


def make(admin: AdminClient, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
    """Create topics outside kafkaform, and wait until the broker shows them: name -> partitions
    and config."""
    new = [NewTopic(n, count, 1, config=dict(config)) for n, (count, config) in topics.items()]
    if not new:
        return
    for future in admin.create_topics(new, operation_timeout=SECONDS).values():
        future.result(SECONDS)
    while not topics.keys() <= admin.list_topics(timeout=SECONDS).topics.keys():
        time.sleep(0.05)


def read(admin: AdminClient, prefix: str = "") -> dict[str, Live]:
    """Every topic whose name begins so, with its own overrides. Of several brokers each is asked
    something, and one may know a new topic later than another."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return _read(admin, prefix)
        except KafkaException as error:
            late = error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            if not late or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _read(admin: AdminClient, prefix: str) -> dict[str, Live]:
    names = [n for n in admin.list_topics(timeout=SECONDS).topics if n.startswith(prefix)]
    if not names:
        return {}
    described = admin.describe_topics(TopicCollection(names))
    configs = _configs(admin, names)
    return {
        name: Live(_text(future.result(SECONDS)), len(future.result().partitions), configs[name])
        for name, future in described.items()
    }


def _configs(admin: AdminClient, names: Iterable[str]) -> dict[str, dict[str, str]]:
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    return {
        resource.name: {
            entry.name: entry.value
            for entry in future.result(SECONDS).values()
            if int(entry.source) == OWN
        }
        for resource, future in admin.describe_configs(asked).items()
    }


def _text(described: object) -> str:
    """Kafka's own spelling of the id, which is URL-safe; this client's is not."""
    return str(described.topic_id).translate(_URL_SAFE)  # type: ignore[attr-defined]
