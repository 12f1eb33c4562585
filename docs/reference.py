"""Writes docs/reference/*.md from the schemas of the providers: `python docs/reference.py`.

What a schema says is taken from it word for word; what it cannot say (an example, what a change
of an attribute does) stands in `PAGES`. A test compares the files with what this prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafkaform.core.schema import AttributeSchema, ObjectSchema
from kafkaform.language.evaluate.providers import OUTPUTS, OUTPUTS_SCHEMA
from kafkaform.workflow.configuration.repository import PAGES as REPOSITORY_BLOCKS
from kafkaform_connect.data_sources import DATA as CONNECT_DATA
from kafkaform_connect.memory.provider import SETTINGS as CONNECT_SETTINGS
from kafkaform_connect.provider import PROVIDER as CONNECT
from kafkaform_kafka.data_sources import DATA
from kafkaform_kafka.memory.provider import SETTINGS
from kafkaform_kafka.protocol.config_keys import (
    GROUP_KEYS,
    METRICS_KEYS,
    TOPIC_KEYS,
    ConfigKey,
    UpdateMode,
    broker_keys,
    render_range,
)
from kafkaform_kafka.provider import PROVIDER
from kafkaform_schema_registry.data_sources import DATA as REGISTRY_DATA
from kafkaform_schema_registry.memory import SETTINGS as REGISTRY_SETTINGS
from kafkaform_schema_registry.provider import PROVIDER as REGISTRY

FOLDER = Path(__file__).parent / "reference"


@dataclass(frozen=True, slots=True)
class Page:
    """One document. intro, example: Markdown and HCL; rules: what else is true, one each;
    computed: what is to be known of computed attributes; configs: heading -> the configs of Kafka
    to list below it."""

    title: str
    schema: ObjectSchema
    intro: str
    example: str
    rules: tuple[str, ...]
    resource: bool = True
    computed: str = "Known after the apply. Legal in `output` blocks, postconditions and checks."
    configs: Mapping[str, Iterable[ConfigKey]] = field(default_factory=dict)


TOPIC_EXAMPLE = """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_topic" "orders" {
  name               = "shop.orders"
  partitions         = 12
  replication_factor = 3

  config = {
    "cleanup.policy"      = "delete"
    "min.insync.replicas" = "2"
    "retention.ms"        = retention("7d")
  }

  owner  = "team-shop"
  labels = { tier = "gold" }

  lifecycle {
    prevent_destroy = true
    ignore_changes  = [config["segment.bytes"]]
  }
}

output "orders_id" {
  value = kafka_topic.orders.topic_id
}
"""

CONFIG_EXAMPLE = """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_topic_config" "changelog" {
  topic = "app-store-changelog"

  config = {
    "max.message.bytes" = "2097152"
  }
}
"""

SIMULATE_EXAMPLE = """\
simulate "kafka" {
  brokers = 5
}

run "plan" {
  assert {
    condition     = plan.counts.destroy == 0
    error_message = "Nothing is destroyed."
  }
}
"""
PROVIDER_EXAMPLE = """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9093", "kafka-2:9093"]
  security_protocol = "SASL_SSL"
  sasl_mechanism    = "SCRAM-SHA-512"
  sasl_username     = "kafkaform"
  sasl_password     = secret_env("KAFKA_PASSWORD")
  ca_cert           = "ca.pem"
}

# A second cluster: its resources say `provider = kafka.eu`.
provider "kafka" {
  alias             = "eu"
  bootstrap_servers = ["kafka-eu-1:9092"]
}

resource "kafka_topic" "orders" {
  provider   = kafka.eu
  name       = "orders"
  partitions = 3
}
"""

QUOTA_EXAMPLE = """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_quota" "everybody" {
  user      = "default"
  client_id = "default"
  config    = { producer_byte_rate = 1048576, request_percentage = 50 }
}

resource "kafka_quota" "billing" {
  user   = "billing"
  config = { producer_byte_rate = 20971520 }
}
"""

LOGIN_EXAMPLE = """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_user_scram_credential" "billing" {
  username            = "billing"
  scram_mechanism     = "SCRAM-SHA-512"
  scram_iterations    = 8192
  password            = secret_env("PASSWORD_OF_BILLING")
  password_wo_version = 1
}
"""

ACL_EXAMPLE = """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_acl" "reports" {
  acl_principal                = "User:reports"
  acl_host                     = "*"
  acl_operation                = "Read"
  acl_permission_type          = "Allow"
  resource_type                = "Topic"
  resource_name                = "shop."
  resource_pattern_type_filter = "Prefixed"
}
"""

ACCESS_EXAMPLE = """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_access" "billing" {
  principal = "User:billing"
  role      = "consumer"
  topics    = ["shop.orders"]
  group     = "billing"
}

