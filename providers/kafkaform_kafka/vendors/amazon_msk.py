"""Amazon MSK: provisioned clusters with Standard and with Express brokers, and MSK Serverless.

The addresses of Express brokers have the form of those of Standard brokers, so only a provider
block finds them.
"""

from __future__ import annotations

from kafkaform.core.finding import Level

from . import profile
from .profile import (
    ONLY_UPDATE,
    SETS,
    Citation,
    Profile,
    Sends,
    VendorNote,
    VendorRule,
    Writes,
    WritesKey,
    WritesValue,
)

_READ = "2026-11-26"
_GUIDE = "https://docs.aws.amazon.com/msk/latest/developerguide"
_REPOSITORY = "awsdocs/amazon-msk-developer-guide at 4342322"
_STORED = "a stored copy without a date"

_LIMITS = Citation(
    "Limitations when using SCRAM secrets",
    f"{_GUIDE}/msk-password-limitations.html",
    _STORED,
    _READ,
)
_SECRETS = Citation(
    "Username and password authentication with AWS Secrets Manager",
    f"{_GUIDE}/msk-password.html",
    _REPOSITORY,
    _READ,
)
_ACLS = Citation("Apache Kafka ACLs", f"{_GUIDE}/msk-acls.html", _REPOSITORY, _READ)
_IAM = Citation("IAM access control", f"{_GUIDE}/iam-access-control.html", _STORED, _READ)
_ACTIONS = Citation(
    "IAM access control, semantics of actions and resources",
    f"{_GUIDE}/kafka-actions.html",
    _REPOSITORY,
    _READ,
)
_SERVERLESS = Citation("What is MSK Serverless?", f"{_GUIDE}/serverless.html", _REPOSITORY, _READ)
_CONFIG = Citation(
    "Configuration properties for MSK Serverless clusters",
    f"{_GUIDE}/serverless-config.html",
    _STORED,
    _READ,
)

USER_RULES = (
    VendorRule(
        "amazon-msk-scram-mechanism",
        "Amazon MSK supports SCRAM-SHA-512 only, not {found}",
        _LIMITS,
        (profile.USER,),
        WritesValue(("scram_mechanism",), only=("SCRAM-SHA-512",)),
        advice='write scram_mechanism = "SCRAM-SHA-512"',
    ),
    VendorRule(
        "amazon-msk-secrets-manager",
        "Amazon MSK takes users and passwords from AWS Secrets Manager, from secrets that are "
        "associated with the cluster",
        _SECRETS,
        (profile.USER,),
        Sends(),
        Level.CAUTION,
        "manage users there",
        profile.USER_APIS,
        per_cluster=True,
    ),
)
IAM_RULE = VendorRule(
    "amazon-msk-iam-ignores-acls",
    "Amazon MSK ignores ACLs for clients that log in with IAM",
    _IAM,
    (profile.ACL,),
    Sends(),
    Level.CAUTION,
    "give them their rights in IAM policies",
    per_cluster=True,
)
"""They hold for Standard and for Express brokers."""

PROVISIONED = Profile(
    "amazon-msk",
    "Amazon MSK",
    (
        *USER_RULES,
        IAM_RULE,
        VendorRule(
            "amazon-msk-brokers-need-read",
            "Amazon MSK's brokers need Read on every topic that has an ACL, or its replication "
            "fails",
            _ACLS,
            (profile.ACL,),
            WritesValue(("resource_type",), never=("Topic",)),
            Level.CAUTION,
            "allow it to the principal of the brokers, such as User:CN=*.CLUSTER.ID.c4.kafka."
            "REGION.amazonaws.com",
            per_cluster=True,
        ),
    ),
    (
        VendorNote(
            "`allow.everyone.if.no.acl.found` is true unless the cluster's configuration says "
            "otherwise: whoever can log in can use every resource without ACLs. Write it as "
            "`allow_if_no_acl` in the `authorizer` block.",
            _ACLS,
        ),
    ),
)

_SETTABLE = frozenset(
    {
        "cleanup.policy",
        "compression.type",
        "max.message.bytes",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "retention.bytes",
        "retention.ms",
    }
)
_NOT_FOR_SERVERLESS = (
    "MSK Serverless lets nobody change {0}: the IAM action {1}, which that needs, is not for "
    "serverless clusters"
)
_CLUSTER = "kafka-cluster:AlterCluster"
_DYNAMIC = "kafka-cluster:AlterClusterDynamicConfiguration"

