"""Redpanda."""

from __future__ import annotations

from kafkaform.core.finding import Level

from . import profile
from .profile import (
    Citation,
    Profile,
    Refusal,
    Sends,
    VendorNote,
    VendorRule,
    WritesKey,
    WritesValue,
)

_READ = "2026-11-26"
_DOCS = "https://docs.redpanda.com/streaming/current"
_EDITION = "version 26.2, redpanda-data/docs at 3e7b662, 2026-08-07"
_HANDLERS = (
    "https://github.com/redpanda-data/redpanda/blob/1c6cff34ea8b4b65db02eb603d21dfef59c0f61c/src/v/"
    "kafka/server/handlers"
)
_CODE = "the development branch of 2024-12-20"


def _cite(title: str, page: str) -> Citation:
    return Citation(title, f"{_DOCS}/{page}", _EDITION, _READ)


def _cite_code(file: str) -> Citation:
    return Citation(f"Redpanda's source, {file}", f"{_HANDLERS}/{file}", _CODE, _READ)


_COMPATIBILITY = _cite("Kafka Compatibility", "develop/kafka-clients/")
_QUOTAS = _cite(
    "About client throughput quotas", "manage/cluster-maintenance/about-throughput-quotas/"
)
_OFFERED = _cite_code("handlers.h")

PROFILE = Profile(
    "redpanda",
    "Redpanda",
    (
        VendorRule(
            "redpanda-even-replication-factor",
            "Redpanda requires an odd replication factor, not {found}",
            _cite("Manage topics", "develop/manage-topics/config-topics/"),
            (profile.TOPIC,),
            WritesValue(("replication_factor",), odd=True),
            advice="write an odd number, such as 3",
        ),
        VendorRule(
            "redpanda-ignored-config",
            "Redpanda accepts {found} without any effect, so every plan shows the difference again",
            _cite_code("topics/types.h"),
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
            _cite_code("incremental_alter_configs.cc"),
            (profile.CLUSTER_CONFIG,),
            Sends(),
            advice="use rpk cluster config",
            apis=profile.CONFIG_APIS,
        ),
        VendorRule(
            "redpanda-broker-config",
            "Redpanda has no configs of single brokers",
            _cite_code("incremental_alter_configs.cc"),
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
            _cite_code("client_quotas.cc"),
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
