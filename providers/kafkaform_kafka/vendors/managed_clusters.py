"""Apache Kafka that others operate: Aiven, Confluent Cloud, and Strimzi on Kubernetes. Their
brokers answer as Kafka's do, but their operators forbid some changes and make others themselves."""

from __future__ import annotations

from kafkaform.core.finding import Level

from . import profile
from .profile import (
    ONLY_CREATE,
    ONLY_UPDATE,
    Citation,
    Profile,
    Refusal,
    Sends,
    VendorNote,
    VendorRule,
    Writes,
    WritesKey,
    WritesValue,
)

_READ = "2026-11-26"
_AIVEN_DOCS = "https://aiven.io/docs/products/kafka"
_AIVEN_EDITION = "aiven/aiven-docs at 073a07f, 2026-08-21"


def _cite_aiven(title: str, page: str) -> Citation:
    return Citation(title, f"{_AIVEN_DOCS}/{page}", _AIVEN_EDITION, _READ)


_AIVEN_ACLS = _cite_aiven("Access Control Lists in Aiven for Apache Kafka", "concepts/acl")
_AIVEN_USERS = _cite_aiven(
    "Manage service users in Aiven for Apache Kafka", "howto/add-manage-service-users"
)

AIVEN = Profile(
    "aiven",
    "Aiven for Apache Kafka",
    (
        VendorRule(
            "aiven-few-replicas",
            "Aiven does not allow topics with fewer than 2 replicas: {found}",
            _cite_aiven("Best practices for Aiven for Apache Kafka", "howto/best-practices"),
            (profile.TOPIC,),
            WritesValue(("replication_factor",), low=2),
            advice="write 2 or more",
        ),
        VendorRule(
            "aiven-principal-type",
            "Aiven supports only principals that begin with User:, not {found}",
            _AIVEN_ACLS,
            (profile.ACL,),
            WritesValue(("acl_principal",), pattern="User:.*"),
            advice="write User:NAME",
        ),
        Refusal(
            "Aiven manages quotas in its console, command line and API",
            _cite_aiven("Quotas in Aiven for Apache Kafka", "concepts/kafka-quotas"),
            (profile.QUOTA,),
            apis=profile.QUOTA_APIS,
        ),
        Refusal(
            "Aiven manages users as service users, in its console, command line and API",
            _AIVEN_USERS,
            (profile.USER,),
            apis=profile.USER_APIS,
        ),
        Refusal(
            "Aiven manages configs of brokers as parameters of the service, in its console and "
            "command line",
            _cite_aiven("Manage Apache Kafka parameters", "howto/set-kafka-parameters"),
            profile.BROKERS,
            apis=profile.CONFIG_APIS,
        ),
        Refusal(
            "Aiven manages ACLs in its console, command line and API, too",
            _cite_aiven(
                "Manage access control lists in Aiven for Apache Kafka", "howto/manage-acls"
            ),
            (profile.ACL,),
            apis=profile.ACL_APIS,
        ),
    ),
    (
        VendorNote(
            "Aiven's own ACLs stand beside Kafka's, and kafkaform sees Kafka's only. A DENY in one "
            "of them is stronger than an ALLOW in the other.",
            _cite_aiven(
                "Manage access control lists in Aiven for Apache Kafka", "howto/manage-acls"
            ),
        ),
        VendorNote(
            "A service user with the permission `admin` may create topics of any name; `Alter` and "
            "`Delete` hold for the topics that its pattern matches.",
            _AIVEN_USERS,
        ),
        VendorNote(
            "In an ACL, `User:alice*` stands for all users whose names begin with alice. What "
            "kafkaform says about access (`explain access`, the lock-out guard) takes it for one "
            "name.",
            _AIVEN_ACLS,
        ),
    ),
)


_CONFLUENT_CLOUD = "https://docs.confluent.io/cloud/current"
_CONFLUENT_PROVIDER = "https://github.com/confluentinc/terraform-provider-confluent/blob/master"
_STORED = "a stored copy without a date"

