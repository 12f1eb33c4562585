"""What a session knows about its cluster, beyond what the engine asks for (`Facts`): among it which
release of Kafka its brokers run (no broker reports it). And what a release lacks, and what the
levels of a cluster's features enable.

Sources: the `validVersions` and listeners of Kafka's message definitions, and the classes of
`org.apache.kafka.server.common` that list the levels (MetadataVersion, TransactionVersion,
GroupVersion, …), of the releases 3.0 to 4.3; KIP-584 and KIP-1022. `apis.APIS` says since when a
request exists in the form that is sent; a request that a broker does not have is refused by its
name. `CAPABILITIES` has the rest: what an older broker would refuse with a message that names
nothing, or would answer in a way that means something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import IntEnum
from functools import cache

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from kafkaform.core.resource import Facts, Fault, FaultClass, ProviderFacts
from kafkaform.core.value import EMPTY, FrozenMap

from .config_keys import AT_BROKERS, REPLACEMENTS, ConfigKey, UpdateMode, all_broker_keys
from .rates import ReplicaLimits


class MutationWindow(Struct, frozen=True):
    """The time over which the controller counts mutations (KIP-599)."""

    samples: int = 11
    """`controller.quota.window.num`."""
    seconds: int = 1
    """`controller.quota.window.size.seconds`, of each sample."""
    assumed: bool = True
    """The broker does not report both, so that Kafka's defaults stand in."""


class KafkaFacts(ProviderFacts, frozen=True, kw_only=True):
    """The facts of a cluster. A config is that of the first broker that answers; without
    DescribeConfigs on Cluster it is unknown."""

    # ── of the provider block ───────────────────────────────────────────────────────────
    protect: bool = True
    """New topics start protected (`protect_topics`)."""
    operation_timeout: int | Decimal = 30
    """Seconds that a broker may take for one request."""
    acl_order: str = "create_first"
    """Whether a change of ACLs creates or deletes first."""
    reassignment_throttle: int | None = None
    """Bytes per second that a broker may copy for a move; None for no limit."""
    authorizer: FrozenMap = EMPTY
    """The declared settings of the brokers' authorizer, whose values brokers hide."""
    security_protocol: str = ""
    """Kafka's name of the protocol: `SASL_SSL`."""
    client_id: str = ""
    """The `client.id` of our requests, by which quotas can name us."""
    rates: FrozenMap | UnsetType = UNSET
    """What things cost: the block, as `rates.read_rates` takes it."""
    limits: ReplicaLimits | UnsetType = UNSET
    """How much the cluster is to hold."""

    # ── configs of the brokers ──────────────────────────────────────────────────────────
    default_partitions: int | None = None
    """`num.partitions`."""
    default_replication_factor: int | None = None
    """`default.replication.factor`."""
    auto_create: bool | None = None
    """`auto.create.topics.enable`."""
    delete_topic_enable: bool | None = None
    """`delete.topic.enable`."""
    topic_defaults: FrozenMap | None = None
    """Topic config -> what a topic without it gets, as text, of the configs in BROKER_TIMES and
    BROKER_DEFAULTS; None if nobody asked."""
    mutation_window: MutationWindow = MutationWindow()
    """How mutations are counted."""
    quota_callback: str | None = None
    """`client.quota.callback.class`: what decides about quotas, if not Kafka's own class."""
    authorizer_settings: tuple[str, ...] | None = None
    """The settings of Kafka's own authorizer that the broker's properties have; None if it has
    another authorizer, or does not list all its configs."""
    config_keys: FrozenMap = EMPTY
    """Broker config -> whether the brokers have it, where that is not what their release has."""
    request_timeout: int | Decimal = 0
    """`request.timeout.ms` in seconds: how long a broker keeps a request that it cannot forward to
    the controller yet."""

    # ── of the software (ApiVersions) ───────────────────────────────────────────────────
    elr: bool = False
    """Eligible leader replicas are on (KIP-966)."""
    metadata_version: int | None = None
    """The finalized level of `metadata.version`; None with ZooKeeper."""
    kafka_version: str | None = None
    """The newest release that the broker proves to have: `3.9`."""
    newer_level: int | UnsetType = UNSET
    """The level of `metadata.version` of a broker that is newer than the tables, and counts as the
    newest release in them."""
    zookeeper: bool | None = None
    """The cluster runs without KRaft; None where there is no cluster."""
    executed_dry_runs: tuple[str, ...] = ()
    """The requests that the cluster executes even if it should only validate them."""

    # ── of the cluster (DescribeCluster) ────────────────────────────────────────────────
    brokers: int = 0
    """The number of live brokers."""
    racks: FrozenMap = EMPTY
    """Id of each live broker -> its rack, or None."""
    rights: tuple[str, ...] = ()
    """Our operations on the cluster, such as Describe."""

    # ── of a vendor (`vendors/`), unset for Apache Kafka ────────────────────────────────
    profile: str | UnsetType = UNSET
    """The vendor whose rules the cluster has."""
    acls_read_singly: bool | UnsetType = UNSET
    """A list of all ACLs has them in another form than a list of single ones."""
    topic_configs: tuple[str, ...] | UnsetType | None = UNSET
    """The topic configs that users can set; None for all."""

    @property
    def known_release(self) -> str | None:
        """The release to show people: None if the broker is newer than the tables, too."""
        return None if self.newer_level else self.kafka_version