resource "kafka_access" "dashboard" {
  principal      = "User:dashboard"
  role           = "custom"
  topic_prefixes = ["shop."]
  operations     = ["Describe", "DescribeConfigs"]
}
"""

DATA_EXAMPLES = {
    "kafka_topic": """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

data "kafka_topic" "orders" {
  name = "shop.orders"
}

resource "kafka_access" "billing" {
  principal = "User:billing"
  role      = "consumer"
  topics    = ["shop.orders"]
  group     = "billing"
}

# As many partitions as the topic that it belongs to.
resource "kafka_topic" "retries" {
  name       = "shop.orders.retry"
  partitions = data.kafka_topic.orders.partitions
}
""",
    "kafka_topics": """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

data "kafka_topics" "shop" {
  name = "shop.*"
}

resource "kafka_topic" "audit" {
  name = "audit.log"
}

resource "kafka_access" "audit" {
  principal = "User:audit"
  role      = "consumer"
  topics    = [for topic in data.kafka_topics.shop.list : topic.name]
  group     = "audit"
}
""",
    "kafka_acls": """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_topic" "orders" {
  name = "shop.orders"
}

data "kafka_acls" "orders" {
  resource_type                = "Topic"
  resource_name                = "shop.orders"
  resource_pattern_type_filter = "Match"
}

output "named_in_acls_of_orders" {
  value = toset(data.kafka_acls.orders.list[*].acl_principal)
}
""",
    "kafka_quotas": """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_quota" "billing" {
  user   = "billing"
  config = { producer_byte_rate = 20971520 }
}

data "kafka_quotas" "users" {
  entity_type = "user"
}

output "limited_users" {
  value = data.kafka_quotas.users.list[*].id
}
""",
    "kafka_cluster": """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

data "kafka_cluster" "this" {}

resource "kafka_topic" "orders" {
  name               = "shop.orders"
  partitions         = 12
  replication_factor = 3
}

check "brokers" {
  assert {
    condition     = length(data.kafka_cluster.this.brokers) >= 3
    error_message = "A broker is missing."
  }
}
""",
}

DATA_RULES: Mapping[str, tuple[str, ...]] = {
    "kafka_topic": (
        "A hidden topic is an error that names the missing right. It never counts as missing.",
    ),
    "kafka_topics": (
        "kafkaform reads the configs of each topic by name, so select only the topics that you "
        "need.",
    ),
    "kafka_acls": (
        "`Match` works as in Kafka: literal and prefixed patterns that cover `resource_name`, and "
        "`*`.",
        "Without Describe on Cluster it is an error, because nobody sees any ACL then.",
    ),
    "kafka_quotas": ("Without DescribeConfigs on Cluster it is an error.",),
    "kafka_cluster": (),
}
ANSWERED = (
    "The answer. You can use it wherever a value is allowed, also in `for_each`. Every plan reads "
    "it; `kafkaform validate` does not, and checks only names in expressions that use it."
)

LEVEL_EXAMPLES = {
    "kafka_broker_config": """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_broker_config" "first" {
  broker_id = 1

  config = {
    "background.threads"                      = 16
    "listener.name.tls.ssl.keystore.type"     = "PKCS12"
    "listener.name.tls.ssl.keystore.location" = "/etc/kafka/first.p12"
  }

  secret_config = {
    "listener.name.tls.ssl.keystore.password" = secret_env("KEYSTORE_PASSWORD")
  }
  secret_config_version = "2026-01"
}
""",
    "kafka_cluster_config": """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_cluster_config" "all" {
  config = {
    "log.cleanup.policy" = ["delete", "compact"]
    "log.retention.ms"   = retention("30d")
    "message.max.bytes"  = 2000000
  }
}
""",
    "kafka_group_config": """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_group_config" "payments" {
  group  = "payments"
  config = { "consumer.session.timeout.ms" = 50000 }
}
""",
    "kafka_client_metrics": """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

