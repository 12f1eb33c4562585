"""A broker with remote storage: a folder that stands for an object store (KIP-405).

The store is `LocalTieredStorage` from the jar of Kafka's own tests, which is downloaded and checked
like the jars of the sandbox.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkaform.core.progress import ignore_event
from kafkaform.sandbox import Sandbox
from kafkaform.sandbox.jars import ensure_jars, open_repository, parse_jar
from kafkaform.sandbox.record import Broker

from .clusters import own_sandbox
from .versions import get_choice

_PINS = (
    "3.9.2:test d73b085cfacf8df8700d86e26342b8861899e0cbacea516eae0878f1173583fc 317765",
    "4.0.2:test b5143ab2aaf89d20e0194b484442767242c131eaf76a6f0cadb42f9c4fde11cf 392351",
    "4.1.2:test c0173663d7b3e8543aa3b9feaf7539a3ecee39b0b5b9b36096a95c9e20f1d833 532174",
    "4.3.1:test f3236936854c13815ffaa7f35a3f2d6861c125616cba5395b538b8680dded886 638839",
)
"""Kafka 4.2.2 has no such jar in the repository; older versions cannot disable remote storage."""
JARS = {
    jar.version: jar for jar in (parse_jar(f"org.apache.kafka:kafka-storage:{p}") for p in _PINS)
}
_PACKAGE = "org.apache.kafka.server.log.remote.storage"
_CLIENT = "rlmm.config.remote.log.metadata.common.client"
_SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": f"{_PACKAGE}.LocalTieredStorage",
    "remote.log.storage.manager.impl.prefix": "rsm.config.",
    "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
    "remote.log.metadata.manager.listener.name": "CLIENT",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    f"{_CLIENT}.sasl.mechanism": "PLAIN",
    "remote.log.manager.task.interval.ms": "300",
    "log.initial.task.delay.ms": "200",
    "log.retention.check.interval.ms": "300",
}
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class TieredBroker:
    """box: the only broker; store: the folder of remote storage."""

    box: Sandbox
    store: Path

    def list_local(self, topic: str) -> list[int]:
        """The first offsets of the segments of the first partition that the broker has."""
        return sorted(int(path.stem) for path in self.box.data.glob(f"*/{topic}-0/*.log"))

    def count_remote(self, topic: str) -> int:
        """The segments of the first partition in remote storage."""
        return len([*self.store.glob(f"**/{topic}-0-*/*.log")])


@contextmanager
def tiered_broker(name: str) -> Iterator[TieredBroker]:
    """A broker of the run's Kafka that copies segments at once. Skips the test for a Kafka without
    a pinned jar."""
    choice = get_choice()
    jar = JARS.get(choice.kafka_version)
    if jar is None or choice.zookeeper:
        pytest.skip(f"no remote storage for the tests of Kafka {choice.title}")
    class_path = ensure_jars((jar,), ignore_event, open_repository)
    with tempfile.TemporaryDirectory() as folder:

        def make_settings(box: Sandbox, _: Broker) -> dict[str, str]:
            login = f'{_LOGIN} required username="admin" password="{box.admin_password}";'
            return {**_SETTINGS, "rsm.config.dir": folder, f"{_CLIENT}.sasl.jaas.config": login}

        with own_sandbox(name, classpath=class_path, settings=make_settings) as box:
            yield TieredBroker(box, Path(folder))
