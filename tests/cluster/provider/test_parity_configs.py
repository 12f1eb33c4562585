"""Configs of brokers, the cluster, groups and client metrics: the simulated cluster answers the
same requests as a real one, and shows the same afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Batch, Step
from kafkaform.core.resource import Absent, Hidden, Identity, Observed
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Session
from kafkaform_kafka.kinds.config.resource_type import BROKER, DEFAULTS, GROUP, METRICS, ConfigScope
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster
from kafkaform_kafka.provider import TYPES

from ...conftest import Broker
from ...kit.kafka.changes import FACTS
from ...kit.kafka.config_changes import PASSWORD, declared, planned
from ...kit.kafka.logins import Login
from ...kit.kafka.sessions import connect, eventually

SECRETS = {str(PASSWORD): Secret("parity")}

Said = tuple[str, str]
Script = Sequence[Sequence[Step]]

_NAMED: Mapping[str, Mapping[str, Any]] = {
    BROKER.kind: {"broker_id": 1},
    DEFAULTS.kind: {},
    GROUP.kind: {"group": "g"},
    METRICS.kind: {"name": "m"},
}


def alter(
    scope: ConfigScope,
    key: str,
    put: Mapping[str, str],
    *gone: str,
    secrets: Sequence[str] = (),
) -> Step:
    """A request that no check has seen."""
    config = {"metrics": "a"} if scope is METRICS else {"x": "1"}
    block = declared(scope.kind, **_NAMED[scope.kind], config=config)
    (step,) = TYPES[scope.kind].steps(planned(scope.kind, block), FACTS)
    identity = Identity("kafka", scope.kind, key)
    payload: dict[str, Any] = {
        "resource": scope.resource,
        "name": scope.resource_name(key),
        "set": FrozenMap(put),
        "delete": gone,
    }
    if secrets:
        payload["secrets"] = FrozenMap(dict.fromkeys(secrets, PASSWORD))
    request = replace(step.request, node=scope.node(key))
    return replace(
        step, id=str(identity), identity=identity, request=request, payload=FrozenMap(payload)
    )


def broker_script(name: str) -> Script:
    return [
        [alter(BROKER, "1", {"num.replica.fetchers": "2", "log.cleaner.backoff.ms": "5"})],
        [alter(BROKER, "1", {"num.replica.fetchers": " +2 "}, "log.cleaner.backoff.ms")],
        [alter(BROKER, "1", {"num.partitions": "3"})],
        [alter(BROKER, "1", {"ssl.keystore.type": "PEM"})],
        [alter(BROKER, "1", {"num.replica.fetchers": "two"})],
        [alter(BROKER, "1", {"num.replica.fetchers": "0"})],
        [alter(BROKER, "1", {"min.insync.replicas": "2"})],
        [alter(BROKER, "1", {}, "min.insync.replicas")],
        [alter(BROKER, "1", {f"{name}.plugin": "x"}, secrets=[f"{name}.password"])],
    ]


def broker_end(name: str) -> Script:
    keys = ("num.replica.fetchers", f"{name}.plugin", f"{name}.password", "no.such.key")
    return [[alter(BROKER, "1", {}, *keys)]]


def cluster_script(_: str) -> Script:
    return [
        [alter(DEFAULTS, "default", {"log.cleaner.delete.retention.ms": "5000"})],
        [alter(DEFAULTS, "default", {"max.connections.per.ip": "77", "log.preallocate": "TRUE"})],
        [alter(DEFAULTS, "default", {"listeners": "A://:1"})],
        [alter(DEFAULTS, "default", {"ssl.keystore.type": "PEM"})],
        [alter(DEFAULTS, "default", {"auto.create.topics.enable": "true"})],
        [alter(DEFAULTS, "default", {"max.connections.per.ip": "-1"})],
        [alter(DEFAULTS, "default", {"x": "1"}, "x")],
        [alter(DEFAULTS, "default", {}, "min.insync.replicas")],
    ]


def cluster_end(_: str) -> Script:
    keys = ("log.cleaner.delete.retention.ms", "max.connections.per.ip", "log.preallocate")
    return [[alter(DEFAULTS, "default", {}, *keys)]]


def group_script(name: str) -> Script:
    good = {"consumer.session.timeout.ms": "50000", "share.isolation.level": "read_committed"}
    return [
        [alter(GROUP, name, good), alter(GROUP, f"{name}-b", {"no.such.key": "1"})],
        [alter(GROUP, name, {"consumer.session.timeout.ms": "soon"})],
        [alter(GROUP, name, {"share.isolation.level": "none"})],
        [alter(GROUP, name, {"consumer.heartbeat.interval.ms": "0"})],
        [alter(METRICS, name, {"metrics": "b,a", "interval.ms": "5000"})],
        [alter(METRICS, name, {"interval.ms": "99"}), alter(METRICS, f"{name}-b", {"x": "1"})],
    ]


def group_end(name: str) -> Script:
    keys = ("consumer.session.timeout.ms", "share.isolation.level")
    return [[alter(GROUP, name, {}, *keys), alter(METRICS, name, {}, "metrics", "interval.ms")]]


def transcript(session: Session, script: Script) -> list[list[tuple[Said, Said]]]:
    """What the dry run and the apply say of each step."""
    found = []
    for steps in script:
        batch = Batch("b", "kafka", steps[0].request, tuple(steps))
        dry = [("dry", v.fault.code if v.fault else "") for v in session.preflight(batch)]
        wet = [(str(o.status), o.fault.code if o.fault else "") for o in _sent(session, batch)]
        found.append([*zip(dry, wet, strict=True)])
    return found


def _sent(session: Session, batch: Batch) -> Any:
    return session.apply(batch, SECRETS)


def shows(session: Session, script: Script, expected: list[object]) -> bool:
    """True as soon as that is shown: a broker may be behind."""
    return bool(eventually(lambda: shown(session, script), lambda found: found == expected))


def shown(session: Session, script: Script) -> list[object]:
    """Of each object what the script has written: values, names of secrets and fallbacks. What is
    in effect where nothing is set is left out, because a real broker has static configs."""
    steps = [step for steps in script for step in steps]
    keys = {key for s in steps for key in (*s.payload["set"], *s.payload.get("secrets", {}))}
    found: list[object] = []
    for identity in sorted({step.identity for step in steps}):
        reading = session.read([identity])[identity]
        if isinstance(reading, Absent):
            found.append(None)
            continue
        assert isinstance(reading, Observed), reading
        config = {k: v for k, v in reading.attributes["config"].items() if k in keys}
        secret = {*(reading.attributes.get("secret_keys") or {})} & keys
        below = {p: v for p, v in reading.fallbacks.items() if p.partition(".")[2] in config}
        found.append((config, secret, below) if config or secret else None)
    return found


@pytest.fixture
def broker(exclusive_broker: Broker) -> Broker:
    """A broker and the cluster have one set of configs."""
    return exclusive_broker


@pytest.fixture
def simulated() -> Session:
    """A cluster with one broker and eligible leader replicas, as the sandbox is."""
    cluster = SimulatedCluster(brokers=1)
    cluster.elr = True
    return MemoryProvider(cluster, "admin").open("kafka", EMPTY, {})


@pytest.fixture
def real(broker: Broker) -> Iterator[Session]:
    session = connect(broker, "admin")
    yield session
    session.close()


@pytest.mark.parametrize(
    ("script", "end"),
    [(broker_script, broker_end), (cluster_script, cluster_end), (group_script, group_end)],
    ids=lambda script: str(script.__name__),
)
def test_both_answer_and_show_the_same(
    script: Any, end: Any, simulated: Session, real: Session
) -> None:
    """The same steps are taken or refused for the same reason, and leave the same configs."""
    name = f"parity-{uuid4().hex[:8]}"
    try:
        assert transcript(simulated, script(name)) == transcript(real, script(name))
        assert shows(real, script(name), shown(simulated, script(name)))
    finally:
        ended = transcript(real, end(name))
    assert transcript(simulated, end(name)) == ended
    assert shows(real, script(name), shown(simulated, script(name)))


@pytest.mark.parametrize(
    ("scope", "key"), [(BROKER, "1"), (DEFAULTS, "default"), (GROUP, "g"), (METRICS, "m")]
)
def test_who_may_not_is_told_the_same(
    broker: Broker, stranger: Login, scope: ConfigScope, key: str
) -> None:
    """Without rights nothing is shown and nothing is done, and the missing right is named."""
    cluster = SimulatedCluster(brokers=1)
    cluster.grant("stranger")
    there = connect(broker, stranger)
    both = [MemoryProvider(cluster, "stranger").open("kafka", EMPTY, {}), there]
    identity = Identity("kafka", scope.kind, key)
    put = {"interval.ms": "5000"} if scope is METRICS else {"background.threads": "12"}
    if scope is GROUP:
        put = {"consumer.session.timeout.ms": "50000"}
    step = alter(scope, key, put)
    batch = Batch("b", "kafka", step.request, (step,))
    seen = [(s.read([identity])[identity], transcript(s, [[step]])) for s in both]
    advice = [v.fault.advice for s in both for v in s.preflight(batch) if v.fault]
    there.close()
    assert advice[0] == advice[1]
    assert "AlterConfigs on" in advice[0]
    assert seen[0] == seen[1]
    assert isinstance(seen[0][0], Hidden)
