"""A session with one real cluster: what is read when it is opened (the id of the cluster, its live
brokers, defaults and features, our rights), and the contract. Each kind of object says how it is
read and sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from kafkaform.core.change import Batch, Change, Impact, Outcome, OutcomeStatus, Step, Verdict
from kafkaform.core.errors import KafkaformError, OtherSystem
from kafkaform.core.resource import Depth, Facts, Fault, FaultClass, Identity, Reading, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets

from .authority import own_rights
from .authority.own_rights import read_held
from .connection.settings import CLIENT_ID, KafkaSettings, make_unproven_error
from .data_sources import AnswerSource, answer_query
from .kinds.context import (
    ClusterContext,
    Order,
    Reply,
    Requests,
    Send,
    attempt,
    live_nodes,
    read_cluster,
)
from .kinds.kind import ResourceKind
from .kinds.topic import replica_moves
from .protocol.acl import decode_operations
from .protocol.cluster_facts import (
    DRY_RUNS,
    LEADER_AND_ISR,
    RELEASES,
    KafkaFacts,
    MutationWindow,
    find_release,
    find_spans,
    is_newer,
)
from .protocol.config_keys import BROKER_DEFAULTS, BROKER_TIMES, broker_keys, parse_integer
from .protocol.faults import fault_of
from .resource_kinds import KINDS, WORDS
from .review import assess
from .vendors.profile import (
    HINT,
    explain_fault,
    explain_readings,
    explain_sweep,
    find_profile,
    load_profile,
)
from .wire.client import Wire, open_wire
from .wire.cluster import ClusterRow, describe_cluster, read_versions
from .wire.configs import describe_configs

_NUMBERS = {
    "default_partitions": "num.partitions",
    "default_replication_factor": "default.replication.factor",
}
_SWITCHES = {
    "auto_create": "auto.create.topics.enable",
    "delete_topic_enable": "delete.topic.enable",
}
_WINDOW = ("controller.quota.window.num", "controller.quota.window.size.seconds")
_AUTHORIZER = {
    "super_users": "super.users",
    "allow_if_no_acl": "allow.everyone.if.no.acl.found",
}
"""What the provider block calls a setting of the authorizer -> the broker's property."""
_AUTHORIZER_CLASS = "authorizer.class.name"
_AUTHORIZER_CLASSES = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
"""Kafka's own, with KRaft and with ZooKeeper: others can have their settings elsewhere."""
_CALLBACK = "client.quota.callback.class"
_HELD = ("request.timeout.ms", 30_000)
"""Config and Kafka's default, which is assumed if the brokers do not report it."""


def read_facts(wire: Wire, settings: KafkaSettings) -> Facts:
    """Ask the cluster about itself. Raises ConnectError if it does not even report its id."""
    cluster = attempt("DescribeCluster", lambda: describe_cluster(wire, settings.timeout))
    if isinstance(cluster, ClusterRow) and cluster.code:
        cluster = fault_of("DescribeCluster", cluster.code, "", cluster.message)
    if isinstance(cluster, Fault):
        raise make_unproven_error(", ".join(settings.servers), cluster)
    nodes = tuple(cluster.brokers)
    software = _read_software(wire, settings)
    if software["zookeeper"]:
        wire.seek_controller()
    defaults, request_timeout = _read_defaults(wire, settings, nodes, software["kafka_version"])
    hosts = (*settings.servers, *(host for host, _ in cluster.hosts.values()))
    hint = settings.profile or HINT.search(" ".join((cluster.cluster_id, *hosts)))
    detection = find_profile(settings.profile, hosts, cluster.cluster_id) if hint else None
    own_facts = KafkaFacts(
        protect=settings.protect_topics,
        operation_timeout=Decimal(str(settings.timeout)),
        acl_order=settings.acl_order,
        reassignment_throttle=settings.reassignment_throttle,
        authorizer=settings.authorizer,
        security_protocol=settings.protocol,
        client_id=CLIENT_ID,
        rates=settings.rates,
        limits=settings.limits,
        brokers=len(nodes),
        racks=FrozenMap(cluster.brokers),
        rights=decode_operations(cluster.operations),
        request_timeout=request_timeout,
        **defaults,
        **software,
        **(detection.values if detection else {}),
    )
    return Facts(
        cluster.cluster_id,
        nodes,
        settings.principal,
        own_facts,
        detection.text if detection else "",
        operation_timeout=settings.timeout,
        request_timeout=float(request_timeout),
        protect=settings.protect_topics,
    )


