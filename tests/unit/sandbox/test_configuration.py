"""What the brokers are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import UsageError
from kafkaform.sandbox import configuration
from kafkaform.sandbox.record import (
    Broker,
    Ports,
    Sandbox,
    SandboxOptions,
    check_options,
    parse_override,
)


def settings(sandbox: Sandbox, broker: int = 0) -> dict[str, str]:
    text = configuration.render_properties(sandbox, sandbox.brokers[broker])
    lines = (line.partition("=") for line in text.splitlines())
    return {key: value for key, _, value in lines}


@pytest.fixture
def three(box: Sandbox) -> Sandbox:
    """Three brokers with TLS, on paper."""
    brokers = tuple(
        Broker(number, Ports(*range(number * 1000, number * 1000 + 4))) for number in (1, 2, 3)
    )
    return replace(box, brokers=brokers)


def test_every_listener_is_on_the_loopback_address(three: Sandbox) -> None:
    """Nothing of a sandbox can be reached from another computer."""
    for key in ("listeners", "advertised.listeners"):
        listeners = settings(three)[key].split(",")
        assert all(each.split("://")[1].startswith("127.0.0.1:") for each in listeners)


def test_nobody_is_let_in_without_a_login(three: Sandbox) -> None:
    """No listener is without authentication, and only two named users are super users."""
    found = settings(three)
    protocols = dict(each.split(":") for each in found["listener.security.protocol.map"].split(","))
    assert protocols.pop("TLS") == "SASL_SSL"
    assert set(protocols.values()) == {"SASL_PLAINTEXT"}
    assert found["super.users"] == "User:admin;User:broker"
    assert found["authorizer.class.name"].endswith("StandardAuthorizer")
    assert "allow.everyone.if.no.acl.found" not in found  # Kafka's default is false


def test_three_brokers_replicate(box: Sandbox, three: Sandbox) -> None:
    """Three brokers keep three copies in three racks, one broker keeps one."""
    assert settings(three)["default.replication.factor"] == "3"
    assert settings(three)["min.insync.replicas"] == "2"
    assert [settings(three, number)["broker.rack"] for number in range(3)] == ["r1", "r2", "r3"]
    assert settings(box)["default.replication.factor"] == "1"


def test_no_broker_is_told_what_it_does_not_know(box: Sandbox) -> None:
    """Kafka 3 has no share groups."""
    old = settings(replace(box, kafka_version="3.9.2"))
    assert not any(key.startswith("share.") for key in old)
    assert old.keys() < settings(box).keys()


def test_zookeeper_is_closed_to_strangers(box: Sandbox) -> None:
    """It listens on the loopback address, answers nobody without a login, and the broker protects
    what it writes. Nothing of a controller is left."""
    old = replace(box, kafka_version="3.9.2", zookeeper=True)
    found = settings(old)
    assert found["zookeeper.connect"] == "127.0.0.1:20003"
    assert found["zookeeper.set.acl"] == "true"
    assert found["authorizer.class.name"] == "kafka.security.authorizer.AclAuthorizer"
    assert not any("controller" in key.lower() for key in found)
    assert "CONTROLLER" not in "".join(found.values())
    assert "process.roles" not in found and found["broker.id"] == "1"
    own = dict(
        line.split("=", 1)
        for line in configuration.render_zookeeper_properties(old).splitlines()
        if line
    )
    assert own["clientPortAddress"] == "127.0.0.1" and own["clientPort"] == "20003"
    assert own["admin.enableServer"] == "false"
    assert (own["enforce.auth.enabled"], own["enforce.auth.schemes"]) == ("true", "sasl")
    logins = configuration.render_zookeeper_logins(old)
    assert logins.count(old.broker_password) == 2 and old.admin_password not in logins


def test_only_what_needs_it_gets_the_logins_of_zookeeper(box: Sandbox) -> None:
    """A Kafka with a controller of its own is started as before."""
    java = Path("java")
    logins = "-Djava.security.auth.login.config="
    old = replace(box, kafka_version="3.9.2", zookeeper=True)
    for each, times in ((box, 0), (old, 1)):
        command = configuration.make_java_command(each, java, "kafka.Kafka", "x.properties")
        assert sum(word.startswith(logins) for word in command) == times
    command = configuration.make_users_command(old, java, "ci")
    assert "SCRAM-SHA-256=[password=ci-password],SCRAM-SHA-512=[password=ci-password]" in command


def test_without_an_authorizer_nothing_is_said_of_acls(box: Sandbox) -> None:
    """Neither to the brokers nor in the provider block."""
    open_to_all = replace(box, authorizer=False)
    keys = settings(open_to_all).keys()
    assert not {"authorizer.class.name", "super.users"} & keys
    assert "authorizer" not in configuration.render(open_to_all, configuration.Format.PROVIDER)


def test_overrides_win(box: Sandbox) -> None:
    """--config replaces what the sandbox would have set."""
    changed = replace(box, config=(("auto.create.topics.enable", "true"), ("num.partitions", "7")))
    assert settings(changed)["auto.create.topics.enable"] == "true"
    assert settings(changed)["num.partitions"] == "7"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain value=x", "plain value=x"),
        (" leading", "\\ leading"),
        ("back\\slash", "back\\\\slash"),
        ("josé", "jos\\u00e9"),
        ("😀", "\\ud83d\\ude00"),
        ("two\nlines", "two\\u000alines"),
    ],
)
def test_values_are_escaped_for_java(value: str, written: str) -> None:
    """Any value survives Java's properties format, and none can add a property."""
    assert configuration.escape_value(value) == written


def test_argument_file_quotes() -> None:
    """Blanks, quotes and backslashes in an argument survive `java @file`."""
    assert configuration.render_argument_file(['a "b"', "c\\d"]) == '"a \\"b\\""\n"c\\\\d"\n'


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (SandboxOptions(name="../up"), "name"),
        (SandboxOptions(name=".hidden"), "name"),
        (SandboxOptions(name=""), "name"),
        (SandboxOptions(brokers=2), "1 or 3"),
        (SandboxOptions(ready_within=0), "more than 0"),
        (SandboxOptions(config=(("listeners", "PLAINTEXT://:9092"),)), "sets this itself"),
        (SandboxOptions(config=(("listener.name.client.plain.sasl.jaas.config", ""),)), "itself"),
        (SandboxOptions(config=(("zookeeper.connect", "x:2181"),)), "sets this itself"),
        (SandboxOptions(config=(("bad key", "1"),)), "not the name"),
        (SandboxOptions(kafka_version="4.3"), "no list of the jars of Kafka 4.3"),
        (SandboxOptions(kafka_version="new"), "no list of the jars of Kafka new"),
        (SandboxOptions(zookeeper=True), "Kafka 4.3.1 has no ZooKeeper mode"),
        (SandboxOptions(zookeeper=True, kafka_version="4.0.2"), "has no ZooKeeper mode"),
        (
            SandboxOptions(zookeeper=True, kafka_version="3.9.2", brokers=3),
            "--zookeeper: such a sandbox has 1 broker, not 3",
        ),
        (SandboxOptions(config=(("log.retention.ms", "1\nlisteners=x"),)), "single line"),
    ],
)
def test_options_that_cannot_be_met_are_refused(options: SandboxOptions, word: str) -> None:
    """Each is refused before anything is made, in words that name the fault."""
    with pytest.raises(UsageError, match=word):
        check_options(options)


def test_override_syntax() -> None:
    """A value may hold an equals sign; a text without one is refused."""
    assert parse_override("a.b=c=d") == ("a.b", "c=d")
    with pytest.raises(UsageError, match="KEY=VALUE"):
        parse_override("a.b")
