"""A session with one registry, real or simulated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kafkaform.core.change import (
    Action,
    Batch,
    Change,
    Impact,
    Outcome,
    OutcomeStatus,
    Step,
    Verdict,
)
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

from . import consultation, data_sources, reads, sends
from .context import RegistryContext
from .kinds import schema
from .rules.questions import parse_listing
from .words import WORDS

if TYPE_CHECKING:
    from .context import RegistryClient


class RegistrySession:
    """See `kafkaform.provider.contract.Session`."""

    words = WORDS

    def __init__(self, instance: str, client: RegistryClient, facts: Facts) -> None:
        self._context = RegistryContext(instance, client, facts)

    @property
    def facts(self) -> Facts:
        return self._context.facts

    def live_nodes(self) -> Sequence[str]:
        """The registry as a whole: which of its servers answers is not known."""
        return self.facts.nodes

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        if parse_listing(kind)[1]:
            return consultation.answer_listing(self._context, kind, depth)
        return reads.list_objects(self._context, kind, depth)

    def read(
        self, ids: Sequence[Identity], *, at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        if at is not None and at not in self.facts.nodes:
            fault = Fault("NO_SUCH_NODE", f"there is no registry {at}", FaultClass.NOT_APPLIED)
            return {identity: Failed(identity, fault) for identity in ids}
        groups: dict[str, list[Identity]] = defaultdict(list)
        for identity in dict.fromkeys(ids):
            groups[identity.kind].append(identity)
        readings: dict[Identity, Reading] = {}
        for kind, group in groups.items():
            readings |= reads.read_objects(self._context, kind, group)
        return readings

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        return data_sources.answer_query(self._context, data, arguments)

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        doomed = [
            change
            for change in changes
            if change.action is Action.DELETE and change.identity.kind == schema.KIND
        ]
        return consultation.measure_deletions(self._context, [change.identity for change in doomed])

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        """Registries do not say what a user may do, so nothing is known before the dry run."""
        return ()

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        findings = sends.send_steps(self._context, batch.request.name, batch.steps, dry=True)
        return [Verdict(step.id, step.evidence, findings[step.id]) for step in batch.steps]

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        """No payload of this provider contains a secret."""
        outcomes = sends.send_steps(self._context, batch.request.name, batch.steps, dry=False)
        return [_make_outcome(step, outcomes[step.id]) for step in batch.steps]

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        """Nothing takes long here, so nobody has a ticket of this provider."""
        return [_report_no_task(ticket) for ticket in (*tickets, *owed)]

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        return [_report_no_task(ticket) for ticket in tickets]

    def prove(self) -> None:
        self._context.client.prove()

    def close(self) -> None:
        self._context.client.close()


def _make_outcome(step: Step, fault: Fault | None) -> Outcome:
    if fault is None:
        return Outcome(step.id, OutcomeStatus.APPLIED)
    unclear = fault.kind is FaultClass.AMBIGUOUS
    return Outcome(step.id, OutcomeStatus.UNKNOWN if unclear else OutcomeStatus.FAILED, fault)


def _report_no_task(ticket: str) -> Outcome:
    fault = Fault("NO_SUCH_TASK", f"there is no task {ticket}", FaultClass.DEFINITE)
    return Outcome(ticket, OutcomeStatus.FAILED, fault)