resource "kafka_client_metrics" "shop" {
  name = "shop-producers"
  config = {
    "interval.ms" = 60000
    "match"       = ["client_id=shop-.*"]
    "metrics"     = ["org.apache.kafka.producer."]
  }
}
""",
}

LEVEL_RULES = (
    "The object exists as long as it has configs of its own.",
    "`config` is authoritative: the plan removes configs of this level that are not in the map, "
    'and shows the values that take effect then. `config_mode = "additive"`, '
    "`lifecycle.ignore_changes` and null keep configs.",
    "Values are compared after parsing. The order of a list counts where it has a meaning.",
    "The plan refuses values of the wrong type or out of range; the broker checks the rest in the "
    "dry run.",
)
BROKER_RULES = (
    *LEVEL_RULES,
    "The plan refuses configs that brokers read only at startup.",
    "Replication throttles (`*.replication.throttled.rate`) stay unless they are declared, because "
    "tools that move replicas set them.",
    "A broker reveals neither passwords nor the values of configs that it does not know, such as "
    "those of plugins. Put them into `secret_config`; plans show only that they are set. If a plan "
    "removes an undeclared secret, it warns, because nobody can restore it.",
    "Kafka stores these secrets in its metadata log without encryption.",
)


def modes(*wanted: UpdateMode) -> list[ConfigKey]:
    """The configs of brokers that may be changed so."""
    return [known.key for known in broker_keys().values() if known.mode in wanted]


PAGES: Mapping[str, Page] = {
    "kafka_topic": Page(
        title="kafka_topic",
        schema=PROVIDER.types["kafka_topic"].schema,
        intro="The import id is the topic's name.",
        example=TOPIC_EXAMPLE,
        rules=(
            "You can raise `partitions`. A plan that lowers it is blocked: Kafka cannot remove "
            "partitions.",
            "If you change `replication_factor`, or the `replica_assignment` of existing "
            "partitions, replicas move: the plan shows where, and the apply starts the move and "
            "does not wait. A block with neither moves nothing. See "
            "[Where replicas are](../placement.md).",
            "A topic is never replaced. Another `name` is another topic, and the old topic stays, "
            "because it is protected. To delete the old topic, give it an address of its own "
            "before the apply (`kafkaform state mv kafka_topic.orders kafka_topic.old`), and write "
            "a `removed` block for `kafka_topic.old`.",
            "`config` is authoritative: the plan removes live overrides that are not in the map, "
            "and shows the values that take effect then. It keeps the keys in `ignore_changes`, "
            "`*.replication.throttled.replicas`, and, with "
            '`config_mode = "additive"`, everything else.',
            'Values are compared after parsing: `1`, `"1"` and `" 1"` are equal. So are '
            '`compact,delete` and `delete,compact`. `retention("7d")` gives milliseconds.',
            "The plan refuses config keys that Kafka does not have, and values of the wrong type "
            "or out of range, before anything is sent.",
            "A new topic is protected. To delete it, replace its block with a `removed` block with "
            "`lifecycle { destroy = true }`.",
            "A topic is deleted by its id. A topic that somebody recreated under the same name is "
            "not deleted.",
            "Internal topics belong to Kafka: those that the broker flags as internal, and "
            "`__consumer_offsets`, `__transaction_state`, `__share_group_state`, "
            "`__cluster_metadata` and `__remote_log_metadata`. A plan leaves them as they are, "
            "says so, and applies the rest. Every other topic whose name starts with `__` is a "
            "topic like others.",
            "Two names that differ only in `.` and `_` collide in Kafka's metrics, so the plan "
            "blocks them.",
        ),
        configs={"Topic configs": TOPIC_KEYS.values()},
    ),
    "kafka_topic_config": Page(
        title="kafka_topic_config",
        schema=PROVIDER.types["kafka_topic_config"].schema,
        intro="For a topic that an application or another team creates. "
        "The import id is the topic's name.",
        example=CONFIG_EXAMPLE,
        rules=(
            "The object exists as long as the topic has overrides. If it already has some, adopt "
            "or import them.",
            "Deleting the object removes the overrides of the topic, but not replication "
            "throttles. The topic stays. The object is not protected.",
            "If a `kafka_topic` block declares the same topic, the plan blocks this one: move the "
            "configs into that block.",
            "An internal topic (`__consumer_offsets`) is allowed here, with a warning.",
            "The config keys and their ranges are those of "
            "[kafka_topic](kafka_topic.md#topic-configs).",
        ),
    ),
    "kafka_broker_config": Page(
        title="kafka_broker_config",
        schema=PROVIDER.types["kafka_broker_config"].schema,
        intro="kafkaform reads them from that broker and sends them to it. While the broker is "
        "down, plans block the block.",
        example=LEVEL_EXAMPLES["kafka_broker_config"],
        rules=BROKER_RULES,
        configs={
            "For one broker or for all": modes(UpdateMode.CLUSTER),
            "For one broker": modes(UpdateMode.BROKER),
            "For one listener, with `listener.name.LISTENER.` in front": modes(UpdateMode.LISTENER),
        },
    ),
    "kafka_cluster_config": Page(
        title="kafka_cluster_config",
        schema=PROVIDER.types["kafka_cluster_config"].schema,
        intro="Each cluster has one.",
        example=LEVEL_EXAMPLES["kafka_cluster_config"],
        rules=(
            *BROKER_RULES,
            "On clusters with eligible leader replicas (KIP-966), `min.insync.replicas` is set "
            "from the beginning, and Kafka refuses to remove it or to set it for one broker. If no "
            "block declares it, it stays as it is, and plans do not show it.",
            "Only the broker that gets the request checks it; other brokers can have other static "
            "configs.",
        ),
        configs={"For all brokers": modes(UpdateMode.CLUSTER)},
    ),
    "kafka_group_config": Page(
        title="kafka_group_config",
        schema=PROVIDER.types["kafka_group_config"].schema,
        intro="Needs Kafka 4.0 or newer.",
        example=LEVEL_EXAMPLES["kafka_group_config"],
        rules=LEVEL_RULES,
        configs={"Group configs": GROUP_KEYS.values()},
    ),
    "kafka_client_metrics": Page(
        title="kafka_client_metrics",
        schema=PROVIDER.types["kafka_client_metrics"].schema,
        intro="Needs Kafka 3.7 or newer, and a metrics reporter on the brokers that receives the "
        "metrics.",
        example=LEVEL_EXAMPLES["kafka_client_metrics"],
        rules=LEVEL_RULES,
        configs={"Subscriptions": METRICS_KEYS.values()},
    ),
    "kafka_quota": Page(
        title="kafka_quota",
        schema=PROVIDER.types["kafka_quota"].schema,
        intro="[Users and quotas](../users-and-quotas.md) shows all forms of entities, and "
        "`kafkaform explain quota` shows the limits that apply to a client.",
        example=QUOTA_EXAMPLE,
        rules=(
            "Exactly one form: `user` and/or `client_id`, or `ip`, or `entity_type` with or "
            "without `entity_name`.",
            'To remove a limit, remove it from `config`; no value means "no limit". The plan '
            "refuses NaN, infinity and numbers that are not above 0.",
            "Two values are equal if they differ by less than a billionth.",
            "The broker checks changes in the dry run (`validate_only`).",
        ),
    ),
    "kafka_user_scram_credential": Page(
        title="kafka_user_scram_credential",
        schema=PROVIDER.types["kafka_user_scram_credential"].schema,
        intro="[Users and quotas](../users-and-quotas.md) says when a password is sent, and what "
        "happens if the answer is lost.",
        example=LOGIN_EXAMPLE,
        rules=(
            "A user with two mechanisms needs two blocks; each is sent in its own request.",
            "kafkaform sends a salted hash with a new salt. Plans, state and logs never contain a "
            "password.",
            "An adopted or imported credential keeps its password.",
            "Kafka has no dry run for credentials; kafkaform checks the right beforehand.",
        ),
    ),
    "kafka_acl": Page(
        title="kafka_acl",
        schema=PROVIDER.types["kafka_acl"].schema,
        intro="[ACLs and roles](../acls.md) says which rules are refused, and in which order rules "
        "are created and deleted; [who may do what](../access.md) says how Kafka decides.",
        example=ACL_EXAMPLE,
        rules=(
            "The plan refuses rules that Kafka would store and never use: an operation that the "
            "resource type does not have, a principal without a type, a host name as the host.",
            "For each rule that it creates or deletes, the plan says who gains and loses what.",
            "A plan is blocked (exit 8) if it takes rights from the principal that runs it, or "
            "deletes the last ACL of a resource that can then be open to everybody.",
            "Without Describe on Cluster nobody sees any ACL, and kafkaform plans nothing for "
            "ACLs.",
            "Kafka has no dry run for ACLs; kafkaform reads them again and checks its own rights "
            "instead.",
        ),
    ),
    "kafka_access": Page(
        title="kafka_access",
        schema=PROVIDER.types["kafka_access"].schema,
        intro="[Roles](../acls.md#roles) has a table of the rights of each role.",
        example=ACCESS_EXAMPLE,
        rules=(
            "Plans, the state and the log contain the rules themselves, such as "
            '`kafka_access.billing/acl["Read|Topic|shop.orders|Literal"]`. What you do to the '
            "block (`moved`, `removed`, `--target`, `state mv`) applies to all of them.",
            "The block's `lifecycle`, `depends_on`, `owner` and `labels` apply to its rules.",
            "A role without a resource that it needs is refused.",
        ),
    ),
    "provider": Page(
        title="provider kafka",
        schema=PROVIDER.config,
        intro="`alias` names a further instance, for a further cluster. A resource chooses it with "
        "`provider = kafka.ALIAS`; without that it uses the block without an alias. A block with "
        "`alias` and `for_each` (a map or a set of strings) makes an instance for each key, with "
        "`each.key` and `each.value` in its arguments: `provider = kafka.ALIAS[each.key]`, "
        '`providers = { kafka = kafka.ALIAS["eu"] }`. An instance whose key is gone is treated as '
        "one whose block is gone: first delete or forget its objects.",
        example=PROVIDER_EXAMPLE,
        rules=(
            'A secret attribute takes `secret_env("NAME")`, `secret_file("PATH")`, '
            '[`secret_command(["WORD", …])`](../secrets.md) or a '
            "sensitive variable, and no literal. It is read before connecting and never stored.",
            "What a block leaves out comes from the environment: "
            "`KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS` for `bootstrap_servers`, "
            "`KAFKAFORM_KAFKA_EU_SASL_PASSWORD` for the password of the alias `eu`: "
            "[connections from the environment]"
            "(../commands.md#connections-from-the-environment).",
            "Each block is a cluster of its own: two that lead to the same one are refused, and so "
            "is one whose `bootstrap_servers` lead to two.",
            "With a user name and nothing said about TLS the protocol is SASL_SSL: a password "
            "does not travel in the clear by omission. TLS is always verified.",
            '`sasl_mechanism = "oauthbearer"` logs in with a token: from `sasl_token_url` by the '
            "client credentials grant (RFC 6749), or from `sasl_token_file`, which must hold a "
            "JSON web token. It is fetched again when a fifth of its life is left. The endpoint is "
            "verified as brokers are, and may have the authority of `ca_cert`; redirections are "
            "not followed.",
            "`sasl_token_auth = true` logs in with a [delegation token]"
            '(../delegation-tokens.md), and `sasl_mechanism = "gssapi"` with '
            "[Kerberos](../kerberos.md).",
            "A connection that fails says within ten seconds why, and what to change: the login, "
            "the mechanism, the certificate, the protocol of that port, the token.",
            "The first apply binds the state to the cluster id. Later runs refuse to go on if "
            "`bootstrap_servers` leads to another cluster (exit 4).",
            "`protect_topics = false` concerns topics that are created or changed under it; rows "
            "that are protected already stay protected.",
            "`acl_order` is told in [ACLs and roles](../acls.md#order). What `authorizer` says "
            "decides what a plan can tell of gains, losses and lock-outs: "
            "[who may do what](../access.md).",
            "`reassignment_throttle` limits what a move copies: "
            "[throttles](../placement.md#throttles).",
            "Keys and certificates come in PEM, or in Java's key stores: "
            "[certificates and key stores](../certificates.md).",
            '`sasl_mechanism = "aws-iam"` logs in to Amazon MSK: '
            "[logins with AWS keys](../aws-logins.md).",
            "`kafka_version`, `skip_tls_verify` and some of `sasl_aws_…` are words of the Mongey "
            "provider that get an answer of their own: [from Terraform](../from-terraform.md).",
        ),
        resource=False,
    ),
    "simulate": Page(
        title="simulate kafka",
        schema=SETTINGS,
        intro="A block of a [test file](../testing.md); without one, the defaults count. `alias` "
        'names the cluster of a further provider instance: `alias = "eu"` for `kafka.eu`.',
        example=SIMULATE_EXAMPLE,
        rules=(
            "The values are constants. Other settings of brokers can be given as objects, such as "
            '`given "kafka_cluster_config" "all" { … }`.',
        ),
        resource=False,
    ),
    **{
        f"data.{name}": Page(
            title=f"data {name}",
            schema=kind,
            intro="",
            example=DATA_EXAMPLES[name],
            rules=DATA_RULES[name],
            resource=False,
            computed=ANSWERED,
        )
        for name, kind in DATA.items()
    },
}

REGISTRY_BLOCK = """\
provider "schema_registry" {
  url      = "https://registry:8081"
  username = "ci"
  password = secret_env("REGISTRY_PASSWORD")
}

