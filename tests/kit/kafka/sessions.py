"""Works on a real cluster the way the engine does: change → steps → batch → session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka.protocol.admin import AlterClientQuotasRequest
from msgspec.structs import replace

from kafkaform.apply.verify import is_visible
from kafkaform.core.change import Action, Batch, Change, Outcome, OutcomeStatus, Verdict
from kafkaform.core.resource import Hidden, Identity, Observed, Reading
from kafkaform.core.secret import Secret
from kafkaform_kafka.connection.settings import KafkaSettings, make_librdkafka_config
from kafkaform_kafka.provider import TYPES
from kafkaform_kafka.session import KafkaSession, open_session
from kafkaform_kafka.wire.security import AclRow, describe_acls

from .changes import change, topic
from .logins import Login, admin_login, finish

T = TypeVar("T")
_RESOURCES = {
    "Topic": ResourceType.TOPIC,
    "Group": ResourceType.GROUP,
    "Cluster": ResourceType.BROKER,
    "TransactionalId": ResourceType.TRANSACTIONAL_ID,
}
_SECONDS = 60.0


def login(broker: Any, user: Login | str = "admin", **more: Any) -> KafkaSettings:
    """Settings for `admin`, or for a user of the test."""
    assert isinstance(user, Login) or user == "admin", user
    who = user if isinstance(user, Login) else admin_login(broker)
    usual: dict[str, Any] = {
        "instance": "kafka",
        "servers": (broker.bootstrap,),
        "protocol": "SASL_PLAINTEXT",
        "mechanism": who.mechanism,
        "username": who.user,
        "password": who.password,
        "principal": who.principal,
    }
    given = {**usual, **more}
    hidden = None if given["password"] is None else Secret(given["password"])
    return KafkaSettings(**{**given, "password": hidden})


def connect(broker: Any, user: Login | str = "admin", **more: Any) -> KafkaSession:
    """A session as `admin`, or as a user of the test."""
    return open_session(login(broker, user, **more))


def batches(session: KafkaSession, changes: Sequence[Change]) -> list[Batch]:
    """The changes' steps, one batch for each kind of request."""
    groups: dict[Any, list[Any]] = {}
    for item in changes:
        for step in TYPES[item.identity.kind].steps(item, session.facts):
            groups.setdefault(step.request, []).append(step)
    return [Batch("b", "kafka", request, tuple(steps)) for request, steps in groups.items()]


def send(session: KafkaSession, *changes: Change) -> list[Outcome]:
    """Send everything once; the outcomes in order."""
    return [o for batch in batches(session, changes) for o in session.apply(batch, {})]


def apply(session: KafkaSession, *changes: Change) -> list[Outcome]:
    """The same, and wait until each of several brokers shows what was done."""
    outcomes = send(session, *changes)
    steps = {step.id: step for batch in batches(session, changes) for step in batch.steps}
    undone = {steps[o.step].identity for o in outcomes if o.status is not OutcomeStatus.APPLIED}
    made = {steps[o.step].identity: o.incarnation for o in outcomes}
    done = [change for change in changes if change.identity not in undone]
    # The simulated cluster has a clock of its own.
    if done and isinstance(session, KafkaSession):
        wait_everywhere(session, partial(_shows, session, done, made))
    return outcomes


def _shows(
    session: KafkaSession,
    changes: Sequence[Change],
    made: Mapping[Identity, str | None],
    node: str,
) -> bool:
    """Whether this broker shows these changes. made: object -> the id that it got. Nobody waits
    for what he may not see."""
    readings = session.read([one.identity for one in changes], at=node)
    return all(
        _is_shown(session, one, readings[one.identity], made[one.identity]) for one in changes
    )


def _is_shown(session: KafkaSession, one: Change, reading: Reading, made: str | None) -> bool:
    if isinstance(reading, Hidden):
        return True
    if one.action is Action.CREATE:
        # Not all that a test asks for is spelled as it is read.
        return isinstance(reading, Observed) and made in (None, reading.incarnation)
    kind = TYPES[one.identity.kind]
    whole = replace(one, steps=tuple(kind.steps(one, session.facts)))
    return is_visible(whole, reading, kind, session.facts, None)


def wait_everywhere(session: KafkaSession, shows: Callable[[str], bool]) -> None:
    """Wait until each of several live brokers shows it: each applies the metadata log by itself,
    some time after the controller has answered. shows: id of a broker -> whether it does."""
    if len(session.facts.nodes) > 1:
        eventually(
            lambda: [node for node in session.live_nodes() if not shows(node)],
            lambda late: not late,
        )


