"""A session: one user's view of one Connect cluster, in the words of the contract.

An answer of a worker only says that it is written down what should run. So connectors that were
started are watched until they run or fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kafkaform.core.change import Batch, Change, Impact, Outcome, OutcomeStatus, Step, Verdict
from kafkaform.core.clock import Clock
from kafkaform.core.errors import OtherSystem
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
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets

from . import rest
from .data_sources import Answers, answer_query, make_query_error
from .definitions import read_listing
from .observation import describe_progress, list_failures, read_ticket
from .provider_block import WORDS
from .reading import ConnectorReader, parse
from .rest import Connector, Plugin, RequestFailed, WorkersClient, read_plugins
from .sending import check_steps, examine_steps, send_steps

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
                if outcome.status is not OutcomeStatus.STARTED or not self._is_young(ticket):
                    outcomes[ticket] = outcome
            waiting = [ticket for ticket in waiting if ticket not in outcomes]
            if waiting:
                self._clock.sleep(POLL_SECONDS)
        return [outcomes[ticket] for ticket in tickets]

    def _is_young(self, ticket: str) -> bool:
        return self._get_age(ticket) < WAIT_SECONDS

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
        class_ = read_listing(kind)
        if class_ is not None:
            return self._reader.sweep_definition(self._main, class_, depth)
        return self._reader.sweep(self._main, depth)

    def read(
        self, ids: Sequence[Identity], *, at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        self._refuse_stranger()
        client = self._main if at is None else self._nodes.get(at)
        if client is None:
            fault = Fault("NO_SUCH_NODE", f"there is no worker {at}", FaultClass.NOT_APPLIED)
            return {identity: Failed(identity, fault) for identity in ids}
        return self._reader.read(client, ids)

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        self._refuse_stranger()
        answers = Answers(
            self._instance,
            lambda identity: self.read([identity])[identity],
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
        return check_steps(self._main, self._reader, batch.steps)

    # ── sending ─────────────────────────────────────────────────────────────────────────

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        self._ask_group()
        outcomes = send_steps(self._main, self._reader, batch.steps, secrets)
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
