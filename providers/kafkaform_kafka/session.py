"""The session over one real cluster: each kind says how it is read and sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kafkaform.core.change import Batch, Change, Impact, Outcome, OutcomeStatus, Step, Verdict
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Depth, Facts, FaultClass, Identity, Reading, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import Words
from kafkaform.provider.contract import Secrets

from .authority import required_rights
from .authority.own_rights import read_held
from .cluster.brokers import live_nodes, read_cluster
from .cluster.context import ClusterContext, Order, Reply, Requests, Send
from .cluster.facts import read_facts
from .connection import clients
from .connection.native import Native, open_native
from .connection.settings import KafkaSettings
from .connection.tokens import open_token_source
from .data_sources import AnswerSource, answer_query
from .kinds.kind import ResourceKind
from .kinds.topic import send_placement as placement_sends
from .resource_kinds import KINDS
from .review.impact import assess
from .wire.client import NotSent, Wire
from .wire.login_tokens import TokenProvider
from .words import WORDS


class KafkaSession:
    """One connection to one cluster (see `kafkaform.provider.contract.Session`)."""

    def __init__(
        self, context: ClusterContext, native: Native, kinds: Sequence[ResourceKind] = KINDS
    ) -> None:
        self._context = context
        self._native = native
        found = {kind.name: kind.connect() for kind in kinds if kind.connect is not None}
        self._reads = {name: requests.reads for name, requests in found.items()}
        self._sends = join_sends(found.values())

    @property
    def context(self) -> ClusterContext:
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
        return self._reads[kind].sweep(self._context, depth)

    def read(self, ids: Sequence[Identity], *, at: str | None = None) -> Mapping[Identity, Reading]:
        by_kind: dict[str, list[Identity]] = defaultdict(list)
        for identity in dict.fromkeys(ids):
            by_kind[identity.kind].append(identity)
        readings: dict[Identity, Reading] = {}
        for kind, group in by_kind.items():
            readings.update(self._reads[kind].read(self._context, group, at))
        return readings

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        context = self._context
        source = AnswerSource(self, context.instance, lambda: read_cluster(context))
        return answer_query(source, data, arguments)

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        return assess(self._context, self._native, changes)

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        held = read_held(self._context, steps)
        return tuple(required_rights.judge_steps(steps, held, self.facts.principal))

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        replies = self._send(batch.request.name, Order(batch.steps, dry=True))
        return [Verdict(reply.step.id, reply.step.evidence, reply.fault) for reply in replies]

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        replies = self._send(batch.request.name, Order(batch.steps, dry=False, secrets=secrets))
        return [_make_outcome(reply) for reply in replies]

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        return placement_sends.follow_moves(self._context, tickets, owed)

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        return placement_sends.undo_throttles(self._context, tickets, others)

    def _send(self, request: str, order: Order) -> Sequence[Reply]:
        return self._sends[request](self._context, order)

    def prove(self) -> None:
        self._context.wire.prove()

    def close(self) -> None:
        self._context.wire.close()


def join_sends(found: Iterable[Requests]) -> Mapping[str, Send]:
    """API -> what sends its requests, whichever kinds they are for. Raises ValueError if two
    functions send the same."""
    joined: dict[str, Send] = {}
    for requests in found:
        for api, send in requests.sends.items():
            if joined.setdefault(api, send) is not send:
                raise ValueError(f"{api} is sent by two functions: {joined[api]} and {send}")
    return joined


def open_session(settings: KafkaSettings, kinds: Sequence[ResourceKind] = KINDS) -> KafkaSession:
    """Connect both clients and read the facts. Raises ConnectError, ConfigurationError,
    OtherSystem."""
    clients.fence_logs()
    config = clients.pure_config(settings)
    tokens = open_token_source(settings)
    if tokens is not None:
        tokens.get_token()  # its own fault has the better words
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
    return KafkaSession(ClusterContext(settings, wire, facts), native, kinds)


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
