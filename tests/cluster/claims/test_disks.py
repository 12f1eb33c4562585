"""What a plan says about the disks of brokers, held against their file systems and against what
brokers then really store."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka.protocol.admin import DescribeLogDirsRequest

from kafkaform.core.change import Action, Change
from kafkaform.core.value import FrozenMap
from kafkaform.sandbox import Sandbox
from kafkaform.sandbox.record import Broker
from kafkaform_kafka.capacity.amounts import compute_costs
from kafkaform_kafka.capacity.forecast import Share
from kafkaform_kafka.capacity.projection import DAY_MS, Disk
from kafkaform_kafka.capacity.readings import (
    measure_partitions,
    read_disks,
    read_forecast,
    read_growth,
    read_settings,
)
from kafkaform_kafka.inspect.source import DescribeSource
from kafkaform_kafka.protocol.rates import ReplicaLimits
from kafkaform_kafka.rules.looks import find_full_disks
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire import cluster as wire_cluster
from kafkaform_kafka.wire.topics import list_topics

from ...kit.commands.process_folder import Folder
from ...kit.kafka.changes import change, topic
from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.sessions import connect
from ...kit.kafka.topic_clients import Clients, wait_for
from ...kit.kafka.versions import get_choice

QUICK = (
    ("log.initial.task.delay.ms", "200"),
    ("log.retention.check.interval.ms", "300"),
    # Brokers before Kafka 3.7 refuse acks=all for a single replica otherwise.
    ("min.insync.replicas", "1"),
)
"""Brokers that look for old records at once."""
SECONDS = 15.0
BROKERS = (1, 2, 3)
MIB = 1 << 20
RECORD = 10_000
"""Bytes of the value of each record."""
HOURS = 48
"""The time that the records of a topic cover."""
COUNT = 2_000
"""The records of a topic: about 19 MiB, half of them within the last day."""
STRAY = 64 * MIB
"""Bytes that others can write to the same file systems between two looks."""


@pytest.fixture(scope="module")
def other_volume(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that may be on another volume than the data of sandboxes."""
    return tmp_path_factory.mktemp("disks")


@pytest.fixture(scope="module")
def box(own_brokers: None, other_volume: Path) -> Iterator[Sandbox]:
    """Three brokers with three log directories each, for this file alone."""

    def make_disks(box: Sandbox, broker: Broker) -> dict[str, str]:
        return {"log.dirs": ",".join(map(str, list_directories(box, broker.id, other_volume)))}

    name = f"tests-disks-{os.getpid()}"
    with own_sandbox(name, brokers=3, config=QUICK, settings=make_disks) as box:
        yield box


def list_directories(box: Sandbox, broker: int, other_volume: Path) -> list[Path]:
    folder = box.data / str(broker)
    if get_choice().lacks("3.7", zookeeper=True) and not get_choice().zookeeper:
        return [folder]  # KRaft takes several since 3.7 (KIP-858).
    return [folder, folder.with_name(f"{folder.name}-second"), other_volume / str(broker)]


@pytest.fixture(scope="module")
def clients(box: Sandbox) -> Clients:
    return Clients(box.bootstrap, box.admin_password)


@pytest.fixture(scope="module")
def session(box: Sandbox) -> Iterator[KafkaSession]:
    session = connect(box, servers=tuple(box.bootstrap.split(",")))
    yield session
    session.close()


def make_source(session: KafkaSession) -> DescribeSource:
    return DescribeSource(session.context, session.sweep)


def write_days(clients: Clients, name: str, hours: float = HOURS) -> None:
    """Records of random bytes, evenly over the hours that end now."""
    producer = Producer({**clients.config, "acks": "all"})
    now = int(time.time() * 1000)
    for number in range(COUNT):
        age = (COUNT - number) * hours * 3_600_000 / COUNT
        producer.produce(name, os.urandom(RECORD), partition=0, timestamp=int(now - age))
        # Batches of some records, so that many of them are in a segment.
        if number % 20 == 19:
            assert producer.flush(SECONDS) == 0


def measure_logs(directories: Sequence[Path], name: str) -> int:
    """Bytes of the segments of a topic in these directories."""
    return sum(
        path.stat().st_size
        for directory in directories
        for path in directory.glob(f"{name}-*/*.log")
    )