def _read_defaults(
    wire: Wire, settings: KafkaSettings, nodes: tuple[str, ...], release: str | None
) -> tuple[Mapping[str, Any], Decimal]:
    """The fields of KafkaFacts that are configs of the first broker that answers, and its request
    timeout in seconds. release: the Kafka release of the brokers, None if it is unknown."""
    # Brokers can have different defaults, and a broker reports its own only if it is asked itself.
    # The defaults of new topics are those of the active controller, which nobody can ask; they are
    # equal unless server.properties differ.
    times = [name for sources in BROKER_TIMES.values() for name, _ in sources]
    usual = [*_NUMBERS.values(), *_SWITCHES.values(), *_WINDOW, _HELD[0]]
    authorizer = (_AUTHORIZER_CLASS, *_AUTHORIZER.values())
    keys = [*usual, _CALLBACK, *authorizer, *times, *BROKER_DEFAULTS.values(), *find_spans()]
    configs: dict[str, str | None] = {}
    listed: set[str] = set()
    for node in nodes:
        describe = partial(describe_configs, wire, "broker", [node], settings.timeout)
        # One broker is enough, and the next one is only asked if it does not answer.
        answer = attempt("DescribeConfigs", partial(describe, keys=keys, node=node))
        if not isinstance(answer, Fault):
            entries = answer[node].configs if node in answer else None
            configs = {entry.name: entry.value for entry in entries or ()}
            # Some configs existed before they became dynamic.
            fixed = {entry.name for entry in entries or () if entry.read_only}
            listed = configs.keys() - {
                name for name, row in broker_keys().items() if row.key.since and name in fixed
            }
            break
    # A service can list only what its customers may see, and other systems name their configs as
    # they like. Then a config that is not listed can be there all the same.
    release_index = (
        RELEASES.index(release) if release in RELEASES and listed.issuperset(usual) else None
    )
    words = {"true": True, "false": False}
    request_timeout = Decimal(parse_integer(configs.get(_HELD[0]) or "") or _HELD[1]) / 1000
    defaults: Mapping[str, Any] = {
        **{name: parse_integer(configs.get(key) or "") for name, key in _NUMBERS.items()},
        **{name: words.get(configs.get(key) or "") for name, key in _SWITCHES.items()},
        "topic_defaults": _parse_topic_defaults(configs),
        "mutation_window": _parse_window(configs),
        "quota_callback": configs.get(_CALLBACK),
        "authorizer_settings": tuple(name for name, key in _AUTHORIZER.items() if key in configs)
        if listed.issuperset(usual) and configs.get(_AUTHORIZER_CLASS) in _AUTHORIZER_CLASSES
        else None,
        # Only what differs, because a plan records the facts.
        "config_keys": FrozenMap(
            {
                name: name in listed
                for name, (first, last) in find_spans().items()
                if release_index is not None and (name in listed) != (first <= release_index < last)
            }
        ),
    }
    return defaults, request_timeout


def _parse_topic_defaults(configs: Mapping[str, str | None]) -> FrozenMap:
    defaults = {
        key: value
        for key, name in BROKER_DEFAULTS.items()
        if (value := configs.get(name)) is not None
    }
    for key, sources in BROKER_TIMES.items():
        numbers = ((parse_integer(configs.get(name) or ""), unit) for name, unit in sources)
        times = [number * unit for number, unit in numbers if number is not None]
        if times:
            defaults[key] = str(times[0])
    return FrozenMap(defaults)


