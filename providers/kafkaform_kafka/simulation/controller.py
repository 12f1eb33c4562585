"""Simulates what Kafka's controller does with any admin request.

A handler takes the current world and the items of one request. It returns an answer for each item
and the changes of the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kafkaform.core.resource import Facts
from kafkaform.core.value import FrozenMap

from ..protocol.broker_rules import MAX_RECORDS
from ..protocol.releases import NEWEST
from .rights import User
from .world import Changes, Key, SimulatedWorld

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
