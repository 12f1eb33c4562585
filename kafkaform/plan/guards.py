"""Guards against a plan that takes away much more than anybody meant (architecture §4.3).

A release of an object that others share counts like a deletion (`Change.takes_away`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

from ..core.change import Action, Change, add_findings
from ..core.finding import Finding, Harm, Level
from ..core.resource import Desired
from ..core.rule import Rule
from ..core.text.quantity import render_count
from ..state.model import State
from .judge import lift_block
from .model import Mode, Options
from .rules import EMPTY_CONFIGURATION, LIMIT_DATA_LOSS, LIMIT_DELETIONS

# Below ten objects a share means nothing: the last of two objects is half of everything.
MANY = 10
LARGE_SHARE = 0.30


def apply_guards(
    changes: Sequence[Change], desired: Desired, state: State, options: Options
) -> tuple[Change, ...]:
    """The changes, with deletions blocked if there are too many of them, and all of them if the
    configuration is empty."""
    # A wrong folder or a missing variable looks like a configuration without any object.
    empty = not (desired.declared or desired.unread)
    if options.mode is Mode.NORMAL and empty and state.objects:
        return _block_changes(
            changes,
            lambda change: change.action is not Action.NOOP,
            EMPTY_CONFIGURATION.find(
                "the configuration declares nothing, but the state still has objects "
                f"({len(state.objects)})"
            ),
            (),
            even_protected=True,
        )
    return guard_deletions(changes, state, options)


def guard_deletions(
    changes: Sequence[Change], state: State, options: Options
) -> tuple[Change, ...]:
    """The changes, with the deletions blocked if there are too many of them."""
    return _apply_guard(_DELETIONS, changes, state, options)


def guard_losses(changes: Sequence[Change], state: State, options: Options) -> tuple[Change, ...]:
    """The changes, with those that lose data blocked if they do so to too many objects.

    After the surveys: only these find out how many objects a change of one concerns.
    """
    return _apply_guard(_LOSSES, changes, state, options)


def _apply_guard(
    guard: _Guard, changes: Sequence[Change], state: State, options: Options
) -> tuple[Change, ...]:
    reason = _explain_excess(guard, changes, state, options)
    if reason is None:
        return tuple(changes)
    return _block_changes(
        changes,
        lambda change: bool(guard.count(change)),
        guard.rule.find(reason),
        options.accept,
    )


class _Concerned(Struct, frozen=True):
    """Objects to which a change does something."""

    kind: str
    """Their type."""
    number: int
    """How many they are."""
    total: int = 0
    """How many there are of this type, 0 for as many as the state has."""


class _Guard(Struct, frozen=True):
    """One thing that a plan can do to a few objects only, unless the user says how many."""

    count: Callable[[Change], _Concerned | None]
    """The objects to which a change does it, None if it does not do it."""
    limit: Callable[[Options], int | None]
    """How many the user allows, None if the user does not say."""
    flag: str
    """The flag with which the user says it."""
    choose_verb: Callable[[Sequence[Change]], str]
    """What the plan does with these changes, in words."""
    rule: Rule
    """Its row in the table of rules."""


def _count_deletion(change: Change) -> _Concerned | None:
    return _Concerned(change.identity.kind, 1) if change.takes_away else None


def _count_losses(change: Change) -> _Concerned | None:
    """The objects whose data the change could destroy. A change of a default concerns all objects
    that follow it: its finding has the figures `objects`, `of_objects` and `kind`."""
    if not change.effective:
        return None
    losses = [
        _count_objects(finding, change)
        for finding in change.findings
        if finding.harm is Harm.DATA_LOSS
        and finding.level is not Level.NOTE
        # A deletion has a guard of its own, and needs no second permission for the same object.
        and ("objects" in finding.figures or not change.takes_away)
    ]
    return max(losses, key=lambda concerned: concerned.number, default=None)


def _count_objects(finding: Finding, change: Change) -> _Concerned:
    figures = finding.figures
    return _Concerned(
        figures.get("kind", change.identity.kind),
        figures.get("objects", 1),
        figures.get("of_objects", 0),
    )


def _choose_delete_verb(deletes: Sequence[Change]) -> str:
    return "deletes or releases" if any(change.released for change in deletes) else "deletes"


_DELETIONS = _Guard(
    _count_deletion,
    lambda options: options.max_deletes,
    "--max-deletes",
    _choose_delete_verb,
    LIMIT_DELETIONS,
)
_LOSSES = _Guard(
    _count_losses,
    lambda options: options.max_data_loss,
    "--max-data-loss",
    lambda _: "could destroy data of",
    LIMIT_DATA_LOSS,
)


def _explain_excess(
    guard: _Guard, changes: Sequence[Change], state: State, options: Options
) -> str | None:
    pairs = [(change, concerned) for change in changes if (concerned := guard.count(change))]
    if not pairs:
        return None
    verb, allowed = guard.choose_verb([change for change, _ in pairs]), guard.limit(options)
    if allowed is not None:
        number = sum(concerned.number for _, concerned in pairs)
        if number <= allowed:
            return None
        return (
            f"the plan {verb} {render_count(number, 'object')}, but {guard.flag} allows {allowed}"
        )
    # Whoever runs `destroy` expects to read that everything goes.
    if options.mode is Mode.DESTROY:
        return None
    totals = Counter((i.instance, i.kind) for i in state.objects)
    counts: Counter[tuple[str, str]] = Counter()
    for change, concerned in pairs:
        type_key = (change.identity.instance, concerned.kind)
        counts[type_key] += concerned.number
        totals[type_key] = max(totals[type_key], concerned.total)
    for type_key, count in counts.items():
        instance, kind = type_key
        # The state has no object that a plan adopts, or that `alter` changes.
        total = max(totals[type_key], count)
        if count >= MANY and count > total * LARGE_SHARE:
            return (
                f"the plan {verb} {count} of {total} {kind} objects in {instance} "
                f"(at least {MANY} and more than {LARGE_SHARE:.0%})"
            )
    return None


def _block_changes(
    changes: Sequence[Change],
    meant: Callable[[Change], bool],
    block: Finding,
    accepted: Sequence[str],
    *,
    even_protected: bool = False,
) -> tuple[Change, ...]:
    """The changes, with the meant ones blocked. accepted: the rules that the user lifts;
    even_protected: also those that are blocked already by something that lets the rest of the plan
    pass."""

    def caught(change: Change) -> bool:
        if change.block is not None:
            return even_protected and not change.block.stops
        return meant(change)

    return tuple(
        add_findings(change, lift_block(block, change, accepted)) if caught(change) else change
        for change in changes
    )
