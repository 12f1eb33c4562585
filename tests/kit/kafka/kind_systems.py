"""Fixtures of the conformance suite for objects without an incarnation, on either system."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from kafkaform.core.change import Action, OutcomeStatus
from kafkaform.core.clock import Clock
from kafkaform.core.resource import Absent, Observed
from kafkaform.core.schema import ObjectSchema
from kafkaform.core.secret import Secret
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value
from kafkaform.provider.contract import ResourceType, Secrets, Session
from kafkaform.provider.testing.workbench import Bench, Edit, Question
from kafkaform_kafka.kinds.acl import resource_type as acls
from kafkaform_kafka.kinds.config.resource_type import GROUP
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.kinds.user import resource_type as scram
from kafkaform_kafka.protocol.acl import Acl
from kafkaform_kafka.provider import TYPES

from .topic_systems import RealSystem, SimulatedSystem, TopicSystem

System = RealSystem | SimulatedSystem
PASSWORD = SecretRef("env", "CONFORMANCE_LOGIN")

RECREATED = "it has no incarnation: what is made again under its name is the same object"
ASKED = "the data sources are asked in the suite of kafka_topic, which has fixtures for all of them"
NO_FALLBACK = "nothing takes effect in the place of what is removed"
LOCAL = "Kafka has no dry run of its requests"
FIXED = "every attribute is part of what it is, so there is nothing to edit"
ALWAYS: Mapping[str, str] = {
    "delete_takes_only_that_incarnation": RECREATED,
    "a_query_answers_as_its_schema_says": ASKED,
    "a_query_does_not_guess": ASKED,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """What the objects of one kind look like. fresh: a name that nothing else uses -> the declared
    attributes of an object; bad, edits, unfit: see `Fixture`."""

    type: ResourceType
    fresh: Callable[[str], Mapping[str, Value]]
    bad: FrozenMap
    edits: Sequence[Edit] = ()
    unfit: Mapping[str, str] = field(default_factory=dict)


def config(**values: Value) -> FrozenMap:
    """Keyword `consumer_session` is key `consumer.session`."""
    return FrozenMap(config=FrozenMap({k.replace("_", "."): v for k, v in values.items()}))


def limits(**values: int | Decimal) -> FrozenMap:
    return FrozenMap(config=FrozenMap(values))


def _acl(name: str) -> Mapping[str, Value]:
    return Acl(f"User:{name}", "*", "Read", "Allow", "Topic", name, "Literal").attributes


def _quota(name: str) -> Mapping[str, Value]:
    left_out = dict.fromkeys(("entity_type", "entity_name", "client_id", "ip"))
    return {**left_out, "user": name, **limits(producer_byte_rate=1000)}


def _group(name: str) -> Mapping[str, Value]:
    given = config(consumer_session_timeout_ms="50000")
    return {"group": name, "config_mode": "authoritative", **given}


def _login(name: str) -> Mapping[str, Value]:
    return {
        "username": name,
        "scram_mechanism": "SCRAM-SHA-256",
        "scram_iterations": 4096,
        "password": PASSWORD,
        "password_wo_version": None,
    }


SAMPLES: Mapping[str, Sample] = {
    acls.KIND: Sample(
        acls.TYPE,
        _acl,
        FrozenMap(resource_name=""),
        unfit={
            "edits_end_as_expected": FIXED,
            "a_removed_path_says_what_takes_effect": FIXED,
            "preflight_refuses_what_apply_refuses": LOCAL,
        },
    ),
    quotas.KIND: Sample(
        quotas.TYPE,
        _quota,
        limits(producer_byte_rate=0),
        (
            Edit("change a limit", wish=limits(producer_byte_rate=2000)),
            Edit(
                "set one and remove one",
                limits(producer_byte_rate=1, request_percentage=5),
                limits(request_percentage=5, controller_mutation_rate=Decimal("0.5")),
            ),
            Edit(
                "set what somebody else has set meanwhile",
                wish=limits(producer_byte_rate=2000),
                meanwhile=limits(producer_byte_rate=3000),
            ),
            Edit("ask for no limit", wish=FrozenMap(config=EMPTY), blocked=True),
            Edit("ask for nonsense", wish=limits(no_such_rate=1), blocked=True),
        ),
        {"a_removed_path_says_what_takes_effect": NO_FALLBACK},
    ),
    GROUP.kind: Sample(
        TYPES[GROUP.kind],
        _group,
        config(consumer_session_timeout_ms="soon"),
        (
            Edit("change a config", wish=config(consumer_session_timeout_ms="55000")),
            Edit(
                "remove one of two",
                config(consumer_session_timeout_ms="50000", consumer_heartbeat_interval_ms="6000"),
                config(consumer_session_timeout_ms="50000"),
                fallbacks=FrozenMap({"config.consumer.heartbeat.interval.ms": "5000"}),
            ),
            Edit(
                "set what somebody else has set meanwhile",
                wish=config(consumer_session_timeout_ms="51000"),
                meanwhile=config(consumer_session_timeout_ms="52000"),
            ),
            Edit("ask for nonsense", wish=config(consumer_session_timeout_ms="soon"), blocked=True),
        ),
    ),
    scram.KIND: Sample(
        scram.TYPE,
        _login,
        FrozenMap(scram_iterations=100),
        (
            Edit("raise the iterations", wish=FrozenMap(scram_iterations=8192)),
            Edit(
                "set what somebody else has set meanwhile",
                wish=FrozenMap(scram_iterations=8192),
                meanwhile=FrozenMap(scram_iterations=9000),
            ),
            Edit("ask for too few", wish=FrozenMap(scram_iterations=100), blocked=True),
        ),
        {
            "a_removed_path_says_what_takes_effect": NO_FALLBACK,
            "preflight_refuses_what_apply_refuses": LOCAL,
        },
    ),
}


class KindSystem:
    """One kind of object on one system. Who acts behind the tool's back is another session."""

    incarnations = False
    provider = TopicSystem.provider
    data: Mapping[str, ObjectSchema] = EMPTY
    questions: Sequence[Question] = ()
    secrets: Secrets = FrozenMap({str(PASSWORD): Secret("conformance-password")})

    def __init__(self, system: System, sample: Sample) -> None:
        self._system = system
        self._sample = sample
        self.clock: Clock = system.clock
        self.type = sample.type
        self.edits = sample.edits
        self.bad = sample.bad
        self.unfit: Mapping[str, str] = {**ALWAYS, **sample.unfit}
        self._given: list[FrozenMap] = []

    def open(self, *, privileged: bool) -> Session:
        return self._system.open(privileged=privileged)

    def fresh(self, given: FrozenMap) -> FrozenMap:
        name = f"conformance-{uuid.uuid4().hex[:12]}"
        attributes = FrozenMap({**self._sample.fresh(name), **given})
        self._given.append(attributes)
        return attributes

    def make(self, attributes: FrozenMap) -> None:
        with Bench(self) as bench:
            assert bench.create(attributes).status is OutcomeStatus.APPLIED

    def alter(self, attributes: FrozenMap, given: FrozenMap) -> None:
        with Bench(self) as bench:
            for outcome in bench.apply_change(bench.plan_edit(Edit("", wish=given), attributes)):
                assert outcome.status is OutcomeStatus.APPLIED

    def recreate(self, attributes: FrozenMap) -> None:
        with Bench(self) as bench:
            live = bench.wait_seen(attributes)
            bench.apply_change(bench.make_change(Action.DELETE, attributes, live, None))
            bench.wait(attributes, lambda r: isinstance(r, Absent), "is absent")
        self.make(attributes)

    def clean(self) -> None:
        """Remove what is left of every object that was thought of."""
        with Bench(self) as bench:
            for attributes in self._given:
                identity = bench.make_identity(attributes)
                live = bench.read([identity])[identity]
                if isinstance(live, Observed):
                    bench.apply_change(bench.make_change(Action.DELETE, attributes, live, None))
