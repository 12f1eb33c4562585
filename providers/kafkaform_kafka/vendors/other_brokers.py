"""Systems that speak Kafka's protocol and are not Apache Kafka: Azure Event Hubs, Redpanda and
WarpStream. They lack requests, or answer them with their own rules."""

from __future__ import annotations

from kafkaform.core.finding import Level

from . import profile
from .profile import (
    Citation,
    Profile,
    Refusal,
    Sends,
    Switches,
    VendorNote,
    VendorRule,
    Writes,
    WritesKey,
    WritesValue,
)

_READ = "2026-11-26"
_AZURE_CONFIGURATIONS = Citation(
    "Apache Kafka client configurations for Azure Event Hubs",
    "https://learn.microsoft.com/azure/event-hubs/apache-kafka-configurations",
    "dated 2025-12-17, MicrosoftDocs/azure-docs at 0b8729e",
    _READ,
)
_AZURE_VERSIONS = Citation(
    "Azure/azure-event-hubs-for-kafka, issue 209: the answer to ApiVersions",
    "https://github.com/Azure/azure-event-hubs-for-kafka/issues/209",
    "logged on 2022-09-23",
    _READ,
)
_AZURE_PORTAL = "manage it in the Azure portal, with the Azure CLI or an ARM template"

AZURE_EVENT_HUBS = Profile(
    "azure-event-hubs",
    "Azure Event Hubs",
    (
        VendorRule(
            "azure-event-hubs-topic",
            "Azure Event Hubs has no topic management for Kafka clients: event hubs are made and "
            "configured with the tools of Azure",
            _AZURE_CONFIGURATIONS,
            profile.TOPICS,
            Sends(),
            advice=_AZURE_PORTAL,
            apis=("CreateTopics", "CreatePartitions", "DeleteTopics", *profile.CONFIG_APIS),
        ),
        VendorRule(
            "azure-event-hubs-acl",
            "Azure Event Hubs has no ACLs: DescribeAcls, CreateAcls and DeleteAcls are not among "
            "the requests that it offers",
            _AZURE_VERSIONS,
            (profile.ACL,),
            Sends(),
            advice="assign roles of Azure RBAC instead",
            apis=profile.ACL_APIS,
        ),
        VendorRule(
            "azure-event-hubs-broker-config",
            "Azure Event Hubs has no configs of brokers: it is fully managed",
            _AZURE_CONFIGURATIONS,
            profile.BROKERS,
            Sends(),
            advice="remove the block",
            apis=profile.CONFIG_APIS,
        ),
        VendorRule(
            "azure-event-hubs-config",
            "Azure Event Hubs does not offer the request IncrementalAlterConfigs",
            _AZURE_VERSIONS,
            (profile.GROUP_CONFIG, profile.METRICS),
            Sends(),
            advice="remove the block",
            apis=profile.CONFIG_APIS,
        ),
        VendorRule(
            "azure-event-hubs-leaders",
            "Azure Event Hubs does not offer the request ElectLeaders",
            _AZURE_VERSIONS,
            (profile.LEADERS,),
            Sends(),
            advice="let Azure Event Hubs choose",
            apis=profile.ELECTIONS,
        ),
    ),
    connection=VendorNote(
        "Azure Event Hubs answers Metadata up to version 5, without topic ids, and does not offer "
        "DescribeCluster, so kafkaform cannot manage it",
        _AZURE_VERSIONS,
    ),
)


_REDPANDA_DOCS = "https://docs.redpanda.com/streaming/current"
_REDPANDA_EDITION = "version 26.2, redpanda-data/docs at 3e7b662, 2026-08-07"
_REDPANDA_HANDLERS = (
    "https://github.com/redpanda-data/redpanda/blob/1c6cff34ea8b4b65db02eb603d21dfef59c0f61c/src/v/"
    "kafka/server/handlers"
)
_REDPANDA_CODE = "the development branch of 2024-12-20"


def _cite_redpanda(title: str, page: str) -> Citation:
    return Citation(title, f"{_REDPANDA_DOCS}/{page}", _REDPANDA_EDITION, _READ)


