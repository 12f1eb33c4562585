"""Guards against a plan that takes away much more than anybody meant (architecture §4.3).

A release of an object that others share counts like a deletion (`Change.takes_away`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ..core.change import Action, Blocker, BlockerKind, Change
from ..core.resource import Desired
from ..state.model import State
from .model import Mode, Options

# Below ten objects a share means nothing: the last of two objects is half of everything.
MANY_DELETES = 10
LARGE_SHARE = 0.30


def apply_guards(
    changes: Sequence[Change], desired: Desired, state: State, options: Options
) -> tuple[Change, ...]:
    """The changes, with deletions blocked if there are too many of them."""
    # A wrong folder or a missing variable looks like a configuration without any object.
    if options.mode is Mode.NORMAL and not desired.declared and state.objects:
        return _block_changes(
            changes,
            lambda change: change.action is not Action.NOOP,
            "the configuration declares nothing, while the state still has objects "
            f"({len(state.objects)})",
            "If everything shall go, use `kafkaform destroy`; otherwise check the folder "
            "(--chdir) and the variables.",
            even_protected=True,
        )
    reason = _explain_excess(changes, state, options)
    if reason is None:
        return tuple(changes)
    return _block_changes(
        changes,
        lambda change: change.takes_away,
        reason,
        "Read the deletions; if all are meant, allow them with --max-deletes N.",
    )


def _explain_excess(changes: Sequence[Change], state: State, options: Options) -> str | None:
    deletes = [change for change in changes if change.takes_away]
    if options.max_deletes is not None:
        if len(deletes) <= options.max_deletes:
            return None
        return (
            f"the plan {_choose_verb(deletes)} {len(deletes)} objects, --max-deletes allows "
            f"{options.max_deletes}"
        )
    if options.mode is Mode.DESTROY:
        return None
    recorded = Counter((i.instance, i.kind) for i in state.objects)
    for (instance, kind), count in Counter(
        (c.identity.instance, c.identity.kind) for c in deletes
    ).items():
        total = recorded[instance, kind]
        if count >= MANY_DELETES and count > total * LARGE_SHARE:
            return (
                f"the plan {_choose_verb(deletes)} {count} of {total} {kind} objects in {instance} "
                f"(at least {MANY_DELETES} and more than {LARGE_SHARE:.0%})"
            )
    return None


def _choose_verb(deletes: Sequence[Change]) -> str:
    return "deletes or releases" if any(change.released for change in deletes) else "deletes"


def _block_changes(
    changes: Sequence[Change],
    meant: Callable[[Change], bool],
    reason: str,
    advice: str,
    *,
    even_protected: bool = False,
) -> tuple[Change, ...]:
    """The changes, with the meant ones blocked. even_protected: also those that are blocked already
    by something that lets the rest of the plan pass."""
    block = Blocker(BlockerKind.GUARD, reason, advice)

    def caught(change: Change) -> bool:
        if change.blocked is not None:
            return even_protected and not change.blocked.kind.stops
        return meant(change)

    return tuple(replace(c, blocked=block) if caught(c) else c for c in changes)
