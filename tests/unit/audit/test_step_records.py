"""Intents and outcomes are parsed and checked in one go: what that accepts, the rules accept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NotRequired, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.audit import bodies
from kafkaform.audit.bodies import check_body, check_members, parse_step_record

from ...kit.quick import examples

STEP: dict[str, Any] = {
    "lineage": "l",
    "forked": {"seq": 1, "time": "2026-01-01T00:00:00.000000Z", "hash": "0"},
    "instance": "kafka",
    "kind": "kafka_topic",
    "key": "orders",
    "step": "kafka/kafka_topic/orders#1",
    "attempt": 1,
    "scope_id": "s",
    "address": "kafka_topic.orders",
    "action": "create",
    "adopts": False,
    "incarnation": None,
    "paths": [{"path": "partitions", "before": None, "after": 3, "sensitive": False}],
    "owners": ['kafka_topic.orders["a"]'],
    "plan": "p",
    "approval": "a",
    "phase": "1",
}
BODIES: dict[str, dict[str, Any]] = {
    "intent": {
        **STEP,
        "target": {"partitions": 3},
        "repeat": "safe",
        "secret_version": None,
        "theirs": ["config.x"],
    },
    "outcome": {
        **STEP,
        "outcome": "failed",
        "ticket": "t",
        "error": {"code": "c", "message": "m", "kind": "k", "where": None},
        "duration_ms": 5,
        "of_run": "r",
    },
}
OTHERS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2**70)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "x", "create", "applied", "a.b", "2026-01-01T00:00:00Z"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


def make_record(kind: str) -> dict[str, Any]:
    body = json.loads(json.dumps(BODIES[kind]))
    time = "2026-01-01T00:00:00.000000Z"
    frame = {"actor": "a", "hash": "h", "prev": "p", "run": "r", "seq": 1, "time": time}
    return {**frame, "kind": kind, "body": body}


def list_places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in items:
        yield (*place, name)
        if isinstance(inner, dict | list):
            yield from list_places(inner, (*place, name))


@pytest.mark.parametrize("kind", BODIES)
def test_whole_records_are_taken(kind: str) -> None:
    record = make_record(kind)
    assert parse_step_record(json.dumps(record).encode(), kind) == record


@pytest.mark.parametrize("kind", BODIES)
def test_the_types_name_what_the_rules_name(kind: str) -> None:
    """A member that only the rules knew would be lost, and one that can be missing must not be
    needed."""
    body = get_type_hints(bodies._TYPES[kind])["body"]
    members = get_type_hints(body, include_extras=True)
    optional = {name for name, hint in members.items() if get_origin(hint) is NotRequired}
    rules = bodies._RULES[kind]
    assert members.keys() == {name.removesuffix("?") for name in rules}
    assert optional == {name[:-1] for name in rules if name.endswith("?")}


@pytest.mark.parametrize("kind", BODIES)
def test_members_that_can_be_missing(kind: str) -> None:
    record = make_record(kind)
    needed = {name for name in bodies._RULES[kind] if not name.endswith("?")}
    record["body"] = {name: record["body"][name] for name in needed}
    assert parse_step_record(json.dumps(record).encode(), kind) == record


@pytest.mark.parametrize("kind", BODIES)
@settings(max_examples=examples(300))
@given(data=st.data())
def test_what_is_accepted_is_sound(kind: str, data: st.DataObject) -> None:
    """One or two values are replaced, removed or added."""
    record = make_record(kind)
    for _ in range(data.draw(st.integers(1, 2))):
        *way, last = data.draw(st.sampled_from(sorted(list_places(record), key=str)))
        owner: Any = record
        for name in way:
            owner = owner[name]
        if data.draw(st.booleans()) and isinstance(owner, dict):
            del owner[last]
        else:
            owner[last] = data.draw(OTHERS)
    found = parse_step_record(json.dumps(record).encode(), kind)
    if found is None:
        return
    check_members(record)
    check_body(kind, record["body"])
    assert {**record, **found} == record
    assert {**record["body"], **found["body"]} == record["body"]


def test_other_kinds_are_left_to_the_rules() -> None:
    line = json.dumps({**make_record("outcome"), "kind": "recover"}).encode()
    assert parse_step_record(line, "recover") is None