def _parse_window(configs: Mapping[str, str | None]) -> MutationWindow:
    """The window as the broker has it."""
    # The controllers enforce it. Where they run on their own, their setting can be another one.
    samples, seconds = (parse_integer(configs.get(key) or "") for key in _WINDOW)
    usual = MutationWindow()
    return MutationWindow(
        samples or usual.samples, seconds or usual.seconds, assumed=None in (samples, seconds)
    )


def _read_software(wire: Wire, settings: KafkaSettings) -> Mapping[str, Any]:
    """The fields of KafkaFacts that one broker says about its version."""
    versions = attempt("ApiVersions", lambda: read_versions(wire, settings.timeout))
    if isinstance(versions, Fault):
        return {"kafka_version": None, "zookeeper": False}
    release, zookeeper = (
        find_release(versions.apis, versions.level),
        LEADER_AND_ISR in versions.apis,
    )
    # With ZooKeeper no broker executes a dry run. A release that no table knows counts as newer
    # than those which do.
    release_index = len(RELEASES) if zookeeper or release is None else RELEASES.index(release)
    return {
        "elr": versions.features.get("eligible.leader.replicas.version", 0) > 0,
        "metadata_version": versions.features.get("metadata.version"),
        "kafka_version": release,
        # Rules treat such a broker as the newest release that they know. Nobody is shown that name.
        "newer_level": versions.level if is_newer(versions.level) else UNSET,
        "zookeeper": zookeeper,
        "executed_dry_runs": tuple(
            api for api, since in DRY_RUNS.items() if release_index < RELEASES.index(since)
        ),
    }


