"""A session with one real cluster. Each kind of object says how it is read and sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kafkaform.core.change import Batch, Change, Impact, Outcome, OutcomeStatus, Step, Verdict
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Depth, FaultClass, Identity, Reading, Sweep
from kafkaform.core.value import FrozenMap
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

    words = WORDS

    def __init__(
        self, context: ClusterContext, native: Native, kinds: Sequence[ResourceKind] = KINDS
    ) -> None:
        self.context = context
        """What `describe` asks directly."""
        self.facts = context.facts
        self._native = native
        found = {kind.name: kind.connect() for kind in kinds if kind.connect is not None}
        self._reads = {name: requests.reads for name, requests in found.items()}
        self._sends = join_sends(found.values())

    def live_nodes(self) -> Sequence[str]:
        return live_nodes(self.context)

    def sweep(self, kind: str, depth: Depth) -> Sweep:
        return self._reads[kind].sweep(self.context, depth)

    def read(self, ids: Sequence[Identity], *, at: str | None = None) -> Mapping[Identity, Reading]:
        by_kind: dict[str, list[Identity]] = defaultdict(list)
        for identity in dict.fromkeys(ids):
            by_kind[identity.kind].append(identity)
        readings: dict[Identity, Reading] = {}
        for kind, group in by_kind.items():
            readings.update(self._reads[kind].read(self.context, group, at))
        return readings

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        context = self.context
        source = AnswerSource(self, context.instance, lambda: read_cluster(context))
        return answer_query(source, data, arguments)

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        return assess(self.context, self._native, changes)

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        held = read_held(self.context, steps)
        return tuple(required_rights.judge_steps(steps, held, self.facts.principal))

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
        return self._sends[request](self.context, order)

    def prove(self) -> None:
        self.context.wire.prove()

    def close(self) -> None:
        self.context.wire.close()


def join_sends(found: Iterable[Requests]) -> Mapping[str, Send]:
    """API -> the function that sends its requests, for all kinds. Raises ValueError if two
    functions send the same API."""
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
        # If there is no token, this error names the cause; a client would only say that the login
        # failed.
        tokens.get_token()
        config["sasl_oauth_token_provider"] = TokenProvider(tokens)
    # librdkafka first: for a refused login kafka-python says no more than that it timed out. Its
    # answer also says which cluster every later connection must lead to.
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
