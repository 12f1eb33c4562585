"""Quotas of a real broker: what it tells, which level it enforces, what a plan makes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from kafkaform.core.change import Action
from kafkaform.core.clock import Clock, SystemClock
from kafkaform.core.resource import CoverageKind, Depth
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.plan.build import PlanHeader, make_plan
from kafkaform.plan.model import Options, Plan
from kafkaform.plan.observe import Look, read_world
from kafkaform.state.model import State
from kafkaform_kafka.connection.settings import KafkaSettings, make_client_config
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.kinds.quota.limits import find_applying
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_kafka.provider import PROVIDER
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.client import Wire
from kafkaform_kafka.wire.configs import QuotaRow, describe_quotas
from kafkaform_kafka.wire.topics import create_topics

from ...conftest import Broker
from ...kit.kafka.changes import change, topic
from ...kit.kafka.judgement import survey
from ...kit.kafka.logins import Login
from ...kit.kafka.quota_user import Entity, Limits, account, limits, opened
from ...kit.kafka.sessions import eventually, gone, login, new, preflight, send
from ...kit.simulated.engine import KAFKA, desired
from ...kit.simulated.engine import topic as declared

RATE = "controller_mutation_rate"
OVER = "THROTTLING_QUOTA_EXCEEDED"


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """Default quotas are everybody's who has none."""
    return exclusive_broker


@pytest.fixture
def quota(broker: Any) -> Iterator[Limits]:
    """Sets quotas of this test."""
    with limits(broker) as made:
        yield made


@pytest.fixture
def user(broker: Any, prefix: str) -> Iterator[KafkaSettings]:
    """The login of this test's own user."""
    with account(broker, prefix) as settings:
        yield settings


@pytest.fixture
def session(user: KafkaSettings) -> Iterator[KafkaSession]:
    """A session of this test's own user."""
    with opened(user) as session:
        yield session


# ── what it tells ───────────────────────────────────────────────────────────────────────


def test_every_entity_is_told_with_all_keys(quota: Limits, prefix: str) -> None:
    """Users, client ids and addresses, names and defaults, and numbers of any size."""
    rows: tuple[tuple[Entity, dict[str, float]], ...] = (
        ({"user": prefix}, {RATE: 2.5, "request_percentage": 200.0}),
        ({"user": prefix, "client-id": None}, {"consumer_byte_rate": 2.0**40}),
        ({"user": prefix, "client-id": f"{prefix}, a/b"}, {"producer_byte_rate": 1.0}),
        ({"user": None, "client-id": prefix}, {RATE: math.inf}),
        ({"user": None}, {"producer_byte_rate": 2.0**52}),
        ({"client-id": prefix}, {"request_percentage": 1e-3}),
        ({"ip": "203.0.113.7"}, {"connection_creation_rate": 7.0}),
        ({"ip": None}, {"connection_creation_rate": 1_000_000.0}),
    )
    quota.set(*rows)
    seen = quota.rows()
    assert all(seen.count(QuotaRow(entity, values)) == 1 for entity, values in rows)


def test_a_limit_that_is_no_number_is_told_as_such(
    quota: Limits, admin: KafkaSession, prefix: str
) -> None:
    """The broker stores NaN, and the listing keeps it."""
    entity = FrozenMap({"client-id": prefix})
    for value in (9.0, math.nan):
        quota.send((entity, {RATE: value}))

    def seen() -> Decimal:
        listed = quotas.index_quotas(admin.sweep(quotas.KIND, Depth.FULL))
        return listed.get(entity, {}).get(RATE, Decimal(0))

    assert eventually(seen, Decimal.is_nan)
    assert [row.entity for row in quota.rows()].count(entity) == 1


def test_without_the_right_nothing_is_told(broker: Any, ci: KafkaSession, stranger: Login) -> None:
    """A refusal is a fault that names the right, never an empty listing."""
    wire = Wire(make_client_config(login(broker, stranger)), 8)
    refused = describe_quotas(wire, 10)
    wire.close()
    assert (refused.code, refused.rows) == (31, ())
    coverage = ci.sweep(quotas.KIND, Depth.FULL).coverage
    assert coverage.kind is CoverageKind.FAILED and coverage.fault is not None
    assert "grant DescribeConfigs on Cluster" in coverage.fault.advice