"""
REGISTRY_EXAMPLES = {
    "schema_registry_schema": """\
resource "schema_registry_schema" "order" {
  topic  = "shop.orders"
  schema = jsonencode({
    type = "record"
    name = "Order"
    fields = [
      { name = "id", type = "long" },
      { name = "note", type = ["null", "string"], default = null },
    ]
  })
}
""",
    "schema_registry_subject_config": """\
resource "schema_registry_subject_config" "order" {
  topic         = "shop.orders"
  compatibility = "FULL_TRANSITIVE"
}
""",
    "schema_registry_config": """\
resource "schema_registry_config" "all" {
  compatibility = "BACKWARD_TRANSITIVE"

  lifecycle {
    adopt = true
  }
}
""",
}
REGISTRY_DATA_EXAMPLES = {
    "schema_registry_schema": """\
data "schema_registry_schema" "money" {
  subject = "shop.Money"
}

resource "schema_registry_schema" "prices" {
  topic  = "shop.prices"
  schema = jsonencode({ type = "array", items = "shop.Money" })
  references = [{
    name    = "shop.Money"
    subject = "shop.Money"
    version = 3
  }]
}

check "newest" {
  assert {
    condition     = data.schema_registry_schema.money.latest == 3
    error_message = "shop.Money has a newer version."
  }
}
""",
    "schema_registry_schemas": """\
