"""Amazon MSK with Express brokers.

Their addresses have the form of those of Standard brokers, so only a provider block finds them.
"""

from __future__ import annotations

from kafkaform.core.finding import Level

from . import amazon_msk, profile
from .profile import Citation, Profile, VendorRule, WritesKey, WritesValue

_READ = "2026-11-26"
_GUIDE = "https://docs.aws.amazon.com/msk/latest/developerguide"
_STORED = "a stored copy without a date"

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

PROFILE = Profile(
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
        *amazon_msk.USER_RULES,
        amazon_msk.IAM_RULE,
    ),
)
