"""Fixtures of the conformance suite: the types of this provider on a real or simulated registry."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafkaform.core.clock import Clock, SimulatedClock
from kafkaform.core.resource import Fault
from kafkaform.core.schema import ObjectSchema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Provider, ResourceType, Secrets, Session
from kafkaform.provider.http.exchange import Call, HttpAnswer
from kafkaform.provider.testing.workbench import INSTANCE, About, Edit, Question
from kafkaform_schema_registry import requests
from kafkaform_schema_registry.data_sources import DATA, SCHEMA, SCHEMAS
from kafkaform_schema_registry.formats.avro import normalize_avro
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.contracts import PHASES, RULE_FIELDS, flatten_metadata
from kafkaform_schema_registry.kinds.subject_settings import SUBJECT_CONFIG_TYPE
from kafkaform_schema_registry.memory import SimulatedRegistry, connect_simulated
from kafkaform_schema_registry.provider import PROVIDER

from .schemas import ORDER, ORDER_WITH_AMOUNT, ORDER_WITH_NOTE

UNFIT = {
    "delete_takes_only_that_incarnation": "nothing identifies a subject but its name",
    "a_removed_path_says_what_takes_effect": "nothing of these objects is removed alone",
    "preflight_refuses_what_apply_refuses": "a registry checks only subjects that exist",
}
ASKED = "the data sources are asked in the suite of schema_registry_schema"


class Door:
    """How a test reaches a registry.

    open: a session as an administrator or as nobody; ask: an answer to the administrator; apicurio:
    what it is.
    """

    def __init__(
        self,
        open_session: Callable[[bool], Session],
        ask: Callable[[Call], HttpAnswer | Fault],
        clock: Clock,
        *,
        apicurio: bool,
    ) -> None:
        self.open_session = open_session
        self.ask = ask
        self.clock = clock
        self.apicurio = apicurio

    def write(self, call: Call) -> HttpAnswer:
        """An answer that has to be a success."""
        answer = self.ask(call)
        assert isinstance(answer, HttpAnswer) and answer.succeeded, (call, answer)
        return answer

    def register(self, subject: str, text: str, kind: str = "avro", *references: Any) -> int:
        """Register a schema behind the tool's back; its id."""
        payload = FrozenMap(subject=subject, format=kind, schema=text, references=references)
        return int(self.write(requests.register(payload)).body["id"])


def open_simulated(registry: SimulatedRegistry) -> Door:
    """A registry in memory."""

    def open_session(privileged: bool) -> Session:
        provider = connect_simulated(registry, "admin" if privileged else "nobody")
        return provider.open(INSTANCE, EMPTY, EMPTY)

    return Door(open_session, registry.answer, SimulatedClock(), apicurio=registry.apicurio)


class System:
    """What all types share."""

    type: ResourceType
    provider: Provider = PROVIDER
    edits: Sequence[Edit] = ()
    bad: FrozenMap = EMPTY
    data: Mapping[str, ObjectSchema] = EMPTY
    questions: Sequence[Question] = ()
    secrets: Secrets = EMPTY
    incarnations = False
    unfit: Mapping[str, str] = UNFIT

    def __init__(self, door: Door) -> None:
        self._door = door
        self.clock = door.clock

    def open(self, *, privileged: bool) -> Session:
        return self._door.open_session(privileged)

    def recreate(self, attributes: FrozenMap) -> None:
        self._door.write(requests.delete_subject(attributes["subject"], permanent=False))
        self.make(attributes)

    def make(self, attributes: FrozenMap) -> None:
        raise NotImplementedError


class SchemaSystem(System):
    """Schemas of subjects whose level is BACKWARD."""

    type = schema.TYPE
    bad = FrozenMap(schema='{"type": "no such type"')
    data = DATA
    edits = (
        Edit("add a field with a default", wish=FrozenMap(schema=ORDER_WITH_NOTE)),
        Edit(
            "add what somebody else has added meanwhile",
            wish=FrozenMap(schema=ORDER_WITH_NOTE),
            meanwhile=FrozenMap(schema=ORDER_WITH_NOTE),
        ),
        Edit(
            "add a field without a default",
            wish=FrozenMap(schema=ORDER_WITH_AMOUNT),
            blocked=True,
        ),
        Edit("write nonsense", wish=FrozenMap(schema="{"), blocked=True),
        Edit("name another format", wish=FrozenMap(format="protobuf"), blocked=True),
    )
    questions = (
        Question(
            SCHEMA,
            About.OBJECT,
            lambda attributes: FrozenMap(subject=attributes["subject"], version=None),
            lambda answer, attributes: (
                answer["schema"] == normalize_avro(attributes["schema"]) and answer["latest"] >= 1
            ),
        ),
        Question(
            SCHEMAS,
            About.LIST,
            lambda attributes: FrozenMap(prefix="conformance"),
            lambda answer, attributes: attributes["subject"] in answer["subjects"],
        ),
    )

    def fresh(self, given: FrozenMap) -> FrozenMap:
        name = f"conformance {uuid.uuid4().hex[:12]}"
        return FrozenMap(
            subject=name,
            topic=None,
            part=None,
            strategy=None,
            format="avro",
            schema=ORDER,
            references=None,
        ).with_items(given)

    def make(self, attributes: FrozenMap) -> None:
        self._door.register(attributes["subject"], attributes["schema"])
        # Others use the registry's own level.
        body = {"compatibility": "BACKWARD"}
        self._door.write(requests.put_setting("config", attributes["subject"], body))

    def alter(self, attributes: FrozenMap, given: FrozenMap) -> None:
        self.make(attributes.with_items(given))