def test_the_window_is_told_to_those_who_may_see_it(admin: KafkaSession, ci: KafkaSession) -> None:
    """Kafka's default is 11 samples of 1 s; who cannot see the config has it assumed."""
    told, assumed = (one.facts.recorded_values["mutation_window"] for one in (admin, ci))
    assert told == {"samples": 11, "seconds": 1, "assumed": False}
    assert assumed == {"samples": 11, "seconds": 1, "assumed": True}
    assert admin.facts.recorded_values["quota_callback"] is None


# ── which level it enforces ─────────────────────────────────────────────────────────────


def enforced(settings: KafkaSettings, client_id: str, rate: int) -> float:
    """Spends a second's more than the burst of this rate in a dry run; the seconds that the
    broker then asks a second dry run to wait: a little under 1 if this very rate applies."""
    wire = Wire({**make_client_config(settings), "client_id": client_id}, 8)
    waits = []
    for name, partitions in (("first", 12 * rate), ("second", 1)):
        payload = {
            "name": f"{settings.username}-{name}",
            "partitions": partitions,
            "replication_factor": 1,
            "assignment": None,
            "configs": {},
        }
        answers = create_topics(wire, [payload], 10, validate_only=True)
        (answer,) = answers.items.values()
        waits.append(answers.throttle if answer.code == 89 else 0.0)
    wire.close()
    assert waits[0] == 0.0
    return waits[1]


def test_the_broker_enforces_the_level_that_is_found(
    quota: Limits, user: KafkaSettings, session: KafkaSession
) -> None:
    """From the least specific level up, each new one takes over, here and at the broker.

    Levels 5, 6 and 8 name nobody, so they would throttle every other test of the run."""
    name = str(user.username)
    levels: tuple[tuple[int, Entity], ...] = (
        (7, {"client-id": "mine"}),
        (4, {"user": None, "client-id": "mine"}),
        (3, {"user": name}),
        (2, {"user": name, "client-id": None}),
        (1, {"user": name, "client-id": "mine"}),
    )
    for count, (number, _) in enumerate(levels, 1):
        # A bucket remembers what was spent under another rate, so each step has its own client.
        client_id = f"{name}-{number}"
        given = [
            {kind: client_id if name_ == "mine" else name_ for kind, name_ in entity.items()}
            for _, entity in levels[:count]
        ]
        rates = [2**power for power in range(count)]
        quota.set(*((e, {RATE: float(r)}) for e, r in zip(given, rates, strict=True)))
        seen = quotas.index_quotas(session.sweep(quotas.KIND, Depth.FULL))
        found = find_applying(RATE, name, client_id, seen)
        assert found is not None
        assert (found.level.number, found.value) == (number, Decimal(rates[-1]))
        assert 0.5 < enforced(user, client_id, rates[-1]) <= 1, number


# ── what a plan makes of it ─────────────────────────────────────────────────────────────


def planned(session: KafkaSession, *partitions: int) -> Plan:
    """The plan of a configuration with new topics of so many partitions."""
    names = (f"{session.facts.principal}-{number}"[5:] for number in range(len(partitions)))
    said = desired(*(declared(*each) for each in zip(names, partitions, strict=True)))
    state = State("lineage")
    sessions = {KAFKA: session}
    world = read_world(sessions, said, state, SystemClock())
    look = Look(sessions, world)
    header = PlanHeader("2026-01-01T00:00:00Z", "0")
    return make_plan(said, world, state, (), {KAFKA: PROVIDER}, look, Options(), header)


def test_a_plan_over_half_of_the_quota_says_so(quota: Limits, session: KafkaSession) -> None:
    """100 a second of our user and client id are 1,100 at once; a create spends twice."""
    name = str(session.facts.principal).removeprefix("User:")
    quota.set(
        ({"user": name, "client-id": "kafkaform"}, {RATE: 100.0}), ({"user": name}, {RATE: 1.0})
    )
    for sizes, warned in (((275,), False), ((200, 76), True)):
        made = planned(session, *sizes)
        assert len(made.effective) == len(sizes)
        findings = made.instances[KAFKA].findings
        texts = [f.text for f in findings if f.rule == "quota-mutations-spent"]
        assert len(texts) == warned
    assert "spend 552 controller mutations" in texts[0]
    assert f"= 100 of user {name}, client-id kafkaform lets 1,100 through" in texts[0]