def _cite_redpanda_code(file: str) -> Citation:
    return Citation(
        f"Redpanda's source, {file}", f"{_REDPANDA_HANDLERS}/{file}", _REDPANDA_CODE, _READ
    )


_COMPATIBILITY = _cite_redpanda("Kafka Compatibility", "develop/kafka-clients/")
_QUOTAS = _cite_redpanda(
    "About client throughput quotas", "manage/cluster-maintenance/about-throughput-quotas/"
)
_OFFERED = _cite_redpanda_code("handlers.h")

REDPANDA = Profile(
    "redpanda",
    "Redpanda",
    (
        VendorRule(
            "redpanda-even-replication-factor",
            "Redpanda requires an odd replication factor, not {found}",
            _cite_redpanda("Manage topics", "develop/manage-topics/config-topics/"),
            (profile.TOPIC,),
            WritesValue(("replication_factor",), odd=True),
            advice="write an odd number, such as 3",
        ),
        VendorRule(
            "redpanda-ignored-config",
            "Redpanda accepts {found} without any effect, so every plan shows the difference again",
            _cite_redpanda_code("topics/types.h"),
            profile.TOPICS,
            WritesKey(
                "config",
                # Those of `allowlist_topic_noop_confs` that version 26.2 does not document either.
                never=frozenset(
                    {
                        "file.delete.delay.ms",
                        "flush.messages",
                        "index.interval.bytes",
                        "message.downconversion.enable",
                        "message.format.version",
                        "message.timestamp.difference.max.ms",
                        "min.insync.replicas",
                        "preallocate",
                        "segment.index.bytes",
                        "segment.jitter.ms",
                        "unclean.leader.election.enable",
                    }
                ),
            ),
            Level.CAUTION,
            "remove it from config",
        ),
        VendorRule(
            "redpanda-cluster-config",
            "Redpanda sets the configs of the cluster already in a dry run: it heeds validate_only "
            "for topics only",
            _cite_redpanda_code("incremental_alter_configs.cc"),
            (profile.CLUSTER_CONFIG,),
            Sends(),
            advice="use rpk cluster config",
            apis=profile.CONFIG_APIS,
        ),
        VendorRule(
            "redpanda-broker-config",
            "Redpanda has no configs of single brokers",
            _cite_redpanda_code("incremental_alter_configs.cc"),
            (profile.BROKER_CONFIG,),
            Sends(),
            advice="use rpk cluster config",
            apis=profile.CONFIG_APIS,
        ),
        VendorRule(
            "redpanda-request-percentage",
            "Redpanda does not support the quota request_percentage",
            _COMPATIBILITY,
            (profile.QUOTA,),
            WritesKey("config", never=frozenset({"request_percentage"})),
            advice="remove it from config",
        ),
        VendorRule(
            "redpanda-quota-entity",
            "Redpanda has quotas of users and client ids only, not {found}",
            _QUOTAS,
            (profile.QUOTA,),
            WritesKey("entity", only=frozenset({"user", "client-id"})),
            advice="remove the block",
        ),
        Refusal(
            "Redpanda has had quotas of users since a later version than its source of 2024-12-20, "
            "which refuses them",
            _cite_redpanda_code("client_quotas.cc"),
            (profile.QUOTA,),
            apis=profile.QUOTA_APIS,
            advice="upgrade the brokers",
        ),
        VendorRule(
            "redpanda-two-scram-mechanisms",
            "Redpanda lets a user have one SCRAM mechanism only",
            _COMPATIBILITY,
            (profile.USER,),
            Sends(),
            Level.CAUTION,
            "declare one credential for each user",
            per_cluster=True,
        ),
        Refusal(
            "Redpanda has had SCRAM credentials in Kafka's protocol since version 25.2",
            Citation(
                "redpanda-data/redpanda, issue 25138",
                "https://github.com/redpanda-data/redpanda/issues/25138",
                "2025-06-12",
                _READ,
            ),
            (profile.USER,),
            apis=profile.USER_APIS,
            advice="upgrade the brokers, or use rpk security user",
        ),
        Refusal(
            "Redpanda's source of 2024-12-20 does not offer the request ElectLeaders",
            _OFFERED,
            (profile.LEADERS,),
            apis=profile.ELECTIONS,
            advice="use rpk cluster partitions transfer-leadership",
        ),
    ),
    (
        VendorNote(
            "A quota can also stand for a prefix of client ids, which kafkaform cannot declare.",
            _QUOTAS,
        ),
    ),
    connection=VendorNote(
        "kafkaform needs the request DescribeCluster, which is not in Redpanda's source of "
        "2024-12-20",
        _OFFERED,
    ),
)


