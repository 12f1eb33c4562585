"""The boundary of a folder: what its blocks may name, judged by the text alone and in a plan."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from kafkaform.core.diagnostics import Severity
from kafkaform.core.value import EMPTY
from kafkaform.plan.rules import covers
from kafkaform.provider.registry import Registry
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.configuration.judgement import judge_configuration
from kafkaform_connect.reaches import find_literal_start

from .test_repository_file import make_files

REPOSITORY = """
repository {
  name  = "acme"
  owner = "the platform team"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["kafka-1:9093"]
}

folders "teams/*" {
  owner  = folder.name
  labels = { team = folder.name, tier = "gold" }
  uses   = { kafka = cluster.prod, "kafka.dr" = cluster.prod }

  boundary {
    topics            = ["${folder.name}.*"]
    groups            = ["${folder.name}.*"]
    principals        = ["User:${folder.name}-*"]
    transactional_ids = ["${folder.name}.*"]
    subjects          = ["${folder.name}.*"]
    connectors        = ["${folder.name}-*"]
    deny              = ["kafka_topic_config", "cluster ACLs"]
  }
}
"""
ROLES = ("producer", "transactional_producer", "consumer", "streams")
BOUNDARY = "the boundary of teams/shop (kafkaform.hcl:17)"


def find_faults(folder: Path, text: str, **files: str) -> list[tuple[str, str]]:
    """Place and summary of what `validate` finds in the file of the folder `teams/shop`."""
    make_files(folder, {"kafkaform.hcl": REPOSITORY, "teams/shop/main.kf.hcl": text, **files})
    configuration = read_configuration(folder / "teams/shop", Inputs.read(()))
    built = configuration.evaluate(offline=True)
    diagnostics = (*built.desired.diagnostics, *judge_configuration(configuration, built))
    return [
        (str(fault.range), fault.summary)
        for fault in diagnostics
        if fault.severity is Severity.ERROR
    ]


def make_acl(**arguments: str) -> str:
    """A block of an ACL that is inside of the boundary but for these arguments."""
    values = {
        "resource_name": "shop.orders",
        "resource_type": "Topic",
        "acl_principal": "User:shop-app",
        "acl_host": "*",
        "acl_operation": "Read",
        "acl_permission_type": "Allow",
        **arguments,
    }
    lines = "\n".join(f'  {name} = "{value}"' for name, value in values.items())
    return f'resource "kafka_acl" "a" {{\n{lines}\n}}\n'


SOURCE = (
    'resource "kafka_connect_connector" "a" {{\n  name = "shop-x"\n  class = "{0}"\n'
    "  config = {{ {1} }}\n}}\n"
)
INSIDE = [
    SOURCE.format(
        "io.debezium.connector.mysql.MySqlConnector",
        '"topic.prefix" = "shop", "schema.history.internal.kafka.topic" = "shop.history", '
        '"schema.history.internal.kafka.bootstrap.servers" = "kafka-1:9093", '
        '"topic.heartbeat.prefix" = "shop.beats"',
    ),
    SOURCE.format(
        "FileStreamSource",
        'topic = "shop.a", transforms = "r", "transforms.r.replacement" = "shop.b", '
        '"transforms.r.type" = "org.apache.kafka.connect.transforms.RegexRouter"',
    ),
    SOURCE.format(
        "io.confluent.connect.s3.S3SinkConnector",
        'topics = "shop.a", transforms = "r", "transforms.r.replacement" = "files", '
        '"transforms.r.type" = "org.apache.kafka.connect.transforms.RegexRouter"',
    ),
    'resource "kafka_topic" "a" {\n  name = "shop.orders"\n}\n',
    make_acl(),
    make_acl(resource_name="shop.", resource_pattern_type_filter="Prefixed"),
    make_acl(resource_type="Group", resource_name="shop.app"),
    make_acl(resource_type="User", resource_name="User:shop-b", acl_operation="CreateTokens"),
    'resource "kafka_quota" "a" {\n  user = "shop-app"\n  config = { producer_byte_rate = 1 }\n}\n',
    'resource "kafka_group_config" "a" {\n  group = "shop.app"\n'
    '  config = { "consumer.session.timeout.ms" = "50000" }\n}\n',
    'resource "kafka_access" "a" {\n  principal = "User:shop-app"\n  role = "consumer"\n'
    '  topics = ["shop.orders"]\n  group = "shop.app"\n}\n',
    'resource "schema_registry_schema" "a" {\n  subject = "shop.orders-value"\n'
    '  schema = "{\\"type\\": \\"string\\"}"\n}\n',
    'resource "kafka_connect_connector" "a" {\n  name = "shop-sink"\n  class = "FileStreamSink"\n'
    '  config = { topics = "shop.orders" }\n}\n',
    'resource "kafka_connect_connector" "a" {\n  name = "shop-sink"\n  class = "FileStreamSink"\n'
    '  config = { "topics.regex" = "shop\\\\.(a|b)" }\n}\n',
]


@pytest.mark.parametrize("text", INSIDE)
def test_what_is_inside_passes(tmp_path: Path, text: str) -> None:
    """A boundary refuses nothing that it covers."""
    assert find_faults(tmp_path, text) == []


@pytest.mark.parametrize("role", ROLES)
def test_roles_inside_pass(tmp_path: Path, role: str) -> None:
    """Roles of applications need nothing of the cluster."""
    text = (
        f'resource "kafka_access" "a" {{\n  principal = "User:shop-app"\n  role = "{role}"\n'
        '  topics = ["shop.orders"]\n'
    )
    if role in ("consumer", "streams"):
        text += '  group = "shop.app"\n'
    if role == "transactional_producer":
        text += '  transactional_ids = ["shop.app"]\n'
    assert find_faults(tmp_path, text + "}\n") == []


def make_connector(config: str, plugin: str = "FileStreamSink") -> str:
    return (
        'resource "kafka_connect_connector" "a" {\n  name = "shop-x"\n'
        f'  class = "{plugin}"\n  config = {{ {config} }}\n}}\n'
    )


ATTACKS = {
    "another team's topic": (
        'resource "kafka_topic" "a" {\n  name = "billing.payments"\n}\n',
        2,
        'the topic "billing.payments"',
    ),
    "a name that only begins alike": (
        'resource "kafka_topic" "a" {\n  name = "shopping"\n}\n',
        2,
        'the topic "shopping"',
    ),
    "the prefix of shop that covers shopping": (
        make_acl(resource_name="shop", resource_pattern_type_filter="Prefixed"),
        2,
        'every topic whose name begins with "shop"',
    ),
    "every topic": (make_acl(resource_name="*"), 2, "every topic"),
    "everybody": (make_acl(acl_principal="User:*"), 4, "everybody (User:*)"),
    "another team's principal": (
        make_acl(acl_principal="User:billing-app"),
        4,
        'the principal "User:billing-app"',
    ),
    "a principal that only begins alike": (
        make_acl(acl_principal="User:shop"),
        4,
        'the principal "User:shop"',
    ),
    "a denial for somebody else": (
        make_acl(acl_principal="User:billing-app", acl_permission_type="Deny"),
        4,
        'the principal "User:billing-app"',
    ),
    "another team's group": (
        make_acl(resource_type="Group", resource_name="billing.app"),
        2,
        'the group "billing.app"',
    ),
    "every transactional id": (
        make_acl(resource_type="TransactionalID", resource_name="*", acl_operation="Write"),
        2,
        "every transactional id",
    ),
    "tokens for another principal": (
        make_acl(
            resource_type="User", resource_name="User:billing-app", acl_operation="CreateTokens"
        ),
        2,
        'the user "User:billing-app"',
    ),
    "a role": (
        'resource "kafka_access" "a" {\n  principal = "User:shop-app"\n  role = "consumer"\n'
        '  topic_prefixes = ["shop"]\n  group = "shop.app"\n}\n',
        1,
        'every topic whose name begins with "shop"',
    ),
    "a Streams application whose id only begins alike": (
        'resource "kafka_access" "a" {\n  principal = "User:shop-app"\n  role = "streams"\n'
        '  topics = ["shop.orders"]\n  group = "shop.app"\n'
        '  transactional_id_prefixes = ["shop"]\n}\n',
        1,
        'every transactional id whose name begins with "shop"',
    ),
    "a quota of everybody": (
        'resource "kafka_quota" "a" {\n  user = "default"\n'
        "  config = { producer_byte_rate = 1 }\n}\n",
        2,
        "the quota of every user",
    ),
    "a quota of somebody else": (
        'resource "kafka_quota" "a" {\n  entity_type = "user"\n  entity_name = "billing-app"\n'
        "  config = { producer_byte_rate = 1 }\n}\n",
        3,
        'the quota of "User:billing-app"',
    ),
    "another login's password": (
        'resource "kafka_user_scram_credential" "a" {\n  username = "admin"\n'
        '  scram_mechanism = "SCRAM-SHA-256"\n  password = secret_env("P")\n}\n',
        2,
        'the principal "User:admin"',
    ),
    "another team's group config": (
        'resource "kafka_group_config" "a" {\n  group = "billing.app"\n'
        '  config = { "consumer.session.timeout.ms" = "50000" }\n}\n',
        2,
        'the group "billing.app"',
    ),
    "another team's schema": (
        'resource "schema_registry_schema" "a" {\n  topic = "billing.payments"\n'
        '  schema = "{\\"type\\": \\"string\\"}"\n}\n',
        2,
        'the subject "billing.payments-value"',
    ),
    "another team's level": (
        'resource "schema_registry_subject_config" "a" {\n  subject = "billing.p-value"\n'
        '  compatibility = "NONE"\n}\n',
        2,
        'the subject "billing.p-value"',
    ),
    "another team's connector": (
        'resource "kafka_connect_connector" "a" {\n  name = "billing-sink"\n'
        '  class = "FileStreamSink"\n  config = { topics = "shop.orders" }\n}\n',
        2,
        'the connector "billing-sink"',
    ),
    "a connector that reads another team's topic": (
        make_connector('topics = "shop.orders,billing.payments"'),
        4,
        'the topic "billing.payments"',
    ),
    "a connector that reads by a pattern": (
        make_connector('"topics.regex" = "shop.*"'),
        4,
        'every topic that fits "shop.*"',
    ),
    "a connector that reads by an alternative": (
        make_connector('"topics.regex" = "shop\\\\.a|billing\\\\.b"'),
        4,
        'every topic that fits "shop\\.a|billing\\.b"',
    ),
    "a connector that joins another team's group": (
        make_connector('topics = "shop.orders", "consumer.override.group.id" = "billing.app"'),
        4,
        'the group "billing.app"',
    ),
    "a connector that sends errors elsewhere": (
        make_connector(
            'topics = "shop.orders", "errors.deadletterqueue.topic.name" = "billing.payments"'
        ),
        4,
        'the topic "billing.payments"',
    ),
    "a source that writes elsewhere": (
        make_connector('topic = "billing.payments"', "FileStreamSource"),
        4,
        'the topic "billing.payments"',
    ),
    "a source with a prefix": (
        make_connector('"topic.prefix" = "shop"', "io.aiven.connect.jdbc.JdbcSourceConnector"),
        4,
        'every topic whose name begins with "shop"',
    ),
    "a source that says nothing": (
        make_connector('"tasks.max" = "1"', "com.example.Source"),
        4,
        "topics that no config of the connector names, which could be any",
    ),
    "a source whose records are sent elsewhere": (
        make_connector(
            'topic = "shop.a", transforms = "r", "transforms.r.replacement" = "billing.payments"',
            "FileStreamSource",
        ),
        4,
        'the topics that "transforms.r.replacement" leads to',
    ),
    "a source that looks like a sink": (
        make_connector(
            'topics = "shop.a", "topic.prefix" = "billing."',
            "io.confluent.connect.jdbc.JdbcSourceConnector",
        ),
        4,
        'every topic whose name begins with "billing."',
    ),
    "a source that is called a sink, too": (
        make_connector(
            'topics = "shop.a", "topic.prefix" = "billing."', "com.example.SinkholeSource"
        ),
        4,
        'every topic whose name begins with "billing."',
    ),
    "a plugin of no known direction that looks like a sink": (
        make_connector('topics = "shop.a"', "com.example.Copy"),
        4,
        "topics that no config of the connector names, which could be any",
    ),
    "a source whose records name their topics": (
        make_connector(
            'topic = "shop.a", transforms = "r", '
            '"transforms.r.type" = "io.confluent.connect.transforms.ExtractTopic$$Value"',
            "FileStreamSource",
        ),
        4,
        'the topics that "transforms.r.type" leads to, which could be any',
    ),
    "a source that keeps its offsets elsewhere": (
        make_connector(
            'topic = "shop.a", "offsets.storage.topic" = "billing.payments"', "FileStreamSource"
        ),
        4,
        'the topic "billing.payments"',
    ),
    "a source with a history elsewhere": (
        make_connector(
            '"topic.prefix" = "shop", "schema.history.internal.kafka.topic" = "billing.payments"',
            "io.debezium.connector.mysql.MySqlConnector",
        ),
        4,
        'the topic "billing.payments"',
    ),
    "a source with notifications elsewhere": (
        make_connector(
            '"topic.prefix" = "shop", "notification.sink.topic.name" = "billing.payments"',
            "io.debezium.connector.mysql.MySqlConnector",
        ),
        4,
        'the topic "billing.payments"',
    ),
    "a source with heartbeats elsewhere": (
        make_connector(
            '"topic.prefix" = "shop", "topic.heartbeat.prefix" = "billing"',
            "io.debezium.connector.mysql.MySqlConnector",
        ),
        4,
        'every topic whose name begins with "billing."',
    ),
    "a sink that reports elsewhere": (
        make_connector('topics = "shop.a", "reporter.error.topic.name" = "billing.payments"'),
        4,
        'the topic "billing.payments"',
    ),
    "a copy of another cluster": (
        make_connector(
            'topic = "shop.a", "src.kafka.bootstrap.servers" = "other:9092"',
            "io.confluent.connect.replicator.ReplicatorSourceConnector",
        ),
        3,
        "topics of another cluster, which could be any",
    ),
    "a schema that refers to another team's": (
        'resource "schema_registry_schema" "a" {\n  subject = "shop.a-value"\n'
        '  schema = jsonencode({ type = "array", items = "billing.P" })\n'
        '  references = [{ name = "billing.P", subject = "billing.P", version = 1 }]\n}\n',
        4,
        'the reference to the subject "billing.P"',
    ),
    "a subject of another context": (
        'resource "schema_registry_subject_config" "a" {\n  subject = ":.billing:shop.p-value"\n'
        '  compatibility = "NONE"\n}\n',
        2,
        'the subject ":.billing:shop.p-value"',
    ),
    "topics that only the workers can read": (
        make_connector('topics = "$${file:/etc/x:topics}"'),
        4,
        '"topics" has a value that only the workers can read, which could name any',
    ),
    "topics that are a secret": (
        make_connector('topics = "shop.a" }\n  secret_config = { "topics.regex" = secret_env("T")'),
        4,
        '"topics.regex" is a secret, which could name any',
    ),
    "a mirror": (
        make_connector(
            'topics = "shop.a"', "org.apache.kafka.connect.mirror.MirrorSourceConnector"
        ),
        3,
        "topics of another cluster, which could be any",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_reaches_outside_is_refused(tmp_path: Path, attack: str) -> None:
    """With the line of the argument, the place of the boundary, and what it allows."""
    text, line, what = ATTACKS[attack]
    faults = find_faults(tmp_path, text)
    assert [place.split(":")[:2] for place, _ in faults] == [["main.kf.hcl", str(line)]]
    assert faults[0][1].startswith(f"{what} is outside of {BOUNDARY}, whose ")
    assert faults[0][1].endswith("[boundary-name]")


UNLIMITED = {
    "kafka_acl": (
        make_acl(resource_type="Cluster", resource_name="kafka-cluster", acl_operation="Alter"),
        3,
        "the ACL is for the cluster",
    ),
    "an administrator": (
        'resource "kafka_access" "a" {\n  principal = "User:shop-app"\n  role = "admin"\n'
        '  topics = ["shop.orders"]\n}\n',
        1,
        "the ACL is for the cluster",
    ),
    "a role of one's own": (
        'resource "kafka_access" "a" {\n  principal = "User:shop-app"\n  role = "custom"\n'
        '  cluster = true\n  operations = ["Alter"]\n}\n',
        1,
        "the ACL is for the cluster",
    ),
    "tokens": (
        make_acl(resource_type="DelegationToken", resource_name="x", acl_operation="Describe"),
        3,
        "the ACL is for every delegation token",
    ),
    "kafka_cluster_config": (
        'resource "kafka_cluster_config" "a" {\n  config = { "log.retention.ms" = "1000" }\n}\n',
        1,
        "the configs of all brokers concern all clients",
    ),
    "kafka_client_metrics": (
        'resource "kafka_client_metrics" "a" {\n  name = "shop.a"\n'
        '  config = { metrics = "" }\n}\n',
        1,
        "a subscription to metrics concerns clients of any user",
    ),
    "kafka_broker_config": (
        'resource "kafka_broker_config" "a" {\n  broker_id = 1\n'
        '  config = { "log.retention.ms" = "1000" }\n}\n',
        1,
        "the configs of a broker concern all its clients",
    ),
    "ip": (
        'resource "kafka_quota" "a" {\n  ip = "10.0.0.1"\n'
        "  config = { connection_creation_rate = 1 }\n}\n",
        2,
        "the quota is for an IP address, which anybody can have",
    ),
    "client": (
        'resource "kafka_quota" "a" {\n  client_id = "shop"\n'
        "  config = { producer_byte_rate = 1 }\n}\n",
        2,
        "the quota is for a client id, which clients of any user can have",
    ),
    "schema_registry_config": (
        'resource "schema_registry_config" "a" {\n  compatibility = "NONE"\n}\n',
        1,
        "the level and the mode of the registry concern all subjects",
    ),
}


@pytest.mark.parametrize("name", UNLIMITED)
def test_what_no_boundary_covers_is_refused(tmp_path: Path, name: str) -> None:
    """Objects without a name that a list could have: whole clusters, addresses, registries."""
    text, line, what = UNLIMITED[name]
    faults = find_faults(tmp_path, text)
    assert (f"{what}, which {BOUNDARY} cannot cover [boundary-unlimited]") in [f for _, f in faults]
    assert {place.split(":")[1] for place, _ in faults} == {str(line)}


def test_a_denied_type_is_refused(tmp_path: Path) -> None:
    """Also for names that the boundary covers."""
    text = (
        'resource "kafka_topic_config" "a" {\n  topic = "shop.a"\n'
        '  config = { "retention.ms" = "1000" }\n}\n'
    )
    ((place, summary),) = find_faults(tmp_path, text)
    assert place.startswith("main.kf.hcl:1:")
    assert summary == f"{BOUNDARY} denies kafka_topic_config [boundary-denied]"


def test_names_count_by_value(tmp_path: Path) -> None:
    """Of for_each, of count, of modules, and of an alias of the provider."""
    text = """