def test_nobody_is_warned_of_what_he_may_not_see(ci: KafkaSession) -> None:
    """The user without any right gets a plan, without a word of quotas and without a failure."""
    changes = [new("quota", partitions=2_000), change(Action.DELETE, topic(), None)]
    needs = PROVIDER.review_needs(changes)
    sweeps = {kind: ci.sweep(kind, depth) for kind, depth in needs.items()}
    assert sweeps[quotas.KIND].coverage.kind is CoverageKind.FAILED
    pairs = survey(changes, sweeps, ci.facts)
    assert not [finding for _, finding in pairs if finding.rule.startswith("quota-")]
    assert PROVIDER.find_limit(changes, sweeps, ci.facts) is None


# ── the simulated cluster does the same ─────────────────────────────────────────────────


def transcript(session: Any, clock: Clock, prefix: str) -> list[tuple[str, float]]:
    """Every kind of request against a full bucket of 220: why each item was refused, and the
    seconds that the cluster asks to wait; before the next request the longest of them pass."""
    said: list[tuple[str, float]] = []

    def note(*answers: Any) -> Any:
        said.extend((a.fault.code, a.fault.retry_after) if a.fault else ("", 0.0) for a in answers)
        return answers

    def wait() -> None:
        clock.sleep(said[-1][1] + 0.1)

    a, b, c, d, e, f = (f"{prefix}-{name}" for name in "abcdef")
    dry = [new(f"{prefix}-{number}", partitions=n) for number, n in enumerate((100, 100, 40, 1))]
    note(*preflight(session, *dry))
    wait()
    made, _ = note(*send(session, new(a, partitions=25), new(b)))
    wait()
    grow = change(Action.UPDATE, topic(a, partitions=25), topic(a, partitions=50))
    note(*preflight(session, grow), *send(session, grow))
    wait()
    note(*send(session, gone(a, made.incarnation)), *send(session, new(c)))
    wait()
    # An item that is larger than the whole bucket passes, and the items after it do not.
    note(*send(session, new(d, partitions=230), *map(new, (e, f))))
    return said


def test_the_simulated_cluster_throttles_like_a_real_one(
    quota: Limits, session: KafkaSession, prefix: str
) -> None:
    """The same quota lets the same items through, and asks to wait about as long."""
    quota.set(({"user": prefix}, {RATE: 20.0}))
    cluster = SimulatedCluster()
    cluster.mutations.limit({"user": "admin"}, 20)
    simulated = MemoryProvider(cluster).open(KAFKA, EMPTY, {})
    real = transcript(session, SystemClock(), prefix)
    same = transcript(simulated, cluster.clock, prefix)
    assert [code for code, _ in real] == [code for code, _ in same]
    assert [code for code, _ in same].count(OVER) == 6
    for (_, one), (_, two) in zip(real, same, strict=True):
        assert one == pytest.approx(two, abs=0.7)


def test_the_simulated_cluster_tells_what_a_real_one_tells(
    quota: Limits, session: KafkaSession, prefix: str
) -> None:
    """The listing of this test's entities is the same, to the value."""
    entities: tuple[Entity, ...] = ({"user": prefix}, {"user": prefix, "client-id": None})
    quota.set(*((entity, {RATE: 0.5}) for entity in entities))
    cluster = SimulatedCluster()
    for entity in entities:
        cluster.mutations.limit(entity, Decimal("0.5"))
    simulated = MemoryProvider(cluster).open(KAFKA, EMPTY, {})
    seen, same = (
        quotas.index_quotas(one.sweep(quotas.KIND, Depth.FULL)) for one in (session, simulated)
    )
    assert {FrozenMap(entity): seen[FrozenMap(entity)] for entity in entities} == same
