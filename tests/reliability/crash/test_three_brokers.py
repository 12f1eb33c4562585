"""Brokers that die under an apply: it ends with a code and a line that say how things stand, and
with the brokers back the same command does the rest."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.admin import CreateTopicsRequest

from kafkaform.cli.app import run_command_line
from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import Absent, Observed
from kafkaform_kafka.kinds.topic import requests as topics
from kafkaform_kafka.session import KafkaSession, open_session
from kafkaform_kafka.wire import describe as wire_describe
from kafkaform_kafka.wire.answers import ItemAnswers
from kafkaform_kafka.wire.client import RequestNotSent, RequestUnanswered

from ...kit.commands.process_folder import Folder
from ...kit.kafka import sessions as kafka
from ...kit.kafka.sessions import eventually, login
from ...kit.kafka.three_brokers import PATIENCE, Brokers, three_brokers
from ...kit.kafka.truth import looking, observe
from ...kit.lane import find_faults
from ...long.mix import mixed
from . import park_lane, wide
from .lanes import Town
from .wide import TIMEOUT, Round, Wide, lane, struck, until_growth

pytestmark = pytest.mark.timeout(300)
BYSTANDER = {"bystander": (2, {"retention.ms": "1234567"})}
SAMPLE, MOST, SESSIONS = 3, 12, 10


@pytest.fixture(scope="module")
def brokers(own_brokers: None) -> Iterator[Brokers]:
    """Three, with a topic that is nobody's business."""
    with three_brokers(f"three-{os.getpid()}") as three:
        admin = observe(three.box)
        admin.make(BYSTANDER)
        before = eventually(lambda: admin.topics("bystander"), bool)
        yield three
        assert admin.topics("bystander") == before


@pytest.fixture(scope="module")
def lanes(brokers: Brokers, tmp_path_factory: pytest.TempPathFactory) -> list[Wide]:
    """One folder names all brokers, the other one only the first of them."""
    home = tmp_path_factory.mktemp("three")
    return [
        lane(brokers, home / "all", "all", "all"),
        lane(brokers, home / "one", "one", "one", brokers.address(1)),
    ]


def holds(done: Round) -> None:
    assert not done.violations, "\n".join(done.violations)
    assert [ended.code for ended in done.last] == [0] * len(done.last)


def test_the_active_controller_is_killed(brokers: Brokers, lanes: list[Wide]) -> None:
    """In the middle of two applies: both end with a documented code, and the next ones with 0."""
    leads = brokers.controller()
    holds(struck(lanes, lambda _: brokers.kill(leads), brokers.revive, 2))
    assert brokers.controller() != leads


TOPIC_ALREADY_EXISTS = 36


@pytest.mark.parametrize("dies", [False, True])
def test_a_create_that_two_controllers_get_is_ours(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    """A broker sends on what it was sent. If the controller does it and dies before it says so, the
    broker asks the next one, and for that one the topic exists. With no new controller it is
    somebody else's, also if it is exactly as wanted."""

    def sent_on(*request: Any, validate_only: bool) -> ItemAnswers:
        answers = created(*request, validate_only=validate_only)
        if validate_only:
            return answers
        if dies:
            brokers.kill(brokers.controller())
        return _answered(lambda: created(*request, validate_only=False))

    created = topics.create_topics
    monkeypatch.setattr(topics, "create_topics", sent_on)
    monkeypatch.setenv("PROOF_PASSWORD", brokers.box.admin_password)
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path, brokers.servers, brokers.box.admin_password, TIMEOUT)
    name = f"twice-{dies}"
    # Two, because a broker that was killed before may not be known everywhere yet.
    wanted = f'name = "{name}"\n  partitions = 2\n  replication_factor = 2'
    folder.write(f'resource "kafka_topic" "t" {{\n  {wanted}\n}}')
    code = run_command_line(["apply", "-auto-approve"])
    brokers.revive()
    state = folder.state()
    assert state is not None
    assert [identity.key for identity in state.objects] == [name] * dies
    assert code == (0 if dies else 5)
    assert ("does not manage it" in folder.plan().out) is not dies