SERVERLESS = Profile(
    "amazon-msk-serverless",
    "Amazon MSK Serverless",
    (
        VendorRule(
            "amazon-msk-serverless-topic-config",
            "MSK Serverless does not let a topic set {found}",
            _CONFIG,
            profile.TOPICS,
            WritesKey("config", only=_SETTABLE),
            advice="remove it from config",
        ),
        VendorRule(
            "amazon-msk-serverless-cleanup-policy",
            "MSK Serverless lets a topic choose cleanup.policy only when it is created",
            _CONFIG,
            (profile.TOPIC,),
            Writes((("config", "cleanup.policy"),), ONLY_UPDATE),
            advice="leave it as it is, or create a new topic",
        ),
        VendorRule(
            "amazon-msk-serverless-cleanup-policy-override",
            "MSK Serverless lets a topic choose cleanup.policy only when it is created",
            _CONFIG,
            (profile.TOPIC_CONFIG,),
            Writes((("config", "cleanup.policy"),), SETS),
            advice="leave it as it is, or create a new topic",
        ),
        VendorRule(
            "amazon-msk-serverless-message-size",
            "MSK Serverless allows messages of 8 MiB at most, not {found}",
            _CONFIG,
            profile.TOPICS,
            WritesValue(("config", "max.message.bytes"), high=8_388_608),
            advice='write 8388608 or less, or bytes("8MiB")',
        ),
        VendorRule(
            "amazon-msk-serverless-acl",
            "MSK Serverless lets nobody create or delete ACLs: the IAM action "
            f"{_CLUSTER}, which that needs, is not for serverless clusters",
            _ACTIONS,
            (profile.ACL,),
            Sends(),
            advice="write IAM policies instead",
            apis=profile.ACL_APIS,
        ),
        VendorRule(
            "amazon-msk-serverless-quota",
            _NOT_FOR_SERVERLESS.format("quotas", _DYNAMIC),
            _ACTIONS,
            (profile.QUOTA,),
            Sends(),
            advice="remove the block",
            apis=profile.QUOTA_APIS,
        ),
        VendorRule(
            "amazon-msk-serverless-user",
            "MSK Serverless has no users with passwords: it requires IAM access control",
            _SERVERLESS,
            (profile.USER,),
            Sends(),
            advice="remove the block",
            apis=profile.USER_APIS,
        ),
        VendorRule(
            "amazon-msk-serverless-config",
            _NOT_FOR_SERVERLESS.format(
                "configs of brokers, of the cluster, or client metrics", _DYNAMIC
            ),
            _ACTIONS,
            (*profile.BROKERS, profile.METRICS),
            Sends(),
            advice="remove the block",
            apis=profile.CONFIG_APIS,
        ),
        VendorRule(
            "amazon-msk-serverless-replicas",
            _NOT_FOR_SERVERLESS.format("where replicas are ({found})", _CLUSTER),
            _ACTIONS,
            (profile.TOPIC,),
            Writes((("replica_assignment",), ("replication_factor",)), ONLY_UPDATE),
            advice="remove the attribute: MSK Serverless places the replicas",
        ),
        VendorRule(
            "amazon-msk-serverless-leaders",
            _NOT_FOR_SERVERLESS.format("who leads a partition", _CLUSTER),
            _ACTIONS,
            (profile.LEADERS,),
            Sends(),
            advice="let MSK Serverless choose the leaders",
            apis=profile.ELECTIONS,
        ),
    ),
    (
        VendorNote(
            "The right to read configs of the cluster (`kafka-cluster:"
            "DescribeClusterDynamicConfiguration`) does not exist, so a plan cannot know the "
            "defaults of new topics: write `partitions` and `replication_factor`.",
            _ACTIONS,
        ),
        VendorNote("The only login is IAM.", _SERVERLESS),
    ),
    topic_configs=_SETTABLE,
)


_WRITABLE = Citation(
    "Custom MSK Express broker configurations",
    f"{_GUIDE}/msk-configuration-express-read-write.html",
    _STORED,
    _READ,
)
_READ_ONLY = Citation(
    "Express brokers read-only configurations",
    f"{_GUIDE}/msk-configuration-express-read-only.html",
    _STORED,
    _READ,
)

_PROTECTED = frozenset({"min.insync.replicas", "unclean.leader.election.enable"})
_LISTED = frozenset(
    {
        "cleanup.policy",
        "compression.type",
        "delete.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.compaction.lag.ms",
        "retention.bytes",
        "retention.ms",
    }
)
_BROKERS = frozenset(
    {
        "broker.id",
        "broker.rack",
        "default.replication.factor",
        "fetch.max.bytes",
        "group.max.size",
        "inter.broker.listener.name",
        "inter.broker.protocol.version",
        "listeners",
        "log.message.format.version",
        "min.insync.replicas",
        "num.io.threads",
        "num.network.threads",
        "replica.fetch.response.max.bytes",
        "request.timeout.ms",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
        "unclean.leader.election.enable",
    }
)

EXPRESS = Profile(
    "amazon-msk-express",
    "Amazon MSK Express",
    (
        VendorRule(
            "amazon-msk-express-replication-factor",
            "MSK Express creates every topic with a replication factor of 3, not {found}",
            _WRITABLE,
            (profile.TOPIC,),
            WritesValue(("replication_factor",), only=("3",)),
            advice="write replication_factor = 3, or leave it out",
        ),
        VendorRule(
            "amazon-msk-express-protected-config",
            "MSK Express does not let a topic change {found}",
            _WRITABLE,
            profile.TOPICS,
            WritesKey("config", never=_PROTECTED),
            advice="remove it from config",
        ),
        VendorRule(
            "amazon-msk-express-compaction-lag",
            "MSK Express keeps max.compaction.lag.ms at 7 days or more, not {found}",
            _WRITABLE,
            profile.TOPICS,
            WritesValue(("config", "max.compaction.lag.ms"), low=604_800_000),
            advice="write 604800000 or more",
        ),
        VendorRule(
            "amazon-msk-express-unlisted-config",
            "MSK Express does not list {found} among the configs that a topic can set",
            _WRITABLE,
            profile.TOPICS,
            WritesKey("config", only=_LISTED | _PROTECTED),
            Level.CAUTION,
            "the cluster may refuse it",
        ),
        VendorRule(
            "amazon-msk-express-broker-config",
            "MSK Express sets {found} itself, and lets nobody change that",
            _READ_ONLY,
            profile.BROKERS,
            WritesKey("config", never=_BROKERS),
            advice="remove it from config",
        ),
        *USER_RULES,
        IAM_RULE,
    ),
)
