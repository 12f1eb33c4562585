"""Opens sessions, and answers in them: which workers there are, what they can do, and whether it is
the right cluster.

A Connect cluster has no id. Its workers say which Kafka cluster they store everything in (`GET /`,
KIP-298), and two Connect clusters on one Kafka differ in nothing but `group.id`, which the REST API
does not show. But a validation refuses a sink connector whose consumers would join the group of the
workers (DistributedHerder.validateSinkConnectorGroupId), so a given `group_id` can be proven
without an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Batch, Change, Impact, Outcome, OutcomeStatus, Step, Verdict
from kafkaform.core.clock import Clock, SystemClock
from kafkaform.core.errors import ConnectError, OtherSystem
from kafkaform.core.resource import (
    Depth,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Identity,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Secrets
from kafkaform.provider.http.client import HttpClient, Proof
from kafkaform.provider.http.exchange import HttpAnswer
from kafkaform.provider.http.settings import BasicLogin, HttpSettings, read_settings

from . import rest
from .connector import CLASS, NAME
from .connector_offsets import OFFSETS_KIND
from .data_sources import Answers, answer_query, make_query_error
from .definitions import ConnectFacts, read_listing, read_source
from .provider_block import OPERATION_TIMEOUT, WORDS
from .reading import (
    ConnectorReader,
    DetailedConnector,
    describe_progress,
    list_failures,
    parse,
    read_ticket,
)
from .rest import (
    Connector,
    Plugin,
    RequestFailed,
    UnreadableAnswer,
    WorkersClient,
    parse_release,
    read_plugins,
    read_server,
    read_validation,
)
from .sending import (
    REQUESTS,
    check_offset_steps,
    check_steps,
    examine_steps,
    read_all_offsets,
    send_offset_steps,
    send_steps,
    sweep_offsets,
)

# The status of a connector says nothing about its newest configuration for a moment: a worker
# first reads it from the config topic, and restarts connector and tasks one after the other.
SETTLE_SECONDS = 3.0
"""How long after its start a status is not believed."""
WAIT_SECONDS = 15.0
"""How long after its start a startup is waited for."""
POLL_SECONDS = 0.5


class Startups:
    """The startups of one session."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: dict[str, float] = {}

    def note(self, outcomes: Sequence[Outcome]) -> None:
        """Remember when these steps have started something."""
        moment = self._clock.monotonic()
        self._began.update(
            {outcome.ticket: moment for outcome in outcomes if outcome.ticket is not None}
        )

    def ask(
        self, client: WorkersClient, reader: ConnectorReader, tickets: Sequence[str]
    ) -> list[Outcome]:
        """How far each startup is. Those that this session has begun are waited for a little."""
        outcomes: dict[str, Outcome] = {}
        waiting = list(dict.fromkeys(tickets))
        while waiting:
            for ticket, outcome in self._look(client, reader, waiting).items():
                begun = outcome.status is OutcomeStatus.STARTED
                if not begun or self._get_age(ticket) >= WAIT_SECONDS:
                    outcomes[ticket] = outcome
            waiting = [ticket for ticket in waiting if ticket not in outcomes]
            if waiting:
                self._clock.sleep(POLL_SECONDS)
        return [outcomes[ticket] for ticket in tickets]

    def _get_age(self, ticket: str) -> float:
        began = self._began.get(ticket)
        return WAIT_SECONDS if began is None else self._clock.monotonic() - began

    def _look(
        self, client: WorkersClient, reader: ConnectorReader, tickets: Sequence[str]
    ) -> Mapping[str, Outcome]:
        names = {ticket: read_ticket(ticket) for ticket in tickets}
        answers: dict[str, Connector | Fault | None] = {}
        try:
            answers.update(reader.read_plain(client, list(names.values())))
        except RequestFailed as failure:
            answers.update(dict.fromkeys(names.values(), failure.fault))
        # Nobody has started these yet. It takes a rebalance, which is no answer to the question.
        missing = [name for name in names.values() if name not in answers]
        answers.update(reader.ask_patiently(client, missing))
        return {ticket: self._judge(ticket, answers[name]) for ticket, name in names.items()}

    def _judge(self, ticket: str, answer: Connector | Fault | None) -> Outcome:
        if isinstance(answer, Fault):
            return Outcome(ticket, OutcomeStatus.UNKNOWN, answer)
        young = self._get_age(ticket) < SETTLE_SECONDS
        if answer is None and young:
            # The leader has written it down, and this worker has not read that yet.
            return Outcome(ticket, OutcomeStatus.STARTED)
        if answer is None:
            message = f"the connector {read_ticket(ticket)} does not exist any more"
            return _fail(ticket, "NOT_FOUND", message, "plan again")
        note = describe_progress(answer)
        if young:
            return Outcome(ticket, OutcomeStatus.STARTED, note=note)
        failures = tuple(list_failures(answer))
        if failures:
            causes = "; ".join(failures[:3]) + (" …" if len(failures) > 3 else "")
            advice = "correct the cause, and apply again: that restarts what has failed"
            return _fail(ticket, "STARTUP_FAILED", causes, advice)
        if _has_arrived(answer, self._get_age(ticket)):
            return Outcome(ticket, OutcomeStatus.APPLIED, note=note)
        return Outcome(ticket, OutcomeStatus.STARTED, note=note)