data "schema_registry_schemas" "shop" {
  prefix = "shop."
}

resource "schema_registry_config" "all" {
  compatibility = "FULL"

  lifecycle {
    adopt = true
  }
}

resource "schema_registry_subject_config" "shop" {
  for_each      = toset(data.schema_registry_schemas.shop.subjects)
  subject       = each.key
  compatibility = "FULL_TRANSITIVE"
}
""",
}
REGISTRY_RULES: Mapping[str, tuple[str, ...]] = {
    "schema_registry_schema": (
        "Schemas are compared and registered in their normal form: "
        "[what makes no difference](../schema-registry.md#what-makes-no-difference).",
        "The dry run asks the registry whether a new version is compatible. The plan says what "
        "differs, and [what it means for readers and writers]"
        "(../schema-registry.md#a-new-version).",
        "A schema that an older version of the subject has is refused: a registry does not "
        "register it again.",
        "Schemas are protected like topics. Deletions are soft unless the provider block says "
        "`hard_delete = true`: [deleting](../schema-registry.md#deleting). `all_versions = true`: "
        "[a whole history](../schema-registry.md#a-whole-history).",
    ),
    "schema_registry_subject_config": (
        "A level is set before the schemas of its subject are registered and checked.",
        "Apicurio has no modes, and no level NONE for one subject; Karapace has no modes that can "
        "be set: [products](../schema-registry-products.md).",
        "READONLY_OVERRIDE is a mode of Confluent's registry alone.",
    ),
    "schema_registry_config": (
        "Removing the block leaves level and mode as they are.",
        "Apicurio has no modes, Karapace none that can be set: "
        "[products](../schema-registry-products.md).",
        "READONLY_OVERRIDE and FORWARD are modes of Confluent's registry alone. The others refuse "
        "them.",
    ),
}
REGISTRY_DATA_RULES: Mapping[str, tuple[str, ...]] = {
    "schema_registry_schema": (
        "A hidden subject is an error that names the missing right. It never counts as missing.",
    ),
    "schema_registry_schemas": (
        "With a login, `complete` is false: a registry with access control lists only what the "
        "user can read, and none of them says whether it has access control.",
    ),
}
PAGES = {
    **PAGES,
    "provider.schema_registry": Page(
        title="provider schema_registry",
        schema=REGISTRY.config,
        intro="See [schema registries](../schema-registry.md).",
        example=REGISTRY_BLOCK + REGISTRY_EXAMPLES["schema_registry_schema"],
        rules=(
            "What a block leaves out comes from the environment, such as "
            "`KAFKAFORM_SCHEMA_REGISTRY_URL`: [connections from the environment]"
            "(../commands.md#connections-from-the-environment).",
            "The first apply binds the state to the registry: "
            "[which registry answers](../schema-registry.md#which-registry-answers).",
            "Redirections are not followed, so that the login goes to no other host.",
        ),
        resource=False,
    ),
    "simulate.schema_registry": Page(
        title="simulate schema_registry",
        schema=REGISTRY_SETTINGS,
        intro="A block of a [test file](../testing.md); without one, the defaults count.",
        example='simulate "schema_registry" {\n  compatibility = "FULL"\n}\n\nrun "plan" {\n'
        "  assert {\n    condition     = plan.counts.destroy == 0\n"
        '    error_message = "Nothing is destroyed."\n  }\n}\n',
        rules=("The values are constants.",),
        resource=False,
    ),
    **{
        name: Page(
            title=name,
            schema=kind.schema,
            intro="",
            example=REGISTRY_BLOCK + REGISTRY_EXAMPLES[name],
            rules=REGISTRY_RULES[name],
        )
        for name, kind in REGISTRY.types.items()
    },
    **{
        f"data.{name}": Page(
            title=f"data {name}",
            schema=kind,
            intro="",
            example=REGISTRY_BLOCK + REGISTRY_DATA_EXAMPLES[name],
            rules=REGISTRY_DATA_RULES[name],
            resource=False,
            computed=ANSWERED,
        )
        for name, kind in REGISTRY_DATA.items()
    },
}

COMMON: Mapping[str, str] = {
    "provider": "Which provider instance, such as `kafka.eu`.",
    "for_each": "A map or a set of strings: one object for each key. `each.key`, `each.value`.",
    "count": "A number of objects. `count.index`.",
    "depends_on": "Resources that come first.",
    "owner": "Text for people and reports. Kept in the state, not in Kafka.",
    "labels": "A map of texts, likewise.",
    "lifecycle.prevent_destroy": "true: protected explicitly. false: not protected. "
    "Left out: the type's default.",
    "lifecycle.adopt": "true: take over a live object of this name.",
    "lifecycle.shared": "true, for ACLs and quotas: other folders declare the same object. It is "
    "taken over if it exists, and never deleted, only forgotten.",
    "lifecycle.park": "For topics and SCRAM users: how long access is taken away before the object "
    'is deleted, such as "7d".',
    "lifecycle.ignore_changes": 'Attributes whose live value stays: `config["retention.ms"]`, '
    "`config`, or `all`.",
}


CONNECT_BLOCK = """\
provider "kafka_connect" {
  url      = "https://connect:8083"
  username = "ci"
  password = secret_env("CONNECT_PASSWORD")
}

