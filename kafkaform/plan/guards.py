"""Guards against a plan that takes away much more than anybody meant (architecture §4.3).

A release of an object that others share counts like a deletion (`Change.takes_away`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

from ..core.change import Action, Change, add_findings
from ..core.finding import Finding, Harm
from ..core.resource import Desired
from ..core.rule import Rule
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
    """The changes, with deletions and losses of data blocked if there are too many of them."""
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
    guarded = tuple(changes)
    for guard in _GUARDS:
        caught = [change for change in changes if guard.counts(change)]
        reason = _explain_excess(guard, caught, state, options) if caught else None
        if reason is not None:
            block = guard.rule.find(reason)
            guarded = _block_changes(guarded, guard.counts, block, options.accept)
    return guarded


class _Guard(Struct, frozen=True):
    """One thing that a plan can do to a few objects only, unless the user says how many."""

    counts: Callable[[Change], bool]
    """True for a change that does it."""
    limit: Callable[[Options], int | None]
    """How many the user allows, None if the user does not say."""
    flag: str
    """The flag with which the user says it."""
    choose_verb: Callable[[Sequence[Change]], str]
    """What the plan does with these changes, in words."""
    rule: Rule
    """Its row in the table of rules."""


def _cuts_data(change: Change) -> bool:
    # A deletion has a guard of its own, and needs no second permission.
    return change.effective and not change.takes_away and change.has_harm(Harm.DATA_LOSS)


def _choose_delete_verb(deletes: Sequence[Change]) -> str:
    return "deletes or releases" if any(change.released for change in deletes) else "deletes"


_GUARDS = (
    _Guard(
        lambda change: change.takes_away,
        lambda options: options.max_deletes,
        "--max-deletes",
        _choose_delete_verb,
        LIMIT_DELETIONS,
    ),
    _Guard(
        _cuts_data,
        lambda options: options.max_data_loss,
        "--max-data-loss",
        lambda _: "could destroy data of",
        LIMIT_DATA_LOSS,
    ),
)


def _explain_excess(
    guard: _Guard, caught: Sequence[Change], state: State, options: Options
) -> str | None:
    verb, allowed = guard.choose_verb(caught), guard.limit(options)
    if allowed is not None:
        number = sum(map(_count_objects, caught))
        if number <= allowed:
            return None
        return f"the plan {verb} {number} objects, but {guard.flag} allows {allowed}"
    # Whoever runs `destroy` expects to read that everything goes.
    if options.mode is Mode.DESTROY:
        return None
    for change in caught:
        # A default counts like the objects that follow it.
        for figures in (finding.figures for finding in change.findings):
            followers, total = figures.get("objects"), figures.get("of_objects")
            if (
                isinstance(followers, int)
                and isinstance(total, int)
                and _is_excess(followers, total)
            ):
                return (
                    f"{change.address} {verb} {followers} of {total} objects that follow it "
                    f"(at least {MANY} and more than {LARGE_SHARE:.0%})"
                )
    recorded = Counter((i.instance, i.kind) for i in state.objects)
    for (instance, kind), count in Counter(
        (c.identity.instance, c.identity.kind) for c in caught
    ).items():
        total = recorded[instance, kind]
        if _is_excess(count, total):
            return (
                f"the plan {verb} {count} of {total} {kind} objects in {instance} "
                f"(at least {MANY} and more than {LARGE_SHARE:.0%})"
            )
    return None


def _is_excess(number: int, total: int) -> bool:
    return number >= MANY and number > total * LARGE_SHARE


def _count_objects(change: Change) -> int:
    """The objects that a change concerns: those that follow a default, else one."""
    numbers = [
        number
        for finding in change.findings
        if finding.harm is Harm.DATA_LOSS
        and isinstance(number := finding.figures.get("objects"), int)
    ]
    return max(numbers, default=1)


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