_WARPSTREAM_REFERENCE = (
    "https://docs.warpstream.com/warpstream/kafka/reference/protocol-and-feature-support"
)
_STORED = "a stored copy without a date"

_WARPSTREAM_PROTOCOL = Citation(
    "Protocol and Feature Support", _WARPSTREAM_REFERENCE, _STORED, _READ
)
_WARPSTREAM_TOPICS = Citation(
    "Topic Configuration Reference",
    f"{_WARPSTREAM_REFERENCE}/topic-configuration-reference",
    _STORED,
    _READ,
)
_WARPSTREAM_CONFIGS = Citation(
    "Kafka vs WarpStream Configuration Reference",
    f"{_WARPSTREAM_REFERENCE}/kafka-vs-warpstream-configuration-reference",
    _STORED,
    _READ,
)
_NOT_LISTED = "WarpStream's list of the requests that it supports lacks {0}"

WARPSTREAM = Profile(
    "warpstream",
    "WarpStream",
    (
        VendorRule(
            "warpstream-replication-factor",
            "WarpStream reports a replication factor of 3 for every topic, so {found} would be "
            "shown as a change by every plan",
            _WARPSTREAM_CONFIGS,
            (profile.TOPIC,),
            WritesValue(("replication_factor",), only=("3",)),
            advice="write replication_factor = 3, or leave it out",
        ),
        VendorRule(
            "warpstream-replicas",
            "WarpStream has no replicas on brokers: its data is in an object store ({found})",
            _WARPSTREAM_PROTOCOL,
            (profile.TOPIC,),
            Writes((("replica_assignment",),)),
            advice="remove replica_assignment",
        ),
        VendorRule(
            "warpstream-leaders",
            "WarpStream's partitions have no leaders",
            _WARPSTREAM_PROTOCOL,
            (profile.LEADERS,),
            Sends(),
            advice="there is nothing to elect",
            apis=profile.ELECTIONS,
        ),
        VendorRule(
            "warpstream-compaction-switched",
            "WarpStream cannot switch the compaction of an existing topic on or off: {found}",
            _WARPSTREAM_TOPICS,
            profile.TOPICS,
            Switches(("config", "cleanup.policy"), "compact"),
            advice="create a new topic with this cleanup.policy and copy the data",
        ),
        VendorRule(
            "warpstream-ignored-config",
            "WarpStream silently ignores configs of topics that its reference does not list",
            _WARPSTREAM_TOPICS,
            profile.TOPICS,
            Writes((("config",),)),
            Level.CAUTION,
            "compare the configs of this plan with it",
            per_cluster=True,
        ),
        Refusal(
            _NOT_LISTED.format("IncrementalAlterConfigs"),
            _WARPSTREAM_PROTOCOL,
            (*profile.TOPICS, *profile.BROKERS, profile.GROUP_CONFIG, profile.METRICS),
            apis=profile.ALTER_CONFIGS,
            advice="set the config with WarpStream's console or its Terraform provider",
        ),
        Refusal(
            _NOT_LISTED.format("those of quotas"),
            _WARPSTREAM_PROTOCOL,
            (profile.QUOTA,),
            apis=profile.QUOTA_APIS,
            advice="remove the block",
        ),
        Refusal(
            _NOT_LISTED.format("those of SCRAM credentials"),
            _WARPSTREAM_PROTOCOL,
            (profile.USER,),
            apis=profile.USER_APIS,
            advice="create credentials in WarpStream's console or with its Terraform provider",
        ),
    ),
    (
        VendorNote(
            "Changes of ACLs take between 30 seconds and a minute to take effect.",
            Citation(
                "ACLs",
                "https://docs.warpstream.com/warpstream/reference/configure-acls",
                _STORED,
                _READ,
            ),
        ),
    ),
)
