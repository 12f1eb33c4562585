"""Check the body of each kind of record: one rule for each member.

Whoever can write the log can edit it and compute its hashes again, so the hashes say nothing about
what a record means. Readers rely on these rules and on nothing else. A body can have members that
are not listed here.

msgspec parses and validates intents and outcomes, which make up most of a log, in less than half of
the time that the rules take after orjson. A record that does not fit is left to the rules, which
decide: they name the fault, or accept the record. A test compares both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict, cast

import msgspec
from msgspec import Meta

from ..core.address import is_object_address
from ..core.change import Action, OutcomeStatus, Repeat
from ..core.resource import SETTING, TASK


class BadRecord(ValueError):
    """A member of a record breaks a rule; the message says which and how."""


_HEXADECIMAL = re.compile("[0-9a-f]{64}")
_FRAME = ("actor", "body", "hash", "kind", "prev", "run", "seq", "time")


class MemberRule(NamedTuple):
    """What a member has to be."""

    holds: Callable[[Any], bool]
    """True for an allowed value."""
    expected: str
    """What is allowed, in words."""


# "?" rather than a flag of the rule: most members of a body exist since the first version, and the
# exceptions must catch the eye in the tables below.
Rules = Mapping[str, MemberRule]
"""Name of a member -> its rule. A name that ends with `?` can be missing, because records of
earlier versions do not have it."""


def check_members(data: Mapping[str, Any]) -> None:
    """Raises BadRecord for a member of a record, other than its body, that breaks its rule."""
    for name in _FRAME:
        if name not in data:
            raise BadRecord(f"`{name}` is missing")
    for name in ("actor", "hash", "kind", "prev", "run"):
        if not isinstance(data[name], str):
            raise BadRecord(f"`{name}` is not text")
    if type(data["seq"]) is not int:
        raise BadRecord("`seq` is not a whole number")
    if not is_time(data["time"]):
        raise BadRecord("`time` is not a time (RFC 3339, UTC)")
    if not isinstance(data["body"], dict):
        raise BadRecord("`body` is not an object")


def check_body(kind: str, body: Any) -> None:
    """Raises BadRecord for a body that no record of this kind can have. body: plain JSON or frozen
    values."""
    if not isinstance(body, dict):
        raise BadRecord("`body` is not an object")
    rules = _RULES[kind]
    if kind == "recover" and "step" not in body:
        rules = _SEAL  # it closes no intent, but says what a crash or a second run left in the log
    problem = _find_problem(body, rules)
    if problem:
        raise BadRecord(f"`body.{problem}")


def is_time(value: Any) -> bool:
    """True for a moment as records write it: RFC 3339 with a time zone."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _find_problem(body: Mapping[str, Any], rules: Rules) -> str:
    """The first member that breaks its rule and the rest of the sentence, or an empty text."""
    for key, rule in rules.items():
        name = key.removesuffix("?")
        if name in body:
            if not rule.holds(body[name]):
                return f"{name}` is not {rule.expected}"
        elif name is key:
            return f"{name}` is missing"
    return ""