def read_rate(session: KafkaSession, name: str) -> float | None:
    """Bytes a day of partition 0."""
    source = make_source(session)
    rows = list_topics(session.context.wire, [name], SECONDS)
    sizes = measure_partitions(read_disks(source, BROKERS).disks)
    return read_growth(source, rows, read_settings(source, [name]), sizes)[name, 0].rate


def update(name: str, before: dict[str, object], after: dict[str, object]) -> Change:
    """A change of a topic with one partition."""
    usual = {"partitions": 1, "replication_factor": 1}
    return change(
        Action.UPDATE, topic(name, **{**usual, **before}), topic(name, **{**usual, **after})
    )


def forecast(session: KafkaSession, item: Change) -> tuple[Share, ...]:
    made = read_forecast(make_source(session), [item], None)
    assert made is not None
    assert not made.gaps
    return made.shares[item.identity]


def test_room_and_sizes_are_those_of_the_file_system(
    box: Sandbox, clients: Clients, session: KafkaSession, other_volume: Path
) -> None:
    """`disk-too-small`: each volume has the bytes that statvfs says, directories of one volume are
    one disk, and each replica has the bytes of its segments."""
    for number in range(3):
        assert clients.create(f"sized-{number}", segment_bytes=MIB) == ""
        write_days(clients, f"sized-{number}")
    disks = read_disks(make_source(session), BROKERS).disks
    for broker in BROKERS:
        directories = list_directories(box, broker, other_volume)
        volumes: dict[int, list[Path]] = defaultdict(list)
        for directory in directories:
            volumes[directory.stat().st_dev].append(directory)
        by_paths = {disk.directories: disk for disk in disks if disk.broker == broker}
        assert {tuple(sorted(map(str, rows))) for rows in volumes.values()} == by_paths.keys()
        for paths, disk in by_paths.items():
            volume = os.statvfs(paths[0])
            assert disk.total == volume.f_frsize * volume.f_blocks
            assert disk.usable is not None
            assert abs(disk.usable - volume.f_frsize * volume.f_bavail) < STRAY
            check_replicas(disk)
    sizes = measure_partitions(disks)
    for number in range(3):
        assert sizes[f"sized-{number}", 0] > COUNT * RECORD


def check_replicas(disk: Disk) -> None:
    """Each replica on the disk has the bytes of its segments."""
    for (name, number), size in disk.replicas.items():
        if name.startswith("sized-"):
            segments = [
                path
                for directory in disk.directories
                for path in Path(directory).glob(f"{name}-{number}/*.log")
            ]
            assert len(segments) > 10
            assert size == sum(path.stat().st_size for path in segments)


