"""A broker of its own with an authorizer, its users, and what real clients are answered there."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kafkaform.core.change import Action, Change, Outcome, OutcomeStatus
from kafkaform.core.finding import Finding
from kafkaform.core.resource import Identity
from kafkaform.core.rule import Scene
from kafkaform.core.value import FrozenMap, freeze
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.protocol.acl import Acl
from kafkaform_kafka.provider import PROVIDER
from kafkaform_kafka.rules import access
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.logins import Login, admin_login, finish, new_login, open_client
from ...kit.kafka.sessions import connect, eventually, send

OPEN = ("allow.everyone.if.no.acl.found", "true")
QUICK = (
    ("log.initial.task.delay.ms", "200"),
    ("log.retention.check.interval.ms", "300"),
)
"""A broker that looks for old records at once."""
ROOT = {"super_users": ["User:admin"], "allow_if_no_acl": False}
OPEN_ROOT = {**ROOT, "allow_if_no_acl": True}
SECONDS = 30.0
ALLOWED = ""
"""The answer to a request that is executed; otherwise it is the name of the error."""


@dataclass
class Lab:
    """A broker, a session of its super user, and names that no other test uses."""

    box: Any
    declared: dict[str, Any]
    """What sessions declare about the authorizer."""
    admin: AdminClient
    root: KafkaSession
    sessions: list[KafkaSession] = field(default_factory=list)

    def name(self, start: str = "t") -> str:
        """A name that no other test uses."""
        return f"{start}{uuid.uuid4().hex[:10]}"

    def topic(self, name: str = "") -> str:
        """A new topic, which has a leader."""
        name = name or self.name()
        finish(lambda: self.admin.create_topics([NewTopic(name, 1, 1)]))
        eventually(lambda: self.admin.list_topics(timeout=SECONDS).topics.get(name), has_leader)
        return name

    def session(self, login: Login, declared: dict[str, Any] | None = None) -> KafkaSession:
        """A session of this user. declared: what its provider block says of the authorizer."""
        authorizer = FrozenMap(freeze(declared or {}))
        session = connect(self.box, login, authorizer=authorizer)
        self.sessions.append(session)
        return session

    def judge(self, session: KafkaSession, *changes: Change) -> dict[str, Finding]:
        """Rule -> what a plan of this session finds, of equal rules the first."""
        sweeps = {
            kind: session.sweep(kind, depth) for kind, depth in access.list_needs(changes).items()
        }
        scene = Scene(changes, sweeps, session.facts)
        findings: dict[str, Finding] = {}
        for survey in access.make_surveys(PROVIDER.rights):
            for _, finding in survey.find(scene):
                findings.setdefault(finding.rule, finding)
        return findings

    def make(self, *created: Acl) -> dict[str, Finding]:
        """Create ACLs as the super user; what a plan says about that."""
        return self.change(*(create(acl) for acl in created))

    def remove(self, *deleted: Acl) -> dict[str, Finding]:
        """Delete ACLs as the super user; what a plan says about that."""
        return self.change(*(delete(acl) for acl in deleted))

    def change(self, *changes: Change) -> dict[str, Finding]:
        findings = self.judge(self.root, *changes)
        outcomes = send(self.root, *changes)
        assert {outcome.status for outcome in outcomes} == {OutcomeStatus.APPLIED}, outcomes
        return findings

    def refuse(self, acl: Acl) -> Outcome:
        """The outcome of a create that the broker refuses."""
        (outcome,) = send(self.root, create(acl))
        assert outcome.status is OutcomeStatus.FAILED, outcome
        return outcome

    def clean(self) -> None:
        """Delete all ACLs, and end the sessions of a test."""
        for session in self.sessions:
            session.close()
        self.sessions.clear()
        everything = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        finish(lambda: self.admin.delete_acls([everything]))
        eventually(
            lambda: self.admin.describe_acls(everything).result(SECONDS), lambda rows: not rows
        )


@contextmanager
def running(name: str, declared: dict[str, Any], *config: tuple[str, str]) -> Iterator[Lab]:
    """A broker with these settings, for one file of tests alone."""
    with own_sandbox(f"{name}-{os.getpid()}", config=(*QUICK, *config)) as box:
        root = connect(box, "admin", authorizer=FrozenMap(freeze(declared)))
        yield Lab(box, declared, open_client(box, admin_login(box)), root)
        root.close()


def has_leader(topic: Any) -> bool:
    """True for a topic whose partition has a leader."""
    return topic is not None and topic.partitions and topic.partitions[0].leader >= 0


def create(acl: Acl) -> Change:
    """A plan's creation of this ACL."""
    identity = Identity("kafka", acls.KIND, acl.key)
    return Change(identity, "kafka_acl.x", Action.CREATE, after=acl.attributes)


