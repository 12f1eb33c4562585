"""The session over one real cluster: which function reads a kind and sends a request.

A new kind adds rows to the two tables below, and nothing else changes here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from kafkaform.core.change import Batch, Change, Impact, Outcome, OutcomeStatus, Verdict
from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import (
    Depth,
    Facts,
    Fault,
    FaultClass,
    Identity,
    Reading,
    Sweep,
)
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets

from . import configs, connect, quotas, topics
from .cluster import read_cluster
from .context import Context, Listing, Order, Reads, Reply, Send
from .data import Source, answer
from .facts import read_facts
from .impact import assess
from .native import Native, open_native
from .reads import quotas as quota_reads
from .reads import topics as topic_reads
from .sends import topics as topic_sends
from .settings import Settings
from .wire.client import NotSent, Wire

READS: Mapping[str, Reads] = {
    topics.KIND: Reads(topic_reads.sweep_topics, topic_reads.read_topics),
    configs.KIND: Reads(topic_reads.sweep_topic_configs, topic_reads.read_topic_configs),
}
LISTINGS: Mapping[str, Listing] = {
    **{kind: reads.sweep for kind, reads in READS.items()},
    quotas.KIND: quota_reads.sweep_quotas,
}
"""Quotas are listed for the review alone: no plan changes them."""
SENDS: Mapping[str, Send] = {
    "CreateTopics": topic_sends.send_create_topics,
    "CreatePartitions": topic_sends.send_create_partitions,
    "IncrementalAlterConfigs": topic_sends.send_alter_configs,
    "DeleteTopics": topic_sends.send_delete_topics,
}


class KafkaSession:
    """One connection to one cluster (see `kafkaform.provider.contract.Session`)."""

    def __init__(self, context: Context, native: Native) -> None:
        self._context = context
        self._native = native

    @property
    def facts(self) -> Facts:
        return self._context.facts

    def sweep(self, kind: str, depth: Depth) -> Sweep:
        return LISTINGS[kind](self._context, depth)

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

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        replies = self._send(batch.request.name, Order(batch.steps, dry=True))
        return [Verdict(reply.step.id, reply.step.evidence, reply.fault) for reply in replies]

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        replies = self._send(batch.request.name, Order(batch.steps, dry=False, secrets=secrets))
        return [_outcome(reply) for reply in replies]

    def progress(self, tickets: Sequence[str]) -> Sequence[Outcome]:
        return [_unknown_ticket(ticket) for ticket in tickets]

    def cancel(self, ticket: str) -> Outcome:
        return _unknown_ticket(ticket)

    def _send(self, request: str, order: Order) -> Sequence[Reply]:
        return SENDS[request](self._context, order)

    def close(self) -> None:
        self._context.wire.close()


def open_session(settings: Settings) -> KafkaSession:
    """Connect both clients and read the facts. Raises ConnectError, ConfigurationError."""
    connect.fence_logs()
    config = connect.pure_config(settings)
    native = open_native(settings)
    try:
        wire = Wire(config, connect.PATIENCE)
    except NotSent as error:
        raise connect.connect_error(settings, ("", str(error))) from None
    try:
        facts = read_facts(wire, settings)
    except ConnectError:
        wire.close()
        raise
    return KafkaSession(Context(settings, wire, facts), native)


def _outcome(reply: Reply) -> Outcome:
    return Outcome(
        reply.step.id,
        _status(reply.fault),
        reply.fault,
        incarnation=reply.incarnation,
        attributes=reply.attributes,
    )


def _status(fault: Fault | None) -> OutcomeStatus:
    if fault is None:
        return OutcomeStatus.APPLIED
    ambiguous = fault.kind is FaultClass.AMBIGUOUS
    return OutcomeStatus.UNKNOWN if ambiguous else OutcomeStatus.FAILED


def _unknown_ticket(ticket: str) -> Outcome:
    fault = Fault(
        "UNKNOWN_TICKET",
        "no long-running work has this ticket",
        FaultClass.DEFINITE,
        advice="plan again to see how the cluster stands",
    )
    return Outcome(ticket, OutcomeStatus.FAILED, fault)