"""
CONNECTOR_EXAMPLE = """\
resource "kafka_connect_connector" "lines" {
  name  = "lines"
  class = "FileStreamSource"

  config = {
    file        = "/var/log/app.log"
    topic       = "app.log"
    "tasks.max" = 1
  }
}
"""
CONNECT_DATA_EXAMPLES = {
    "kafka_connect_connector": """\
data "kafka_connect_connector" "lines" {
  name = "lines"
}

resource "kafka_connect_connector" "audit" {
  name   = "audit"
  class  = "FileStreamSink"
  config = { topics = "audit.log" }
}

check "lines" {
  assert {
    condition     = length(data.kafka_connect_connector.lines.failures) == 0
    error_message = "The connector that fills app.log has failed."
  }
}
""",
    "kafka_connect_plugins": """\
data "kafka_connect_plugins" "sinks" {
  type = "sink"
}

resource "kafka_connect_connector" "lines" {
  name   = "lines"
  class  = "FileStreamSource"
  config = { topic = "app.log" }
}

check "sinks" {
  assert {
    condition     = length(data.kafka_connect_plugins.sinks.plugins) > 0
    error_message = "The workers have no sinks."
  }
}
""",
}
CONNECT_DATA_RULES: Mapping[str, tuple[str, ...]] = {
    "kafka_connect_connector": (
        "A hidden connector is an error that names the missing right. It never counts as missing.",
        "`config` has no secrets; `secret_keys` says which are set.",
    ),
    "kafka_connect_plugins": ("The plugins are those of the worker that answers.",),
}
PAGES = {
    **PAGES,
    "provider.kafka_connect": Page(
        title="provider kafka_connect",
        schema=CONNECT.config,
        intro="See [Kafka Connect](../connect.md).",
        example=CONNECT_BLOCK + CONNECTOR_EXAMPLE,
        rules=(
            "What a block leaves out comes from the environment, such as "
            "`KAFKAFORM_KAFKA_CONNECT_URL`: [connections from the environment]"
            "(../commands.md#connections-from-the-environment).",
            "The first apply binds the state to the Connect cluster: "
            "[which cluster answers](../connect.md#which-cluster-answers).",
            "Redirections are not followed, so that the login goes to no other host.",
        ),
        resource=False,
    ),
    "kafka_connect_connector": Page(
        title="kafka_connect_connector",
        schema=CONNECT.types["kafka_connect_connector"].schema,
        intro="See [Kafka Connect](../connect.md).",
        example=CONNECT_BLOCK + CONNECTOR_EXAMPLE,
        rules=(
            "The workers validate the whole configuration in the dry run: "
            "[the dry run](../connect.md#the-dry-run).",
            "What counts as a secret, and when it is sent: [secrets](../connect.md#secrets).",
            "The apply waits up to 15 seconds for a start, and a plan restarts what has failed: "
            "[running, paused, stopped](../connect.md#running-paused-stopped).",
            "Deleting a connector leaves its offsets: [deleting](../connect.md#deleting). With "
            "`offsets_from`, another name takes them along: [renaming](../connect.md#renaming).",
        ),
    ),
    "simulate.kafka_connect": Page(
        title="simulate kafka_connect",
        schema=CONNECT_SETTINGS,
        intro="A block of a [test file](../testing.md); without one, the defaults count.",
        example=SIMULATE_EXAMPLE.replace("kafka", "kafka_connect").replace(
            "brokers = 5", 'plugins = ["io.aiven.connect.jdbc.JdbcSinkConnector"]'
        ),
        rules=(
            "Simulated workers check the configs that every connector has, those of Kafka's file "
            "connectors, and nothing of other plugins.",
        ),
        resource=False,
    ),
    **{
        f"data.{name}": Page(
            title=f"data {name}",
            schema=kind,
            intro="",
            example=CONNECT_BLOCK + CONNECT_DATA_EXAMPLES[name],
            rules=CONNECT_DATA_RULES[name],
            resource=False,
            computed=ANSWERED,
        )
        for name, kind in CONNECT_DATA.items()
    },
}


REPOSITORY_EXAMPLE = """\
repository {
  name  = "acme-kafka"
  owner = "the platform team"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["kafka-1:9093"]
}

