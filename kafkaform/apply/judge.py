"""What a fresh reading says about one step: did it happen, not yet, or something else?

Reads may lag behind writes, never run ahead of them: the target seen is proof, the pre-image
seen is not proof of anything until the deadline. An object that moves counts as what it will be.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from msgspec.structs import replace

from ..core.change import Action, Change, Path, Step
from ..core.resource import Absent, Facts, Observed, Reading
from ..core.value import Value
from ..plan.diff import equals_target, flatten
from ..plan.observe import compute_destination, resolve_absence
from ..provider.contract import ResourceType


class Judgement(StrEnum):
    DONE = "done"
    STARTED = "started"  # done as soon as the move that runs has ended
    NOT_YET = "not_yet"
    OTHER = "other"  # neither pre-image nor target: somebody else was there
    UNKNOWN = "unknown"  # hidden or failed, or nothing that can be read tells


HAPPENED = frozenset({Judgement.DONE, Judgement.STARTED})


def judge_step(
    change: Change, step: Step, reading: Reading, kind: ResourceType, facts: Facts
) -> Judgement:
    """How the live object stands to this step's pre-image and target."""
    if has_emptied(change, step.paths, reading):
        return Judgement.DONE
    found = resolve_absence(reading, change.after)
    if change.action is Action.CREATE and found is not reading:
        # What others own of it was there before, with other values.
        done = judge_step(change, step, found, kind, facts) is Judgement.DONE
        return Judgement.DONE if done else Judgement.NOT_YET
    reading = found
    if isinstance(reading, Absent):
        return _judge_absent(change.action)
    if not isinstance(reading, Observed):
        return Judgement.UNKNOWN
    if change.action is Action.DELETE:
        same = reading.incarnation == change.incarnation
        return Judgement.NOT_YET if same else Judgement.DONE
    if change.incarnation is not None and reading.incarnation != change.incarnation:
        return Judgement.OTHER
    coming = _judge_observed(change, step, canonicalize_reading(reading, kind, facts))
    now = _judge_observed(
        change, step, canonicalize_reading(replace(reading, moving=None), kind, facts)
    )
    if coming is Judgement.DONE and now is not Judgement.DONE:
        return Judgement.STARTED
    return coming


def is_untellable(change: Change, step: Step) -> bool:
    """True if all that this step writes is hidden data (a new password), so that an object that
    is there looks the same before and after it."""
    if change.action is not Action.UPDATE:
        return False
    return _agree(step.paths, flatten(change.before), flatten(change.after))


def has_emptied(change: Change, paths: Collection[Path], reading: Reading) -> bool:
    """True if the object is not there because this update took the last of it. What is only its
    configs, which has no incarnation, ends so, and is not lost.

    paths: those that were written, all of which must have been removed.
    """
    if change.action is not Action.UPDATE or change.incarnation is not None or not paths:
        return False
    after = flatten(change.after)
    return isinstance(reading, Absent) and all(after.get(path) is None for path in paths)


def canonicalize_reading(reading: Observed, kind: ResourceType, facts: Facts) -> Observed:
    """The reading with attributes in their one spelling, as they will be once it has moved."""
    return replace(reading, attributes=kind.canonical(compute_destination(reading), facts))


def _judge_absent(action: Action) -> Judgement:
    if action is Action.DELETE:
        return Judgement.DONE
    return Judgement.NOT_YET if action is Action.CREATE else Judgement.OTHER


def _judge_observed(change: Change, step: Step, live: Observed) -> Judgement:
    if change.action is Action.CREATE:
        done = change.after is not None and equals_target(change.after, live)
        return Judgement.DONE if done else Judgement.OTHER
    if is_untellable(change, step):
        return Judgement.UNKNOWN
    now, after, before = flatten(live.attributes), flatten(change.after), flatten(change.before)
    if _agree(step.paths, now, after):
        return Judgement.DONE
    # A step that waited for another of its change starts from what that one left.
    not_yet = step.after or _agree(step.paths, now, before)
    return Judgement.NOT_YET if not_yet else Judgement.OTHER


def _agree(paths: tuple[Path, ...], one: dict[Path, Value], other: dict[Path, Value]) -> bool:
    return all(one.get(path) == other.get(path) for path in paths)
