"""What the rules of access say about brokers and clients, tried with real ones.

Each test makes a change, holds what a plan finds against it, and tries what it says with a real
login.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Level
from kafkaform.core.resource import Absent, Depth, Facts, Hidden, Identity
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import ResourceType
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.kinds.user import resource_type as users
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.protocol.acl import Acl
from kafkaform_kafka.wire.configs import describe_configs
from kafkaform_kafka.wire.security import describe_scram

from ...kit.kafka.logins import Login, admin_login, new_login
from ...kit.kafka.sessions import eventually, send
from ...kit.kafka.versions import get_choice
from .access_lab import (
    ALLOWED,
    OPEN,
    OPEN_ROOT,
    ROOT,
    SECONDS,
    Client,
    Lab,
    create,
    delete,
    expect,
    has_leader,
    kept,
    new_client,
    on_cluster,
    on_topic,
    running,
)

TOPIC_DENIED, GROUP_DENIED = "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"
CLUSTER_DENIED = "CLUSTER_AUTHORIZATION_FAILED"
KRAFT = pytest.mark.usefixtures("kraft")
"""ZooKeeper's brokers ask about a topic alone before they delete it, about no topic `hardcode`, and
fail on a principal without a type."""


@pytest.fixture
def kraft() -> None:
    """Skips the test with ZooKeeper."""
    if get_choice().zookeeper:
        pytest.skip("brokers with ZooKeeper decide it otherwise")


@pytest.fixture
def zookeeper() -> None:
    """Skips the test without ZooKeeper."""
    if not get_choice().zookeeper:
        pytest.skip("KRaft decides it otherwise")


@pytest.fixture(scope="module")
def closed_lab(own_brokers: None) -> Iterator[Lab]:
    """A broker where a resource without ACLs is closed."""
    with running("claims-closed", ROOT) as lab:
        yield lab


@pytest.fixture(scope="module")
def open_lab(own_brokers: None) -> Iterator[Lab]:
    """A broker where a resource without ACLs is open."""
    with running("claims-open", OPEN_ROOT, OPEN) as lab:
        yield lab


@pytest.fixture
def closed(closed_lab: Lab) -> Iterator[Lab]:
    """The same without any ACL, before and afterwards."""
    yield closed_lab
    closed_lab.clean()


@pytest.fixture
def opened(open_lab: Lab) -> Iterator[Lab]:
    """The same without any ACL, before and afterwards."""
    yield open_lab
    open_lab.clean()


@pytest.fixture
def app(closed: Lab) -> Iterator[Client]:
    """A client without rights."""
    with new_client(closed) as client:
        yield client


@pytest.fixture
def topic(closed: Lab) -> str:
    """A topic that only the super user may use."""
    return closed.topic()


@pytest.fixture
def guest(opened: Lab) -> Iterator[Client]:
    """A client without ACLs where everything is open."""
    with new_client(opened) as client:
        yield client


def test_defaults_of_topics_are_read_with_describe_configs_on_the_cluster(
    closed: Lab, app: Client
) -> None:
    """`topic-number-unknown`: a login that may create a topic may not read how many partitions it
    will get."""
    closed.make(on_cluster(app.principal, "Create"))
    broker = ConfigResource(ConfigResource.Type.BROKER, "1")

    def read_defaults() -> str:
        admin = app.open_admin()
        try:
            rows = admin.describe_configs([broker])[broker].result(SECONDS)
        except KafkaException as error:
            return str(error.args[0].name())
        return str(rows["num.partitions"].value)

    name = closed.name()
    expect(lambda: create_with_defaults(app, name), ALLOWED)
    assert read_defaults() == CLUSTER_DENIED
    closed.make(on_cluster(app.principal, "DescribeConfigs"))
    topic = eventually(lambda: closed.admin.list_topics(name, SECONDS).topics[name], has_leader)
    expect(read_defaults, str(len(topic.partitions)))


def test_a_user_of_plain_is_in_no_list(closed: Lab, app: Client) -> None:
    """`user-login-missing`: such users log in, and only those with SCRAM credentials are listed."""
    box = closed.box
    plain = Client(box, Login("connect", box.connect_password, "PLAIN"))
    assert isinstance(plain.list_topics(), list)
    rows = describe_scram(closed.root.context.wire, None, SECONDS).rows
    principals = {f"User:{row.user}" for row in rows}
    assert app.principal in principals and plain.principal not in principals


def create_with_defaults(client: Client, name: str) -> str:
    """Create a topic with the number of partitions that brokers choose."""
    admin = client.open_admin()
    try:
        admin.create_topics([NewTopic(name, -1)])[name].result(SECONDS)
    except KafkaException as error:
        return str(error.args[0].name())
    return ALLOWED


# ── gains ───────────────────────────────────────────────────────────────────────────────


def test_a_right_on_a_named_topic_is_gained(closed: Lab, app: Client, topic: str) -> None:
    """`access-gained`: the topic can be written, others cannot."""
    assert app.write(topic) == TOPIC_DENIED
    findings = closed.make(on_topic(app.principal, "Write", topic))
    assert findings["access-gained"].level is Level.NOTE
    assert findings.keys() == {"access-gained"}
    expect(partial(app.write, topic), ALLOWED)
    assert app.write(closed.topic()) == TOPIC_DENIED


def test_everybody_gains_what_user_star_is_allowed(closed: Lab, app: Client, topic: str) -> None:
    """`access-gained-by-everybody`: also a login that is made afterwards."""
    assert app.write(topic) == TOPIC_DENIED
    findings = closed.make(on_topic("User:*", "Write", topic))
    assert findings["access-gained-by-everybody"].level is Level.DANGER
    expect(partial(app.write, topic), ALLOWED)
    with new_client(closed) as later:
        expect(partial(later.write, topic), ALLOWED)


def test_all_gives_every_operation(closed: Lab, app: Client, topic: str) -> None:
    """`access-gained-everything`: it writes, changes configs and deletes the topic."""
    findings = closed.make(on_topic(app.principal, "All", topic))
    assert findings["access-gained-everything"].level is Level.DANGER
    expect(partial(app.write, topic), ALLOWED)
    assert app.set_config(topic, "retention.ms", "1000000") == ALLOWED
    assert app.delete(topic) == ALLOWED


@KRAFT
def test_delete_on_the_cluster_deletes_every_topic(closed: Lab, app: Client, topic: str) -> None:
    """`access-gained-on-cluster`: even a topic on which a DENY forbids it."""
    assert app.delete(topic) != ALLOWED
    closed.make(on_topic(app.principal, "Delete", topic, permission="Deny"))
    findings = closed.make(on_cluster(app.principal, "Delete"))
    assert findings["access-gained-on-cluster"].level is Level.DANGER
    assert "Delete on every Topic" in findings["access-gained-widely"].text
    expect(partial(app.delete, topic), ALLOWED)


@pytest.mark.usefixtures("zookeeper")
def test_delete_on_the_cluster_deletes_no_topic_with_zookeeper(
    closed: Lab, app: Client, topic: str
) -> None:
    """Its brokers ask about the topic alone, and no finding says otherwise."""
    findings = closed.make(on_cluster(app.principal, "Delete"))
    assert not any("on every Topic" in finding.text for finding in findings.values())
    # Describe on the topic shows that the ACLs have arrived.
    closed.make(on_topic(app.principal, "Describe", topic))
    expect(partial(app.delete, topic), TOPIC_DENIED)


def test_the_name_star_covers_topics_that_are_created_later(closed: Lab, app: Client) -> None:
    """`access-gained-widely`."""
    findings = closed.make(on_topic(app.principal, "Write", "*"))
    assert findings["access-gained-widely"].level is Level.DANGER
    later = closed.topic()
    expect(partial(app.write, later), ALLOWED)


def test_a_prefix_covers_topics_that_are_created_later(closed: Lab, app: Client) -> None:
    """`access-gained-by-prefix`: all that begin with it, and no others."""
    prefix = closed.name()
    findings = closed.make(on_topic(app.principal, "Write", prefix, "Prefixed"))
    assert findings["access-gained-by-prefix"].level is Level.CAUTION
    later = closed.topic(f"{prefix}-of-somebody-else")
    expect(partial(app.write, later), ALLOWED)
    assert app.write(closed.topic()) == TOPIC_DENIED


def test_alter_configs_on_a_topic_deletes_records(closed: Lab, app: Client, topic: str) -> None:
    """`access-gained-administration`: a shorter retention is enough."""
    root = Client(closed.box, admin_login(closed.box))
    assert root.write(topic) == ALLOWED
    findings = closed.make(on_topic(app.principal, "AlterConfigs", topic))
    assert findings["access-gained-administration"].level is Level.DANGER
    expect(partial(app.set_config, topic, "retention.ms", "1"), ALLOWED)
    eventually(lambda: root.find_first_offset(topic), lambda offset: offset == 1, SECONDS)


def test_a_removed_deny_lets_the_allow_apply(closed: Lab, app: Client, topic: str) -> None:
    """`access-deny-removed`: what it overrode is allowed at once."""
    deny = on_topic("User:*", "All", topic, permission="Deny")
    closed.make(deny, on_topic(app.principal, "Write", topic))
    expect(partial(app.write, topic), TOPIC_DENIED)
    finding = closed.remove(deny)["access-deny-removed"]
    assert finding.level is Level.DANGER
    assert (app.principal, ("Write", "Describe")) in [
        (row.principal, row.operations) for row in finding.access
    ]
    expect(partial(app.write, topic), ALLOWED)


def list_closures(kind: ResourceType, **attributes: str) -> list[Acl]:
    """What parks an object with these attributes."""
    assert kind.closures is not None
    closures = kind.closures(FrozenMap(attributes), Facts(""), ())
    return [acls.parse_acl(closure.attributes) for closure in closures]


def test_a_parked_topic_is_closed_and_can_still_be_deleted(
    closed: Lab, app: Client, topic: str
) -> None:
    """`object-parked`: nobody reads or writes it, until its time is over or it is called off."""
    group = closed.name("g-")
    on_group = Acl(app.principal, "*", "Read", "Allow", "Group", group, "Literal")
    closed.make(on_topic(app.principal, "All", topic), on_group)
    expect(partial(app.write, topic), ALLOWED)
    expect(partial(app.read, topic, group), ALLOWED)
    closures = list_closures(topics.TYPE, name=topic)
    closed.make(*closures)
    expect(partial(app.write, topic), TOPIC_DENIED)
    expect(partial(app.read, topic, closed.name(group)), GROUP_DENIED)
    expect(partial(app.read, topic, group), TOPIC_DENIED)
    closed.remove(*closures)
    expect(partial(app.write, topic), ALLOWED)
    closed.make(*closures)
    expect(partial(app.write, topic), TOPIC_DENIED)
    assert app.delete(topic) == ALLOWED


def test_a_parked_user_logs_in_and_can_do_nothing(closed: Lab, app: Client, topic: str) -> None:
    """`object-parked`: whatever it is allowed, also on topics that are created later."""
    group = closed.name("g-")
    on_group = Acl(app.principal, "*", "All", "Allow", "Group", "*", "Literal")
    closed.make(on_topic(app.principal, "All", "*"), on_group, on_cluster(app.principal, "All"))
    expect(partial(app.write, topic), ALLOWED)
    username = app.principal.removeprefix("User:")
    closures = list_closures(users.TYPE, username=username)
    closed.make(*closures)
    expect(partial(app.write, topic), TOPIC_DENIED)
    assert app.read(topic, group) in (TOPIC_DENIED, GROUP_DENIED)
    assert app.delete(topic) != ALLOWED
    assert app.write(closed.topic()) == TOPIC_DENIED
    assert topic not in app.list_topics()
    closed.remove(*closures)
    expect(partial(app.write, topic), ALLOWED)


def test_a_new_login_has_the_rights_of_its_name(closed: Lab, topic: str) -> None:
    """`access-gained-by-new-login`: ACLs that are older than the user apply to it."""
    name = closed.name("user-")
    closed.make(on_topic(f"User:{name}", "Write", topic))
    key = users.identity_key(name, "SCRAM-SHA-256")
    login = Change(Identity("kafka", users.KIND, key), "x.y", Action.CREATE)
    finding = closed.judge(closed.root, login)["access-gained-by-new-login"]
    assert f"Write/Describe on Topic {topic}" in finding.text
    with new_login(closed.box, name) as made:
        assert Client(closed.box, made).write(topic) == ALLOWED


def test_an_allow_under_a_deny_gives_nothing(closed: Lab, app: Client, topic: str) -> None:
    """`access-unchanged`."""
    closed.make(on_topic(app.principal, "All", topic, permission="Deny"))
    findings = closed.make(on_topic(app.principal, "Write", topic))
    assert findings.keys() == {"access-unchanged"}
    _wait_for_acls(closed, 2)
    assert app.write(topic) == TOPIC_DENIED


# ── losses ──────────────────────────────────────────────────────────────────────────────


def test_a_connected_client_is_refused_after_a_loss(closed: Lab, app: Client, topic: str) -> None:
    """`access-lost`: the same connection writes before, and is refused afterwards."""
    write = on_topic(app.principal, "Write", topic)
    closed.make(write)
    expect(partial(app.write, topic), ALLOWED)
    producer = app.open_producer()
    assert app.write(topic, producer) == ALLOWED
    finding = closed.remove(write)["access-lost"]
    assert finding.text == f"{app.principal} loses Write, Describe on Topic {topic}"
    expect(partial(app.write, topic, producer), TOPIC_DENIED)


def test_everybody_loses_what_user_star_is_denied(closed: Lab, app: Client, topic: str) -> None:
    """`access-lost-widely`: an own ALLOW does not help, and others lose what User:* had."""
    closed.make(on_topic("User:*", "Write", topic), on_topic(app.principal, "Write", topic))
    with new_client(closed) as other:
        for client in (app, other):
            expect(partial(client.write, topic), ALLOWED)
        findings = closed.make(on_topic("User:*", "Write", topic, permission="Deny"))
        assert "everybody loses Write on Topic" in findings["access-lost-widely"].text
        for client in (app, other):
            expect(partial(client.write, topic), TOPIC_DENIED)


@KRAFT
def test_the_first_acl_of_an_open_topic_closes_it(opened: Lab, guest: Client) -> None:
    """`access-closed`: whatever principal it names."""
    topic, other = opened.topic(), opened.topic()
    assert guest.write(topic) == ALLOWED
    findings = opened.make(on_topic("User:somebody", "Read", topic))
    assert findings["access-closed"].level is Level.DANGER
    assert "everybody can still create and delete it" in findings["access-closed"].text
    expect(partial(guest.write, topic), TOPIC_DENIED)
    assert guest.write(other) == ALLOWED
    assert guest.delete(topic) == ALLOWED


@pytest.mark.parametrize("everything", ["topic", "prefix", "cluster"])
def test_a_first_acl_that_allows_everybody_takes_nothing(
    opened: Lab, guest: Client, everything: str
) -> None:
    """No `access-closed`: everybody goes on as before, also with what only the cluster allows."""
    topic = opened.topic()
    first = {
        "topic": on_topic("User:*", "All", topic),
        "prefix": on_topic("User:*", "All", topic[:-1], "Prefixed"),
        "cluster": on_cluster("User:*", "All"),
    }[everything]
    findings = opened.make(first)
    assert "access-closed" not in findings and "access-lost-widely" not in findings
    _wait_for_acls(opened, 1)
    assert guest.write(topic) == ALLOWED
    assert guest.set_config(topic, "retention.ms", "1000000") == ALLOWED
    assert guest.delete(topic) == ALLOWED


@KRAFT
def test_an_acl_that_covers_one_name_shuts_out_idempotent_producers(
    opened: Lab, guest: Client
) -> None:
    """`access-closed-to-producers`: all topics are open as before, to other producers alone."""
    topic = opened.topic()
    opened.make(on_cluster("User:somebody", "Describe"))
    expect(partial(guest.write, topic, idempotent=True), ALLOWED)
    findings = opened.make(on_topic("User:somebody", "Read", "hardcod", "Prefixed"))
    assert findings["access-closed-to-producers"].level is Level.DANGER
    expect(partial(guest.write, topic, idempotent=True), CLUSTER_DENIED)
    assert guest.write(topic) == ALLOWED


# ── what the run would take from itself, or open ────────────────────────────────────────


def test_a_first_acl_of_a_topic_would_lock_out_a_login_without_acls(opened: Lab) -> None:
    """`access-unproven`: without an authorizer block, nothing says that the login is no super user;
    afterwards it does not see its own topic."""
    topic = opened.topic()
    with new_login(opened.box) as login:
        session = opened.session(login)
        assert session.facts.recorded_values["authorizer_settings"] == (
            "super_users",
            "allow_if_no_acl",
        )
        change = create(on_topic("User:somebody", "Read", topic))
        block = opened.judge(session, change, kept(topic))["access-unproven"]
        assert f"it may take Describe on Topic {topic} from {login.principal}" in block.text
        declared = opened.session(login, OPEN_ROOT)
        assert "access-own-lost" in opened.judge(declared, change, kept(topic))
        send(session, change)
        mine = Identity("kafka", topics.KIND, topic)
        eventually(lambda: session.read([mine])[mine], lambda row: isinstance(row, Hidden | Absent))


def test_a_login_that_loses_alter_cannot_give_it_back(closed: Lab) -> None:
    """`access-own-lost`: only somebody else can."""
    with new_login(closed.box) as login:
        own = [on_cluster(login.principal, name) for name in ("Alter", "Describe")]
        closed.make(*own)
        session = closed.session(login, ROOT)
        _wait_for_acls(closed, 2)
        block = closed.judge(session, delete(own[0]))["access-own-lost"]
        assert "it would take Alter on Cluster kafka-cluster" in block.text
        send(session, delete(own[0]))
        (outcome,) = send(session, create(own[0]))
        assert outcome.fault is not None and outcome.fault.code == CLUSTER_DENIED


def test_without_describe_on_the_cluster_acls_cannot_be_read(closed: Lab) -> None:
    """`access-unread`."""
    with new_login(closed.box) as login:
        session = closed.session(login, ROOT)
        findings = closed.judge(session, delete(on_topic("User:app", "Read", "x")))
        assert findings.keys() == {"access-unread"}
        assert findings["access-unread"].level is Level.BLOCK


def test_the_deletion_of_the_last_acl_opens_a_topic(opened: Lab, guest: Client) -> None:
    """`access-opened`: everybody can do everything with it, at once."""
    topic = opened.topic()
    last = on_topic("User:somebody", "Read", topic)
    opened.make(last)
    expect(partial(guest.write, topic), TOPIC_DENIED)
    finding = opened.remove(last)["access-opened"]
    assert finding.level is Level.BLOCK and finding.accept
    expect(partial(guest.write, topic), ALLOWED)
    assert guest.set_config(topic, "retention.ms", "1000000") == ALLOWED


# ── what is known about the cluster ─────────────────────────────────────────────────────


def test_brokers_list_the_settings_of_the_authorizer_without_values(
    closed: Lab, opened: Lab
) -> None:
    """`access-assumed`: only those that their properties have."""
    keys = ["super.users", "allow.everyone.if.no.acl.found"]
    for lab, listed in ((closed, keys[:1]), (opened, keys)):
        node = lab.root.facts.nodes[0]
        answer = describe_configs(
            lab.root.context.wire, "broker", [node], SECONDS, keys=keys, node=node
        )
        entries = answer[node].configs
        assert sorted(entry.name for entry in entries) == sorted(listed)
        assert all(entry.value is None and entry.sensitive for entry in entries)
    session = opened.session(admin_login(opened.box))
    assert "access-assumed" in opened.judge(session, create(on_topic("User:app", "Read", "x")))


def test_a_wrong_declaration_of_super_users_is_a_mismatch(closed: Lab) -> None:
    """`access-mismatch`: the cluster reports rights that its ACLs do not give."""
    wrong = {"super_users": ["User:nobody"], "allow_if_no_acl": False}
    session = closed.session(admin_login(closed.box), wrong)
    findings = closed.judge(session, create(on_topic("User:app", "Read", "x")))
    assert "the cluster reports that User:admin may" in findings["access-mismatch"].text
    assert findings["access-unproven"].accept


def test_a_deny_of_describe_hides_a_topic(closed: Lab, app: Client, topic: str) -> None:
    """`access-hides-object`: as if it did not exist."""
    closed.make(on_topic(app.principal, "All", topic))
    eventually(app.list_topics, lambda names: topic in names, SECONDS)
    closed.make(on_topic(app.principal, "Describe", topic, permission="Deny"))
    eventually(app.list_topics, lambda names: topic not in names, SECONDS)


# ── ACLs that match nobody ──────────────────────────────────────────────────────────────


def test_an_empty_resource_name_is_refused(closed: Lab) -> None:
    """`acl-resource-name-missing`."""
    outcome = closed.refuse(on_topic("User:app", "Read", ""))
    assert outcome.fault is not None and outcome.fault.code == "INVALID_REQUEST"


def test_another_name_of_the_cluster_is_refused(closed: Lab) -> None:
    """`acl-cluster-resource`."""
    outcome = closed.refuse(replace(on_cluster("User:app", "Alter"), resource_name="prod"))
    assert outcome.fault is not None and outcome.fault.code == "INVALID_REQUEST"


@pytest.mark.usefixtures("zookeeper")
def test_no_name_shuts_out_idempotent_producers_with_zookeeper(opened: Lab, guest: Client) -> None:
    """Where what has no ACL is open, AclAuthorizer lets every producer be idempotent."""
    topic, closed = opened.topic(), opened.topic()
    opened.make(on_cluster("User:somebody", "Describe"))
    findings = opened.make(on_topic("User:somebody", "Read", "hardcod", "Prefixed"))
    assert "access-closed-to-producers" not in findings
    # A later ACL that has arrived shows that the earlier ones have, too.
    opened.make(on_topic("User:somebody", "Read", closed))
    expect(partial(guest.write, closed), TOPIC_DENIED)
    assert guest.write(topic, idempotent=True) == ALLOWED


@KRAFT
def test_a_principal_without_a_type_is_refused(closed: Lab) -> None:
    """`acl-principal-incomplete`."""
    outcome = closed.refuse(on_topic("app", "Read", "x"))
    assert outcome.fault is not None and outcome.fault.code == "INVALID_REQUEST"


def test_brokers_store_operations_that_they_never_check(closed: Lab, app: Client) -> None:
    """`acl-operation-unchecked`: stored without an error, and nobody may do anything by it."""
    topic = closed.topic()
    closed.make(on_topic(app.principal, "IdempotentWrite", topic))
    _wait_for_acls(closed, 1)
    assert app.write(topic) == TOPIC_DENIED


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("acl-topic-unmatched", {"resource_name": "{start}*"}),
        ("acl-topic-missing", {"resource_name": "{start}"}),
        ("acl-principal-type", {"principal": "user:{user}"}),
        ("acl-principal-star", {"principal": "User:user-*"}),
        ("acl-host-unmatched", {"host": "127.0.0.0/8"}),
    ],
)
def test_an_acl_that_only_seems_to_match_gives_nothing(
    closed: Lab, app: Client, topic: str, rule: str, fields: dict[str, str]
) -> None:
    """The broker stores it without an error, and refuses the client; the right one gives it."""
    user = app.principal.removeprefix("User:")
    right = replace(on_topic(app.principal, "Write", topic), host="127.0.0.1")
    values = {key: text.format(start=topic[:3], user=user) for key, text in fields.items()}
    closed.make(replace(right, **values))
    _wait_for_acls(closed, 1)
    assert app.write(topic) == TOPIC_DENIED, rule
    closed.make(right)
    expect(partial(app.write, topic), ALLOWED)


def test_a_star_at_the_end_of_a_group_name_matches_nothing(
    closed: Lab, app: Client, topic: str
) -> None:
    """`acl-name-star`: the consumer is refused until the pattern is a prefix."""
    assert Client(closed.box, admin_login(closed.box)).write(topic) == ALLOWED
    start = closed.name("g")
    literal = Acl(app.principal, "*", "Read", "Allow", "Group", f"{start}*", "Literal")
    closed.make(on_topic(app.principal, "Read", topic), literal)
    _wait_for_acls(closed, 2)
    assert app.read(topic, f"{start}x") == GROUP_DENIED
    closed.make(replace(literal, resource_name=start, pattern_type="Prefixed"))
    expect(partial(app.read, topic, f"{start}x"), ALLOWED)


def _wait_for_acls(lab: Lab, count: int) -> None:
    """Wait until the broker has so many ACLs."""
    eventually(lambda: len(lab.root.sweep(acls.KIND, Depth.FULL).items), lambda n: n == count)
