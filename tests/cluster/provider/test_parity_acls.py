"""ACLs: the simulated cluster answers each request, dry run and reading as a real one does."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Batch, Change, Step
from kafkaform.core.clock import Clock
from kafkaform.core.resource import Depth, Hidden, Identity
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Session
from kafkaform.provider.testing.workbench import INSTANCE
from kafkaform_kafka.kinds.acl import resource_type as acls
from kafkaform_kafka.protocol.acl import CLUSTER, NAMES, SUPPORTED, Acl, parse_acl

from ...conftest import Broker
from ...kit.kafka.logins import Login
from ...kit.kafka.topic_systems import RealSystem, SimulatedSystem, real_system

PATIENCE, PAUSE = 60.0, 0.2
"""Seconds: for which a broker may be behind, and between two looks."""
System = RealSystem | SimulatedSystem
Line = list[tuple[str, str]]


def acl(name: str, **fields: str) -> Acl:
    return replace(Acl(f"User:{name}", "*", "Read", "Allow", "Topic", name, "Literal"), **fields)


def step(session: Session, action: Action, rule: Acl) -> Step:
    identity = Identity(INSTANCE, acls.KIND, rule.key)
    made = action is Action.CREATE
    before, after = (None, rule.attributes) if made else (rule.attributes, None)
    change = Change(identity, "kafka_acl.x", action, before=before, after=after)
    (only,) = acls.TYPE.steps(change, session.facts)
    return only


Script = Callable[[str], Iterator[tuple[Action, Sequence[Acl]]]]


def made_and_deleted(name: str) -> Iterator[tuple[Action, Sequence[Acl]]]:
    rules = [acl(name), acl(name, pattern_type="Prefixed"), acl(name, permission="Deny")]
    yield Action.CREATE, rules
    yield Action.CREATE, rules[:1]
    yield Action.DELETE, rules[:2]
    yield Action.DELETE, rules


def one_of_them_bad(name: str) -> Iterator[tuple[Action, Sequence[Acl]]]:
    cluster = acl(name, resource_type="Cluster", operation="Alter")
    empty = acl(name, resource_name="")
    rules = [acl(name), cluster, empty, acl(name, host="10.0.0.1")]
    yield Action.CREATE, rules
    yield Action.DELETE, [rules[0], rules[3]]


def every_word(name: str) -> Iterator[tuple[Action, Sequence[Acl]]]:
    rules = [
        acl(
            name,
            resource_type=kind,
            operation=operation,
            resource_name=CLUSTER if kind == "Cluster" else name,
        )
        for kind, operations in SUPPORTED.items()
        for operation in ("All", *operations)
    ]
    yield Action.CREATE, rules
    yield Action.DELETE, rules


SCRIPTS: tuple[Script, ...] = (made_and_deleted, one_of_them_bad, every_word)


def transcript(
    system: System, script: Script, name: str, expected: Sequence[Line] = ()
) -> list[Line]:
    """For each request what the dry run and the apply say, then what a reading shows. expected: the
    transcript of another system; readings are repeated until they show the same, or time is up."""
    session, lines = system.open(privileged=True), []
    for action, rules in script(name):
        steps = [step(session, action, rule) for rule in rules]
        batch = Batch("1", INSTANCE, steps[0].request, tuple(steps))
        dry = [v.fault.code if v.fault else "passed" for v in session.preflight(batch)]
        wet = [f"{o.status} {o.fault.code if o.fault else ''}" for o in session.apply(batch, {})]
        lines.append(list(zip(dry, wet, strict=True)))
        wanted = expected[len(lines)] if expected else None
        lines.append(look_until(system.clock, session, rules, wanted))
    session.close()
    return lines


def look_until(clock: Clock, session: Session, rules: Sequence[Acl], wanted: Line | None) -> Line:
    """How each rule reads. A broker acknowledges a change before it shows it."""
    ids = [Identity(INSTANCE, acls.KIND, rule.key) for rule in rules]
    deadline = clock.monotonic() + PATIENCE
    while True:
        found = session.read(ids)
        pairs = zip(rules, ids, strict=True)
        seen = [(rule.operation, type(found[identity]).__name__) for rule, identity in pairs]
        if wanted in (None, seen) or clock.monotonic() > deadline:
            return seen
        clock.sleep(PAUSE)


def forbidden(system: System, name: str) -> Line:
    """What somebody without rights is told."""
    session = system.open(privileged=False)
    lines = []
    for action in (Action.CREATE, Action.DELETE):
        one = step(session, action, acl(name))
        batch = Batch("1", INSTANCE, one.request, (one,))
        (verdict,), (outcome,) = session.preflight(batch), session.apply(batch, {})
        assert verdict.fault and outcome.fault
        lines.append((verdict.fault.code, outcome.fault.code))
    identity = Identity(INSTANCE, acls.KIND, acl(name).key)
    reading = session.read([identity])[identity]
    assert isinstance(reading, Hidden)
    coverage = session.sweep(acls.KIND, Depth.FULL).coverage
    assert coverage.fault
    lines.append((reading.right, f"{coverage.kind} {coverage.fault.code}"))
    session.close()
    return lines


@pytest.fixture
def real(broker: Broker, stranger: Login) -> RealSystem:
    return real_system(broker, stranger)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_the_simulated_cluster_answers_like_a_real_one(script: Script, real: RealSystem) -> None:
    """Dry runs, applies and readings of one script are the same, request by request."""
    name = f"parity-{uuid.uuid4().hex[:10]}"
    simulated = transcript(SimulatedSystem(), script, name)
    assert transcript(real, script, name, simulated) == simulated


def test_missing_rights_are_refused_alike(real: RealSystem) -> None:
    """Somebody without rights sees nothing and does nothing, and is told the same."""
    assert forbidden(SimulatedSystem(), "x") == forbidden(real, "x")


def test_data_sources_filter_alike(real: RealSystem) -> None:
    """The same question has the same answer."""
    name = f"parity-{uuid.uuid4().hex[:10]}"
    given = {"resource_name": name, "resource_pattern_type_filter": "Match"}
    arguments = FrozenMap({**dict.fromkeys(NAMES), **given})
    answers = []
    for system in (SimulatedSystem(), real):
        session = system.open(privileged=True)
        rules = [acl(name), acl(name, resource_name=name[:9], pattern_type="Prefixed")]
        steps = tuple(step(session, Action.CREATE, rule) for rule in rules)
        session.apply(Batch("1", INSTANCE, steps[0].request, steps), {})
        wanted = [(rule.operation, "Observed") for rule in rules]
        assert look_until(system.clock, session, rules, wanted) == wanted
        answer = session.query("kafka_acls", arguments)
        mine = [parse_acl(row) for row in answer["list"]]
        answers.append(([a for a in mine if a.principal == f"User:{name}"], answer["complete"]))
        gone = tuple(step(session, Action.DELETE, rule) for rule in rules)
        session.apply(Batch("1", INSTANCE, gone[0].request, gone), {})
        session.close()
    assert answers[0] == answers[1] and len(answers[0][0]) == 2
