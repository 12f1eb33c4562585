"""Quotas and logins: the simulated cluster answers the same requests as a real one, and shows the
same afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from operator import eq
from uuid import uuid4

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Batch, Change, Request, Step
from kafkaform.core.resource import Identity, Observed, Reading
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Session
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.kinds.user import resource_type as scram
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...conftest import Broker
from ...kit.kafka.changes import FACTS
from ...kit.kafka.logins import Login
from ...kit.kafka.sessions import connect, eventually
from ...unit.kafka.kinds import test_quotas as quota
from ...unit.kafka.kinds import test_scram as login

SHA_256, SHA_512 = scram.MECHANISMS
SECRETS = {str(login.SECRET): Secret("parity")}

Script = Sequence[Sequence[Step]]


def steps(*changes: Change) -> list[Step]:
    kinds = {quotas.KIND: quotas.TYPE, scram.KIND: scram.TYPE}
    return [s for item in changes for s in kinds[item.identity.kind].steps(item, FACTS)]


def alter(entity: dict[str, str | None], put: dict[str, object], *gone: str) -> Step:
    """A request for a quota that no check has seen."""
    change = quota.changed(quota.declared({quota.PRODUCE: 1}, user="x"), None)
    (step,) = quotas.TYPE.steps(change, FACTS)
    payload = FrozenMap(entity=FrozenMap(entity), set=FrozenMap(put), remove=gone)
    identity = Identity("kafka", quotas.KIND, quotas.entity_key(entity))
    return replace(step, id=f"{identity}", identity=identity, payload=payload)


def quota_script(name: str) -> Script:
    user: dict[str, str | None] = {"user": name}
    address: dict[str, str | None] = {"ip": "203.0.113.9"}
    both: dict[str, str | None] = {"user": name, "client-id": None}
    return [
        [alter(user, {quota.PRODUCE: 5, quota.PERCENT: 2}), alter(both, {quota.CONSUME: 7})],
        [alter(user, {quota.PRODUCE: 6}, quota.PERCENT), alter(both, {quota.CONSUME: 7})],
        [alter(user, {quota.MUTATE: 1}, "no_such_key"), alter(both, {quota.MUTATE: 3})],
        [alter(user, {quota.PRODUCE: 0}), alter(both, {quota.CONNECT: 1})],
        [alter(user, {quota.PRODUCE: Decimal("0.5")}), alter(address, {quota.PRODUCE: 1})],
        [alter(address, {quota.CONNECT: 2**31}), alter(user, {quota.CONSUME: 2**64})],
        [alter(user, {}, quota.CONSUME), alter(both, {}, quota.CONSUME, quota.MUTATE)],
        [alter(user, {quota.PRODUCE: 1}), alter(both, {})],
    ]


def login_script(name: str) -> Script:
    other = f"{name}-other"
    return [
        steps(login.new(name)),
        steps(login.new(name, SHA_512, 8192), login.new(other, SHA_512)),
        steps(login.new(name, SHA_256, 100), login.new(other, SHA_256, 16384)),
        [*steps(login.raised(name)), *steps(login.new(name, SHA_512)), *steps(login.new(other))],
        steps(login.gone(name), login.gone(f"{name}-nobody")),
        steps(login.gone(name)),
        steps(login.gone(name, SHA_512), login.gone(other, SHA_512)),
    ]


SCRIPTS = {"quotas": quota_script, "logins": login_script}


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """A quota of an address is everybody's who comes from there."""
    return exclusive_broker


@pytest.fixture
def real(broker: Broker) -> Iterator[Session]:
    session = connect(broker, "admin")
    yield session
    session.close()


def play(session: Session, script: Script, expected: Sequence[object] = ()) -> list[object]:
    """What every request is answered, and what is there after it: a cluster of which this much is
    expected is read until it shows that."""
    said: list[object] = []
    for number, batch in enumerate(script):
        request: Request = batch[0].request
        named = [replace(step, id=f"{n}") for n, step in enumerate(batch)]
        outcomes = session.apply(Batch(f"{number}", "kafka", request, tuple(named)), SECRETS)
        said.append([(o.status, o.fault.code if o.fault else "") for o in outcomes])
        read = partial(read_all, session, sorted({step.identity for step in batch}))
        wanted = partial(eq, expected[len(said)]) if expected else bool
        said.append(eventually(read, wanted))
    return said


def read_all(session: Session, ids: Sequence[Identity]) -> list[object]:
    readings = session.read(ids)
    return [shown(readings[identity]) for identity in ids]


def shown(reading: Reading) -> object:
    return reading.attributes if isinstance(reading, Observed) else type(reading).__name__


@pytest.mark.parametrize("what", SCRIPTS)
def test_the_simulated_cluster_answers_like_a_real_one(what: str, real: Session) -> None:
    """The same outcomes and error codes, request by request, and the same objects after each."""
    script = SCRIPTS[what](f"parity-{uuid4().hex[:8]}")
    simulated = MemoryProvider(SimulatedCluster()).open("kafka", EMPTY, {})
    expected = play(simulated, script)
    assert play(real, script, expected) == expected
    codes = {code for row in expected[::2] for _, code in row}  # type: ignore[attr-defined]
    assert len(codes) > 1, "no request was refused"


@pytest.mark.parametrize("what", SCRIPTS)
def test_without_rights_both_refuse_alike(what: str, broker: Broker, stranger: Login) -> None:
    """Nothing is told and nothing is done, under the same names."""
    script = SCRIPTS[what]("parity-nobody")[:1]
    cluster = SimulatedCluster()
    cluster.grant("nobody")
    simulated = MemoryProvider(cluster, "nobody").open("kafka", EMPTY, {})
    ci = connect(broker, stranger)
    answers = [play(session, script) for session in (simulated, ci)]
    dry = [
        [
            (v.evidence, v.fault.code if v.fault else "")
            for v in session.preflight(
                Batch("dry", "kafka", script[0][0].request, tuple(script[0]))
            )
        ]
        for session in (simulated, ci)
    ]
    ci.close()
    assert answers[0] == answers[1] and dry[0] == dry[1]
    assert "Hidden" in str(answers)
