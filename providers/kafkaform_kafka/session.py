"""The session over one real cluster: which function reads a kind and sends a request.

A new kind adds rows to the two tables below, and nothing else changes here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from kafkaform.core.change import Batch, Change, Impact, Outcome, OutcomeStatus, Step, Verdict
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Depth, Facts, FaultClass, Identity, Reading, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import Words
from kafkaform.provider.contract import Secrets

from .authority import listed_rights as rights_reads
from .authority import required_rights
from .authority.own_rights import read_held
from .cluster.brokers import live_nodes, read_cluster
from .cluster.context import Context, Order, Reads, Reply, Send
from .cluster.facts import read_facts
from .connection import clients
from .connection.native import Native, open_native
from .connection.settings import Settings
from .connection.tokens import tokens_of
from .data_sources import Source, answer
from .kinds.acl import read as acl_reads
from .kinds.acl import resource_type as acls
from .kinds.acl import send as acl_sends
from .kinds.config import read as config_reads
from .kinds.config import resource_type as config_kinds
from .kinds.config import send as config_sends
from .kinds.leaders import read as leader_reads
from .kinds.leaders import resource_type as leaders
from .kinds.leaders import send as leader_sends
from .kinds.quota import read as quota_reads
from .kinds.quota import resource_type as quotas
from .kinds.quota import send as quota_sends
from .kinds.topic import configs
from .kinds.topic import read as topic_reads
from .kinds.topic import resource_type as topics
from .kinds.topic import send as topic_sends
from .kinds.topic import send_placement as placement_sends
from .kinds.user import read as scram_reads
from .kinds.user import resource_type as scram
from .kinds.user import send as scram_sends
from .protocol import rights
from .review.impact import assess
from .wire.client import NotSent, Wire
from .wire.login_tokens import TokenProvider
from .words import WORDS

READS: Mapping[str, Reads] = {
    topics.KIND: Reads(topic_reads.sweep_topics, topic_reads.read_topics),
    configs.KIND: Reads(topic_reads.sweep_topic_configs, topic_reads.read_topic_configs),
    quotas.KIND: Reads(quota_reads.sweep_quotas, quota_reads.read_quotas),
    scram.KIND: Reads(scram_reads.sweep_scram, scram_reads.read_scram),
    acls.KIND: Reads(acl_reads.sweep_acls, acl_reads.read_acls),
    rights.KIND: Reads(rights_reads.sweep_rights, rights_reads.read_rights),
    leaders.KIND: Reads(leader_reads.sweep_leaders, leader_reads.read_leaders),
    **{scope.kind: config_reads.reads(scope) for scope in config_kinds.SCOPES},
}
SENDS: Mapping[str, Send] = {
    "CreateTopics": topic_sends.send_create_topics,
    "CreatePartitions": topic_sends.send_create_partitions,
    "IncrementalAlterConfigs": config_sends.send_alter_configs,
    "DeleteTopics": topic_sends.send_delete_topics,
    "AlterPartitionReassignments": placement_sends.send_moves,
    leaders.API: leader_sends.send_elections,
    "AlterClientQuotas": quota_sends.send_alter_quotas,
    scram.API: scram_sends.send_alter_scram,
    "CreateAcls": acl_sends.send_create_acls,
    "DeleteAcls": acl_sends.send_delete_acls,
}


class KafkaSession:
    """One connection to one cluster (see `kafkaform.provider.contract.Session`)."""

    def __init__(self, context: Context, native: Native) -> None:
        self._context = context
        self._native = native

    @property
    def context(self) -> Context:
        """The parts that `describe` asks directly."""
        return self._context

    @property
    def facts(self) -> Facts:
        return self._context.facts

    @property
    def words(self) -> Words:
        return WORDS

    def live_nodes(self) -> Sequence[str]:
        return live_nodes(self._context)

    def sweep(self, kind: str, depth: Depth) -> Sweep:
        return READS[kind].sweep(self._context, depth)

    def read(self, ids: Sequence[Identity], *, at: str | None = None) -> Mapping[Identity, Reading]:
        by_kind: dict[str, list[Identity]] = defaultdict(list)
        for identity in dict.fromkeys(ids):
            by_kind[identity.kind].append(identity)
        readings: dict[Identity, Reading] = {}
        for kind, group in by_kind.items():
            readings.update(READS[kind].read(self._context, group, at))
        return readings

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        context = self._context
        source = Source(self, context.instance, lambda: read_cluster(context))
        return answer(source, data, arguments)

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        return assess(self._context, self._native, changes)

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        held = read_held(self._context, steps)
        return tuple(required_rights.missing(steps, held, self.facts.principal))

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        replies = self._send(batch.request.name, Order(batch.steps, dry=True))
        return [Verdict(reply.step.id, reply.step.evidence, reply.fault) for reply in replies]

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        replies = self._send(batch.request.name, Order(batch.steps, dry=False, secrets=secrets))
        return [_outcome(reply) for reply in replies]

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        return placement_sends.follow(self._context, tickets, owed)

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        return placement_sends.undo(self._context, tickets, others)

    def _send(self, request: str, order: Order) -> Sequence[Reply]:
        return SENDS[request](self._context, order)

    def prove(self) -> None:
        self._context.wire.prove()

    def close(self) -> None:
        self._context.wire.close()


def open_session(settings: Settings) -> KafkaSession:
    """Connect both clients and read the facts. Raises ConnectError, ConfigurationError,
    OtherSystem."""
    clients.fence_logs()
    config = clients.pure_config(settings)
    tokens = tokens_of(settings)
    if tokens is not None:
        tokens.now()  # its own fault has the better words
        config["sasl_oauth_token_provider"] = TokenProvider(tokens)
    native = open_native(settings, tokens)
    try:
        wire = Wire(config, clients.PATIENCE, native.proof)
    except NotSent as error:
        raise clients.connect_error(settings, ("", str(error))) from None
    try:
        if len(settings.servers) > 1:
            clients.refuse_two_clusters(settings, wire.ask_addresses(clients.LOOK))
        facts = read_facts(wire, settings)
    except KafkaformError:
        wire.close()
        raise
    return KafkaSession(Context(settings, wire, facts), native)


def _outcome(reply: Reply) -> Outcome:
    return Outcome(
        reply.step.id,
        _status(reply),
        reply.fault,
        reply.ticket,
        incarnation=reply.incarnation,
        attributes=reply.attributes,
    )


def _status(reply: Reply) -> OutcomeStatus:
    if reply.fault is None:
        return OutcomeStatus.STARTED if reply.ticket else OutcomeStatus.APPLIED
    ambiguous = reply.fault.kind is FaultClass.AMBIGUOUS
    return OutcomeStatus.UNKNOWN if ambiguous else OutcomeStatus.FAILED
