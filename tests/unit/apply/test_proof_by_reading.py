"""What a reading proves of an update that took the last of what an object was made of."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.apply.recovery import settle_results
from kafkaform.apply.report import Result
from kafkaform.apply.verify import Judgement, is_visible, judge_step
from kafkaform.core.change import Action, Change, Outcome, OutcomeStatus, PathChange
from kafkaform.core.resource import Absent, Facts, Fault, FaultClass, Identity, Observed
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.kinds.topic import configs
from kafkaform_kafka.kinds.user import resource_type as scram
from kafkaform_kafka.memory import MemoryProvider, SimulatedClock, SimulatedCluster
from kafkaform_schema_registry.kinds.subject_settings import SUBJECT_CONFIG_TYPE

from ...kit.simulated.engine import identity
from ..kafka.kinds import test_scram as login

FACTS = Facts("cluster", ("1", "2"))
TYPES = {configs.KIND: configs.TYPE, quotas.KIND: quotas.TYPE, scram.KIND: scram.TYPE}


def update(kind: str, before: dict[str, str], after: dict[str, str]) -> Change:
    """Of the configs of topic t, or of the limits of user t."""
    named = {
        configs.KIND: FrozenMap(topic="t"),
        quotas.KIND: FrozenMap(entity=FrozenMap(user="t")),
    }[kind]
    key = "t" if kind == configs.KIND else quotas.entity_key({"user": "t"})
    change = Change(
        identity(key, kind),
        f"{kind}.t",
        Action.UPDATE,
        named.with_items({"config": FrozenMap(before)}),
        named.with_items({"config": FrozenMap(after)}),
        tuple(
            PathChange(("config", name), before.get(name), after.get(name))
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        ),
    )
    return replace(change, steps=TYPES[kind].steps(change, FACTS))


KEYS = {configs.KIND: "retention.ms", quotas.KIND: "producer_byte_rate"}


@pytest.mark.parametrize("kind", KEYS)
def test_the_last_config_is_gone_as_it_should_be(kind: str) -> None:
    """What is only its configs is absent after that: recovery and verification say done alike."""
    change = update(kind, {KEYS[kind]: "1000"}, {})
    (step,), gone = change.steps, Absent(change.identity)
    assert judge_step(change, step, gone, TYPES[kind], FACTS) is Judgement.DONE
    assert is_visible(change, gone, TYPES[kind], FACTS, None)


def test_a_lost_answer_is_settled_so() -> None:
    """Every live broker shows nothing, which is what was asked for."""
    cluster = SimulatedCluster(brokers=2, clock=SimulatedClock())
    cluster.outside.create("t", 1, 1, EMPTY)
    session = MemoryProvider(cluster).open("kafka", EMPTY, {})
    change = update(configs.KIND, {KEYS[configs.KIND]: "1000"}, {})
    lost = Fault("NO_ANSWER", "no answer", FaultClass.AMBIGUOUS)
    unknown = Outcome(change.steps[0].id, OutcomeStatus.UNKNOWN, lost)
    (found,) = settle_results(
        [Result(change, change.steps[0], unknown)], session, TYPES, 5.0, cluster.clock
    )
    assert found.outcome.status is OutcomeStatus.APPLIED


def test_a_value_that_is_not_there_was_not_written() -> None:
    """An object that is gone does not hold what an update set: somebody else was there."""
    change = update(configs.KIND, {KEYS[configs.KIND]: "1000"}, {KEYS[configs.KIND]: "2000"})
    (step,), gone = change.steps, Absent(change.identity)
    assert judge_step(change, step, gone, configs.TYPE, FACTS) is Judgement.OTHER
    assert not is_visible(change, gone, configs.TYPE, FACTS, None)


def test_a_login_that_is_gone_has_no_new_password() -> None:
    """An update of hidden data writes no path, so an absence proves nothing good of it."""
    change = login.raised("u")
    change = replace(change, steps=scram.TYPE.steps(change, FACTS))
    (step,), gone = change.steps, Absent(change.identity)
    assert judge_step(change, step, gone, scram.TYPE, FACTS) is Judgement.OTHER
    assert not is_visible(change, gone, scram.TYPE, FACTS, None)


def test_the_first_of_several_requests_makes_an_object() -> None:
    """The answer to it is lost, and the object lacks what the others would add: it is ours. With
    another value it is somebody else's."""
    kind, subject = SUBJECT_CONFIG_TYPE, {"subject": "orders-value"}
    after = FrozenMap(**subject, compatibility="FULL", mode="READWRITE")
    paths = tuple(PathChange((name,), None, after[name]) for name in sorted(after))
    identity = Identity("schema_registry", kind.name, "orders-value")
    change = Change(identity, f"{kind.name}.orders", Action.CREATE, None, after, paths)
    change = replace(change, steps=kind.steps(change, FACTS))
    first, second = change.steps
    made = Observed(identity, FrozenMap(**subject, compatibility="FULL", mode="INHERITED"))
    theirs = replace(made, attributes=made.attributes.with_items({"compatibility": "NONE"}))
    assert judge_step(change, first, made, kind, FACTS) is Judgement.DONE
    assert judge_step(change, first, theirs, kind, FACTS) is Judgement.OTHER
    assert judge_step(change, second, made, kind, FACTS) is Judgement.OTHER