locals {
  names = ["shop.a", join(".", ["billing", "b"])]
}
resource "kafka_topic" "each" {
  for_each = toset(local.names)
  name     = each.key
}
resource "kafka_topic" "count" {
  count    = 2
  provider = kafka.dr
  name     = "${["shop", "billing"][count.index]}.c"
}
module "topics" {
  source = "./topics"
  team   = "billing"
}
"""
    module = 'variable "team" {}\nresource "kafka_topic" "m" {\n  name = "${var.team}.m"\n}\n'
    faults = find_faults(tmp_path, text, **{"teams/shop/topics/main.kf.hcl": module})
    assert [(place.split(":")[:2], text.split(" is outside")[0]) for place, text in faults] == [
        (["main.kf.hcl", "7"], 'the topic "billing.b"'),
        (["main.kf.hcl", "12"], 'the topic "billing.c"'),
        (["topics/main.kf.hcl", "3"], 'the topic "billing.m"'),
    ]


def test_owner_and_labels_are_defaults(tmp_path: Path) -> None:
    """What a block says itself wins."""
    text = """
resource "kafka_topic" "a" {
  name = "shop.a"
}
resource "kafka_topic" "b" {
  name   = "shop.b"
  owner  = "carts"
  labels = { tier = "silver" }
}
"""
    make_files(tmp_path, {"kafkaform.hcl": REPOSITORY, "teams/shop/main.kf.hcl": text})
    configuration = read_configuration(tmp_path / "teams/shop", Inputs.read(()))
    first, second = configuration.evaluate(offline=True).desired.declared
    assert (first.owner, first.labels) == ("shop", {"team": "shop", "tier": "gold"})
    assert (second.owner, second.labels) == ("carts", {"team": "shop", "tier": "silver"})


def test_a_folder_gets_the_clusters_that_it_uses(tmp_path: Path) -> None:
    """As provider blocks at their lines of the repository file; its own blocks win."""
    text = 'provider "kafka" {\n  bootstrap_servers = ["own:9092"]\n}\n'
    make_files(tmp_path, {"kafkaform.hcl": REPOSITORY, "teams/shop/main.kf.hcl": text})
    configuration = read_configuration(tmp_path / "teams/shop", Inputs.read(()))
    providers = configuration.evaluate(offline=True).desired.providers
    assert providers["kafka"].config["bootstrap_servers"] == ("own:9092",)
    assert providers["kafka.dr"].config["bootstrap_servers"] == ("kafka-1:9093",)
    assert str(providers["kafka.dr"].range) == "../../kafkaform.hcl:7:1"


def test_a_folder_of_no_block_is_as_without_a_repository(tmp_path: Path) -> None:
    """It has no boundary, and gets nothing."""
    text = 'resource "kafka_topic" "a" {\n  name = "billing.a"\n}\n'
    make_files(tmp_path, {"kafkaform.hcl": REPOSITORY, "platform/main.kf.hcl": text})
    configuration = read_configuration(tmp_path / "platform", Inputs.read(()))
    built = configuration.evaluate(offline=True)
    assert configuration.repository_folder is None
    assert judge_configuration(configuration, built) == ()
    assert built.desired.declared[0].owner is None


def test_every_type_says_what_it_reaches() -> None:
    """A new one must not be refused in every folder with a boundary by oversight."""
    registry = Registry()
    for name in registry.built_in:
        provider = registry.load(name)
        for kind in (*provider.types, *provider.commanded):
            if provider.types.get(kind) is not None and provider.types[kind].expand is not None:
                continue  # its objects are of other types
            with suppress(KeyError, ValueError):  # without attributes, most name nothing
                assert provider.list_reaches(kind, EMPTY) is not None, kind


@pytest.mark.parametrize(
    ("pattern", "names", "covered"),
    [
        ("shop.*", "shop.a", True),
        ("shop.*", "shop.", True),
        ("shop.*", "shop.*", True),
        ("shop.*", "shop.a.*", True),
        ("shop.*", "shop*", False),
        ("shop.*", "shopping.a", False),
        ("shop.*", "*", False),
        ("shop.*", "shop.a\nb", True),
        ("*.shop", "x.shop", True),
        ("*.shop", "x.shop*", False),
        ("*", "*", True),
        ("shop", "shop", True),
        ("shop", "shop*", False),
        ("s[a-z]op", "shop", False),
    ],
)
def test_a_pattern_covers_what_is_within_it(pattern: str, names: str, covered: bool) -> None:
    """All that a pattern of names stands for has to be within that of the boundary."""
    assert covers(pattern, names) is covered


@pytest.mark.parametrize(
    ("pattern", "start"),
    [
        (r"shop\.(a|b)", "shop."),
        (r"shop\.orders", "shop.orders"),
        (r"shop.*", "shop"),
        (r"shop\.*", "shop"),
        (r"shop?x", "sho"),
        (r"shop\.a|billing", ""),
        (r"(shop|x)", ""),
        (r"[s]hop", ""),
        (r"shop\.[|]a", "shop."),
        (r"sho{0}", "sh"),
        (r"\Qshop\E", ""),
        ("(?i)shop", ""),
        ("", ""),
    ],
)
def test_the_start_of_a_regular_expression(pattern: str, start: str) -> None:
    """The text with which everything begins that fits; less is safe, more is not."""
    assert find_literal_start(pattern) == start
