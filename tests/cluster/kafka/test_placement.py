"""Moves on three real brokers in three racks, through the command line and the session."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.change import OutcomeStatus
from kafkaform.core.resource import Fault, Observed
from kafkaform_kafka.connection.settings import make_librdkafka_config
from kafkaform_kafka.kinds.topic import placement, replica_moves
from kafkaform_kafka.kinds.topic.placement import ThrottleTicket
from kafkaform_kafka.kinds.topic.replica_moves import list_moves
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.topics import alter_reassignments

from ...kit.commands.example import Copy, one
from ...kit.commands.process_folder import Folder
from ...kit.kafka.sessions import connect, eventually, login, read

SLOW = 300_000
"""Bytes a second: 6 MB then take long enough to be looked at."""


@pytest.fixture(scope="module")
def three(own_brokers: None) -> Iterator[Any]:
    """Three brokers in racks r1, r2 and r3, for this file alone."""
    name = f"tests-three-{os.getpid()}"
    try:
        yield sandbox.up(sandbox.SandboxOptions(name, brokers=3), count_brokers)
    finally:
        sandbox.down(name)


@pytest.fixture
def session(three: Any) -> Iterator[KafkaSession]:
    """The super user, at all three; what a test that fails leaves throttled is freed."""
    opened = connect(three, "admin", servers=tuple(three.bootstrap.split(",")))
    yield opened
    for broker in "123":
        place = placement.ThrottlePlace("broker", broker, placement.RATES, "")
        replica_moves.alter_throttle(opened.context, place, {}, placement.RATES)
    opened.close()


@pytest.fixture
def folder(three: Any, tmp_path: Path) -> Folder:
    """A configuration folder whose provider names all three."""
    servers = three.bootstrap.replace(",", '", "')
    return Folder(tmp_path, servers, three.admin_password, "3s")


@pytest.fixture
def name() -> str:
    return f"t{uuid4().hex[:8]}"


def topic(name: str, **attributes: Any) -> str:
    """A block; values as HCL text."""
    lines = "\n".join(f"  {key} = {value}" for key, value in attributes.items())
    return f'resource "kafka_topic" "it" {{\n  name = "{name}"\n{lines}\n}}\n'


def throttled(folder: Folder, rate: int = SLOW) -> None:
    """Moves of this folder are throttled."""
    text = f'provider "kafka" {{\n  reassignment_throttle = "{rate}"\n}}\n'
    (folder.path / "slow_override.kf.hcl").write_text(text, "utf-8")


def cancel_moves(session: KafkaSession, name: str) -> None:
    """Stop all moves of a topic, as another tool would."""
    moves = list_moves(session.context)
    assert not isinstance(moves, Fault)
    wanted = {name: dict.fromkeys(moves[name])}
    alter_reassignments(session.context.wire, wanted, session.context.timeout)


def replicas(session: KafkaSession, name: str) -> tuple[tuple[int, ...], ...]:
    seen = read(session, name)
    assert isinstance(seen, Observed)
    return tuple(seen.attributes["replica_assignment"])


def moves(session: KafkaSession, name: str) -> bool:
    seen = read(session, name, at="1")
    return isinstance(seen, Observed) and seen.moving is not None


def settled(session: KafkaSession, name: str, factor: int) -> tuple[tuple[int, ...], ...]:
    """Where the replicas are once no move runs and all brokers know."""
    eventually(lambda: moves(session, name), lambda moving: not moving, 60)

    def shown() -> bool:
        views = [read(session, name, at=node) for node in session.facts.nodes]
        return all(
            isinstance(v, Observed)
            and all(len(row) == factor for row in v.attributes["replica_assignment"])
            for v in views
        )

    assert eventually(shown, bool)
    return replicas(session, name)


def fill(three: Any, name: str, partitions: int = 3, megabytes: int = 6) -> None:
    """Records that do not compress, the same number for each partition."""
    producer = Producer(make_librdkafka_config(login(three, "admin")))
    for number in range(megabytes * 10):
        producer.produce(name, os.urandom(100_000), partition=number % partitions)
        producer.poll(0)
    assert producer.flush(20) == 0


def rates(session: KafkaSession, name: str) -> list[str]:
    """Every throttle value that is set on a broker or on this topic."""
    ticket = ThrottleTicket(name, "", 0, (1, 2, 3))
    found = [
        replica_moves.read_throttle(session.context, place)
        for place in placement.list_places(ticket)
    ]
    return [value for live in found if isinstance(live, dict) for value in live.values()]


def await_free(session: KafkaSession, name: str) -> None:
    """Wait until no broker has a throttle: each of them learns of a removal by itself."""
    eventually(lambda: rates(session, name), lambda values: values == [])


def kinds(folder: Folder, kind: str) -> list[Any]:
    return [record.body for record in folder.records() if record.kind == kind]


def leader(three: Any, name: str) -> int:
    admin = AdminClient(make_librdkafka_config(login(three, "admin")))
    found = admin.describe_topics(TopicCollection([name]))[name].result(60)
    return int(found.partitions[0].leader.id)


def done(ended: Any, code: int = 0) -> str:
    assert ended.code == code, ended.out
    return str(ended.out)


def test_one_replica_becomes_three_and_then_two(
    folder: Folder, session: KafkaSession, name: str
) -> None:
    """Every rack gets one, leaders stay, the plan shows where, and nothing is left to do."""
    folder.write(topic(name, partitions=3, replication_factor=1))
    done(folder.apply())
    [one] = {tuple(row[0] for row in replicas(session, name))}
    folder.write(topic(name, partitions=3, replication_factor=3))
    assert "replica_assignment" in folder.run("plan", "--no-color").out
    done(folder.apply())
    three = settled(session, name, 3)
    assert [set(row) for row in three] == [{1, 2, 3}] * 3
    assert tuple(row[0] for row in three) == one
    done(folder.apply())
    done(folder.plan())
    folder.write(topic(name, partitions=3, replication_factor=2))
    done(folder.apply())
    assert tuple(row[0] for row in settled(session, name, 2)) == one
    done(folder.apply())
    done(folder.plan())


def test_partitions_and_replicas_grow_in_one_change(
    folder: Folder, session: KafkaSession, name: str
) -> None:
    """The partitions come first, as wide as the topic was; then all of it moves."""
    folder.write(topic(name, partitions=2, replication_factor=1))
    done(folder.apply())
    folder.write(topic(name, partitions=5, replication_factor=2))
    out = done(folder.apply())
    assert len(settled(session, name, 2)) == 5, out
    done(folder.plan())


def test_shrinking_and_growing_at_once(folder: Folder, session: KafkaSession, name: str) -> None:
    """New partitions are made with the old number of replicas, since Kafka wants no other."""
    folder.write(topic(name, partitions=2, replication_factor=3))
    done(folder.apply())
    folder.write(topic(name, partitions=4, replication_factor=1))
    done(folder.apply())
    assert len(settled(session, name, 1)) == 4
    done(folder.plan())


def test_a_topic_of_more_partitions_than_one_request_takes(
    folder: Folder, session: KafkaSession, name: str
) -> None:
    """520 partitions go in two requests of one step."""
    folder.write(topic(name, replica_assignment="[for n in range(520) : [1]]"))
    done(folder.apply())
    folder.write(topic(name, replica_assignment="[for n in range(520) : [2]]"))
    done(folder.apply())
    assert set(settled(session, name, 1)) == {(2,)}
    done(folder.apply())
    done(folder.plan())


def test_an_assignment_is_moved_to_and_leaving_it_out_moves_nothing(
    folder: Folder, session: KafkaSession, name: str
) -> None:
    """Exactly the replicas that are written; without the attribute all stay where they are."""
    folder.write(topic(name, replica_assignment="[[1, 2], [2, 3]]"))
    done(folder.apply())
    folder.write(topic(name, replica_assignment="[[3, 2], [2, 1]]"))
    done(folder.apply())
    eventually(lambda: replicas(session, name), lambda rows: rows == ((3, 2), (2, 1)))
    eventually(lambda: moves(session, name), lambda moving: not moving)
    folder.write(topic(name))
    done(folder.apply())
    done(folder.plan())
    assert replicas(session, name) == ((3, 2), (2, 1))


def test_a_throttled_move_is_followed_to_its_end(
    folder: Folder, three: Any, session: KafkaSession, name: str
) -> None:
    """Started and left; the next plan sees it move and wants nothing; the run after its end
    records that and removes the throttle."""
    folder.write(topic(name, partitions=3, replication_factor=1))
    throttled(folder)
    done(folder.apply())
    fill(three, name)
    folder.write(topic(name, partitions=3, replication_factor=2))
    out = done(folder.apply())
    assert "started" in out and "copied" in out
    during = done(folder.plan())
    assert "move kafka_topic" in during and "copied" in during and "moving since run" in during
    assert sorted(rates(session, name)) == ["*"] * 2 + [str(SLOW)] * 6
    assert sorted(body["what"] for body in kinds(folder, "obligation")) == ["move", "throttle"]
    settled(session, name, 2)
    assert "has ended" in done(folder.apply())
    await_free(session, name)
    assert [body["outcome"] for body in kinds(folder, "discharged")] == ["applied"] * 2
    done(folder.plan())


def test_a_cancelled_move_leaves_what_was_there(
    folder: Folder, three: Any, session: KafkaSession, name: str
) -> None:
    """The next plan wants the move again; what was throttled for it is free."""
    folder.write(topic(name, partitions=3, replication_factor=1))
    throttled(folder, 20_000)
    done(folder.apply())
    fill(three, name)
    before = replicas(session, name)
    folder.write(topic(name, partitions=3, replication_factor=2))
    done(folder.apply())
    tickets = [body["ticket"] for body in kinds(folder, "obligation")]
    seen = read(session, name)
    assert isinstance(seen, Observed) and seen.ticket in tickets
    cancel_moves(session, name)
    limits = [ticket for ticket in tickets if "/throttle/" in ticket]
    others = [ticket for ticket in tickets if ticket not in limits]
    stands = {o.step: o.status for o in session.progress(others, limits)}
    assert stands.pop(seen.ticket) is OutcomeStatus.FAILED
    assert set(stands.values()) == {OutcomeStatus.APPLIED} and rates(session, name) != []
    gone = session.undo([*stands], [])
    assert {o.status for o in gone} == {OutcomeStatus.APPLIED}
    await_free(session, name)
    eventually(lambda: replicas(session, name), lambda rows: rows == before)
    assert "1 to change" in done(folder.plan(), 2)


def test_alter_stops_a_move_of_a_managed_topic(
    folder: Folder, three: Any, session: KafkaSession, name: str
) -> None:
    """One plan, asked and logged; the throttle goes with it, the row stays, and the next plan
    shows what is live against what is declared."""
    folder.write(topic(name, partitions=3, replication_factor=1))
    throttled(folder, 20_000)
    done(folder.apply())
    fill(three, name, megabytes=12)
    before = replicas(session, name)
    folder.write(topic(name, partitions=3, replication_factor=2))
    done(folder.apply())
    done(folder.run("alter", "topic", name, "--cancel-move", "--auto-approve"))
    eventually(lambda: replicas(session, name), lambda rows: rows == before)
    await_free(session, name)
    assert "1 to change" in done(folder.plan(), 2)
    assert "no move" in done(folder.run("alter", "topic", name, "--cancel-move"), 1)


def test_somebody_elses_throttle_is_neither_overwritten_nor_removed(
    folder: Folder, session: KafkaSession, name: str
) -> None:
    """The dry run says whose it is not, nothing is sent, and the value stays, even one that is
    the same as ours would be."""
    folder.write(topic(name, replica_assignment="[[1]]"))
    done(folder.apply())
    throttled(folder)
    folder.write(topic(name, replica_assignment="[[2]]"))
    place = placement.ThrottlePlace("broker", "2", placement.RATES[:1], str(SLOW))
    assert (
        replica_moves.alter_throttle(session.context, place, {placement.RATES[0]: str(SLOW)}, ())
        is None
    )
    eventually(lambda: rates(session, name), lambda found: found == [str(SLOW)])
    try:
        assert "THROTTLED_BY_OTHERS" in done(folder.apply(), 1)
        assert rates(session, name) == [str(SLOW)] and kinds(folder, "obligation") == []
    finally:
        replica_moves.alter_throttle(session.context, place, {}, placement.RATES[:1])
    await_free(session, name)


@pytest.mark.parametrize("moment", ['"kind":"obligation"', '"outcome":"started"'])
def test_a_killed_run_leaves_no_throttle_behind(
    folder: Folder, three: Any, session: KafkaSession, name: str, moment: str
) -> None:
    """Killed as soon as the log says so; the next runs find out, finish, and clean up."""
    folder.write(topic(name, partitions=3, replication_factor=1))
    throttled(folder, 2_000_000)
    done(folder.apply())
    fill(three, name)
    folder.write(topic(name, partitions=3, replication_factor=2))
    running = folder.start("apply", "-auto-approve", "--no-color")
    deadline = time.monotonic() + 120
    while moment not in folder.log.read_text("utf-8", "replace"):
        assert time.monotonic() < deadline and running.poll() is None, running.printed()
    running.send_signal(signal.SIGKILL)
    running.finish()
    done(folder.apply())
    settled(session, name, 2)
    done(folder.apply())
    await_free(session, name)
    opened, ended = kinds(folder, "obligation"), kinds(folder, "discharged")
    assert len(opened) == len(ended) and "throttle" in [body["what"] for body in opened]
    done(folder.plan())


def test_a_preferred_election_on_request(
    folder: Folder, three: Any, session: KafkaSession, name: str
) -> None:
    """Another order alone moves no data and elects nobody; the election does, and once."""
    folder.write(topic(name, replica_assignment="[[1, 2]]"))
    done(folder.apply())
    assert leader(three, name) == 1
    folder.write(topic(name, replica_assignment="[[2, 1]]"))
    assert "no data is copied" in folder.run("plan", "--no-color").out
    done(folder.apply())
    eventually(lambda: replicas(session, name), lambda rows: rows == ((2, 1),))
    line = ("alter", "topic", name, "--elect-preferred", "--auto-approve", "--no-color")
    said = done(folder.run(*line))
    assert "preferred leaders of 1 partition" in said and "1 → 2" in said
    assert leader(three, name) == 2
    phases = [body["phase"] for kind in ("intent", "outcome") for body in kinds(folder, kind)]
    assert phases.count("1.80 ElectLeaders") == 2
    assert "There is nothing to change" in done(folder.run(*line))
    done(folder.plan())


def test_the_example(three: Any, tmp_path: Path) -> None:
    """One replica becomes three and then two; what says neither number nor place stays."""
    example = one("14-placement", tmp_path, three)
    example.run("fmt", "--check")
    example.applied()
    said = example.run("plan", "--var", "replicas=3")
    assert "~ replica_assignment = [[" in said and "12 replicas copied" in said
    assert "Plan: 0 to add, 1 to change, 0 to destroy." in said
    for replicas in ("replicas=3", "replicas=2"):
        example.run("apply", "--auto-approve", "--var", replicas)
        at_rest(example, replicas)
        assert "No changes." in example.run("plan", "--detailed-exitcode", "--var", replicas)
    example.run("alter", "topic", "orders", "--cancel-move", expect=1)


def at_rest(example: Copy, replicas: str) -> None:
    """Apply until no move is under way: each asks once, and waits for none."""
    for _ in range(20):
        example.run("apply", "--auto-approve", "--var", replicas)
        if "Under way" not in example.run("plan", "--var", replicas):
            return
    raise AssertionError("a move of empty topics does not end")
