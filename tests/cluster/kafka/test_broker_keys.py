"""The table of broker configs against a real broker, which knows best."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from kafka.protocol.admin import IncrementalAlterConfigsRequest

from kafkaform_kafka.protocol import config_keys
from kafkaform_kafka.protocol.cluster_facts import CLIENT_METRICS, GROUP_CONFIGS, explain_absence
from kafkaform_kafka.protocol.config_keys import GROUP_KEYS, METRICS_KEYS, ConfigKey, UpdateMode
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.answers import ConfigEntry
from kafkaform_kafka.wire.configs import TYPES, describe_configs

from ...kit.kafka.versions import get_choice

KINDS = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}
"""ConfigDef's types by the protocol's number (DescribeConfigsResponse v3)."""
LISTED_WHERE_SET = {
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "allow.everyone.if.no.acl.found",
}
"""Known to a broker, and listed only where they are set."""
CAPABILITY = {"group": GROUP_CONFIGS, "client_metrics": CLIENT_METRICS}
UNLISTED = 20
"""Configs that are marked as internal, which a broker keeps to itself."""


def listed(session: KafkaSession, resource: str, name: str, node: str | None) -> list[ConfigEntry]:
    """Everything that the broker tells, with types."""
    wire = session.context.wire
    answers = describe_configs(wire, resource, [name], 10, synonyms=True, docs=True, node=node)
    assert answers[name].code == 0
    return [*(answers[name].configs or ())]


def may_set(session: KafkaSession, name: str, key: str, value: str) -> str | None:
    """What the broker says to a value, without setting it; None if it would take it."""
    row = IncrementalAlterConfigsRequest.AlterConfigsResource
    item = row(
        resource_type=TYPES["broker"],
        resource_name=name,
        configs=[row.AlterableConfig(name=key, config_operation=0, value=value)],
    )
    request = IncrementalAlterConfigsRequest(resources=[item], validate_only=True)
    answer = session.context.wire.send(request, 10, "1").responses[0]
    return answer.error_message if answer.error_code else None


def test_the_table_has_every_config_that_a_broker_lists(admin: KafkaSession) -> None:
    """No config is missing or too many, and each has the broker's type."""
    entries = {entry.name: entry for entry in listed(admin, "broker", "1", "1")}
    own = {n: e for n, e in entries.items() if not n.startswith("listener.name.")}
    table = config_keys.broker_keys()
    assert own.keys() <= table.keys()
    unlisted = table.keys() - own.keys() - LISTED_WHERE_SET
    assert len(unlisted) == UNLISTED, sorted(unlisted)
    for name, entry in own.items():
        known = table[name]
        if not known.secret or entry.kind:  # an authorizer's own configs have no type
            assert KINDS[entry.kind] == known.key.kind, name
        assert entry.read_only is (known.mode is UpdateMode.READ_ONLY), name
        assert entry.sensitive is known.secret, name


def test_the_table_knows_kafkas_defaults(admin: KafkaSession) -> None:
    """What a dynamic config falls back to is what a broker says that its default is."""
    built_in = 5
    for entry in listed(admin, "broker", "1", "1"):
        known = config_keys.broker_keys().get(entry.name)
        if known is None or known.mode is UpdateMode.READ_ONLY or entry.value is None:
            continue
        last = entry.synonyms[-1] if entry.synonyms else None
        if last is not None and last.source == built_in and last.name == entry.name:
            assert (last.value or "") == known.key.default, entry.name


def is_there(key: ConfigKey) -> bool:
    """Whether the Kafka of this run has the config, of a broker: can change it."""
    lacks = partial(get_choice().lacks, zookeeper=True)
    return not lacks(key.since or "3.0") and (not key.until or lacks(key.until))


def test_modes_are_the_brokers_own(admin: KafkaSession) -> None:
    """Each dynamic config is taken for one broker, for all or for a listener, as the table says; a
    config of a newer or an older version does not exist, or cannot be changed."""
    entries = {entry.name: entry for entry in listed(admin, "broker", "1", "1")}
    for name in config_keys.all_broker_keys():
        known = config_keys.find_broker_key(name)
        assert known is not None
        if known.mode is UpdateMode.READ_ONLY or known.secret or name in LISTED_WHERE_SET:
            continue
        if not is_there(known.key):
            assert name not in entries or entries[name].read_only, name
            continue
        value = entries[name].value or known.key.default
        if value == "" and known.key.kind not in ("list", "string"):
            continue  # a class or type without a value has none that a broker would take
        shared = may_set(admin, "", name, value)
        alone = may_set(admin, "1", name, value)
        if known.mode is UpdateMode.CLUSTER:
            assert shared is None, (name, shared)
        elif known.mode is UpdateMode.BROKER:
            assert "broker id must be specified" in (shared or ""), (name, shared)
            assert alone is None, (name, alone)
        else:
            assert "only per-listener" in (alone or ""), (name, alone)


@pytest.mark.parametrize("name", ["num.partitions", "log.dirs", "auto.create.topics.enable"])
def test_read_only_configs_are_refused_by_brokers_too(admin: KafkaSession, name: str) -> None:
    """What a plan refuses as read-only, a broker would refuse in the dry run."""
    found = config_keys.find_broker_key(name)
    assert found is not None and found.mode is UpdateMode.READ_ONLY
    for resource in ("", "1"):
        assert "dynamically" in (may_set(admin, resource, name, "1") or "")


@pytest.mark.parametrize(
    ("name", "mode", "secret"),
    [
        ("listener.name.tls.ssl.keystore.password", UpdateMode.BROKER, True),
        ("listener.name.tls.ssl.keystore.location", UpdateMode.BROKER, False),
        ("listener.name.client.plain.sasl.jaas.config", UpdateMode.BROKER, True),
        ("listener.name.client.max.connections", UpdateMode.CLUSTER, False),
        ("listener.name.client.connections.max.reauth.ms", UpdateMode.BROKER, False),
        ("listener.name.client.ssl.principal.mapping.rules", UpdateMode.READ_ONLY, False),
        ("super.users", UpdateMode.READ_ONLY, True),
    ],
)
def test_a_listeners_config_follows_the_plain_one(
    name: str, mode: UpdateMode, secret: bool
) -> None:
    """The prefix moves a config from the broker to one listener, and opens some for changes."""
    found = config_keys.find_broker_key(name)
    assert found is not None
    assert (found.mode, found.secret) == (mode, secret)


def test_a_plugins_config_is_not_known() -> None:
    """Neither alone nor behind a listener's prefix."""
    assert config_keys.find_broker_key("my.plugin.level") is None
    assert config_keys.find_broker_key("listener.name.client.my.plugin.level") is None


@pytest.mark.parametrize(
    ("resource", "table"), [("group", GROUP_KEYS), ("client_metrics", METRICS_KEYS)]
)
def test_groups_and_metrics_have_the_brokers_configs(
    admin: KafkaSession, resource: str, table: dict[str, ConfigKey]
) -> None:
    """Names, types and defaults of both tables are those that a broker lists. A broker that does
    not have such objects tells nothing of any."""
    if explain_absence(CAPABILITY[resource], admin.facts):
        answer = describe_configs(admin.context.wire, resource, ["no-such"], 10)["no-such"]
        assert answer.code in (0, 42) and not answer.configs
        return
    entries: dict[str, Any] = {e.name: e for e in listed(admin, resource, "no-such", None)}
    assert entries.keys() == {name for name, key in table.items() if is_there(key)}
    for name, entry in entries.items():
        assert KINDS[entry.kind] == table[name].kind
        assert (entry.value or "") == table[name].default