def delete(acl: Acl) -> Change:
    """A plan's deletion of this ACL."""
    identity = Identity("kafka", acls.KIND, acl.key)
    return Change(identity, "kafka_acl.x", Action.DELETE, before=acl.attributes)


def kept(topic: str) -> Change:
    """A topic of the state that a plan leaves as it is."""
    return Change(Identity("kafka", topics.KIND, topic), f"kafka_topic.{topic}", Action.NOOP)


def on_topic(
    principal: str, operation: str, name: str, pattern: str = "Literal", permission: str = "Allow"
) -> Acl:
    """An ACL on a topic."""
    return Acl(principal, "*", operation, permission, "Topic", name, pattern)


def on_cluster(principal: str, operation: str, permission: str = "Allow") -> Acl:
    """An ACL on the cluster."""
    return Acl(principal, "*", operation, permission, "Cluster", acls.CLUSTER, "Literal")


class Client:
    """A real client of one user."""

    def __init__(self, box: Any, login: Login) -> None:
        self.principal = login.principal
        self._settings: dict[str, Any] = {
            "bootstrap.servers": box.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": login.mechanism,
            "sasl.username": login.user,
            "sasl.password": login.password,
            "log_level": 0,
        }

    def open_producer(self, *, idempotent: bool = False) -> Producer:
        """A producer that stays connected."""
        return Producer(
            {**self._settings, "message.timeout.ms": 5000, "enable.idempotence": idempotent}
        )

    def write(
        self, topic: str, producer: Producer | None = None, *, idempotent: bool = False
    ) -> str:
        """Write one record."""
        producer = producer or self.open_producer(idempotent=idempotent)
        answers: list[str] = []
        try:
            producer.produce(
                topic,
                b"x",
                callback=lambda error, _: answers.append(error.name() if error else ALLOWED),
            )
            producer.flush(SECONDS)
        except KafkaException as error:
            return str(error.args[0].name())
        return answers[0]

    def read(self, topic: str, group: str) -> str:
        """Read the first record as a member of a group."""
        consumer = Consumer({**self._settings, "group.id": group, "auto.offset.reset": "earliest"})
        try:
            consumer.subscribe([topic])
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline:
                message = consumer.poll(0.2)
                if message is not None:
                    return message.error().name() if message.error() else ALLOWED
            raise AssertionError("no record and no error")
        except KafkaException as error:
            return str(error.args[0].name())
        finally:
            consumer.close()

    def list_topics(self) -> Sequence[str]:
        """The topics that it sees."""
        return list(self.open_admin().list_topics(timeout=SECONDS).topics)

    def delete(self, topic: str) -> str:
        """Delete a topic."""
        admin = self.open_admin()
        return _ask(lambda: admin.delete_topics([topic])[topic])

    def set_config(self, topic: str, key: str, value: str) -> str:
        """Set one config of a topic."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        admin = self.open_admin()
        return _ask(lambda: admin.incremental_alter_configs([resource])[resource])

    def open_admin(self) -> AdminClient:
        """An admin client."""
        return AdminClient(self._settings)

    def find_first_offset(self, topic: str) -> int:
        """The offset of the oldest record of a topic with one partition."""
        consumer = Consumer({**self._settings, "group.id": "any"})
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=SECONDS)
        consumer.close()
        return int(low)


def _ask(request: Callable[[], Any]) -> str:
    try:
        request().result(SECONDS)
    except KafkaException as error:
        return str(error.args[0].name())
    return ALLOWED


def expect(answer: Callable[[], str], wanted: str) -> None:
    """Ask until the answer is this one: a broker goes by a new ACL a moment later."""
    eventually(answer, lambda name: name == wanted, SECONDS)


@contextmanager
def new_client(lab: Lab) -> Iterator[Client]:
    """A client of a new user without rights."""
    with new_login(lab.box) as login:
        yield Client(lab.box, login)
