"""Which rules of a profile a change breaks: one function for each form of condition.

Pure. Each function yields what it found, as the texts that replace `{found}` in the rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kafkaform.core.change import BOOKKEEPING, Action, Change, Path
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ..protocol.config_values import parse_integer, parse_items
from .profile import (
    ONLY_UPDATE,
    SETS,
    Profile,
    Sends,
    Switches,
    VendorRule,
    Writes,
    WritesKey,
    WritesValue,
)


def find_breaches(profile: Profile, change: Change) -> Iterator[tuple[VendorRule, str]]:
    """The rules whose condition the change fulfils, each with what it found."""
    for rule in profile.judging:
        if change.identity.kind in rule.kinds:
            breaches = tuple(dict.fromkeys(_FINDERS[type(rule.condition)](rule.condition, change)))
            if breaches:
                yield rule, ", ".join(breaches)


# ── conditions ──────────────────────────────────────────────────────────────────────────


def _find_sent(condition: Sends, change: Change) -> Iterator[str]:
    # An update of the bookkeeping sends nothing.
    if change.action in condition.actions and any(_list_written(change)):
        yield change.identity.key


def _find_written(condition: Writes, change: Change) -> Iterator[str]:
    if change.action not in condition.actions:
        return
    for path in _list_written(change):
        if any(path[: len(start)] == start for start in condition.paths):
            yield ".".join(path)


def _find_keys(condition: WritesKey, change: Change) -> Iterator[str]:
    if change.action not in condition.actions:
        return
    for key in _list_keys(change, condition.attribute):
        if key in condition.never or (condition.only is not None and key not in condition.only):
            yield key


def _list_keys(change: Change, attribute: str) -> Iterator[str]:
    """The keys of a map attribute that the change sets or removes."""
    # The part of a quota's entity that stands for the default is a key without a value, which has
    # no path.
    if change.action is Action.CREATE:
        yield from _get_value(change.after, (attribute,)) or ()  # type: ignore[misc]
    else:
        yield from (path[1] for path in _list_written(change) if path[0] == attribute and path[1:])


def _find_values(condition: WritesValue, change: Change) -> Iterator[str]:
    if change.action not in SETS or not _is_written(change, condition.path):
        return
    value = _get_value(change.after, condition.path)
    if value is not None and not _is_allowed(condition, str(value)):
        yield f"{condition.path[-1]} = {value}"


def _is_allowed(condition: WritesValue, text: str) -> bool:
    number = parse_integer(text)
    # A text that is no number is refused by Kafka's own rules.
    if number is not None and (
        (condition.low is not None and number < condition.low)
        or (condition.high is not None and number > condition.high)
        or (condition.odd and number % 2 == 0)
    ):
        return False
    if condition.pattern and not re.fullmatch(condition.pattern, text):
        return False
    return text not in condition.never and (not condition.only or text in condition.only)


def _find_switches(condition: Switches, change: Change) -> Iterator[str]:
    if change.action not in ONLY_UPDATE:
        return
    for item in change.paths:
        # A value that is removed makes room for the one that takes effect then.
        old, new = item.before, item.effective if item.after is None else item.after
        words = [condition.word in parse_items(str(value)) for value in (old, new)]
        if item.path == condition.path and None not in (old, new) and words[0] != words[1]:
            yield f"{condition.path[-1]} from {old} to {new}"


_FINDERS: Mapping[type, Callable[[Any, Change], Iterator[str]]] = {
    Sends: _find_sent,
    Writes: _find_written,
    WritesKey: _find_keys,
    WritesValue: _find_values,
    Switches: _find_switches,
}
"""Form of condition -> the function that applies it."""


def _list_written(change: Change) -> Iterator[Path]:
    """The paths that the change sets or removes on the cluster."""
    return (item.path for item in change.paths if item.path and item.path[0] not in BOOKKEEPING)


def _is_written(change: Change, path: Path) -> bool:
    return path in _list_written(change)


def _get_value(attributes: FrozenMap | None, path: Path) -> Value:
    value: Value = attributes or EMPTY
    for name in path:
        value = value.get(name) if isinstance(value, FrozenMap) else None
    return value
