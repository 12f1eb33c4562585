"""From changes to waves of batches: the one list that preflight and execute walk.

Part 1 makes and changes, part 2 deletes. Inside a part, steps run in rounds, and inside a round
in the provider's phases; a step that depends on a later or equal phase waits for the next round.
Deletes run in reverse order of dependency. Same plan, same waves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from ..core.change import Batch, Change, Request, Step
from ..core.errors import ConfigurationError
from .model import Plan, Wave
from .select import by_address

CREATING, DELETING = 1, 2


def lower(plan: Plan) -> tuple[Wave, ...]:
    """The waves of this plan's effective changes, in the order in which they are sent."""
    changes = plan.effective
    steps = {step.id: step for change in changes for step in change.steps}
    rounds = _rounds(steps, needs(changes))
    waves: dict[tuple[int, int, int], list[Step]] = defaultdict(list)
    for step in steps.values():
        waves[step.request.part, rounds[step.id], step.request.phase].append(step)
    return tuple(
        Wave(*key, tuple(_batches(".".join(map(str, key)), waves[key]))) for key in sorted(waves)
    )


def needs(changes: Sequence[Change]) -> dict[str, set[str]]:
    """step id -> ids of the steps that must be applied first, over all these changes."""
    index = by_address(changes)
    before: dict[str, set[str]] = {s.id: set(s.after) for c in changes for s in c.steps}
    for change in changes:
        for other in (changes[n] for a in change.depends_on for n in index.get(a, ())):
            if other is change:
                continue
            for mine, theirs in ((m, t) for m in change.steps for t in other.steps):
                if mine.request.part != theirs.request.part:
                    continue
                if mine.request.part == CREATING:
                    before[mine.id].add(theirs.id)
                else:
                    before[theirs.id].add(mine.id)
    return before


def _rounds(steps: Mapping[str, Step], before: Mapping[str, set[str]]) -> dict[str, int]:
    """step id -> round. Raises ConfigurationError if steps wait for each other."""
    rounds: dict[str, int] = {}
    for step_id in _sorted(steps, before):
        rounds[step_id] = max(
            (_after(rounds[need], steps[need], steps[step_id]) for need in before[step_id]),
            default=0,
        )
    return rounds


def _sorted(steps: Mapping[str, Step], before: Mapping[str, set[str]]) -> list[str]:
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError as error:
        circle = " → ".join(steps[step_id].address for step_id in error.args[1])
        raise ConfigurationError(
            f"these changes wait for each other: {circle}",
            "Remove one of the references between them, or take one first with --target.",
        ) from None


def _after(round_of_need: int, need: Step, step: Step) -> int:
    return round_of_need if need.request.phase < step.request.phase else round_of_need + 1


def _batches(prefix: str, steps: Sequence[Step]) -> Iterator[Batch]:
    """Steps of equal instance and request together, cut by count and by weight."""
    groups: dict[tuple[str, Request], list[Step]] = defaultdict(list)
    for step in steps:
        groups[step.identity.instance, step.request].append(step)
    number = 0
    for (instance, request), members in groups.items():
        for cut in _cut(members, request):
            yield Batch(f"{prefix}.{number}", instance, request, tuple(cut))
            number += 1


def _cut(steps: Sequence[Step], request: Request) -> Iterator[list[Step]]:
    batch: list[Step] = []
    weight = 0
    for step in steps:
        full = len(batch) == request.max_items or weight + step.weight > request.max_weight
        if batch and full:
            yield batch
            batch, weight = [], 0
        batch.append(step)
        weight += step.weight
    if batch:
        yield batch