class SubjectConfigSystem(System):
    """Levels of subjects that exist."""

    type = SUBJECT_CONFIG_TYPE
    bad = FrozenMap(compatibility="UPWARD")
    edits = (
        Edit("change the level", wish=FrozenMap(compatibility="FORWARD")),
        Edit(
            "set what somebody else has set meanwhile",
            wish=FrozenMap(compatibility="FORWARD"),
            meanwhile=FrozenMap(compatibility="BACKWARD"),
        ),
        Edit("set nothing", wish=FrozenMap(compatibility="INHERITED"), blocked=True),
    )
    unfit = {
        **UNFIT,
        "a_query_answers_as_its_schema_says": ASKED,
        "a_query_does_not_guess": ASKED,
    }

    def fresh(self, given: FrozenMap) -> FrozenMap:
        name = f"conformance {uuid.uuid4().hex[:12]}"
        # No listing has the levels of subjects without a schema.
        self._door.register(name, ORDER)
        return FrozenMap(
            subject=name, topic=None, part=None, compatibility="FULL", mode="INHERITED"
        ).with_items(given)

    def make(self, attributes: FrozenMap) -> None:
        body = {"compatibility": attributes["compatibility"]}
        self._door.write(requests.put_setting("config", attributes["subject"], body))

    def alter(self, attributes: FrozenMap, given: FrozenMap) -> None:
        self.make(attributes.with_items(given))


OWNER = FrozenMap(properties=FrozenMap(owner="shop"), tags=None)
NO_METADATA = FrozenMap(properties=None, tags=None)
CONTRACT = FrozenMap(properties=FrozenMap(owner="billing"), tags=FrozenMap({"**.id": ("PII",)}))
RULE = FrozenMap(
    dict.fromkeys(RULE_FIELDS), name="checkId", type="CEL", kind="CONDITION", expr="message.id > 0"
)
RULES = FrozenMap(dict.fromkeys(PHASES), domain_rules=(RULE,))


class ContractSystem(SchemaSystem):
    """Schemas with data contracts."""

    unfit = {
        **UNFIT,
        "a_query_answers_as_its_schema_says": ASKED,
        "a_query_does_not_guess": ASKED,
    }
    data = EMPTY
    questions = ()
    edits = (
        Edit("change the metadata", wish=FrozenMap(metadata=CONTRACT)),
        Edit("add rules", wish=FrozenMap(rule_set=RULES)),
        Edit(
            "set what somebody else has set meanwhile",
            wish=FrozenMap(metadata=CONTRACT),
            meanwhile=FrozenMap(metadata=CONTRACT),
        ),
        Edit("take the metadata away", wish=FrozenMap(metadata=NO_METADATA)),
    )

    def fresh(self, given: FrozenMap) -> FrozenMap:
        return super().fresh(FrozenMap(metadata=OWNER).with_items(given))

    def make(self, attributes: FrozenMap) -> None:
        payload = attributes.with_items({"references": (), "metadata": None, "rule_set": None})
        if attributes.get("metadata") is not None:
            metadata = flatten_metadata(attributes["metadata"])
            payload = payload.with_items({"metadata": metadata})
        self._door.write(requests.register(payload))


class SettingsSystem(SubjectConfigSystem):
    """Levels and further settings of subjects that exist."""

    edits = (
        Edit("set an alias", wish=FrozenMap(alias="orders")),
        Edit("set a default", wish=FrozenMap(default_metadata=OWNER)),
        Edit("set rules that override others", wish=FrozenMap(override_rule_set=RULES)),
        Edit(
            "set a level that somebody else has set meanwhile",
            wish=FrozenMap(compatibility="FORWARD", normalize=True),
            meanwhile=FrozenMap(compatibility="FORWARD"),
        ),
    )


SYSTEMS: tuple[type[SchemaSystem] | type[SubjectConfigSystem], ...] = (
    SchemaSystem,
    SubjectConfigSystem,
)
CONFLUENT_SYSTEMS = (ContractSystem, SettingsSystem)
"""What only Confluent's registry has."""

__all__ = [
    "CONFLUENT_SYSTEMS",
    "SYSTEMS",
    "Door",
    "SchemaSystem",
    "SubjectConfigSystem",
    "open_simulated",
]
