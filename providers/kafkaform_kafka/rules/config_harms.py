"""What rules of configs share: the row of what no broker takes, and a table of harms, which
says which new value of a config does what.

The tables are in `brokers` and `groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from kafkaform.core.change import Action, Change, PathChange
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.rule import Needs, Rule

from ..protocol.config_keys import ConfigKey, Lookup, parse_items, parse_limit, render_config

_WRITES = (Action.CREATE, Action.UPDATE, Action.DELETE)
_SHOWN = 40
"""The most characters of a value that a sentence shows."""


def block_configs(
    id: str,
    title: str,
    types: tuple[str, ...],
    needs: Needs,
    reason: str,
    example: str,
    fix: str,
    proof: str = "",
) -> Rule:
    """A rule of configs of these resource types that blocks what no broker takes."""
    return Rule(
        id, title, Level.BLOCK, Harm.NONE, types, needs, reason, example, fix, Block.IMPOSSIBLE,
        proof=proof,
    )  # fmt: skip


class When(StrEnum):
    """Which changes of a value do harm."""

    LOWERED = "lowered"
    CHANGED = "changed"
    REMOVED = "removed"
    """An element of a list goes."""
    BECOMES = "becomes"
    """It becomes one value."""
    LEAVES = "leaves"
    """It no longer is that value."""


class ConfigHarm(Struct, frozen=True):
    """What one change of a config does."""

    rule: Rule
    trigger: When
    text: str
    """What happens; `{new}` stands for the new value with its unit, `{gone}` for the elements that
    go."""
    value: str = ""
    """Of BECOMES and LEAVES: the value."""
    unlimited: str = "-1"
    """Of LOWERED: the number that is no limit. It takes effect without the config, unless Kafka has
    a default."""


Harms = Mapping[str, tuple[ConfigHarm, ...]]
"""Config without a listener's prefix -> what changes of it do; none for a harmless one."""


def judge_harms(harms: Harms, find: Lookup, change: Change) -> Iterator[Finding]:
    """What the change of each config does. find: the table of the configs."""
    if change.action not in _WRITES:
        return
    for item in change.paths:
        row = find(item.path[1]) if len(item.path) == 2 and item.path[0] in _MAPS else None
        # The effect of a plugin's config is unknown.
        for harm in harms.get(row.name, ()) if row is not None else ():
            yield from _judge_harm(harm, row, item)


_MAPS = ("config", "secret_keys")


def _judge_harm(harm: ConfigHarm, row: ConfigKey | None, item: PathChange) -> Iterator[Finding]:
    assert row is not None
    fallback = row.default or (harm.unlimited if harm.trigger is When.LOWERED else "")
    below = fallback if item.effective is None else str(item.effective)
    had = item.effective_before if item.before is None else item.before
    old = fallback if had is None else str(had)
    new = below if item.after is None else str(item.after)
    if not _TESTS[harm.trigger](harm, old, new):
        return
    name, hidden = item.path[1], row.kind == "password"
    before = f"{_show(row, harm, old)}{' (default)' if old and item.before is None else ''}"
    after = _show(row, harm, new)
    short = not hidden and max(len(before), len(after)) <= _SHOWN
    subject = f"{name} {before} → {after}" if short else name
    gone = [word for word in parse_items(old) if word not in parse_items(new)]
    text = harm.text.format(new=after, gone=", ".join(gone))
    yield harm.rule.find(f"{subject}: {text}", item.path)


def _show(row: ConfigKey, harm: ConfigHarm, value: str) -> str:
    if harm.trigger is When.LOWERED and value == harm.unlimited:
        return "no limit"
    return render_config(row, value) or "(empty)"


def _read_limit(harm: ConfigHarm, value: str) -> Decimal:
    return parse_limit("-1" if value == harm.unlimited else value)


def _is_lowered(harm: ConfigHarm, old: str, new: str) -> bool:
    return _read_limit(harm, new) < _read_limit(harm, old)


def _has_lost(_: ConfigHarm, old: str, new: str) -> bool:
    return bool(set(parse_items(old)) - set(parse_items(new)))


_TESTS: Mapping[When, Callable[[ConfigHarm, str, str], bool]] = {
    When.LOWERED: _is_lowered,
    When.CHANGED: lambda _, old, new: old != new,
    When.REMOVED: _has_lost,
    When.BECOMES: lambda harm, old, new: old != new == harm.value,
    When.LEAVES: lambda harm, old, new: old == harm.value != new,
}