class KafkaSession:
    """One connection to one cluster (see `kafkaform.provider.contract.Session`)."""

    words = WORDS

    def __init__(self, context: ClusterContext, kinds: Sequence[ResourceKind] = KINDS) -> None:
        self.context = context
        """What `describe` asks directly."""
        self.facts = context.facts
        name = KafkaFacts.of(context.facts).profile
        self._profile = load_profile(name) if isinstance(name, str) else None
        """The vendor whose refusals are explained, None for Apache Kafka."""
        # A plan needs none of what only commands change, and loading it takes time.
        self._commanded = [kind for kind in kinds if kind.commanded]
        requests_by_kind = {
            kind.name: kind.connect()
            for kind in kinds
            if kind.connect is not None and not kind.commanded
        }
        self._reads = {name: requests.reads for name, requests in requests_by_kind.items()}
        self._sends = dict(join_sends(requests_by_kind.values()))

    def live_nodes(self) -> Sequence[str]:
        return live_nodes(self.context)

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        if kind not in self._reads:
            self._connect_commanded()
        reads = self._reads[kind]
        if full and depth is Depth.NAMES and reads.list_and_read is not None:
            sweep = reads.list_and_read(self.context, full)
        else:
            sweep = reads.sweep(self.context, depth)
        return sweep if self._profile is None else explain_sweep(self._profile, sweep)

    def read(
        self, ids: Sequence[Identity], *, at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        by_kind: dict[str, list[Identity]] = defaultdict(list)
        for identity in dict.fromkeys(ids):
            by_kind[identity.kind].append(identity)
        if not by_kind.keys() <= self._reads.keys():
            self._connect_commanded()
        readings: dict[Identity, Reading] = {}
        for kind, group in by_kind.items():
            reads = self._reads[kind]
            read = reads.find if depth is Depth.NAMES and reads.find else reads.read
            readings.update(read(self.context, group, at))
        if self._profile is None:
            return readings
        return explain_readings(self._profile, readings)

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        context = self.context
        source = AnswerSource(self, context.instance, lambda: read_cluster(context))
        return answer_query(source, data, arguments)

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        impacts = assess(self.context, changes)
        if impacts:
            # A proxy may have led an open connection to another cluster since it was proven.
            self.prove()
        return impacts

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        rights = read_held(self.context, steps)
        verdicts = tuple(own_rights.judge_steps(steps, rights, self.facts.principal))
        if self._profile is None:
            return verdicts
        kinds = {step.id: step.identity.kind for step in steps}
        return tuple(
            replace(
                verdict,
                fault=explain_fault(self._profile, verdict.fault, kinds[verdict.step]),
            )
            if verdict.fault
            else verdict
            for verdict in verdicts
        )

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        # By the function that sends it later, so that the controller validates the very request.
        replies = self._send(batch.request.name, Order(batch.steps, dry=True))
        return [Verdict(reply.step.id, reply.step.evidence, reply.fault) for reply in replies]

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        replies = self._send(batch.request.name, Order(batch.steps, dry=False, secrets=secrets))
        return [
            Outcome(
                reply.step.id,
                _choose_status(reply),
                reply.fault,
                reply.ticket,
                incarnation=reply.incarnation,
                attributes=reply.attributes,
            )
            for reply in replies
        ]

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        return replica_moves.follow_moves(self.context, tickets, owed)

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        return replica_moves.undo_throttles(self.context, tickets, others)

    def _send(self, request: str, order: Order) -> Sequence[Reply]:
        if request not in self._sends:
            self._connect_commanded()
        replies = self._sends[request](self.context, order)
        if self._profile is None:
            return replies
        return [
            replace(
                reply,
                fault=explain_fault(self._profile, reply.fault, reply.step.identity.kind),
            )
            if reply.fault
            else reply
            for reply in replies
        ]

    def _connect_commanded(self) -> None:
        requests_by_kind = {
            kind.name: kind.connect() for kind in self._commanded if kind.connect is not None
        }
        self._reads |= {name: requests.reads for name, requests in requests_by_kind.items()}
        self._sends |= join_sends(requests_by_kind.values())

    def prove(self) -> None:
        self.context.wire.prove()

    def close(self) -> None:
        self.context.wire.close()


def join_sends(kinds: Iterable[Requests]) -> Mapping[str, Send]:
    """API -> the function that sends its requests, for all kinds. Raises ValueError if two
    functions send the same API."""
    joined: dict[str, Send] = {}
    for requests in kinds:
        for api, send in requests.sends.items():
            # Which of two functions sends a request must not depend on the order of a table.
            if joined.setdefault(api, send) is not send:
                raise ValueError(f"{api} is sent by two functions: {joined[api]} and {send}")
    return joined


def open_session(settings: KafkaSettings, kinds: Sequence[ResourceKind] = KINDS) -> KafkaSession:
    """Connect and read the facts. Raises ConnectError, ConfigurationError, OtherSystem."""
    wire = open_wire(settings)
    try:
        facts = read_facts(wire, settings)
        # The earliest moment: with a wrong address, even a plan would show what another cluster
        # has.
        if settings.cluster_id is not None and facts.scope_id != settings.cluster_id:
            raise OtherSystem(
                f"{', '.join(settings.servers)} answers as cluster {facts.scope_id}, and "
                f'cluster_id of provider "{settings.instance}" is {settings.cluster_id}',
                "Nothing was sent. Correct the address; or cluster_id, if you mean this cluster.",
            )
    except KafkaformError:
        wire.close()
        raise
    return KafkaSession(ClusterContext(settings, wire, facts), kinds)


def _choose_status(reply: Reply) -> OutcomeStatus:
    if reply.fault is None:
        return OutcomeStatus.STARTED if reply.ticket else OutcomeStatus.APPLIED
    # FAILED promises that nothing was executed, so an answer that leaves this open must not claim
    # it.
    ambiguous = reply.fault.kind is FaultClass.AMBIGUOUS
    return OutcomeStatus.UNKNOWN if ambiguous else OutcomeStatus.FAILED
