"""What Kafka's controller does with one admin request: what every kind of request shares.

A handler takes the world as it is and the items of one request, and returns an answer for each
item and the changes that the request makes: all of them one atomic batch of metadata records.
A request over the cap is refused whole; an item that is refused leaves the others alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..protocol.broker_rules import MAX_RECORDS
from .rights import User
from .world import Changes, Key, SimulatedWorld

Item = Mapping[str, Any]
"""One step's payload, as the resource types make them."""

Charge = Callable[[int], float]
"""Mutations of one item -> 0, or seconds to wait: then nothing was spent and the item must be
refused."""


class AdminAnswer(Struct, frozen=True):
    """code: 0 or Kafka's error code; made: the object as it is after the request; wait: seconds."""

    code: int = 0
    message: str = ""
    made: Any = None
    wait: float = 0.0


class AdminCall(Struct, frozen=True):
    """One request's surroundings. veto: an error that is injected for item number and name;
    new_id: makes topic ids; charge: takes an item's mutations from the quota; now: seconds; elr:
    eligible leader replicas are on."""

    world: SimulatedWorld
    user: User
    brokers: tuple[int, ...]
    defaults: tuple[int, int]
    deletable: bool
    new_id: Callable[[], str]
    veto: Callable[[int, str], AdminAnswer | None]
    charge: Charge
    now: float = 0.0
    elr: bool = False


RequestResult = tuple[list[AdminAnswer], Changes]
Handler = Callable[[AdminCall, Sequence[Item]], RequestResult]
ItemVerdict = tuple[AdminAnswer, Any, int]
"""An item's answer, the object that it makes, and how many metadata records that costs."""


class Refusal(Exception):
    """This item is refused with an error code."""

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
    """One atomic batch. key_of: the object that an item is about, whose name a veto matches;
    twice: the error code of items that name one object, None if that is allowed."""
    keys = [key_of(item) for item in items]
    doubled = {key for key, count in Counter(keys).items() if count > 1} if twice else set()
    answers, changes, records = [], Changes(), 0
    for index, (item, key) in enumerate(zip(items, keys, strict=True)):
        if key in doubled:
            answers.append(AdminAnswer(twice or 0, f"the request names {key[1]} twice"))
            continue
        vetoed = call.veto(index, key[1])
        answer, made, cost = (vetoed, None, 0) if vetoed else _handle_item(handle, item)
        answers.append(answer)
        if cost:
            changes[key] = made
            records += cost
    if records > MAX_RECORDS:
        return refuse_all(items, 44, "The request would make too many metadata records.")
    return answers, changes


def refuse_all(items: Sequence[Item], code: int, message: str) -> RequestResult:
    """The same refusal for every item, and no change."""
    return [AdminAnswer(code, message) for _ in items], {}


def require(allowed: bool, code: int) -> None:
    """Raises Refusal with this code unless it is allowed."""
    if not allowed:
        raise Refusal(code)


def _handle_item(handle: Callable[[Item], ItemVerdict], item: Item) -> ItemVerdict:
    try:
        return handle(item)
    except Refusal as refusal:
        return refusal.answer, None, 0
