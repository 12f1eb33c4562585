"""Azure Event Hubs, with its endpoint for Kafka clients."""

from __future__ import annotations

from . import profile
from .profile import Citation, Profile, Sends, VendorNote, VendorRule

_READ = "2026-11-26"
_CONFIGURATIONS = Citation(
    "Apache Kafka client configurations for Azure Event Hubs",
    "https://learn.microsoft.com/azure/event-hubs/apache-kafka-configurations",
    "dated 2025-12-17, MicrosoftDocs/azure-docs at 0b8729e",
    _READ,
)
_VERSIONS = Citation(
    "Azure/azure-event-hubs-for-kafka, issue 209: the answer to ApiVersions",
    "https://github.com/Azure/azure-event-hubs-for-kafka/issues/209",
    "logged on 2022-09-23",
    _READ,
)
_PORTAL = "manage it in the Azure portal, with the Azure CLI or an ARM template"

PROFILE = Profile(
    "azure-event-hubs",
    "Azure Event Hubs",
    (
        VendorRule(
            "azure-event-hubs-topic",
            "Azure Event Hubs has no topic management for Kafka clients: event hubs are made and "
            "configured with the tools of Azure",
            _CONFIGURATIONS,
            profile.TOPICS,
            Sends(),
            advice=_PORTAL,
            apis=("CreateTopics", "CreatePartitions", "DeleteTopics", *profile.CONFIG_APIS),
        ),
        VendorRule(
            "azure-event-hubs-acl",
            "Azure Event Hubs has no ACLs: DescribeAcls, CreateAcls and DeleteAcls are not among "
            "the requests that it offers",
            _VERSIONS,
            (profile.ACL,),
            Sends(),
            advice="assign roles of Azure RBAC instead",
            apis=profile.ACL_APIS,
        ),
        VendorRule(
            "azure-event-hubs-broker-config",
            "Azure Event Hubs has no configs of brokers: it is fully managed",
            _CONFIGURATIONS,
            profile.BROKERS,
            Sends(),
            advice="remove the block",
            apis=profile.CONFIG_APIS,
        ),
        VendorRule(
            "azure-event-hubs-config",
            "Azure Event Hubs does not offer the request IncrementalAlterConfigs",
            _VERSIONS,
            (profile.GROUP_CONFIG, profile.METRICS),
            Sends(),
            advice="remove the block",
            apis=profile.CONFIG_APIS,
        ),
        VendorRule(
            "azure-event-hubs-leaders",
            "Azure Event Hubs does not offer the request ElectLeaders",
            _VERSIONS,
            (profile.LEADERS,),
            Sends(),
            advice="let Azure Event Hubs choose",
            apis=profile.ELECTIONS,
        ),
    ),
    connection=VendorNote(
        "Azure Event Hubs answers Metadata up to version 5, without topic ids, and does not offer "
        "DescribeCluster, so kafkaform cannot manage it",
        _VERSIONS,
    ),
)
