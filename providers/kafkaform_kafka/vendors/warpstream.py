"""WarpStream."""

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
    WritesValue,
)

_READ = "2026-11-26"
_REFERENCE = "https://docs.warpstream.com/warpstream/kafka/reference/protocol-and-feature-support"
_STORED = "a stored copy without a date"

_PROTOCOL = Citation("Protocol and Feature Support", _REFERENCE, _STORED, _READ)
_TOPICS = Citation(
    "Topic Configuration Reference",
    f"{_REFERENCE}/topic-configuration-reference",
    _STORED,
    _READ,
)
_CONFIGS = Citation(
    "Kafka vs WarpStream Configuration Reference",
    f"{_REFERENCE}/kafka-vs-warpstream-configuration-reference",
    _STORED,
    _READ,
)
_NOT_LISTED = "WarpStream's list of the requests that it supports lacks {0}"

PROFILE = Profile(
    "warpstream",
    "WarpStream",
    (
        VendorRule(
            "warpstream-replication-factor",
            "WarpStream reports a replication factor of 3 for every topic, so {found} would be "
            "shown as a change by every plan",
            _CONFIGS,
            (profile.TOPIC,),
            WritesValue(("replication_factor",), only=("3",)),
            advice="write replication_factor = 3, or leave it out",
        ),
        VendorRule(
            "warpstream-replicas",
            "WarpStream has no replicas on brokers: its data is in an object store ({found})",
            _PROTOCOL,
            (profile.TOPIC,),
            Writes((("replica_assignment",),)),
            advice="remove replica_assignment",
        ),
        VendorRule(
            "warpstream-leaders",
            "WarpStream's partitions have no leaders",
            _PROTOCOL,
            (profile.LEADERS,),
            Sends(),
            advice="there is nothing to elect",
            apis=profile.ELECTIONS,
        ),
        VendorRule(
            "warpstream-compaction-switched",
            "WarpStream cannot switch the compaction of an existing topic on or off: {found}",
            _TOPICS,
            profile.TOPICS,
            Switches(("config", "cleanup.policy"), "compact"),
            advice="create a new topic with this cleanup.policy and copy the data",
        ),
        VendorRule(
            "warpstream-ignored-config",
            "WarpStream silently ignores configs of topics that its reference does not list",
            _TOPICS,
            profile.TOPICS,
            Writes((("config",),)),
            Level.CAUTION,
            "compare the configs of this plan with it",
            per_cluster=True,
        ),
        Refusal(
            _NOT_LISTED.format("IncrementalAlterConfigs"),
            _PROTOCOL,
            (*profile.TOPICS, *profile.BROKERS, profile.GROUP_CONFIG, profile.METRICS),
            apis=profile.ALTER_CONFIGS,
            advice="set the config with WarpStream's console or its Terraform provider",
        ),
        Refusal(
            _NOT_LISTED.format("those of quotas"),
            _PROTOCOL,
            (profile.QUOTA,),
            apis=profile.QUOTA_APIS,
            advice="remove the block",
        ),
        Refusal(
            _NOT_LISTED.format("those of SCRAM credentials"),
            _PROTOCOL,
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