LEVELS: Mapping[int, str] = {
    **{7: "3.3", 8: "3.4", 11: "3.5", 14: "3.6", 19: "3.7", 20: "3.8", 21: "3.9"},
    **{25: "4.0", 27: "4.1", 29: "4.2", 30: "4.3"},
}
"""Highest level of metadata.version that a release supports (KIP-584) -> the release."""

# Only versions that are stable in that release, that are on the listener of a broker both with
# ZooKeeper and with KRaft, and that do not depend on what the controller supports: a broker reports
# the requests that it forwards only as far as its controller knows them. No request that clients
# send changed with 3.4, but with ZooKeeper a broker lists the ones between brokers, too.
MARKS: Mapping[str, tuple[int, int]] = {
    "3.0": (2, 7),  # ListOffsets
    "3.1": (3, 12),  # Metadata
    "3.2": (11, 9),  # JoinGroup
    "3.3": (35, 4),  # DescribeLogDirs
    "3.4": (4, 7),  # LeaderAndIsr
    "3.5": (2, 8),  # ListOffsets
    "3.6": (24, 4),  # AddPartitionsToTxn
    "3.7": (60, 1),  # DescribeCluster
    "3.8": (16, 5),  # ListGroups
    "3.9": (18, 4),  # ApiVersions
    "4.0": (3, 13),  # Metadata
    "4.1": (0, 13),  # Produce
    "4.2": (2, 11),  # ListOffsets
    "4.3": (35, 5),  # DescribeLogDirs
}
"""Release -> number and version of an API that came with it."""

RELEASES = tuple(MARKS)
"""The releases that the tables of this provider describe, the oldest first."""
NEWEST = RELEASES[-1]
DRY_RUNS: Mapping[str, str] = {"CreatePartitions": "3.3", "CreateTopics": "3.1"}
"""API -> the first release whose KRaft controllers do not execute a request that has
`validate_only` set."""
LEADER_AND_ISR = 4
"""The number of a request that only brokers of a cluster with ZooKeeper know."""


@cache
def find_spans() -> Mapping[str, tuple[int, int]]:
    """Config -> the positions in RELEASES of the first release that has it and of the first one
    that lacks it again, for the configs of brokers and topics that a plan can change."""
    return {
        name: (
            RELEASES.index(row.key.since) if row.key.since else 0,
            RELEASES.index(row.key.until) if row.key.until else len(RELEASES),
        )
        for name, row in all_broker_keys().items()
        if row.key.since
        or (row.key.until and (row.mode is not UpdateMode.READ_ONLY or name in AT_BROKERS.values()))
    }


def find_release(versions: Mapping[int, int], level: int | None) -> str | None:
    """The newest release whose features this broker has, None if it is older than 3.0 or no Apache
    Kafka. versions: number of each API -> its highest version at this broker; level: the highest
    metadata.version that it supports, None if it reports none."""
    # All brokers with KRaft report the level since 3.3. A level between two releases is that of a
    # build in between, which has at least what the older one has.
    if level is not None:
        candidates = [release for lowest, release in LEVELS.items() if lowest <= level]
        return candidates[-1] if candidates else None
    marks = [versions.get(api, -1) >= version for api, version in MARKS.values()]
    count = marks.index(False) if False in marks else len(marks)
    # Other systems that speak the protocol pick what they implement: a later mark without an
    # earlier one is none of Kafka's releases, and says nothing about configs.
    return RELEASES[count - 1] if count and not any(marks[count:]) else None


def is_newer(level: int | None) -> bool:
    """True if this level of metadata.version is of a release that the tables do not know."""
    return level is not None and level > max(LEVELS)


def is_before(release: str, reference: str) -> bool:
    """True if the first release is older than the second one."""
    return tuple(map(int, release.split("."))) < tuple(map(int, reference.split(".")))