def test_records_grow_as_fast_as_was_computed(
    box: Sandbox, clients: Clients, session: KafkaSession, other_volume: Path
) -> None:
    """`disk-nearly-full`: the rate is what the last day got, and a retention of half a day leaves
    as much as the rate says, with up to a segment more."""
    assert clients.create("steady", segment_bytes=MIB, retention_ms=7 * DAY_MS) == ""
    write_days(clients, "steady")
    rate = read_rate(session, "steady")
    whole = measure_partitions(read_disks(make_source(session), BROKERS).disks)["steady", 0]
    assert rate == pytest.approx(whole * 24 / HOURS, rel=0.02)
    assert clients.set("steady", retention_ms=DAY_MS // 2) == ""
    directories = [d for b in BROKERS for d in list_directories(box, b, other_volume)]
    wait_for(lambda: measure_logs(directories, "steady") < whole * 0.4)
    assert rate / 2 <= measure_logs(directories, "steady") <= rate / 2 + MIB

    longer = update(
        "steady",
        {"config": {"retention.ms": DAY_MS // 2}},
        {"config": {"retention.ms": 30 * DAY_MS}},
    )
    [share] = forecast(session, longer)
    size = measure_logs(directories, "steady")
    assert share.added == pytest.approx(30 * rate + MIB - size, rel=0.05)
    assert share.projection.days is None, "so little never fills such a disk"


def test_copies_go_where_they_were_expected(
    box: Sandbox, clients: Clients, session: KafkaSession, other_volume: Path
) -> None:
    """The second replica needs the bytes of the first one, on the disk that the broker chooses."""
    assert clients.create("copied", assignment=[[1]], segment_bytes=MIB) == ""
    write_days(clients, "copied")
    # The directories of a broker have different numbers of replicas, so that its choice is clear.
    fill_directories(clients, session, 2)
    more = update(
        "copied",
        {"replica_assignment": ((1,),)},
        {"replication_factor": 2, "replica_assignment": ((1, 2),)},
    )
    [share] = forecast(session, more)
    whole = measure_logs(list_directories(box, 1, other_volume), "copied")
    assert share.added == whole
    clients.move("copied", [[1, 2]])
    wait_for(lambda: measure_logs(list_directories(box, 2, other_volume), "copied") == whole)
    [directory] = [
        directory
        for directory in list_directories(box, 2, other_volume)
        if measure_logs([directory], "copied")
    ]
    assert str(directory) in share.projection.disk.directories


def fill_directories(clients: Clients, session: KafkaSession, broker: int) -> None:
    """Create partitions on a broker until one of its disks has fewest replicas by far."""
    for number in range(8):
        disks = read_disks(make_source(session), (broker,)).disks
        loads = sorted(disk.load / len(disk.directories) for disk in disks)
        if len(loads) < 2 or loads[1] - loads[0] >= 1:
            return
        name = f"filler-{number}"
        assert clients.create(name, assignment=[[broker]]) == ""
        # A broker makes the log of a partition later than the controller its record.
        wait_for(partial(has_replica, session, broker, name))


def has_replica(session: KafkaSession, broker: int, name: str) -> bool:
    disks = read_disks(make_source(session), (broker,)).disks
    return any((name, 0) in disk.replicas for disk in disks)


def test_a_topic_that_is_minutes_old_has_no_growth_yet(
    clients: Clients, session: KafkaSession
) -> None:
    """`disk-room-unknown`: what came within minutes says nothing about a day."""
    assert clients.create("young") == ""
    write_days(clients, "young", hours=0.2)
    assert read_rate(session, "young") is None
    longer = update(
        "young", {"config": {"retention.ms": DAY_MS}}, {"config": {"retention.ms": 30 * DAY_MS}}
    )
    made = read_forecast(make_source(session), [longer], None)
    assert made is not None
    assert made.unknown == {longer.identity: ("young",)}


def test_what_a_deletion_frees_is_what_the_disks_had(
    box: Sandbox, clients: Clients, other_volume: Path
) -> None:
    """`topic-monthly-cost`: the bytes that it counts are those of the segments of all replicas."""
    assert clients.create("priced", replicas=3, segment_bytes=MIB) == ""
    write_days(clients, "priced")
    deletion = change(Action.DELETE, topic("priced", partitions=1, replication_factor=3), None)
    priced = connect(
        box, servers=tuple(box.bootstrap.split(",")), rates=FrozenMap(currency="EUR", gigabyte=1)
    )
    try:
        source = make_source(priced)
        made = read_forecast(source, [deletion], None)
        assert made is not None
        directories = [d for b in BROKERS for d in list_directories(box, b, other_volume)]
        stored = measure_logs(directories, "priced")
        assert stored > 3 * COUNT * RECORD * 0.9
        assert made.net[deletion.identity] == pytest.approx(-stored, rel=0.01)
        cost = compute_costs(made, [deletion], priced.facts)[deletion.identity]
        assert cost.monthly == pytest.approx(-stored / 1e9, rel=0.01)
    finally:
        priced.close()


def test_replicas_are_counted_as_brokers_have_them(box: Sandbox, clients: Clients) -> None:
    """`broker-replicas-above-limit`: what is counted for each broker, before and after topics are
    created, is what lies in its log directories, up to where the controller begins."""
    limited = connect(box, servers=tuple(box.bootstrap.split(",")), limits=ReplicaLimits(1))
    try:
        changes = [
            change(Action.CREATE, None, topic(f"counted-{n}", partitions=9, replication_factor=2))
            for n in range(2)
        ]
        made = read_forecast(make_source(limited), changes, None)
        assert made is not None
        assert {b: c.before for b, c in made.replicas.items()} == count_replicas(limited)
        for item in changes:
            assert clients.create(item.identity.key, partitions=9, replicas=2) == ""
        wait_for(
            lambda: (
                sum(count_replicas(limited).values())
                == sum(count.after for count in made.replicas.values())
            )
        )
        live = count_replicas(limited)
        assert all(abs(made.replicas[b].after - live[b]) <= 4 for b in BROKERS)
    finally:
        limited.close()


def count_replicas(session: KafkaSession) -> dict[int, int]:
    """Broker -> the replicas in its log directories."""
    counts = dict.fromkeys(BROKERS, 0)
    for disk in read_disks(make_source(session), BROKERS).disks:
        counts[disk.broker] += len(disk.replicas)
    return counts


EXPECTED = """
resource "kafka_topic" "hoped" {{
  name               = "hoped"
  partitions         = 3
  replication_factor = 3
  expected_rate      = "{rate}"
}}
"""


def test_an_expected_rate_is_planned_with_and_sent_nowhere(box: Sandbox, tmp_path: Path) -> None:
    """A new topic that would not fit is a danger. Neither the state nor the broker has the rate,
    and another rate is no change."""
    folder = Folder(tmp_path, box.bootstrap, box.admin_password)
    folder.write(EXPECTED.format(rate="900GiB"))
    text = " ".join(folder.plan().out.split())
    assert "[disk-too-small]" in text
    assert "full in about 1 hour at the expected rates" in text
    folder.write(EXPECTED.format(rate="1kB"))
    assert "disk-" not in folder.plan().out
    assert folder.apply().code == 0
    assert "expected" not in (tmp_path / "kafkaform.state.json").read_text("utf-8")
    folder.write(EXPECTED.format(rate="900GiB"))
    assert "No changes." in folder.plan().out


def test_brokers_that_tell_no_size(
    clients: Clients, session: KafkaSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`disk-room-unknown`: asked as before Kafka 3.3, brokers tell the size of replicas and not of
    disks. What is added is told, and nothing is said about what fits."""
    assert clients.create("sizeless", segment_bytes=MIB, retention_ms=2 * DAY_MS) == ""
    write_days(clients, "sizeless")

    # Version 4 has the bytes of the volumes (KIP-827).
    older: Any = partial(DescribeLogDirsRequest, max_version=3)
    older.DescribableLogDirTopic = DescribeLogDirsRequest.DescribableLogDirTopic
    monkeypatch.setattr(wire_cluster, "DescribeLogDirsRequest", older)
    assert all(disk.total is None for disk in read_disks(make_source(session), BROKERS).disks)
    longer = update(
        "sizeless",
        {"config": {"retention.ms": 2 * DAY_MS}},
        {"config": {"retention.ms": 30 * DAY_MS}},
    )
    made = read_forecast(make_source(session), [longer], None)
    assert made is not None
    [(identity, finding)] = find_full_disks(made)
    assert (identity, finding.rule) == (longer.identity, "disk-room-unknown")
    assert "the broker does not say how large its disk is" in finding.text
    assert finding.figures["added_bytes"] > 100 * MIB


TOPIC = """
resource "kafka_topic" "events" {{
  name               = "events"
  partitions         = 1
  replication_factor = 1
  config = {{
    "retention.ms"  = {retention}
    "segment.bytes" = 1048576
  }}
}}
"""


def test_a_plan_that_does_not_fit(box: Sandbox, clients: Clients, tmp_path: Path) -> None:
    """The finding is in every form, --fail-on stops at it, and --impact off does not look."""
    folder = Folder(tmp_path, box.bootstrap, box.admin_password)
    folder.write(TOPIC.format(retention=7 * DAY_MS))
    assert folder.apply().code == 0
    # At a rate that fills the disks of most computers within a year.
    write_days(clients, "events", hours=1.1)
    folder.write(TOPIC.format(retention=1_000_000 * DAY_MS))
    text = folder.plan()
    assert "disk-too-small" in text.out or "disk-nearly-full" in text.out
    assert "it by this change" in " ".join(text.out.split())
    assert folder.run("plan", "--fail-on", "capacity").code == 8
    assert folder.run("plan", "--fail-on", "capacity", "--impact", "off").code == 0
    folder.write(TOPIC.format(retention=-1))
    endless = " ".join(folder.plan().out.split())
    assert "disk-nearly-full" in endless or "disk-too-small" in endless
    assert "nothing stops the growth; full in about" in endless
    folder.write(TOPIC.format(retention=8 * DAY_MS))
    assert "disk-" not in folder.plan().out

    shown = folder.run("describe", "brokers", "--disks")
    assert shown.code == 0
    assert "/day" in shown.out
    assert "Full in" in shown.out
