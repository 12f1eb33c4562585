"""What the rules of names say: which spellings of a principal an authorizer takes for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kafkaform.core.resource import CoverageKind, Depth, Hidden, Identity, Observed
from kafkaform_kafka.connection.settings import make_librdkafka_config
from kafkaform_kafka.protocol.acl import LISTED_GROUPS
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.logins import Login, finish
from ...kit.kafka.sessions import eventually, grant, login, produce, reading, wait_for_acls

Allow = Callable[[str], None]


@pytest.fixture
def topic(broker: Any, prefix: str) -> Iterator[str]:
    """A topic that nobody may see."""
    admin = AdminClient(make_librdkafka_config(login(broker, "admin")))
    finish(lambda: admin.create_topics([NewTopic(prefix, 1, 1)]))
    yield prefix
    finish(lambda: admin.delete_topics([prefix]))


@pytest.fixture
def allow(broker: Any, topic: str) -> Iterator[Allow]:
    """Allows a principal, spelled as it is, to describe the topic."""
    admin = AdminClient(make_librdkafka_config(login(broker, "admin")))
    place = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL)

    def create(principal: str) -> None:
        binding = AclBinding(*place, principal, "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW)
        finish(lambda: admin.create_acls([binding]))
        wait_for_acls(broker, admin, [binding])

    yield create
    every = (None, None, AclOperation.ANY, AclPermissionType.ANY)
    finish(lambda: admin.delete_acls([AclBindingFilter(*place, *every)]))


def sees(broker: Any, user: Login, topic: str) -> bool:
    client = AdminClient({**make_librdkafka_config(login(broker, user)), "log_level": 0})
    return topic in client.list_topics(timeout=30).topics


def test_the_principal_as_it_is_gets_the_right(
    broker: Any, stranger: Login, topic: str, allow: Allow
) -> None:
    """What the other tests have to be compared with."""
    assert not sees(broker, stranger, topic)
    allow(stranger.principal)
    eventually(lambda: sees(broker, stranger, topic), bool)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("User:{} ", id="blank-at-the-end"),
        pytest.param("User: {}", id="blank-at-the-beginning"),
        pytest.param("User:'{}'", id="quotes"),
        pytest.param('User:"{}"', id="double-quotes"),
        pytest.param("User:{},User:other", id="two-principals"),
        pytest.param("User:other;User:{}", id="two-principals-with-a-semicolon"),
        pytest.param("Group:{}", id="a-group"),
    ],
)
def test_another_spelling_of_a_principal_gives_nothing(
    broker: Any, stranger: Login, topic: str, allow: Allow, form: str
) -> None:
    """The authorizer compares whole texts. The second ACL shows that the first one was there."""
    allow(form.format(stranger.user))
    assert not sees(broker, stranger, topic)
    allow(stranger.principal)
    eventually(lambda: sees(broker, stranger, topic), bool)


def test_a_consumer_without_a_right_on_its_group_is_refused(
    broker: Any, stranger: Login, topic: str
) -> None:
    """Rights to read the topic are not enough to join a group."""
    revoke = grant(broker, stranger, "Topic", topic, "READ", "DESCRIBE")
    settings = {**make_librdkafka_config(login(broker, stranger)), "group.id": f"{topic}-group"}
    member = Consumer({**settings, "log_level": 0})
    member.subscribe([topic])
    answer = eventually(lambda: member.poll(1), lambda message: message is not None)
    assert answer is not None and answer.error() is not None
    assert answer.error().code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    member.close()
    revoke()


def test_live_groups_are_listed_for_those_who_may_see_them(
    broker: Any, admin: KafkaSession, ci: KafkaSession, topic: str
) -> None:
    """By name, as far as the login may describe them; nobody can tell that this is all."""
    group = f"{topic}-readers"
    produce(broker, topic, 1)
    with reading(broker, topic, group):
        sweeps = [session.sweep(LISTED_GROUPS, Depth.NAMES) for session in (admin, ci)]
        identity = Identity("kafka", LISTED_GROUPS, group)
        readings = [session.read([identity])[identity] for session in (admin, ci)]
    seen, hidden = ({item.identity.key for item in sweep.items} for sweep in sweeps)
    assert group in seen and group not in hidden
    assert {sweep.coverage.kind for sweep in sweeps} == {CoverageKind.VISIBLE_ONLY}
    assert [type(reading) for reading in readings] == [Observed, Hidden]
