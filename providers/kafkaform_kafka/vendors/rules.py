"""Judge changes by the rules of a profile: one function for each form of condition.

Pure. Each function yields what it found, as the texts that replace `{found}` in the rule.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kafkaform.core.change import BOOKKEEPING, Action, Change, Path
from kafkaform.core.legacy import Blocker, BlockerKind, Review
from kafkaform.core.resource import Identity
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ..protocol.config_values import parse_integer, parse_items
from .names import APACHE
from .profile import (
    ONLY_UPDATE,
    SETS,
    Profile,
    RuleEffect,
    Sends,
    Switches,
    VendorRule,
    Writes,
    WritesKey,
    WritesValue,
)

OVERRIDE = f'if this cluster is another one, set profile = "{APACHE}" in the provider block'


def judge_changes(profile: Profile, changes: Sequence[Change]) -> Review:
    """The blocks, notes and warnings that the rules of this profile give these changes."""
    refused: dict[Identity, list[tuple[str, str]]] = defaultdict(list)
    notes: dict[Identity, list[str]] = defaultdict(list)
    warnings: dict[str, None] = {}
    for change in changes:
        for rule, text in find_breaches(profile, change):
            if rule.effect is RuleEffect.REFUSE:
                refused[change.identity].append((text, rule.advice))
            elif rule.effect is RuleEffect.NOTE:
                notes[change.identity].append(text)
            else:
                warnings[text] = None
    return Review(
        blocks={identity: _make_blocker(found) for identity, found in refused.items()},
        notes={identity: tuple(found) for identity, found in notes.items()},
        warnings=tuple(warnings),
    )


def find_breaches(profile: Profile, change: Change) -> Iterator[tuple[VendorRule, str]]:
    """The rules whose condition the change fulfils, each with its sentence."""
    for rule in profile.rules:
        if rule.when is None or change.identity.kind not in rule.kinds:
            continue
        found = tuple(dict.fromkeys(_FINDERS[type(rule.when)](rule.when, change)))
        if found:
            yield rule, render_sentence(rule, ", ".join(found))


def render_sentence(rule: VendorRule, found: str = "") -> str:
    """What the rule says, with its source."""
    advice = f"; {rule.advice}" if rule.advice and rule.effect is not RuleEffect.REFUSE else ""
    return f"{rule.says.replace('{found}', found)}{advice} ({rule.source.url})"


def _make_blocker(found: Sequence[tuple[str, str]]) -> Blocker:
    reasons, advice = [text for text, _ in found], [text for _, text in found]
    if len(found) > 1:
        # Numbers say which advice belongs to which reason.
        reasons = [f"({number}) {text}" for number, text in enumerate(reasons, 1)]
        advice = [f"({number}) {text}" for number, text in enumerate(advice, 1)]
    return Blocker(BlockerKind.IMPOSSIBLE, "; ".join(reasons), "; ".join((*advice, OVERRIDE)))


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
