"""A session with one real cluster. Each kind of object says how it is read and sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.change import Batch, Change, Impact, Outcome, OutcomeStatus, Step, Verdict
from kafkaform.core.errors import KafkaformError, OtherSystem
from kafkaform.core.resource import Depth, FaultClass, Identity, Reading, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets

from .authority import own_rights
from .authority.own_rights import read_held
from .cluster.context import ClusterContext, Order, Reply, Requests, Send, live_nodes, read_cluster
from .cluster.facts import read_facts
from .connection.settings import KafkaSettings
from .data_sources import AnswerSource, answer_query
from .kinds.kind import ResourceKind
from .kinds.topic import send_placement as placement_sends
from .protocol.facts import KafkaFacts
from .resource_kinds import KINDS, WORDS
from .review import assess
from .vendors import detection
from .vendors.detection import load_profile
from .wire.client import open_wire


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
        return sweep if self._profile is None else detection.explain_sweep(self._profile, sweep)

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
        return detection.explain_readings(self._profile, readings)

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
                fault=detection.explain_fault(self._profile, verdict.fault, kinds[verdict.step]),
            )
            if verdict.fault
            else verdict
            for verdict in verdicts
        )

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        replies = self._send(batch.request.name, Order(batch.steps, dry=True))
        return [Verdict(reply.step.id, reply.step.evidence, reply.fault) for reply in replies]

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        replies = self._send(batch.request.name, Order(batch.steps, dry=False, secrets=secrets))
        return [_make_outcome(reply) for reply in replies]

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        return placement_sends.follow_moves(self.context, tickets, owed)

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        return placement_sends.undo_throttles(self.context, tickets, others)

    def _send(self, request: str, order: Order) -> Sequence[Reply]:
        if request not in self._sends:
            self._connect_commanded()
        replies = self._sends[request](self.context, order)
        if self._profile is None:
            return replies
        return [
            replace(
                reply,
                fault=detection.explain_fault(self._profile, reply.fault, reply.step.identity.kind),
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
            if joined.setdefault(api, send) is not send:
                raise ValueError(f"{api} is sent by two functions: {joined[api]} and {send}")
    return joined


def open_session(settings: KafkaSettings, kinds: Sequence[ResourceKind] = KINDS) -> KafkaSession:
    """Connect and read the facts. Raises ConnectError, ConfigurationError, OtherSystem."""
    wire = open_wire(settings)
    try:
        facts = read_facts(wire, settings)
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


def _make_outcome(reply: Reply) -> Outcome:
    return Outcome(
        reply.step.id,
        _choose_status(reply),
        reply.fault,
        reply.ticket,
        incarnation=reply.incarnation,
        attributes=reply.attributes,
    )


def _choose_status(reply: Reply) -> OutcomeStatus:
    if reply.fault is None:
        return OutcomeStatus.STARTED if reply.ticket else OutcomeStatus.APPLIED
    ambiguous = reply.fault.kind is FaultClass.AMBIGUOUS
    return OutcomeStatus.UNKNOWN if ambiguous else OutcomeStatus.FAILED