# ── what a value can be ─────────────────────────────────────────────────────────────────


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _make_optional(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or holds(value)


def _make_list_check(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(holds, value))


def _make_choice(*words: str) -> MemberRule:
    choices = frozenset(words)
    return MemberRule(
        lambda value: isinstance(value, str) and value in choices, f"one of {', '.join(words)}"
    )


def _make_object_check(rules: Rules) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and not _find_problem(value, rules)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_anything(value: Any) -> bool:
    return True


_TEXT = MemberRule(_is_text, "text")
_NAME = MemberRule(_is_name, "text that is not empty")
_NUMBER = MemberRule(lambda value: _is_count(value) and value > 0, "a whole number, 1 or more")
_COUNT = MemberRule(_is_count, "a whole number, 0 or more")
_WHETHER = MemberRule(_is_bool, "true or false")
_OPTIONAL_TEXT = MemberRule(_make_optional(_is_text), "text or null")
_DIGEST = MemberRule(
    lambda value: isinstance(value, str) and _HEXADECIMAL.fullmatch(value) is not None,
    "a SHA-256 of 64 hexadecimal digits",
)
_TEXTS = MemberRule(_make_list_check(_is_text), "a list of texts")
_MAP = MemberRule(lambda value: isinstance(value, dict), "an object")
_TEXT_MAP = MemberRule(
    lambda value: isinstance(value, dict) and all(map(_is_text, value.values())),
    "an object of texts",
)


# ── the members of each kind ────────────────────────────────────────────────────────────

_OBJECT: Rules = {"instance": _NAME, "kind": _NAME, "key": _TEXT}
_PATH: Rules = {
    "path": _NAME,
    "before": MemberRule(_is_anything, ""),
    "after": MemberRule(_is_anything, ""),
    "sensitive": _WHETHER,
}
_ERROR: Rules = {
    "code": _TEXT,
    "message": _TEXT,
    "kind?": _TEXT,
    "where?": _OPTIONAL_TEXT,
}
_ERROR_RULE = MemberRule(
    _make_optional(_make_object_check(_ERROR)),
    "null, or an object with the texts code and message",
)
_FILE: Rules = {"file": _TEXT, "length": _COUNT, "sha256": _TEXT}
_FORKED: Rules = {"seq": _NUMBER, "time": MemberRule(is_time, ""), "hash": _TEXT}
_FORKED_RULE = MemberRule(
    _make_object_check(_FORKED), "an object with seq, time and hash of a record"
)
_EVERY: Rules = {"lineage?": _TEXT, "forked?": _FORKED_RULE}
_STEP: Rules = {
    **_EVERY,
    **_OBJECT,
    "step": _NAME,
    "attempt": _NUMBER,
    "scope_id": _TEXT,
    "address?": _TEXT,
    "action": _make_choice(*(action.value for action in Action)),
    "adopts": _WHETHER,
    "incarnation": _OPTIONAL_TEXT,
    "paths": MemberRule(
        _make_list_check(_make_object_check(_PATH)),
        "a list of objects with path, before, after and sensitive",
    ),
    "owners?": MemberRule(_make_list_check(is_object_address), "a list of addresses"),
    "plan?": _TEXT,
    "approval?": _TEXT,
    "phase?": _TEXT,
}
_OUTCOME: Rules = {
    **_STEP,
    "outcome": _make_choice(*(status.value for status in OutcomeStatus)),
    "ticket": _OPTIONAL_TEXT,
    "error?": _ERROR_RULE,
    "duration_ms?": _COUNT,
    "of_run?": _NAME,
}
_SEAL: Rules = {
    **_EVERY,
    "torn?": MemberRule(
        _make_list_check(_make_object_check(_FILE)),
        "a list of objects with file, length and sha256",
    ),
    "fork?": MemberRule(_make_object_check(_FILE), "an object with file, length and sha256"),
    "records?": _COUNT,
}
_EDITED: Rules = {**_OBJECT, "row?": MemberRule(_make_optional(_MAP.holds), "")}
_DUTY: Rules = {
    **_EVERY,
    **_OBJECT,
    "scope_id": _TEXT,
    "address": _TEXT,
    "ticket": _NAME,
    "what": _make_choice(TASK, SETTING),
}
_VALIDATED: Rules = {"step": _TEXT, "evidence": _TEXT, "error?": _ERROR_RULE}
_GONE: Rules = {**_OBJECT, "incarnation": _OPTIONAL_TEXT}
_LATE: Rules = {
    "address": _TEXT,
    "node": _TEXT,
    "deleted?": MemberRule(
        _make_object_check(_GONE), "an object with instance, kind, key and incarnation"
    ),
}
_HEAD: Rules = {"seq": _NUMBER, "hash": _DIGEST}
_REPORTED: Rules = {"address": _TEXT, "path": _NAME}

_RULES: Mapping[str, Rules] = {
    "run_begin": {
        **_EVERY,
        "approval": _TEXT,
        "command?": _TEXT,
        "host?": _TEXT,
        "changes?": _TEXTS,
        "scopes?": _TEXT_MAP,
        "commit?": _OPTIONAL_TEXT,
        "pull_request?": _OPTIONAL_TEXT,
        "undoes?": _NAME,
    },
    "plan": {**_EVERY, "plan": _MAP, "approval": _TEXT, "digest?": _TEXT},
    "approval": {**_EVERY, "approval": _TEXT, "how?": _TEXT},
    "validate": {
        **_EVERY,
        "steps": MemberRule(
            _make_list_check(_make_object_check(_VALIDATED)), "a list of validated steps"
        ),
    },
    "intent": {
        **_STEP,
        "target": MemberRule(_make_optional(_MAP.holds), "an object or null"),
        "repeat?": _make_choice(*(repeat.value for repeat in Repeat)),
        "secret_version?": _OPTIONAL_TEXT,
        "theirs?": _TEXTS,
    },
    "outcome": _OUTCOME,
    "recover": _OUTCOME,
    "verify": {
        **_EVERY,
        "checked": _COUNT,
        "invisible": MemberRule(
            _make_list_check(_make_object_check(_LATE)), "a list of objects with address and node"
        ),
        "reported?": MemberRule(
            _make_list_check(_make_object_check(_REPORTED)),
            "a list of objects with address and path",
        ),
    },
    "state": {
        **_EVERY,
        "reason?": _TEXT,
        "serial?": _COUNT,
        "version?": _TEXT,
        "instance?": _NAME,
        "objects?": MemberRule(
            _make_list_check(_make_object_check(_EDITED)),
            "a list of objects with instance, kind, key and a row or null",
        ),
    },
    "obligation": _DUTY,
    "discharged": {
        **_DUTY,
        "discharges": _NUMBER,
        "outcome?": _OUTCOME["outcome"],
        "error?": _ERROR_RULE,
    },
    "run_end": {**_EVERY, "complete": _WHETHER, "counts?": _MAP},
    "checkpoint": {
        **_EVERY,
        "covers": MemberRule(_make_object_check(_HEAD), "an object with seq and hash of a record"),
        "sha256": _DIGEST,
        "length": _COUNT,
    },
}
"""Kind of a record -> the rules of its body."""


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
        # The rules find the member that is wrong, and say so.
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