_CONFLUENT_TOPICS = Citation(
    "Configuration Reference for Topics in Confluent Cloud",
    f"{_CONFLUENT_CLOUD}/topics/manage.html",
    _STORED,
    _READ,
)
_TYPES = Citation(
    "Kafka Cluster Types in Confluent Cloud",
    f"{_CONFLUENT_CLOUD}/clusters/cluster-types.html",
    _STORED,
    _READ,
)
_FACTOR = Citation(
    "confluentinc/mcp-confluent, issue 585",
    "https://github.com/confluentinc/mcp-confluent/issues/585",
    "2026-06-12",
    _READ,
)
_EDITABLE = Citation(
    "Confluent's Terraform provider: editable settings of confluent_kafka_topic",
    f"{_CONFLUENT_PROVIDER}/internal/provider/resource_kafka_topic.go",
    "a stored copy, with confluent.topic.type",
    _READ,
)
_ACL_RESOURCE = Citation(
    "Confluent's Terraform provider: confluent_kafka_acl",
    f"{_CONFLUENT_PROVIDER}/docs/resources/confluent_kafka_acl.md",
    "at 11de82f",
    _READ,
)
_ACL_OPERATIONS = Citation(
    "ACL Operations",
    f"{_CONFLUENT_CLOUD}/security/access-control/acls/operations.html",
    _STORED,
    _READ,
)
_QUOTAS = Citation(
    "Get Started with Client Quotas in Confluent Cloud",
    f"{_CONFLUENT_CLOUD}/clusters/client-quotas-quickstart.html",
    _STORED,
    _READ,
)
_SETTINGS = Citation(
    "Manage Kafka cluster and topic configuration settings in Confluent Cloud",
    f"{_CONFLUENT_CLOUD}/clusters/broker-config.html",
    _STORED,
    _READ,
)

_EDITABLE_CONFIGS = frozenset(
    {
        "cleanup.policy",
        "confluent.key.schema.validation",
        "confluent.key.subject.name.strategy",
        "confluent.topic.type",
        "confluent.value.schema.validation",
        "confluent.value.subject.name.strategy",
        "delete.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.ms",
    }
)

CONFLUENT_CLOUD = Profile(
    "confluent-cloud",
    "Confluent Cloud",
    (
        VendorRule(
            "confluent-cloud-replication-factor",
            "Confluent Cloud accepts a replication factor of 3 only, not {found}",
            _FACTOR,
            (profile.TOPIC,),
            WritesValue(("replication_factor",), only=("3",)),
            advice="write replication_factor = 3, or leave it out",
        ),
        VendorRule(
            "confluent-cloud-replicas",
            "Confluent Cloud manages where replicas are ({found})",
            _TYPES,
            (profile.TOPIC,),
            Writes((("replica_assignment",),)),
            advice="remove replica_assignment",
        ),
        VendorRule(
            "confluent-cloud-compression-type",
            "Confluent Cloud does not let a topic set {found}",
            _CONFLUENT_TOPICS,
            (profile.TOPIC,),
            WritesKey("config", never=frozenset({"compression.type"}), actions=ONLY_CREATE),
            advice="remove it from config",
        ),
        VendorRule(
            "confluent-cloud-fixed-config",
            "Confluent Cloud does not let an existing topic change {found}",
            _EDITABLE,
            (profile.TOPIC,),
            WritesKey("config", only=_EDITABLE_CONFIGS, actions=ONLY_UPDATE),
            advice="leave it as it was, or create a new topic",
        ),
        VendorRule(
            "confluent-cloud-fixed-config-override",
            "Confluent Cloud does not let an existing topic change {found}",
            _EDITABLE,
            (profile.TOPIC_CONFIG,),
            WritesKey("config", only=_EDITABLE_CONFIGS),
            advice="remove it from config",
        ),
        VendorRule(
            "confluent-cloud-delete-retention",
            "Confluent Cloud allows delete.retention.ms up to 701 d (60566400000), not {found}",
            _CONFLUENT_TOPICS,
            profile.TOPICS,
            WritesValue(("config", "delete.retention.ms"), high=60_566_400_000),
            advice='write 60566400000 or less, or retention("701d")',
        ),
        VendorRule(
            "confluent-cloud-acl-host",
            'Confluent Cloud\'s ACLs hold for all hosts: acl_host must be "*", not {found}',
            _ACL_RESOURCE,
            (profile.ACL,),
            WritesValue(("acl_host",), only=("*",)),
            advice='write acl_host = "*"',
        ),
        VendorRule(
            "confluent-cloud-principal",
            "Confluent Cloud names principals by the ids of their accounts, such as User:sa-1234 "
            "or User:1234, not {found}",
            _ACL_OPERATIONS,
            (profile.ACL,),
            WritesValue(("acl_principal",), pattern=r"User:(\*|\d+|[a-z]+-.+)"),
            Level.CAUTION,
            "make sure that this principal exists",
        ),
        VendorRule(
            "confluent-cloud-acl-listing",
            "Confluent Cloud lists all ACLs with the numbers of accounts (User:1234), and reads a "
            "single ACL in the form that is asked for: what a plan says about ACLs that are not "
            "managed, about losses, and import --all are about the first form",
            _ACL_OPERATIONS,
            (profile.ACL,),
            Sends(),
            Level.NOTE,
            per_cluster=True,
        ),
        Refusal(
            "Confluent Cloud manages client quotas with its own tools: its command line, its "
            "console, or its Terraform provider",
            _QUOTAS,
            (profile.QUOTA,),
            apis=profile.QUOTA_APIS,
        ),
        Refusal(
            "Confluent Cloud lets only Dedicated clusters change some settings of the cluster",
            _SETTINGS,
            profile.BROKERS,
            apis=profile.CONFIG_APIS,
        ),
    ),
    (
        VendorNote(
            "An API key is no principal: ACLs name the account that owns it. Write `principal = "
            '"User:sa-…"` in the provider block, so that the lock-out guard knows who you are.',
            _ACL_OPERATIONS,
        ),
        VendorNote(
            "`cleanup.policy` cannot go from `delete` to `compact,delete` at once: change it to "
            "`compact` first.",
            _CONFLUENT_TOPICS,
        ),
        VendorNote("Freight clusters have `cleanup.policy` fixed to `delete`.", _TYPES),
    ),
    topic_configs=_EDITABLE_CONFIGS,
    acls_read_singly=True,
)


