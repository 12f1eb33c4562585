"""Changes that fulfil a condition, and changes that do not, made from the rule itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kafkaform.core.change import Action, Change
from kafkaform_kafka.vendors.profile import (
    Sends,
    Switches,
    VendorRule,
    Writes,
    WritesKey,
    WritesValue,
)

from ....kit.kafka.changes import change

Pair = tuple[Change, Change | None]
"""A change that the rule must find, and one that it must not; None if there is no other one."""

ELSE = "anything.else"
DENIED = Action.FORGET
"""An action that sends nothing."""


def make_pairs(rule: VendorRule) -> Iterator[Pair]:
    """A pair for each kind and each part of the condition of a rule."""
    for kind in rule.kinds:
        yield from _MAKERS[type(rule.condition)](rule.condition, kind)


def _make(
    kind: str, action: Action, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> Change:
    """A change of an object named `x` with these attributes beside its name."""
    name = {"name": "x", "topic": "x"}
    before = None if old is None else {**name, **old}
    after = None if new is None else {**name, **new}
    return change(action, before, after, kind=kind)


def _pair_sends(when: Sends, kind: str) -> Iterator[Pair]:
    for action in when.actions:
        old = None if action is Action.CREATE else {"value": 1}
        new = None if action is Action.DELETE else {"value": 2}
        yield _make(kind, action, old, new), _make(kind, DENIED, old, new)


def _pair_writes(when: Writes, kind: str) -> Iterator[Pair]:
    for path in when.paths:
        for action in when.actions:
            old: dict[str, Any] | None = None if action is Action.CREATE else {}
            name, key = path[0], (*path, "key")[1]
            whole = {name: {key: "1"}} if name == "config" else {name: 1}
            other = {"elsewhere": 1}
            yield _make(kind, action, old, whole), _make(kind, action, old, other)


def _pair_keys(when: WritesKey, kind: str) -> Iterator[Pair]:
    bad = [ELSE] if when.only is not None else []
    good = next(iter(sorted(when.only or ())), ELSE)
    for key in (*bad, *sorted(when.never)):
        for action in when.actions:
            new = action is Action.CREATE
            old: dict[str, Any] | None = None if new else {when.attribute: {}}
            yield (
                _make(kind, action, old, {when.attribute: {key: "1"}}),
                _make(kind, action, old, {when.attribute: {good: "1"}}),
            )
            if action is Action.UPDATE:  # what is removed counts, too
                gone = {when.attribute: {key: "1"}}
                yield _make(kind, action, gone, {when.attribute: {}}), None


def _pair_values(when: WritesValue, kind: str) -> Iterator[Pair]:
    good = when.only[0] if when.only else str(when.low or 3)
    bad = [
        *(["something else"] if when.only or when.pattern else []),
        *when.never,
        *([str(when.low - 1)] if when.low is not None else []),
        *([str(when.high + 1)] if when.high is not None else []),
        *(["4"] if when.odd else []),
    ]
    if when.pattern:
        good = "User:sa-1"
    for value in bad:
        for old in (None, _nest(when.path, good)):
            action = Action.CREATE if old is None else Action.UPDATE
            yield (
                _make(kind, action, old, _nest(when.path, value)),
                _make(kind, action, old, _nest(when.path, good)),
            )


def _pair_switches(when: Switches, kind: str) -> Iterator[Pair]:
    on, off = f"{when.word},delete", "delete"
    for old, new in ((on, off), (off, on)):
        yield (
            _make(kind, Action.UPDATE, _nest(when.path, old), _nest(when.path, new)),
            _make(kind, Action.UPDATE, _nest(when.path, on), _nest(when.path, when.word)),
        )


def _nest(path: tuple[str, ...], value: str) -> dict[str, Any]:
    name, *rest = path
    return {name: {rest[0]: value} if rest else value}


_MAKERS: Mapping[type, Callable[[Any, str], Iterator[Pair]]] = {
    Sends: _pair_sends,
    Writes: _pair_writes,
    WritesKey: _pair_keys,
    WritesValue: _pair_values,
    Switches: _pair_switches,
}
