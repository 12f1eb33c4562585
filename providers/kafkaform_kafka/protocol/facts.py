"""What a session knows about its cluster, beyond what the engine asks for (`Facts`)."""

from __future__ import annotations

from decimal import Decimal

from msgspec import UNSET, Struct, UnsetType

from kafkaform.core.resource import ProviderFacts
from kafkaform.core.value import EMPTY, FrozenMap


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