def _has_arrived(connector: Connector, age: float) -> bool:
    """True if every task runs, or if the connector was halted meanwhile. age: seconds since its
    start."""
    status = connector.status
    if status is not None and status.state in ("PAUSED", "STOPPED"):
        return True
    runs = status is not None and status.state == "RUNNING"
    # A connector makes its tasks a moment later; one that has nothing to do makes none at all.
    patient = bool(connector.tasks) or age >= WAIT_SECONDS
    return runs and patient and all(task.state == "RUNNING" for task in connector.tasks)


def _fail(ticket: str, code: str, message: str, advice: str) -> Outcome:
    fault = Fault(code, message, FaultClass.DEFINITE, advice=advice)
    return Outcome(ticket, OutcomeStatus.FAILED, fault)


class ConnectSession:
    """See `kafkaform.provider.contract.Session`."""

    words = WORDS

    def __init__(
        self,
        instance: str,
        facts: Facts,
        main: WorkersClient,
        nodes: Mapping[str, WorkersClient],
        clock: Clock,
        prove_group: Callable[[WorkersClient], OtherSystem | None],
    ) -> None:
        """main: asks any worker; nodes: url of a worker -> what asks that one. prove_group: asks
        who answers there, beyond what each connection proves."""
        self._instance = instance
        self._facts = facts
        self._main = main
        self._nodes = nodes
        self._prove_group = prove_group
        self._reader = ConnectorReader(instance, clock)
        self._startups = Startups(clock)
        self._stranger: OtherSystem | None = None

    @property
    def facts(self) -> Facts:
        return self._facts

    def live_nodes(self) -> Sequence[str]:
        """Workers are known by the addresses of the provider block alone: those in the statuses are
        for other workers, and often cannot be reached from elsewhere."""
        return self._facts.nodes

    # ── reading ─────────────────────────────────────────────────────────────────────────

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        self._refuse_stranger()
        if kind == OFFSETS_KIND:
            return sweep_offsets(depth)
        class_ = read_listing(kind)
        if class_ is not None:
            return self._reader.sweep_definition(self._main, class_, depth)
        if (source := read_source(kind)) is not None:
            return self._reader.sweep_source(self._main, source, depth)
        return self._reader.sweep(self._main, depth)

    def read(
        self, ids: Sequence[Identity], *, at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        self._refuse_stranger()
        client = self._main if at is None else self._nodes.get(at)
        if client is None:
            fault = Fault("NO_SUCH_NODE", f"there is no worker {at}", FaultClass.NOT_APPLIED)
            return {identity: Failed(identity, fault) for identity in ids}
        offsets = [identity for identity in ids if identity.kind == OFFSETS_KIND]
        if not offsets:
            return self._reader.read(client, ids)
        connectors = [identity for identity in ids if identity.kind != OFFSETS_KIND]
        return {
            **(self._reader.read(client, connectors) if connectors else {}),
            **read_all_offsets(client, self._reader, offsets),
        }

    def read_details(
        self, names: Sequence[str] | None
    ) -> Mapping[str, DetailedConnector | Fault | None]:
        """See `ConnectorReader.read_details`. Raises KafkaformError."""
        self._refuse_stranger()
        try:
            return self._reader.read_details(self._main, names)
        except RequestFailed as failure:
            raise make_query_error("the connectors", failure.fault) from None

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        self._refuse_stranger()
        answers = Answers(
            self._instance,
            lambda identity: self._reader.read_for_data(self._main, identity),
            lambda: list_plugins(self._main),
        )
        try:
            return answer_query(answers, data, arguments)
        except RequestFailed as failure:
            raise make_query_error(data, failure.fault) from None

    # ── before sending ──────────────────────────────────────────────────────────────────

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        """A connector has no data: its records and offsets are in Kafka, and stay."""
        return {}

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        """Workers do not say what a user may do, but what is wrong with a configuration."""
        self._refuse_stranger()
        return examine_steps(self._main, self._reader, steps)

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        self._refuse_stranger()
        check = check_offset_steps if batch.request.name in REQUESTS else check_steps
        return check(self._main, self._reader, batch.steps)

    # ── sending ─────────────────────────────────────────────────────────────────────────

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        # Before the request and after it: the address may lead to other workers meanwhile. And no
        # listing from before the request may serve what is read after it.
        self._ask_group()
        self._reader.forget_listing()
        if batch.request.name in REQUESTS:
            outcomes = send_offset_steps(self._main, batch.steps)
        else:
            outcomes = send_steps(self._main, self._reader, batch.steps, secrets)
        self._reader.forget_listing()
        self._ask_group()
        self._startups.note(outcomes)
        return outcomes

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        """How far startups are. No step of this provider owes anything."""
        self._refuse_stranger()
        started = self._startups.ask(self._main, self._reader, tickets)
        return [*started, *map(_report_unknown, owed)]

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        return [_report_unknown(ticket) for ticket in tickets]

    # ── the connection ──────────────────────────────────────────────────────────────────

    def prove(self) -> None:
        self._refuse_stranger()
        for client in (self._main, *self._nodes.values()):
            client.prove()
        self._ask_group()

    def close(self) -> None:
        for client in (self._main, *self._nodes.values()):
            client.close()

    def _ask_group(self) -> None:
        self._refuse_stranger()
        self._stranger = self._prove_group(self._main)
        self._refuse_stranger()

    def _refuse_stranger(self) -> None:
        if self._stranger is not None:
            raise self._stranger


def list_plugins(client: WorkersClient) -> tuple[Plugin, ...]:
    """The plugins of the worker that answers. Raises RequestFailed."""
    call = rest.PLUGINS
    (answer,) = client.ask_all([call])
    return parse(call, read_plugins, rest.get_body(answer, call))


def _report_unknown(ticket: str) -> Outcome:
    fault = Fault("NO_SUCH_WORK", f"there is no {ticket}", FaultClass.DEFINITE)
    return Outcome(ticket, OutcomeStatus.FAILED, fault)


_CONFLICT = "conflicts with Connect worker group"
_PREFIX = "connect-"
"""What a sink's name gets to become its consumer group (SinkUtils.consumerGroupId)."""
_GROUP = "consumer.override.group.id"
_SINCE = (3, 7)
"""The version of Kafka that compares the group of an override, too (KAFKA-13327)."""
_HARMLESS = "FileStreamSinkConnector"


class WorkersProof:
    """Compares what each connection says with what the first one said."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.cluster_id = ""
        """The id of the Kafka cluster, empty before the first answer."""
        self.version = ""
        """The version of the worker that answered first."""

    def check(self, answer: HttpAnswer) -> None:
        """Take an answer to `rest.SERVER`. Raises OtherSystem."""
        try:
            version, cluster = read_server(answer.body)
        except UnreadableAnswer as error:
            raise self._make_stranger(f"is no Connect worker: {error}") from None
        if not cluster:
            raise self._make_stranger("does not say which Kafka cluster it belongs to")
        if self.cluster_id and cluster != self.cluster_id:
            raise self._make_stranger(
                f"belongs to Kafka cluster {cluster} now, and belonged to {self.cluster_id} before"
            )
        self.cluster_id, self.version = cluster, self.version or version

    def _make_stranger(self, difference: str) -> OtherSystem:
        return OtherSystem(
            f"what answers at {self._url} {difference}",
            "Check url: it has to lead to the REST API of one Connect cluster.",
        )


def has_group(
    client: WorkersClient, group_id: str, plugins: Iterable[Plugin], release: tuple[int, int] | None
) -> bool | None:
    """Whether the workers have this `group.id`; None if that cannot be found out. Nothing is
    changed. Raises OtherSystem, RequestFailed."""
    by_name = group_id.startswith(_PREFIX) and len(group_id) > len(_PREFIX)
    sink = _choose_sink(plugins)
    if sink is None or not (by_name or (release or _SINCE) >= _SINCE):
        return None
    # Workers refuse a sink whose consumer group would be their own, and they say so when they only
    # validate a configuration: it shows their group.id, and nothing is created (KIP-26).
    config = {CLASS: sink, "topics": "kafkaform"}
    if by_name:
        key, config[NAME] = NAME, group_id.removeprefix(_PREFIX)
    else:
        key, config[NAME], config[_GROUP] = _GROUP, "kafkaform", group_id
    call = rest.validate(sink, config)
    (answer,) = client.ask_all([call])
    validation = parse(call, read_validation, rest.get_body(answer, call))
    return any(fault.key == key and _CONFLICT in fault.message for fault in validation.faults)


def _choose_sink(plugins: Iterable[Plugin]) -> str | None:
    """The sink to ask about. Others may log in somewhere while they are validated."""
    sinks = sorted(plugin.class_ for plugin in plugins if plugin.type == "sink")
    return next((plugin for plugin in sinks if plugin.endswith(_HARMLESS)), next(iter(sinks), None))


def make_group_error(url: str, group_id: str) -> ConnectError:
    """The error if the workers have another group."""
    return ConnectError(
        f"{url}: the group.id of the workers is not {group_id}",
        "Set group_id to the group.id in the configuration of the workers, or check url.",
    )


_HIDDEN = (403, 404, 405)
"""Statuses of a worker, or of a proxy before it, that does not show its plugins to this user."""


class WorkerAddress(Struct, frozen=True):
    """How to reach the workers."""

    main: WorkersClient
    """Asks any of them."""
    nodes: Mapping[str, WorkersClient]
    """Url of a worker -> what asks that one."""
    proof: WorkersProof
    """What their connections have said."""


def open_session(instance: str, config: FrozenMap, secrets: Secrets) -> ConnectSession:
    """Connect to the workers of a provider block. Raises ConnectError, ConfigurationError."""
    settings = read_settings(instance, config, secrets)
    if config.get("operation_timeout") is None:
        settings = replace(settings, timeout=float(OPERATION_TIMEOUT))
    address = _make_address(settings)
    user = settings.auth.username if isinstance(settings.auth, BasicLogin) else None
    group = config.get("group_id") or None
    worker = config.get("worker_principal") or None
    try:
        clock = SystemClock()
        return connect(instance, address, group, user, settings.timeout, clock, acts_as=worker)
    # Also if somebody interrupts: these clients may have open connections.
    except BaseException:
        for client in (address.main, *address.nodes.values()):
            client.close()
        raise


def _make_address(settings: HttpSettings) -> WorkerAddress:
    proof = WorkersProof(settings.urls[0])

    def make_client(http_settings: HttpSettings) -> HttpClient:
        return HttpClient(http_settings, Proof(rest.SERVER, proof.check))

    main = make_client(settings)
    if len(settings.urls) == 1:
        return WorkerAddress(main, {settings.urls[0]: main}, proof)
    nodes = {url: make_client(replace(settings, urls=(url,))) for url in settings.urls}
    return WorkerAddress(main, nodes, proof)


def connect(
    instance: str,
    address: WorkerAddress,
    group_id: str | None,
    user: str | None,
    timeout: float,
    clock: Clock,
    scope: str = "",
    acts_as: str | None = None,
) -> ConnectSession:
    """A session with the workers at this address. group_id: what the block says; user: who logs
    in; timeout: seconds of one request; scope: the id of simulated workers, which belong to no
    Kafka cluster; acts_as: the principal of the workers. Raises ConnectError."""
    url = next(iter(address.nodes))
    plugins = _greet(address, url)
    release = parse_release(address.proof.version)

    def prove_group(client: WorkersClient) -> OtherSystem | None:
        try:
            good = group_id is None or has_group(client, group_id, plugins, release)
        except RequestFailed:
            # A connection that does not answer proves nothing.
            return None
        if good is not False:
            return None
        error = make_group_error(url, group_id or "")
        return OtherSystem(error.message, error.advice)

    mismatch = prove_group(address.main)
    if mismatch is not None:
        raise ConnectError(mismatch.message, mismatch.advice)
    facts = Facts(
        scope or make_scope(address.proof.cluster_id, group_id),
        nodes=tuple(address.nodes),
        principal=user,
        values=ConnectFacts(
            version=address.proof.version,
            release=release,
            plugins=tuple(plugin.class_ for plugin in plugins if plugin.type in ("source", "sink")),
        ),
        operation_timeout=timeout,
        # What a connector reads and writes is in the cluster that its workers use.
        partners=EMPTY if scope else FrozenMap(kafka=address.proof.cluster_id),
        acts_as=acts_as,
        lists_nodes=False,
    )
    return ConnectSession(instance, facts, address.main, address.nodes, clock, prove_group)


def make_scope(cluster_id: str, group_id: str | None) -> str:
    """The id of a Connect cluster; the Kafka cluster itself has the plain one. cluster_id: of that
    Kafka cluster, as a worker has said it."""
    if not cluster_id:
        raise ValueError("a Connect cluster without a Kafka cluster has no id")
    return f"connect:{cluster_id}/{group_id}" if group_id else f"connect:{cluster_id}"


def _greet(address: WorkerAddress, url: str) -> tuple[Plugin, ...]:
    """Connect, which asks the workers who they are; and ask what plugins they have, none if a user
    may not see them. Raises ConnectError."""
    call = rest.PLUGINS
    try:
        (answer,) = address.main.ask_all([call])
    except OtherSystem as error:
        raise ConnectError(error.message, error.advice) from None
    if isinstance(answer, Fault):
        raise ConnectError(f"{url}: {answer.message}", answer.advice)
    try:
        return parse(call, read_plugins, rest.get_body(answer, call))
    except RequestFailed as refused:
        # Without the list nobody can prove the group, so a passing fault must not hide it.
        if answer.status in _HIDDEN:
            return ()
        fault = refused.fault
        raise ConnectError(f"{url}: {call}: {fault.message} ({fault.code})", fault.advice) from None
