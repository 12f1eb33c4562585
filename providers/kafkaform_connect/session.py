"""A session: one user's view of one Connect cluster, in the words of the contract."""

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
from .answers import Plugin, read_plugins
from .data_sources import Answers, answer_query, make_query_error
from .definitions import read_listing
from .dry_run import check_steps, examine_steps
from .provider_block import WORDS
from .reading import ConnectorReader, parse
from .rest import RequestFailed, WorkersClient
from .sending import send_steps
from .startups import Startups


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
