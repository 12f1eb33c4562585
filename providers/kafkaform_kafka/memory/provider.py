"""The provider of the simulated cluster, and what a `simulate "kafka"` block can set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from msgspec import Struct

from kafkaform.core.change import Change, RateLimit
from kafkaform.core.clock import Clock
from kafkaform.core.diagnostics import Diagnostic
from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import Depth, Facts, Reach, Sweep, Use
from kafkaform.core.rule import RuleBook
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, ObjectSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.core.words import Words
from kafkaform.provider.block_checks import parse_seconds
from kafkaform.provider.contract import (
    MissingRight,
    OptionalParts,
    ResourceType,
    Secrets,
    Simulation,
)

from ..connection.provider_block import DEFAULT_TIMEOUT
from ..connection.settings import CLIENT_ID
from ..protocol.cluster_facts import NEWEST, RELEASES, KafkaFacts, MutationWindow
from ..protocol.config_keys import BROKER_DEFAULTS, BROKER_TIMES, parse_size
from ..vendors.profile import find_profile
from .cluster import SimulatedCluster
from .session import MemorySession


class MemoryProvider(OptionalParts, Struct, frozen=True):
    """Opens sessions of one cluster as one of its users, for any provider instance.

    Everything else comes from the Kafka provider that the cluster was made with.
    """

    cluster: SimulatedCluster
    user: str = "admin"

    @property
    def name(self) -> str:
        return self.cluster.provider.name

    @property
    def owners(self) -> str:
        return self.cluster.provider.owners

    @property
    def words(self) -> Words:
        return self.cluster.provider.words

    @property
    def config(self) -> ObjectSchema:
        return self.cluster.provider.config

    @property
    def types(self) -> Mapping[str, ResourceType]:
        return self.cluster.provider.types

    @property
    def commanded(self) -> Mapping[str, ResourceType]:
        return self.cluster.provider.commanded

    @property
    def data(self) -> Mapping[str, ObjectSchema]:
        return self.cluster.provider.data

    @property
    def commands(self) -> Mapping[str, str]:
        return self.cluster.provider.commands

    def check(self, config: FrozenMap) -> Sequence[tuple[str, Diagnostic]]:
        return self.cluster.provider.check(config)

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> MemorySession:
        """Open a session. config: settings of the connection have no effect. Raises ConnectError if
        no broker is up, or if the user is unknown."""
        cluster = self.cluster.answering
        if not cluster.live:
            raise ConnectError("no broker of the simulated cluster is up", "Start one of them.")
        user = cluster.users.get(self.user)
        if user is None:
            raise ConnectError(f"the login of {self.user} was refused", "Grant it a right first.")
        return MemorySession(
            self.cluster, instance, user, _make_facts(cluster, user.principal, config)
        )

    def read_rules(self) -> bytes:
        return self.cluster.provider.read_rules()

    def load_rules(self) -> RuleBook:
        return self.cluster.provider.load_rules()

    def limit_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        return self.cluster.provider.limit_needs(changes)

    def list_reaches(self, kind: str, attributes: FrozenMap) -> Sequence[Reach] | None:
        return self.cluster.provider.list_reaches(kind, attributes)

    def find_limit(
        self, changes: Sequence[Change], sweeps: Mapping[str, Sweep], facts: Facts
    ) -> RateLimit | None:
        return self.cluster.provider.find_limit(changes, sweeps, facts)

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        return self.cluster.provider.review_needs(changes)

    @property
    def access_needs(self) -> Mapping[str, Depth]:
        return self.cluster.provider.access_needs

    def find_missing_rights(
        self,
        principal: str,
        uses: Sequence[Use],
        changes: Sequence[Change],
        sweeps: Mapping[str, Sweep],
        facts: Facts,
    ) -> Sequence[MissingRight]:
        decider = self.cluster.provider
        return decider.find_missing_rights(principal, uses, changes, sweeps, facts)


def _make_facts(cluster: SimulatedCluster, principal: str, config: FrozenMap) -> Facts:
    nodes = tuple(map(str, cluster.live))
    protect = config.get("protect_topics") is not False
    chosen = config.get("profile")
    detection = find_profile(chosen, (), cluster.id) if chosen else None
    own_facts = KafkaFacts(
        default_partitions=cluster.default_partitions,
        default_replication_factor=cluster.default_replication_factor,
        auto_create=False,
        delete_topic_enable=cluster.delete_topic_enable,
        brokers=len(nodes),
        racks=FrozenMap(dict.fromkeys(nodes)),
        elr=cluster.elr,
        kafka_version=cluster.kafka_version,
        zookeeper=False,
        client_id=CLIENT_ID,
        mutation_window=MutationWindow(
            cluster.mutations.samples, cluster.mutations.seconds, assumed=False
        ),
        protect=protect,
        operation_timeout=Decimal(str(_read_timeout(config))),
        acl_order=config.get("acl_order") or "create_first",
        reassignment_throttle=parse_size(config.get("reassignment_throttle")),
        authorizer=config.get("authorizer") or EMPTY,
        authorizer_settings=cluster.authorizer_settings,
        # Brokers report those that they can set for all topics.
        topic_defaults=FrozenMap(
            {
                key: value
                for key, value in cluster.defaults.items()
                if key in BROKER_DEFAULTS or key in BROKER_TIMES
            }
        ),
        **(detection.values if detection else {}),
    )
    return Facts(
        cluster.id,
        nodes,
        principal,
        own_facts,
        detection.text if detection else "",
        operation_timeout=_read_timeout(config),
        protect=protect,
    )


def _read_timeout(config: FrozenMap) -> float:
    return parse_seconds(config.get("operation_timeout")) or DEFAULT_TIMEOUT


MAX_BROKERS = 1_000


def _refuse_count(value: int) -> tuple[tuple[str, str], ...]:
    if 1 <= value <= MAX_BROKERS:
        return ()
    return ((f"{value} is out of range", f"Write a number from 1 to {MAX_BROKERS:,}."),)


def _make_count(name: str, doc: str, default: int) -> AttributeSchema:
    return AttributeSchema(name, NUMBER, doc, whole=True, default=default, refuses=_refuse_count)


SETTINGS = make_schema(
    "The simulated cluster of a test file.",
    # Three, so that the replication factor of most configurations can be created.
    _make_count("brokers", "How many brokers it has.", 3),
    _make_count("default_partitions", "The brokers' `num.partitions`.", 1),
    _make_count("default_replication_factor", "The brokers' `default.replication.factor`.", 1),
    AttributeSchema(
        "kafka_version",
        STRING,
        "The version of Kafka that it runs, with KRaft. It has the configs and features of that "
        "version.",
        default=NEWEST,
        choices=RELEASES,
    ),
)


def make_provider(settings: FrozenMap, scope: str, clock: Clock) -> MemoryProvider:
    """The provider of a new cluster. scope: its cluster id."""
    cluster = SimulatedCluster(
        brokers=settings["brokers"],
        clock=clock,
        cluster_id=scope,
        kafka_version=settings["kafka_version"],
    )
    cluster.default_partitions = settings["default_partitions"]
    cluster.default_replication_factor = settings["default_replication_factor"]
    return MemoryProvider(cluster)


SIMULATION = Simulation(SETTINGS, make_provider)
