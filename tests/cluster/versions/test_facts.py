"""What a plan believes about another version of Kafka is what the brokers of that version say."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from kafkaform.core.change import Action
from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY
from kafkaform_kafka.protocol import cluster_facts
from kafkaform_kafka.protocol.config_keys import (
    ALL_TOPIC_KEYS,
    DYNAMIC_WITH_ZOOKEEPER,
    ConfigKey,
    UpdateMode,
    find_broker_key,
)
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.changes import change, topic
from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.sessions import apply, connect, eventually, new, preflight, read
from ...kit.kafka.versions import Choice
from ..kafka.test_broker_keys import KINDS, LISTED_WHERE_SET, listed
from .test_life_cycle import choose_cluster

pytestmark = pytest.mark.timeout(300)  # the first run on a computer downloads the jars


@pytest.fixture(scope="module")
def cluster() -> Choice:
    """The other version."""
    return choose_cluster()


@pytest.fixture(scope="module")
def admin(cluster: Choice, own_brokers: None) -> Iterator[KafkaSession]:
    """A session with a cluster of that version."""
    with own_sandbox(f"facts-{os.getpid()}", choice=cluster) as box:
        session = connect(box)
        yield session
        session.close()


@pytest.fixture
def name(admin: KafkaSession) -> str:
    """A topic."""
    made = f"facts-{uuid.uuid4().hex[:10]}"
    (outcome,) = apply(admin, new(made))
    assert outcome.fault is None
    eventually(lambda: read(admin, made), lambda found: hasattr(found, "attributes"))
    return made


def is_there(facts: Facts, key: str, known: ConfigKey) -> bool:
    return not any(cluster_facts.presence_faults(known, key, facts))


def test_the_facts_name_the_version(admin: KafkaSession, cluster: Choice) -> None:
    """The release of the sandbox, and ZooKeeper where it is. The brokers list exactly the configs
    that the tables have for the release."""
    values = admin.facts.recorded_values
    assert cluster.kafka_version.startswith(f"{values['kafka_version']}.")
    assert values["zookeeper"] is cluster.zookeeper
    assert values["config_keys"] == EMPTY
    assert (values["metadata_version"] is None) == cluster.zookeeper


def test_topics_have_the_configs_of_the_table(admin: KafkaSession, name: str) -> None:
    """None is missing or too many, and each has the broker's type."""
    entries = {entry.name: entry for entry in listed(admin, "topic", name, None)}
    known = {k: key for k, key in ALL_TOPIC_KEYS.items() if is_there(admin.facts, k, key)}
    assert entries.keys() == known.keys()
    assert {k: KINDS[entry.kind] for k, entry in entries.items()} == {
        k: key.kind for k, key in known.items()
    }


def test_brokers_change_the_configs_of_the_table(admin: KafkaSession) -> None:
    """What a broker lists is in a table, and it can change those without a restart that the table
    says."""
    wrong = []
    for entry in listed(admin, "broker", "1", "1"):
        known = find_broker_key(entry.name)
        if known and (known.listener or entry.name in LISTED_WHERE_SET | DYNAMIC_WITH_ZOOKEEPER):
            continue
        writable = known is not None and known.mode is not UpdateMode.READ_ONLY
        dynamic = known is not None and writable and is_there(admin.facts, "", known.key)
        if known is None or dynamic == entry.read_only:
            wrong.append(entry.name)
    assert wrong == []


def test_topics_take_the_numbers_of_the_table(admin: KafkaSession, name: str) -> None:
    """The lowest number of each config is taken, and the next lower one refused."""
    live = topic(name, partitions=1, replication_factor=1)
    for key, known in ALL_TOPIC_KEYS.items():
        low = cluster_facts.fit_range(known, admin.facts).low
        if low is None or known.kind == "double" or not is_there(admin.facts, key, known):
            continue
        for number in (low, low - 1):
            if number in known.also:
                continue
            wish = {**live, "config": {key: str(number)}}
            (verdict,) = preflight(admin, change(Action.UPDATE, live, wish))
            assert (verdict.fault is None) == (number == low), (key, number, verdict.fault)