def presence_faults(
    definition: ConfigKey, key: str, facts: Facts, exists: str = "exists"
) -> Iterator[tuple[str, str]]:
    """The fault of a config that this cluster does not have. key: its full name; exists: the verb
    of the sentence that says since when it does."""
    if not definition.since and not definition.until:
        return
    listed = KafkaFacts.of(facts).config_keys.get(AT_BROKERS.get(definition.name, definition.name))
    release = get_release(facts)
    if listed is False:
        yield f"the brokers do not list {key}, so they do not have it", f"remove {key}"
    elif listed or not release:
        return
    elif definition.since and is_before(release, definition.since):
        yield (
            f"the cluster runs Kafka {release}; {key} {exists} since Kafka {definition.since}",
            f"remove {key}, or upgrade the brokers",
        )
    elif definition.until and not is_before(release, definition.until):
        instead = " and ".join(REPLACEMENTS.get(definition.name, ()))
        yield (
            f"the cluster runs Kafka {release}; Kafka {definition.until} removed {key}",
            f"use {instead} instead" if instead else f"remove {key}",
        )


def is_certain(definition: ConfigKey, facts: Facts) -> bool:
    """True if it is known whether this cluster has the config."""
    listed = KafkaFacts.of(facts).config_keys.get(AT_BROKERS.get(definition.name, definition.name))
    return listed is not None or bool(get_release(facts))


def get_release(facts: Facts) -> str:
    """The release of the brokers, empty if it is unknown."""
    return KafkaFacts.of(facts).kafka_version or ""


def fit_range(definition: ConfigKey, facts: Facts) -> ConfigKey:
    """The config with the lowest number that the release of this cluster accepts."""
    release = get_release(facts)
    if definition.lower is None or not release or not is_before(release, definition.lower[0]):
        return definition
    return replace(definition, low=definition.lower[1])


def fit_old_range(definition: ConfigKey) -> ConfigKey:
    """The config with the lowest number that any release accepts."""
    return definition if definition.lower is None else replace(definition, low=definition.lower[1])


def advise_topic_ids(facts: Facts) -> str:
    """What to do about a topic whose id is unknown."""
    # KIP-516: the controller gives ids, also to older topics, once it is allowed to.
    if KafkaFacts.of(facts).zookeeper:
        return (
            "set inter.broker.protocol.version to 2.8 or newer on the brokers, which gives every "
            "topic an id"
        )
    return "plan again with a principal that has Describe on the topic"


class Capability(Struct, frozen=True):
    """Something that not every cluster has."""

    name: str
    """The subject of a sentence, in the plural."""
    since: str
    """The first release that has it."""
    without: str
    """What happens on a cluster that does not have it."""
    zookeeper: bool = True
    """False if a cluster with ZooKeeper does not have it in any release."""
    advice: str = "upgrade the cluster, or remove the block"


# A broker before 4.0 refuses the whole DescribeConfigs request with INVALID_REQUEST (42).
GROUP_CONFIGS = Capability(
    "configs of groups", "4.0", "`kafka_group_config` is refused", zookeeper=False
)
# With ZooKeeper, DescribeConfigs of a subscription succeeds and is empty (3.7 to 3.9), so that it
# would look as if it could be created.
CLIENT_METRICS = Capability(
    "client metrics subscriptions", "3.7", "`kafka_client_metrics` is refused", zookeeper=False
)
# ListConfigResources v1 (KIP-1142). Reading one group by name works before.
GROUP_CONFIG_LISTING = Capability(
    "listings of groups with configs",
    "4.1",
    "declared groups are read by name; `import --all` and snapshots leave groups out",
    zookeeper=False,
    advice="name the groups in import blocks",
)
# KIP-373. An older broker takes the codes for UNKNOWN and answers with INVALID_REQUEST (42).
USER_ACLS = Capability(
    "ACLs on users (CreateTokens, DescribeTokens)",
    "3.3",
    "the ACL is refused",
)
TWO_PHASE_ACLS = Capability("ACLs with the operation TwoPhaseCommit", "4.1", "the ACL is refused")

UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
"""Kafka's own code: the brokers are too old for a request."""
FEATURE_MISSING = "FEATURE_MISSING"
"""The code of a listing of objects that this cluster cannot have, which says more than Kafka's
UNSUPPORTED_VERSION: there are none."""

CAPABILITIES = (GROUP_CONFIGS, CLIENT_METRICS, GROUP_CONFIG_LISTING, USER_ACLS, TWO_PHASE_ACLS)


def explain_absence(capability: Capability, facts: Facts) -> str:
    """Why this cluster does not have the capability; empty if it has it, or if nobody knows."""
    cluster = KafkaFacts.of(facts)
    release = cluster.kafka_version
    if release is None:
        return ""
    if cluster.zookeeper and not capability.zookeeper:
        return (
            f"the cluster runs Kafka {release} with ZooKeeper; {capability.name} exist only with "
            "KRaft"
        )
    if is_before(release, capability.since):
        since = f"{capability.name} exist since Kafka {capability.since}"
        return f"the cluster runs Kafka {release}; {since}"
    return ""