_STRIMZI_REPOSITORY = (
    "https://github.com/strimzi/strimzi-kafka-operator/blob/"
    "8541da1e336bdcda9647aeacfbc2048e57580a52"
)
_STRIMZI_EDITION = "strimzi/strimzi-kafka-operator at 8541da1, 2026-08-22"
_STRIMZI_DEPLOYING = "https://strimzi.io/docs/operators/latest/deploying.html"

_STRIMZI_TOPICS = Citation("Using the Topic Operator", _STRIMZI_DEPLOYING, _STRIMZI_EDITION, _READ)
_STRIMZI_USERS = Citation(
    "Strimzi's source, KafkaUserOperator.java",
    f"{_STRIMZI_REPOSITORY}/user-operator/src/main/java/io/strimzi/operator/user/operator/"
    "KafkaUserOperator.java",
    _STRIMZI_EDITION,
    _READ,
)

STRIMZI = Profile(
    "strimzi",
    "Strimzi",
    (
        VendorRule(
            "strimzi-topic-operator",
            "Strimzi's Topic Operator reverts changes of topics that have a KafkaTopic resource",
            _STRIMZI_TOPICS,
            profile.TOPICS,
            Sends(),
            Level.CAUTION,
            "manage each topic in one place: here, or as a KafkaTopic",
            per_cluster=True,
        ),
        VendorRule(
            "strimzi-user-operator",
            "Strimzi's User Operator, where it runs, deletes the ACLs, quotas and SCRAM "
            "credentials of users without a KafkaUser resource",
            _STRIMZI_USERS,
            (profile.ACL, profile.QUOTA, profile.USER),
            Sends(),
            Level.CAUTION,
            "name the users that are managed here in its STRIMZI_IGNORED_USERS_PATTERN",
            per_cluster=True,
        ),
    ),
    (
        VendorNote(
            "A topic without a `KafkaTopic` resource is left alone. To move a topic here, annotate "
            'its resource with `strimzi.io/managed="false"`, then delete the resource.',
            _STRIMZI_TOPICS,
        ),
        VendorNote(
            "`STRIMZI_IGNORED_USERS_PATTERN` is a regular expression in the environment of the "
            "User Operator.",
            Citation("Ignoring specific users", _STRIMZI_DEPLOYING, _STRIMZI_EDITION, _READ),
        ),
    ),
)
