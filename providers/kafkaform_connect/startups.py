"""How far connectors are that were started: an answer of a worker only says that it is written
down what is to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Outcome, OutcomeStatus
from kafkaform.core.clock import Clock
from kafkaform.core.resource import Fault, FaultClass

from .answers import Connector
from .failures import describe_progress, list_failures
from .observation import read_ticket
from .reading import ConnectorReader
from .rest import RequestFailed, WorkersClient

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