def capability_faults(capability: Capability, facts: Facts) -> Iterator[tuple[str, str]]:
    """Summary and advice for a change that needs a capability that this cluster does not have."""
    if absence := explain_absence(capability, facts):
        yield absence, capability.advice


def acl_faults(resource_type: str, operation: str, facts: Facts) -> Iterator[tuple[str, str]]:
    """The faults of an ACL that needs a capability that this cluster does not have."""
    if resource_type == "User":
        yield from capability_faults(USER_ACLS, facts)
    if operation == "TwoPhaseCommit":
        yield from capability_faults(TWO_PHASE_ACLS, facts)


def find_capability_fault(
    capability: Capability, facts: Facts, api: str, code: str = UNSUPPORTED_VERSION
) -> Fault | None:
    """The fault of a read that needs a capability that this cluster does not have. api: the request
    that is not sent."""
    absence = explain_absence(capability, facts)
    return Fault(code, absence, FaultClass.DEFINITE, api, capability.advice) if absence else None


def find_listing_fault(
    objects: Capability | None, listing: Capability | None, facts: Facts, api: str
) -> Fault | None:
    """The fault of a listing that this cluster does not have. Its code is FEATURE_MISSING if there
    can be no such objects. objects, listing: what the objects and what their listing need, None if
    every cluster has it; api: the request that is not sent."""
    missing = find_capability_fault(objects, facts, api, FEATURE_MISSING) if objects else None
    if missing is None and listing is not None:
        return find_capability_fault(listing, facts, api)
    return missing


# ── features ────────────────────────────────────────────────────────────────────────────


METADATA_VERSION = "metadata.version"


class UpgradeType(IntEnum):
    """The protocol's numbers for what an update of a level may do (KIP-778)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    """Kafka refuses it if metadata would be lost."""
    UNSAFE_DOWNGRADE = 3


class Feature(Struct, frozen=True):
    """One feature."""

    enables: str
    """What its levels enable, a clause."""
    loss: str
    """What a lower level takes away, a clause."""
    one_way: str = ""
    """Why there may be no way back from a higher level, a clause; empty if there is one."""


FEATURES: Mapping[str, Feature] = {
    METADATA_VERSION: Feature(
        "the format of the cluster's metadata, and the requests between brokers",
        "metadata is lost that only the higher level can hold, and what needs it stops working",
        "a way back may not exist: Kafka refuses a downgrade that would lose metadata",
    ),
    "kraft.version": Feature(
        "1: controllers can be added and removed (KIP-853)",
        "controllers can no longer be added or removed",
        # QuorumController and UpdateFeatures refuse every lower level.
        "there is no way back: Kafka never lowers it again (KIP-853)",
    ),
    "transaction.version": Feature(
        "2: each transaction has its own epoch (KIP-890)",
        "late requests of an earlier transaction can again become part of the next one",
    ),
    "group.version": Feature(
        "1: consumers can use group.protocol=consumer (KIP-848)",
        "consumers with group.protocol=consumer can no longer join their groups",
    ),
    "eligible.leader.replicas.version": Feature(
        "1: replicas outside the ISR that have all data can lead (KIP-966)",
        "the cluster forgets which replicas outside the ISR have all data",
    ),
    "share.version": Feature(
        "1: share groups (KIP-932)",
        "share consumers can no longer join their groups",
    ),
    "streams.version": Feature(
        "1: Kafka Streams can use group.protocol=streams (KIP-1071)",
        "applications with group.protocol=streams can no longer join their groups",
    ),
}
"""The known features by name."""

UNKNOWN = Feature(
    "unknown to this version of kafkaform",
    "what only the higher level enables stops working",
    "whether it can be lowered again is not known",
)
"""What is said of a feature of a newer Kafka."""

_OLDEST = 4
"""The first level of metadata.version of Kafka 3.3, the lowest that can be set (KIP-778)."""


def find_level_release(level: int) -> str | None:
    """The release that brought this level of metadata.version, None for an unknown one."""
    # The levels below a release's highest one were made while it was developed.
    if level < _OLDEST:
        return None
    return next((release for last, release in sorted(LEVELS.items()) if level <= last), None)


def find_level(release: str) -> int | None:
    """The highest level of metadata.version of a release such as `4.1`; None for an unknown one."""
    return next((level for level, name in LEVELS.items() if name == release), None)


def render_level(name: str, level: int) -> str:
    """`27 (Kafka 4.1)` for metadata.version, the number for any other feature."""
    release = find_level_release(level) if name == METADATA_VERSION else None
    return f"{level} (Kafka {release})" if release else str(level)
