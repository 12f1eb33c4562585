"""A session: one user's view of one store, in the words of the contract."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

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
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    ProviderFacts,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap, freeze
from kafkaform.core.words import KindWords, Words
from kafkaform.provider.contract import Secrets

from . import file, link
from .client import Client, Reply, RequestFailed, item_fault


class StoreFacts(ProviderFacts, frozen=True):
    """What a store says about itself."""

    default_headers: FrozenMap = EMPTY
    """Headers that it serves with a file that has none of that name."""


STORE_KINDS: Mapping[str, str] = {file.KIND: "file", link.KIND: "link"}
"""Resource type -> what the store calls it."""
WORDS = Words(
    system="store",
    node="server",
    address="url",
    kinds=FrozenMap(
        {
            "textstore_file": KindWords("files", ("name",)),
            "textstore_link": KindWords("links", ("name",)),
        }
    ),
)
MAX_NAMES = 50


class TextstoreSession:
    """See `kafkaform.provider.contract.Session`."""

    words = WORDS

    def __init__(self, instance: str, client: Client, facts: Facts) -> None:
        self._instance = instance
        self._client = client
        self._facts = facts

    @property
    def facts(self) -> Facts:
        return self._facts

    def live_nodes(self) -> Sequence[str]:
        """The store is one server."""
        return self._facts.nodes

    # ── reading ─────────────────────────────────────────────────────────────────────────

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        """All pages, or a failure: a page that is missing must not look like missing files."""
        whole = depth is Depth.FULL
        items: list[Observed] = []
        complete, after = True, ""
        try:
            while True:
                page = self._client.page(STORE_KINDS[kind], after, full=whole)
                items += (self._observed(kind, item) for item in page["items"])
                complete = complete and page["complete"]
                if page["next"] is None:
                    break
                after = page["next"]
        except RequestFailed as failure:
            return Sweep(kind, depth, (), Coverage(CoverageKind.FAILED, failure.fault))
        coverage = CoverageKind.COMPLETE if complete else CoverageKind.VISIBLE_ONLY
        return Sweep(kind, depth, tuple(items), Coverage(coverage), whole=whole)

    def read(
        self, ids: Sequence[Identity], *, at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        if at is not None and at not in self._facts.nodes:
            fault = Fault("NO_SUCH_NODE", f"there is no server {at}", FaultClass.NOT_APPLIED)
            return {identity: Failed(identity, fault) for identity in ids}
        groups: dict[str, list[Identity]] = defaultdict(list)
        for identity in ids:
            groups[identity.kind].append(identity)
        readings: dict[Identity, Reading] = {}
        for kind, group in groups.items():
            for start in range(0, len(group), MAX_NAMES):
                readings.update(self._read(kind, group[start : start + MAX_NAMES]))
        return readings

    def _read(self, kind: str, ids: Sequence[Identity]) -> Mapping[Identity, Reading]:
        try:
            replies = self._client.read(STORE_KINDS[kind], [identity.key for identity in ids])
        except RequestFailed as failure:
            return {identity: Failed(identity, failure.fault) for identity in ids}
        return {
            identity: self._reading(identity, reply)
            for identity, reply in zip(ids, replies, strict=True)
        }

    def _reading(self, identity: Identity, reply: Reply) -> Reading:
        if reply["code"] == "ok":
            return self._observed(identity.kind, reply["item"])
        if reply["code"] == "forbidden":
            return Hidden(identity, f"Access to {identity.key}")
        return Absent(identity)  # the store says so only to a user who would see the file

    def _observed(self, kind: str, item: Reply) -> Observed:
        """headers are the file's own; what the store serves without one of them is a fallback."""
        identity = Identity(self._instance, kind, item["name"])
        attributes = freeze({name: item[name] for name in item if name != "uid"})
        assert isinstance(attributes, FrozenMap)
        if kind == link.KIND or "content" not in item:
            return Observed(identity, attributes, incarnation=item.get("uid"))
        defaults = StoreFacts.of(self._facts).default_headers
        fallbacks = {f"headers.{name}": value for name, value in defaults.items()}
        return Observed(
            identity,
            attributes,
            incarnation=item["uid"],
            fallbacks=FrozenMap(fallbacks),
            details=FrozenMap(uid=item["uid"]),
        )

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        if data != file.KIND:
            raise KafkaformError(f"there is no data source {data}", "Look for a typing error.")
        identity = Identity(self._instance, data, arguments["name"])
        reading = self.read([identity])[identity]
        if isinstance(reading, Observed):
            names = ("content", "headers")
            return FrozenMap({name: reading.attributes[name] for name in names} | reading.details)
        if isinstance(reading, Hidden):
            why, advice = f"needs {reading.right}", "Ask the store's administrator for it."
        elif isinstance(reading, Failed):
            why, advice = f"cannot be read: {reading.fault.message}", "Run the command again."
        else:
            why, advice = "does not exist", "Look for a typing error, or create it first."
        raise KafkaformError(f"the file {identity.key} {why}", advice)

    # ── before sending ──────────────────────────────────────────────────────────────────

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        return {
            change.identity: _impact_of(len(change.before["content"]))
            for change in changes
            if change.action is Action.DELETE
            and change.identity.kind == file.KIND
            and change.before
        }

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        """The store does not tell what a user may do, so nothing is known before the dry run."""
        return ()

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        replies = self._send(batch, validate_only=True)
        return [
            Verdict(step.id, step.evidence, reply if isinstance(reply, Fault) else None)
            for step, reply in zip(batch.steps, replies, strict=True)
        ]

    # ── sending ─────────────────────────────────────────────────────────────────────────

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        """No payload of this provider holds a secret."""
        replies = self._send(batch, validate_only=False)
        return [_outcome_of(step, reply) for step, reply in zip(batch.steps, replies, strict=True)]

    def _send(self, batch: Batch, *, validate_only: bool) -> list[Reply | Fault]:
        """One request, sent once: a reply or a fault for each step."""
        operations: list[dict[str, Any]] = [dict(step.payload) for step in batch.steps]
        try:
            replies = self._client.write(operations, validate_only=validate_only)
        except RequestFailed as failure:
            return [failure.fault for _ in batch.steps]
        return [item_fault(reply) or reply for reply in replies]

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        """Nothing takes long here, so nobody has a ticket of this provider."""
        return [_report_no_work(ticket) for ticket in (*tickets, *owed)]

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        return [_report_no_work(ticket) for ticket in tickets]

    # ── the connection ──────────────────────────────────────────────────────────────────

    def prove(self) -> None:
        with suppress(RequestFailed):
            self._client.prove()

    def close(self) -> None:
        self._client.close()


def _impact_of(size: int) -> Impact:
    return Impact(f"destroys {size} characters of text", FrozenMap(characters=size))


def _outcome_of(step: Step, reply: Reply | Fault) -> Outcome:
    if not isinstance(reply, Fault):
        return Outcome(step.id, OutcomeStatus.APPLIED, incarnation=reply["item"].get("uid"))
    unclear = reply.kind is FaultClass.AMBIGUOUS
    return Outcome(step.id, OutcomeStatus.UNKNOWN if unclear else OutcomeStatus.FAILED, reply)


def _report_no_work(ticket: str) -> Outcome:
    fault = Fault("NO_SUCH_WORK", f"there is no work {ticket}", FaultClass.DEFINITE)
    return Outcome(ticket, OutcomeStatus.FAILED, fault)
