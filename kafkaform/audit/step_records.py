"""Parse intents and outcomes, which are nearly all records of a log, and check them meanwhile.

msgspec checks a type while it parses, in less than half of the time that the rules of `bodies` take
after orjson. What does not fit is left to those rules, which are the ones that count: they say what
is wrong, or accept it after all. A test compares both.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

import msgspec
from msgspec import Meta

from ..core.address import is_object_address
from ..core.change import Action, OutcomeStatus, Repeat
from .bodies import is_time

_Name = Annotated[str, Meta(min_length=1)]
_Number = Annotated[int, Meta(ge=1)]
_Count = Annotated[int, Meta(ge=0)]


class _Path(TypedDict):
    path: _Name
    before: Any
    after: Any
    sensitive: bool


class _Error(TypedDict):
    code: str
    message: str
    kind: NotRequired[str]
    where: NotRequired[str | None]


class _Forked(TypedDict):
    seq: _Number
    time: str
    hash: str


class _Step(TypedDict):
    lineage: NotRequired[str]
    forked: NotRequired[_Forked]
    instance: _Name
    kind: _Name
    key: str
    step: _Name
    attempt: _Number
    scope_id: str
    address: NotRequired[str]
    action: Literal[tuple(action.value for action in Action)]  # type: ignore[valid-type]
    adopts: bool
    incarnation: str | None
    paths: list[_Path]
    owners: NotRequired[list[str]]
    plan: NotRequired[str]
    approval: NotRequired[str]
    phase: NotRequired[str]


class _Intent(_Step):
    target: dict[str, Any] | None
    repeat: NotRequired[Literal[tuple(repeat.value for repeat in Repeat)]]  # type: ignore[valid-type]
    secret_version: NotRequired[str | None]
    theirs: NotRequired[list[str]]


class _Outcome(_Step):
    outcome: Literal[tuple(status.value for status in OutcomeStatus)]  # type: ignore[valid-type]
    ticket: str | None
    error: NotRequired[_Error | None]
    duration_ms: NotRequired[_Count]
    of_run: NotRequired[_Name]


class _Record(TypedDict):
    actor: str
    hash: str
    kind: str
    prev: str
    run: str
    seq: int
    time: str


class _IntentRecord(_Record):
    body: _Intent


class _OutcomeRecord(_Record):
    body: _Outcome


_TYPES: Mapping[str, Any] = {"intent": _IntentRecord, "outcome": _OutcomeRecord}


def parse_step_record(line: bytes, kind: str) -> Mapping[str, Any] | None:
    """The members of an intent or an outcome that this version knows; None for a line that the
    rules have to judge, and for all other kinds."""
    if kind not in _TYPES:
        return None
    try:
        record = _make_decoder(kind).decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return None
    body = record["body"]
    sound = (
        is_time(record["time"])
        and ("forked" not in body or is_time(body["forked"]["time"]))
        and all(map(is_object_address, body.get("owners", ())))
    )
    return cast(Mapping[str, Any], record) if sound else None


@cache
def _make_decoder(kind: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_TYPES[kind])