def wait_at_brokers(
    broker: Any, client: AdminClient, shows: Callable[[KafkaSession, str], bool]
) -> None:
    """The same for what another client has done, as the super user. client: that one."""
    if len(client.list_topics(timeout=_SECONDS).brokers) > 1:
        session = connect(broker)
        wait_everywhere(session, partial(shows, session))
        session.close()


def wait_for_acls(
    broker: Any, client: AdminClient, bindings: Sequence[AclBinding], *, there: bool = True
) -> None:
    """Wait until each of several brokers has these ACLs, or none of them."""
    wanted = {
        AclRow(
            each.restype.value,
            each.name,
            each.resource_pattern_type.value,
            each.principal,
            each.host,
            each.operation.value,
            each.permission_type.value,
        )
        for each in bindings
    }

    def shows(session: KafkaSession, node: str) -> bool:
        rows = {*describe_acls(session.context.wire, _SECONDS, None, node).rows}
        return wanted <= rows if there else not wanted & rows

    wait_at_brokers(broker, client, shows)


def preflight(session: KafkaSession, *changes: Change) -> list[Verdict]:
    """Ask whether it would work."""
    return [v for batch in batches(session, changes) for v in session.preflight(batch)]


def new(name: str, **attributes: Any) -> Change:
    """A create of a topic with one partition and one replica unless told otherwise."""
    usual = {"partitions": 1, "replication_factor": 1, **attributes}
    return change(Action.CREATE, None, topic(name, **usual), incarnation=None)


def gone(name: str, topic_id: str | None, partitions: int = 1) -> Change:
    """A delete of the topic with this id."""
    before = topic(name, partitions=partitions, replication_factor=1)
    return change(Action.DELETE, before, None, incarnation=topic_id)


def read(session: KafkaSession, name: str, kind: str = "kafka_topic", **more: Any) -> Reading:
    """One object by name."""
    identity = Identity("kafka", kind, name)
    return session.read([identity], **more)[identity]


def eventually(question: Callable[[], T], wanted: Callable[[T], bool], patience: float = 60) -> T:
    """The first answer that is as wanted: a read can miss an acknowledged write for seconds."""
    deadline = time.monotonic() + patience
    while not wanted(answer := question()):
        assert time.monotonic() < deadline, f"still {answer}"
        time.sleep(0.05)
    return answer


def grant(broker: Any, user: Login, kind: str, name: str, *operations: str) -> Callable[[], None]:
    """Allow a user these operations on a resource of a type of _RESOURCES; returns how to take them
    back."""
    admin = AdminClient(make_librdkafka_config(login(broker, "admin")))
    bindings = [
        AclBinding(
            _RESOURCES[kind],
            name,
            ResourcePatternType.LITERAL,
            user.principal,
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for operation in operations
    ]
    finish(lambda: admin.create_acls(bindings))
    wait_for_acls(broker, admin, bindings)

    def revoke() -> None:
        filters = [_filter(binding) for binding in bindings]
        finish(lambda: admin.delete_acls(filters))
        wait_for_acls(broker, admin, bindings, there=False)

    return revoke


def produce(broker: Any, topic_name: str, count: int) -> None:
    """Write records with different keys."""
    producer = Producer(make_librdkafka_config(login(broker, "admin")))
    for number in range(count):
        producer.produce(topic_name, b"x" * 100, key=str(number))
    assert producer.flush(10) == 0


@contextmanager
def reading(broker: Any, topic_name: str, group: str, protocol: str = "classic") -> Iterator[None]:
    """A group with one member that has begun to read the topic. protocol: `classic`, or `consumer`
    for that of KIP-848."""
    config = make_librdkafka_config(login(broker, "admin"))
    settings = {"group.id": group, "auto.offset.reset": "earliest", "group.protocol": protocol}
    consumer = Consumer({**config, **settings})
    consumer.subscribe([topic_name])
    eventually(lambda: consumer.poll(0.2), lambda message: message is not None)
    yield
    consumer.close()


def limit_mutations(session: KafkaSession, user: str, rate: float) -> Callable[[], None]:
    """Give a user a controller mutation quota; returns how to take it back."""
    wire = session.context.wire

    def set_limit(*, remove: bool) -> None:
        row = AlterClientQuotasRequest.EntryData
        entry = row(
            entity=[row.EntityData(entity_type="user", entity_name=user)],
            ops=[row.OpData(key="controller_mutation_rate", value=rate, remove=remove)],
        )
        answer = wire.send(AlterClientQuotasRequest(entries=[entry], validate_only=False), 10)
        assert [item.error_code for item in answer.entries] == [0]

    set_limit(remove=False)
    return lambda: set_limit(remove=True)


def _filter(binding: AclBinding) -> Any:
    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )
