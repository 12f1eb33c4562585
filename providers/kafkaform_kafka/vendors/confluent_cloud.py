"""Confluent Cloud."""

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
_CLOUD = "https://docs.confluent.io/cloud/current"
_PROVIDER = "https://github.com/confluentinc/terraform-provider-confluent/blob/master"
_STORED = "a stored copy without a date"

_TOPICS = Citation(
    "Configuration Reference for Topics in Confluent Cloud",
    f"{_CLOUD}/topics/manage.html",
    _STORED,
    _READ,
)
_TYPES = Citation(
    "Kafka Cluster Types in Confluent Cloud",
    f"{_CLOUD}/clusters/cluster-types.html",
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
    f"{_PROVIDER}/internal/provider/resource_kafka_topic.go",
    "a stored copy, with confluent.topic.type",
    _READ,
)
_ACL_RESOURCE = Citation(
    "Confluent's Terraform provider: confluent_kafka_acl",
    f"{_PROVIDER}/docs/resources/confluent_kafka_acl.md",
    "at 11de82f",
    _READ,
)
_ACL_OPERATIONS = Citation(
    "ACL Operations",
    f"{_CLOUD}/security/access-control/acls/operations.html",
    _STORED,
    _READ,
)
_QUOTAS = Citation(
    "Get Started with Client Quotas in Confluent Cloud",
    f"{_CLOUD}/clusters/client-quotas-quickstart.html",
    _STORED,
    _READ,
)
_SETTINGS = Citation(
    "Manage Kafka cluster and topic configuration settings in Confluent Cloud",
    f"{_CLOUD}/clusters/broker-config.html",
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

PROFILE = Profile(
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
            _TOPICS,
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
            _TOPICS,
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
            _TOPICS,
        ),
        VendorNote("Freight clusters have `cleanup.policy` fixed to `delete`.", _TYPES),
    ),
    topic_configs=_EDITABLE_CONFIGS,
    acls_read_singly=True,
)
