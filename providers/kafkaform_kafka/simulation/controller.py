"""The simulated controller, and the part that each kind of object provides for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kafkaform.core.change import Step
from kafkaform.core.resource import Depth, Facts, Fault, Identity, Reading, Sweep
from kafkaform.core.value import EMPTY, FrozenMap

from ..protocol.broker_rules import MAX_RECORDS
from ..protocol.releases import NEWEST
from .world import Changes, Key, SimulatedWorld, User

Item = Mapping[str, Any]
"""The payload of one step, as the resource types make it."""

Charge = Callable[[int], float | None]
"""Mutations of one item -> None, or the seconds to wait if nothing was spent and the item must be
refused."""


class AdminAnswer(Struct, frozen=True):
    """The answer to one item."""

    code: int = 0
    """Kafka's error code, or 0."""
    message: str = ""
    made: Any = None
    """The object after the request."""
    wait: float = 0.0
    """The throttle time in seconds."""


class AdminCall(Struct, frozen=True):
    """One request with everything that a handler needs besides its items."""

    world: SimulatedWorld
    user: User
    brokers: tuple[int, ...]
    """The live brokers."""
    defaults: tuple[int, int]
    """Default partitions and replication factor."""
    deletable: bool
    """delete.topic.enable."""
    new_id: Callable[[], str]
    """Makes topic ids."""
    veto: Callable[[int, str], AdminAnswer | None]
    """Position and name of an item -> an injected error, or None."""
    charge: Charge
    """Takes the mutations of an item from the quota."""
    now: float = 0.0
    """Seconds of the cluster's clock."""
    elr: bool = False
    """True if eligible leader replicas are on (KIP-966)."""
    kafka_version: str = NEWEST
    """The Kafka release of the cluster."""

    @property
    def facts(self) -> Facts:
        """What rules have to know about the cluster."""
        return Facts("", values=FrozenMap(kafka_version=self.kafka_version))


RequestResult = tuple[list[AdminAnswer], Changes]
Handler = Callable[[AdminCall, Sequence[Item]], RequestResult]
ItemVerdict = tuple[AdminAnswer, Any, int]
"""The answer to an item, the object that it makes, and how many metadata records that costs."""


class Refusal(Exception):
    """The controller refuses this item with an error code."""

    def __init__(self, code: int, message: str = "", wait: float = 0.0) -> None:
        super().__init__(message)
        self.answer = AdminAnswer(code, message, wait=wait)


def run_batch(
    call: AdminCall,
    items: Sequence[Item],
    key_of: Callable[[Item], Key],
    handle: Callable[[Item], ItemVerdict],
    twice: int | None = 42,
) -> RequestResult:
    """Handle the items of one request as one atomic batch.

    key_of: the object of an item; twice: the error code of items with the same object, None if that
    is allowed.
    """
    keys = [key_of(item) for item in items]
    doubled = {key for key, count in Counter(keys).items() if count > 1} if twice else set()
    answers, changes, records = [], Changes(), 0
    for index, (item, key) in enumerate(zip(items, keys, strict=True)):
        if key in doubled:
            answers.append(AdminAnswer(twice or 0, f"the request names {key[1]} twice"))
            continue
        vetoed = call.veto(index, key[1])
        answer, product, cost = (vetoed, None, 0) if vetoed else _handle_item(handle, item)
        answers.append(answer)
        if cost:
            changes[key] = product
            records += cost
    # Items fail on their own, but those that succeed are committed together or, over 10,000
    # records, not at all.
    if records > MAX_RECORDS:
        return refuse_all(items, 44, "The request would make too many metadata records.")
    return answers, changes


def refuse_all(items: Sequence[Item], code: int, message: str) -> RequestResult:
    """The same refusal for every item, and no change."""
    return [AdminAnswer(code, message) for _ in items], {}


def require(allowed: bool, code: int) -> None:
    """Raises Refusal with this code unless `allowed`."""
    if not allowed:
        raise Refusal(code)


def _handle_item(handle: Callable[[Item], ItemVerdict], item: Item) -> ItemVerdict:
    try:
        return handle(item)
    except Refusal as refusal:
        return refusal.answer, None, 0


class ReadScene(Struct, frozen=True):
    """One read of the simulated cluster: who reads, and what one broker shows."""

    instance: str
    user: User
    facts: Facts
    world: SimulatedWorld
    """The objects as one broker shows them to one read."""
    defaults: Mapping[str, str]
    """The brokers' topic configs."""
    live: tuple[int, ...]
    """The brokers that are up."""

    def objects(self, kind: str) -> Mapping[str, Any]:
        """The objects of a kind by key."""
        return self.world.of(kind)


class SimulatedReads(Struct, frozen=True):
    """How one kind is listed and read."""

    listing: str
    """The name of a listing in schedules of mishaps."""
    describing: str
    """The name of a read by identity in schedules; kinds with the same name share one read."""
    api: str
    """The API's name in faults."""
    sweep: Callable[[ReadScene, Depth], Sweep]
    """Never raises."""
    read: Callable[[ReadScene, Identity], Reading]
    """Never raises."""


StepCheck = Callable[[ReadScene, Step], Fault | None]
AnswerReader = Callable[[ReadScene, AdminAnswer], tuple[str | None, FrozenMap | None]]


class SimulatedKind(Struct, frozen=True):
    """The part of the simulated cluster for one kind."""

    reads: SimulatedReads
    handlers: Mapping[str, Handler] = EMPTY
    """API -> what the controller does with its requests."""
    # As on a real cluster, where these requests have no `validate_only`.
    checks: Mapping[str, StepCheck] = EMPTY
    """API without a dry run -> the check that replaces it."""
    made: Mapping[str, AnswerReader] = EMPTY
    """API -> reads the incarnation and the attributes in the answer to an applied step."""