def _answered(ask: Any) -> ItemAnswers:
    """What a broker's own repetition gets in the end."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            answers: ItemAnswers = ask()
            if all(each.code == TOPIC_ALREADY_EXISTS for each in answers.items.values()):
                return answers
        except (RequestUnanswered, RequestNotSent):
            pass
        assert time.monotonic() < deadline, "no controller says that the topic exists"
        time.sleep(0.1)


def test_the_broker_that_is_named_is_killed(brokers: Brokers, lanes: list[Wide]) -> None:
    """The only one of `bootstrap_servers` dies once the run has begun: the others do the work."""
    done = struck(lanes[1:], lambda _: brokers.kill(1), brokers.revive, 2)
    holds(done)


def test_all_are_restarted(brokers: Brokers, lanes: list[Wide]) -> None:
    """SIGKILL for all three at once; they come back while the applies still run."""

    def restart(_: object) -> None:
        brokers.kill(*brokers.ids)
        brokers.revive()

    holds(struck(lanes, restart, brokers.revive, 3))


@pytest.mark.parametrize("dies", ["plain", "controller"])
def test_a_due_deletion_while_a_broker_dies(brokers: Brokers, tmp_path: Path, dies: str) -> None:
    """A parked topic goes with its ACLs while one broker, or the active controller, is killed: the
    run ends with a documented code, and with the brokers back everything is gone everywhere."""
    password = brokers.box.admin_password
    with looking(brokers.box.bootstrap, password) as client:
        town = Town(brokers.servers, password, client)
        parked = park_lane.make_lane(town, tmp_path / dies, len(brokers.ids), wide.LAG)
        parked.declare()
        process = parked.start()
        until_growth(parked.folder, process, 2)
        brokers.kill(brokers.controller() if dies == "controller" else brokers.plain())
        ended = process.finish(wide.SECONDS)
        violations = [*find_faults(ended, password), *parked.kept()]
        brokers.revive()
        violations += parked.faults()
    assert not violations, "\n".join(violations)


QUICK = 100.0
"""Seconds, less than one operation timeout: each phase of a run that waited for a dead broker took
one of them."""


def topics_of(who: str, number: int) -> str:
    """Topics on all three brokers, one of which goes in the next round."""
    destroy = "lifecycle {\n    destroy = true\n  }"
    gone = f"removed {{\n  from = kafka_topic.r{number - 1}\n  {destroy}\n}}"
    made = (
        f'resource "kafka_topic" "{label}" {{\n  name = "dead-{who}-{label}"\n  partitions = 2\n'
        f'  config = {{ "retention.ms" = "{3600000 + number}" }}\n}}'
        for label in ("stay", f"r{number}")
    )
    return "\n".join((*made, *((gone,) if number else ())))


@pytest.mark.parametrize("who", ["plain", "controller"])
def test_a_broker_that_just_died_costs_seconds(brokers: Brokers, tmp_path: Path, who: str) -> None:
    """The cluster still lists it: it is asked for its configs, for the size of what is deleted, and
    for what it shows; nobody waits for the operation timeout, and a log says what is waited for.
    Every session opens, whichever broker is called the controller. If it can have groups that read
    the topic, the deletion waits for the next apply, and nothing else does."""
    folder = Folder(tmp_path, brokers.servers, brokers.box.admin_password, "120s")
    folder.write(topics_of(who, 0))
    assert folder.apply().code == 0
    folder.write(topics_of(who, 1))
    brokers.kill(brokers.controller() if who == "controller" else brokers.plain())
    begun = time.monotonic()
    ended = folder.apply()
    assert time.monotonic() - begun < QUICK and ended.code in (0, 8), ended.out
    assert (ended.code == 8) == ("it waits: who uses it is not known" in ended.out), ended.out
    brokers.revive()
    assert folder.apply().code == 0


def test_restarted_brokers_that_disagree_are_named(brokers: Brokers, tmp_path: Path) -> None:
    """Kafka gives a topic that was deleted and created again its predecessor's configs back on the
    brokers that are restarted. A plan names the brokers with their values, whichever of them it was
    told to connect to."""
    name, config = "comes-back", 'config = { "retention.ms" = "7777777" }'
    folder = Folder(tmp_path, brokers.servers, brokers.box.admin_password, "30s")

    def declare(more: str, label: str = "t") -> str:
        body = f'name = "{name}-{label}"\n  partitions = 1\n  {more}'
        return f'resource "kafka_topic" "{label}" {{\n  {body}\n}}\n'

    folder.write(declare(config), declare("", "stays"))
    ended = folder.apply()
    assert ended.code == 0, ended.out
    removed = "removed {\n  from = kafka_topic.t\n  lifecycle {\n    destroy = true\n  }\n}"
    folder.write(removed, declare("", "stays"))
    ended = folder.apply()
    assert ended.code == 0, ended.out
    folder.write(declare(""), declare("", "stays"))
    ended = folder.apply()
    assert ended.code == 0, ended.out
    brokers.kill(1, 2)
    brokers.revive()
    plans = []
    for address in (brokers.servers, brokers.address(1), brokers.address(3)):
        replace(folder, bootstrap=address).write(declare(""), declare("", "stays"))
        plans.append(folder.plan())
    assert {plan.code for plan in plans} == {2}, plans[0].out
    told = "the brokers disagree: config.retention.ms is 7777777 ms on broker 1, 2, and not set on"
    for plan in plans:
        assert told in " ".join(plan.out.split()), plan.out
    ended = folder.apply()
    assert ended.code == 0, ended.out
    assert folder.plan().code == 0


def test_sessions_open_while_the_cluster_lists_a_dead_broker(brokers: Brokers) -> None:
    """For some seconds a broker may call the dead one the controller. Nobody who connects needs
    it; and when the cluster has noticed, the session tells who is live now."""
    settings = login(brokers.box, "admin", servers=tuple(brokers.box.bootstrap.split(",")))
    dead = brokers.plain()
    brokers.kill(dead)
    with ThreadPoolExecutor(SESSIONS) as pool:
        sessions = list(pool.map(open_session, [settings] * SESSIONS))
    try:
        early = [s for s in sessions if str(dead) in s.facts.nodes]
        deadline = time.monotonic() + PATIENCE
        while any(str(dead) in session.live_nodes() for session in early):
            assert time.monotonic() < deadline, "the dead broker is still listed"
            time.sleep(0.2)
        others = {str(number) for number in brokers.ids if number != dead}
        assert all(set(session.live_nodes()) == others for session in sessions)
    finally:
        for session in sessions:
            session.close()
        brokers.revive()


def test_brokers_and_the_tool_are_killed_at_random(brokers: Brokers, tmp_path: Path) -> None:
    """A sample of the long test of that name (`tests.long.mix`): all promises hold, a
    `min.insync.replicas` among the keys is as declared, and no command takes a minute."""
    mix = mixed(brokers, tmp_path, "sample")
    while not (mix.counts["kills of the tool"] and mix.counts["kills of brokers"]):
        # An apply may have ended before its turn to be killed comes.
        assert mix.counts["rounds"] < MOST, mix.counts
        for _ in range(SAMPLE):
            mix.play()
    assert not mix.violations, "\n".join(mix.violations)


# ── what KIP-4 hoped for ────────────────────────────────────────────────────────────────


def test_any_broker_passes_a_write_on(brokers: Brokers) -> None:
    """KIP-4 sent writes to the controller and left forwarding for later: now each broker takes
    them, whoever the controller is."""
    row = CreateTopicsRequest.CreatableTopic
    with asked(brokers) as session:
        for node in session.facts.nodes:
            name = f"forwarded-{node}"
            request = CreateTopicsRequest(
                topics=[row(name=name, num_partitions=1, replication_factor=1)],
                timeout_ms=20_000,
                min_version=5,
            )
            (answer,) = session.context.wire.send(request, 30.0, node).topics
            assert (answer.name, answer.error_code) == (name, 0)
            kafka.apply(session, kafka.gone(name, incarnation(session, name)))
        assert len(session.facts.nodes) == len(brokers.ids)


def test_a_topic_whose_brokers_are_dead_is_deleted(brokers: Brokers) -> None:
    """KIP-4 wanted a force for unhealthy topics: there is nothing to force. One without a leader,
    all of whose replicas are on a dead broker, is deleted like any other, and does not come back
    with the broker."""
    dies, name = brokers.plain(), "unhealthy"
    with asked(brokers) as session:
        kafka.apply(session, kafka.new(name, partitions=None, replica_assignment=[[dies]]))
        topic_id = incarnation(session, name)
    brokers.kill(dies)
    try:
        with asked(brokers, dies) as session:
            eventually(lambda: leaderless(session, name), bool, PATIENCE)
            (outcome,) = kafka.apply(session, kafka.gone(name, topic_id))
            assert outcome.fault is None
            eventually(lambda: kafka.read(session, name), lambda r: isinstance(r, Absent))
    finally:
        brokers.revive()
    with asked(brokers) as session:
        for node in session.facts.nodes:
            assert isinstance(kafka.read(session, name, at=node), Absent)


@contextmanager
def asked(brokers: Brokers, dead: int | None = None) -> Iterator[KafkaSession]:
    """The super user, at those that live, as soon as they let it in: one that has just died is
    listed for a while."""
    alive = tuple(brokers.address(number) for number in brokers.ids if number != dead)

    def tried() -> KafkaSession | None:
        try:
            return kafka.connect(brokers.box, "admin", servers=alive)
        except ConnectError:
            return None

    session = eventually(tried, lambda found: found is not None, PATIENCE)
    assert session is not None
    yield session
    session.close()


def incarnation(session: KafkaSession, name: str) -> str | None:
    """The id of a topic that was just made."""
    seen = eventually(lambda: kafka.read(session, name), lambda r: isinstance(r, Observed))
    assert isinstance(seen, Observed)
    return seen.incarnation


def leaderless(session: KafkaSession, name: str) -> bool:
    """A connection to a broker that was just killed may still be tried once."""
    try:
        (row,) = wire_describe.describe_topics(session.context.wire, [name], 10.0)
    except (RequestUnanswered, RequestNotSent):
        return False
    return all(part.leader is None for part in row.partitions)
