"""Judge by a fresh reading whether one step happened, not yet, or something else did.

Reads can lag behind writes and never run ahead of them. So the target, once seen, is proof, and the
pre-image proves nothing before the deadline. An object with a running task counts as what it will
be.
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
    """What one reading says about one step."""

    DONE = "done"
    """The object is as the step makes it."""
    STARTED = "started"
    """It will be as soon as the running task has ended."""
    NOT_YET = "not_yet"
    """The object is as it was before the step."""
    OTHER = "other"
    """It is neither: somebody else changed it."""
    UNKNOWN = "unknown"
    """The object is hidden, could not be read, or looks the same before and after."""


HAPPENED = frozenset({Judgement.DONE, Judgement.STARTED})


def judge_step(
    change: Change, step: Step, reading: Reading, kind: ResourceType, facts: Facts
) -> Judgement:
    """How the live object compares with the pre-image and the target of the step."""
    if has_emptied(change, step.paths, reading):
        return Judgement.DONE
    live = resolve_absence(reading, change.after)
    if change.action is Action.CREATE and live is not reading:
        # Others had set something on it before our create. Only if all is as we want it is it ours;
        # other values are their pre-image.
        is_done = judge_step(change, step, live, kind, facts) is Judgement.DONE
        return Judgement.DONE if is_done else Judgement.NOT_YET
    reading = live
    if isinstance(reading, Absent):
        return _judge_absent(change.action)
    if not isinstance(reading, Observed):
        return Judgement.UNKNOWN
    if change.action is Action.DELETE:
        # Another object of that name means that ours is gone, whoever made the new one.
        same_incarnation = reading.incarnation == change.incarnation
        return Judgement.NOT_YET if same_incarnation else Judgement.DONE
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
    """True if all that this step writes is hidden data, such as a new password, so that a live
    object looks the same before and after it."""
    if change.action is not Action.UPDATE:
        return False
    return _agree(step.paths, flatten(change.before), flatten(change.after))


def has_emptied(change: Change, paths: Collection[Path], reading: Reading) -> bool:
    """True if the object is absent because this update removed the last of it.

    An object that consists only of its values and has no incarnation ends so, and is not lost.
    paths: those that the update wrote, all of which must have been removed.
    """
    if change.action is not Action.UPDATE or change.incarnation is not None or not paths:
        return False
    after = flatten(change.after)
    return isinstance(reading, Absent) and all(after.get(path) is None for path in paths)


def canonicalize_reading(reading: Observed, kind: ResourceType, facts: Facts) -> Observed:
    """The reading with canonical attributes, as they will be once a running task has ended."""
    return replace(reading, attributes=kind.canonical(compute_destination(reading), facts))


def _judge_absent(action: Action) -> Judgement:
    if action is Action.DELETE:
        return Judgement.DONE
    return Judgement.NOT_YET if action is Action.CREATE else Judgement.OTHER


def _judge_observed(change: Change, step: Step, live: Observed) -> Judgement:
    now, after, before = flatten(live.attributes), flatten(change.after), flatten(change.before)
    if change.action is Action.CREATE:
        # The first of several requests makes the object, without what the others will add to it.
        one_of_many = len(change.steps) > 1 and bool(step.paths)
        reached = change.after is not None and (
            _agree(step.paths, now, after) if one_of_many else equals_target(change.after, live)
        )
        return Judgement.DONE if reached else Judgement.OTHER
    if is_untellable(change, step):
        return Judgement.UNKNOWN
    if _agree(step.paths, now, after):
        return Judgement.DONE
    # A step that waited for another step of its change starts from what that one left, which the
    # change does not record.
    not_yet = step.after or _agree(step.paths, now, before)
    return Judgement.NOT_YET if not_yet else Judgement.OTHER


def _agree(paths: tuple[Path, ...], first: dict[Path, Value], second: dict[Path, Value]) -> bool:
    return all(first.get(path) == second.get(path) for path in paths)
