"""Live objects as configuration text: groups, names, secrets, and what cannot be written."""

from __future__ import annotations

import time
from typing import Any

from kafkaform.core.resource import Facts, Identity, Observed
from kafkaform.core.value import FrozenMap
from kafkaform.syntax.write import format_text
from kafkaform.workflow.generate.blocks import TakenNames, UndeclaredObject, generate_blocks
from kafkaform.workflow.import_all import _make_found
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.kinds.user import resource_type as scram
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.provider import TYPES

FACTS = Facts("cluster")


def found(*items: Observed) -> list[UndeclaredObject]:
    pairs = [_make_found(item, TYPES[item.identity.kind], FACTS) for item in items]
    assert all(made is not None and not note for made, note in pairs), pairs
    return [made for made, _ in pairs if made is not None]


def text(*items: Observed) -> str:
    return generate_blocks(found(*items), TYPES, TakenNames())


def topic(name: str, partitions: int = 1, **config: str) -> Observed:
    attributes = {
        "name": name,
        "partitions": partitions,
        "replication_factor": 1,
        "replica_assignment": ((1,),) * partitions,
        "config": FrozenMap(config),
    }
    return Observed(Identity("kafka", "kafka_topic", name), FrozenMap(attributes))


def acl(*fields: str) -> Observed:
    rule = acls.Acl(*fields)
    return Observed(Identity("kafka", acls.KIND, rule.key), rule.attributes)


def user(name: str, mechanism: str, rounds: int) -> Observed:
    attributes = scram.make_attributes(name, mechanism, rounds)
    return Observed(Identity("kafka", scram.KIND, scram.TYPE.key(attributes)), attributes)


def quota(entity: dict[str, str | None], **values: float) -> Observed:
    return quotas.observe_quota("kafka", entity, values)


def test_times_and_sizes_are_written_as_people_say_them() -> None:
    """A whole amount is a call of the language's function for it; any other value is as it is."""
    config = {
        "retention.ms": "2592000000",
        "segment.bytes": "10485760",
        "max.message.bytes": "1048588",
        "flush.ms": "9223372036854775807",
        "local.retention.ms": "-2",
        "cleanup.policy": "compact",
    }
    written = text(topic("shop.orders", **config))
    assert written == format_text(written)
    for line in (
        '"retention.ms"       = retention("30d")',
        '"segment.bytes"      = bytes("10MiB")',
        '"max.message.bytes"  = "1048588"',
        '"flush.ms"           = "9223372036854775807"',
        '"local.retention.ms" = "-2"',
        '"cleanup.policy"     = "compact"',
    ):
        assert line in written
    limits = text(quota({"user": "ci"}, producer_byte_rate=1048576.0, request_percentage=60.0))
    assert 'producer_byte_rate = bytes("1MiB")' in limits
    assert "request_percentage = 60" in limits


def test_topics_that_differ_in_partitions_share_a_block() -> None:
    """A map of partitions, one block, one import; the name is what the topics' names begin with."""
    assert text(topic("shop.orders", 6), topic("shop.clicks", 3)) == (
        "locals {\n"
        "  kafka_topic_shop = {\n"
        '    "shop.clicks" = 3\n'
        '    "shop.orders" = 6\n'
        "  }\n"
        "}\n"
        "\n"
        'resource "kafka_topic" "shop" {\n'
        "  for_each           = local.kafka_topic_shop\n"
        "  name               = each.key\n"
        "  partitions         = each.value\n"
        "  replication_factor = 1\n"
        "}\n"
        "\n"
        "import {\n"
        "  for_each = local.kafka_topic_shop\n"
        "  to       = kafka_topic.shop[each.key]\n"
        "  id       = each.key\n"
        "}\n"
    )


def test_an_object_like_no_other_stands_alone() -> None:
    """Its block is named after it, and a config is written as it is."""
    assert text(topic("a.b", **{"retention.ms": "1"}), topic("c")) == (
        'resource "kafka_topic" "a_b" {\n'
        '  name               = "a.b"\n'
        "  partitions         = 1\n"
        "  replication_factor = 1\n"
        "  config = {\n"
        '    "retention.ms" = "1"\n'
        "  }\n"
        "}\n"
        "\n"
        "import {\n"
        "  to = kafka_topic.a_b\n"
        '  id = "a.b"\n'
        "}\n"
        "\n"
        'resource "kafka_topic" "c" {\n'
        '  name               = "c"\n'
        "  partitions         = 1\n"
        "  replication_factor = 1\n"
        "}\n"
        "\n"
        "import {\n"
        "  to = kafka_topic.c\n"
        '  id = "c"\n'
        "}\n"
    )