folders "teams/*" {
  state = "s3://acme-kafka/${folder.path}"
  owner = folder.name
  uses  = { kafka = cluster.prod }

  boundary {
    topics     = ["${folder.name}.*"]
    groups     = ["${folder.name}.*"]
    principals = ["User:${folder.name}-*"]
  }
}
"""
OUTPUTS_EXAMPLE = """\
provider "kafka" {
  bootstrap_servers = ["kafka-1:9092"]
}

data "kafkaform_outputs" "platform" {
  folder = "../platform"
}

resource "kafka_topic" "orders" {
  name       = "shop.orders"
  partitions = 12
}

resource "kafka_topic" "audit" {
  name       = "${data.kafkaform_outputs.platform.outputs.audit_prefix}.shop"
  partitions = 3
}
"""
OUTPUTS_RULES = (
    "Needs no provider block: it reads the state of the other folder and nothing else. Where that "
    "is, the other folder says with its backend block, or [kafkaform.hcl](../repository.md); "
    "otherwise it is `kafkaform.state.json` beside its files. `--state` and `KAFKAFORM_STATE` are "
    "about the folder that is planned.",
    "A folder that is missing or has no state yet, and an output that it has not recorded, are "
    "errors at their line.",
    "With `--untrusted`, only folders of the same repository can be read, whose states the "
    "reviewed kafkaform.hcl names, outside of the checkout.",
)
PAGES = {
    **PAGES,
    f"data.{OUTPUTS}": Page(
        title=f"data {OUTPUTS}",
        schema=OUTPUTS_SCHEMA,
        intro="See [outputs of other folders](../repository.md#outputs-of-other-folders).",
        example=OUTPUTS_EXAMPLE,
        rules=OUTPUTS_RULES,
        resource=False,
        computed=ANSWERED,
    ),
    **{
        kind: Page(
            title=f"{kind} (kafkaform.hcl)",
            schema=schema,
            intro="A block of [kafkaform.hcl](../repository.md).",
            example=REPOSITORY_EXAMPLE,
            rules=(),
            resource=False,
        )
        for kind, (schema, _) in REPOSITORY_BLOCKS.items()
    },
}


def pages() -> dict[str, str]:
    """File name -> its whole text."""
    return {f"{name}.md": "\n".join(_page(page)) + "\n" for name, page in PAGES.items()}


def _page(page: Page) -> Iterator[str]:
    yield f"# {page.title}\n"
    yield "<!-- Written by docs/reference.py; change that, or the schema. -->\n"
    yield f"{page.schema.doc} {page.intro}".rstrip() + "\n"
    yield f"```hcl\n{page.example}```\n"
    arguments = [a for a in page.schema.attributes.values() if not a.computed]
    if arguments:
        yield "## Arguments\n"
        yield from _table(arguments)
    computed = [a for a in page.schema.attributes.values() if a.computed]
    if computed:
        yield f"## Computed\n\n{page.computed}\n"
        yield from _table(computed)
    for name, block in page.schema.blocks.items():
        yield f"## Block `{name}`\n\n{block.doc}\n"
        yield from _table(block.attributes.values())
    for one, other in page.schema.conflicts:
        yield f"`{one}` and `{other}` exclude each other.\n"
    if page.resource:
        yield "## Arguments of every resource\n\n| name | meaning |\n|---|---|"
        yield from (f"| `{name}` | {doc} |" for name, doc in COMMON.items())
        yield ""
    if page.rules:
        yield "## Rules\n"
        yield from (f"- {rule}" for rule in page.rules)
    for heading, keys in page.configs.items():
        yield f"\n## {heading}\n"
        yield "Those of Kafka 4.3. The broker's own limits have the last word in the dry run.\n"
        yield "| name | type | values | Kafka's default |\n|---|---|---|---|"
        yield from map(_config_row, keys)


def _table(attributes: Iterable[AttributeSchema]) -> Iterator[str]:
    yield "| name | type | | meaning |\n|---|---|---|---|"
    for item in attributes:
        notes = [word for word, on in (("required", item.required), ("secret", item.secret)) if on]
        if item.default is not None:
            notes.append(f"default `{_text(item.default)}`")
        doc = item.doc
        if item.choices:
            doc += f" One of {', '.join(f'`{choice}`' for choice in item.choices)}."
        if item.aliases:
            doc += f" Also called {', '.join(f'`{alias}`' for alias in item.aliases)}."
        yield f"| `{item.name}` | {item.type} | {', '.join(notes)} | {doc} |"
    yield ""


def _config_row(key: ConfigKey) -> str:
    return f"| `{key.name}` | {key.kind} | {_values(key)} | {_default(key)} |"


def _values(key: ConfigKey) -> str:
    since = f"since Kafka {key.since}" if key.since else ""
    return "; ".join(part for part in (_range(key), since) if part)


def _range(key: ConfigKey) -> str:
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    return "`true`, `false`" if key.kind == "boolean" else render_range(key)


def _default(key: ConfigKey) -> str:
    return f"`{key.default}`" if key.default else "(empty)"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