def test_acls_are_grouped_by_principal() -> None:
    """A principal has one block; instance keys say what differs, and a default is not written."""
    made = text(
        acl("User:ci", "*", "Read", "Allow", "Topic", "orders", "Literal"),
        acl("User:ci", "*", "Write", "Allow", "Topic", "orders.", "Prefixed"),
        acl("User:bob", "*", "Read", "Allow", "Group", "g|x", "Literal"),
    )
    assert made.count('resource "kafka_acl"') == 2
    assert 'resource "kafka_acl" "ci" {' in made
    assert 'resource "kafka_acl" "bob_read_group_g_x_allow" {' in made
    assert 'acl_principal                = "User:ci"' in made
    assert '"Read orders"            = { resource_name = "orders", ' in made
    assert '"Write orders. Prefixed" = { resource_name = "orders.", ' in made
    assert 'lookup(each.value, "resource_pattern_type_filter", null)' in made
    assert '"Literal"' not in made
    assert 'id = "User:bob|*|Read|Allow|Group|g\\\\|x|Literal"' in made


def test_entities_of_quotas() -> None:
    """Each form of an entity has its arguments; one that is called default keeps its name."""
    made = text(
        quota({"user": "ci"}, producer_byte_rate=1),
        quota({"user": None, "client-id": "app"}, request_percentage=12.5),
        quota({"ip": None}, connection_creation_rate=5),
        quota({"user": "default"}, producer_byte_rate=2),
    )
    assert 'user = "ci"' in made
    assert '  user      = "default"\n  client_id = "app"' in made
    assert "request_percentage = 12.5" in made
    assert 'ip = "default"' in made
    assert '  entity_type = "user"\n  entity_name = "default"' in made
    assert 'id = "user|client-id=app"' in made


def test_a_limit_that_is_no_number_is_told() -> None:
    """What no block can declare is a sentence for people, not a block that is wrong."""
    item = quota({"user": "x"}, producer_byte_rate=float("inf"))
    made, told = _make_found(item, quotas.TYPE, FACTS)
    assert made is None
    assert "producer_byte_rate" in told


def test_users_get_a_place_for_their_password() -> None:
    """Each user has a block and a variable of its own, and a comment says what belongs there."""
    made = text(user("ci", "SCRAM-SHA-256", 4096), user("ci", "SCRAM-SHA-512", 8192))
    assert made.count('resource "kafka_user_scram_credential"') == 2
    assert 'password        = secret_env("CI_SCRAM_SHA_256_PASSWORD")' in made
    assert "# The password cannot be read: put it into CI_SCRAM_SHA_512_PASSWORD." in made
    assert made.count("scram_iterations") == 1


def test_secrets_of_brokers_get_a_place_each() -> None:
    """Configs that a broker never tells become references, the others are written."""
    attributes: dict[str, Any] = {
        "broker_id": 3,
        "config": FrozenMap({"log.cleaner.threads": "2"}),
        "secret_keys": FrozenMap({"listener.name.tls.ssl.key.password": "set"}),
    }
    identity = Identity("kafka", "kafka_broker_config", "3")
    made = text(Observed(identity, FrozenMap(attributes)))
    variable = "BROKER_CONFIG_3_SECRET_CONFIG_LISTENER_NAME_TLS_SSL_KEY_PASSWORD"
    assert f'"listener.name.tls.ssl.key.password" = secret_env("{variable}")' in made
    assert "secret_keys" not in made


def test_no_value_becomes_code() -> None:
    """Names are data, whatever is in them; blocks get plain names."""
    principal = 'User:${file("x")}"%{'
    made = text(acl(principal, "*", "All", "Deny", "Topic", "é\n*", "Literal"))
    assert 'acl_principal       = "User:$${file(\\"x\\")}\\"%%{"' in made
    assert 'resource "kafka_acl" "file_x_all_topic_deny" {' in made
    assert format_text(made) == made


def test_writing_grows_with_the_number_of_topics() -> None:
    """Ten times as many topics take about ten times as long and not a hundred times, whether or not
    they are alike."""
    few, made = processor_seconds(300)
    many, made = processor_seconds(3_000)
    assert many < 40 * few
    assert made.count("import {") == 2_251


def processor_seconds(number: int) -> tuple[float, str]:
    """How long it takes to write so many topics, a quarter of which are alike, and the text."""
    alike = [topic(f"a{n}", 1 + n % 7) for n in range(number // 4)]
    others = (topic(f"t{n}", **{"retention.ms": str(n)}) for n in range(number - number // 4))
    items = [*alike, *others]
    began = time.process_time()
    made = text(*items)
    return time.process_time() - began, made
