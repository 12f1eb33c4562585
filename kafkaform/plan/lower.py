"""From changes to waves of batches: the one list that dry run and execution walk.

Part 1 creates and changes, part 2 deletes. Within a part, steps run in rounds, and within a round
in the phases of each provider, one provider after the other: phases of two providers cannot be
compared. A step that depends on a later or equal phase, or on a step of another provider, waits
for the next round. Deletes run in reverse order of dependency. A delete whose request says so
leaves in part 1 if its group has a step there. Equal plans have equal waves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import Batch, Change, Request, Step
from ..core.errors import ConfigurationError
from .model import Plan, Wave
from .select import index_by_address

CREATING, DELETING = 1, 2
_RANK = attrgetter("rank")

Group = tuple[str, str, str]
"""Provider instance, kind and `Step.group`."""


def lower_plan(plan: Plan) -> tuple[Wave, ...]:
    """The waves of the plan's effective changes, in the order in which they are sent."""
    changes = place_changes(plan.effective)
    steps = {step.id: step for change in changes for step in change.steps}
    rounds = _compute_rounds(steps, find_needs(changes))
    # The order of a wave is its key, so that equal plans are sent in equal batches.
    waves: dict[tuple[int, int, str, int], list[Step]] = defaultdict(list)
    for step in steps.values():
        position, phase = step.request.part, step.request.phase
        waves[position, rounds[step.id], step.identity.provider, phase].append(step)
    return tuple(
        Wave(*key, tuple(_make_batches(".".join(map(str, key)), waves[key])))
        for key in sorted(waves)
    )


def place_changes(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes with their requests as they leave: deletes that go ahead are moved into part 1.

    Placing twice changes nothing more.
    """
    if not any(_can_go_ahead(step) for change in changes for step in change.steps):
        return tuple(changes)
    created_groups = {
        _get_group(step)
        for change in changes
        for step in change.steps
        if step.group and step.request.part == CREATING and step.request.ahead is None
    }
    return tuple(
        replace(change, steps=tuple(_place_step(step, created_groups) for step in change.steps))
        if any(_can_go_ahead(step) and _get_group(step) in created_groups for step in change.steps)
        else change
        for change in changes
    )


def _place_step(step: Step, created_groups: set[Group]) -> Step:
    if step.request.ahead is None or not (
        _can_go_ahead(step) and _get_group(step) in created_groups
    ):
        return step
    return replace(step, request=replace(step.request, part=CREATING, phase=step.request.ahead))


def _can_go_ahead(step: Step) -> bool:
    return step.request.part == DELETING and step.request.ahead is not None


def _get_group(step: Step) -> Group:
    return step.identity.instance, step.identity.kind, step.group


def find_needs(changes: Sequence[Change]) -> dict[str, set[str]]:
    """Step id -> ids of the steps that must be applied first, over all these changes."""
    changes = place_changes(changes)
    index = index_by_address(changes) if any(c.depends_on for c in changes) else {}
    before: dict[str, set[str]] = {s.id: set(s.after) for c in changes for s in c.steps}
    for change in changes:
        for dependency in (changes[n] for a in change.depends_on for n in index.get(a, ())):
            if dependency is change:
                continue
            for step, needed in ((m, t) for m in change.steps for t in dependency.steps):
                if step.request.part != needed.request.part:
                    # Part 2 of an instance waits for its own part 1 anyway, but not for that of
                    # another: what still uses an object there must have let go of it.
                    if _is_delete(step) and step.identity.instance != needed.identity.instance:
                        before[step.id].add(needed.id)
                    continue
                if not _is_delete(step):
                    before[step.id].add(needed.id)
                # Deletes go the other way round: what uses an object goes before the object.
                elif _is_delete(needed) and not is_gate(step.request, needed.request):
                    before[needed.id].add(step.id)
    return before


def _is_delete(step: Step) -> bool:
    """True for a delete, even one that goes ahead in part 1."""
    return step.request.part == DELETING or step.request.ahead is not None


def is_gate(later: Request, earlier: Request) -> bool:
    """True if a step of `later` leaves only once every step of `earlier` is applied."""
    return (
        later.gated
        and (later.name, later.part) == (earlier.name, earlier.part)
        and earlier.phase < later.phase
    )


def _compute_rounds(steps: Mapping[str, Step], before: Mapping[str, set[str]]) -> dict[str, int]:
    """Step id -> round. Raises ConfigurationError if steps wait for each other."""
    gate_of = _find_gates(steps.values())
    # Most plans have no dependencies, and then one round has everything.
    if not gate_of and not any(before.values()):
        return dict.fromkeys(steps, 0)
    graph: dict[str, set[str]] = {**before}
    for step_id, gate in gate_of.items():
        graph[step_id] = {*before[step_id], gate.id}
        graph[gate.id] = gate.steps
    rounds: dict[str, int] = {}
    for name in _sort_steps(steps, graph):
        if name not in steps:
            rounds[name] = max(rounds[need] for need in graph[name])
            continue
        least = rounds[gate_of[name].id] if name in gate_of else 0
        rounds[name] = max(
            (_compute_round(rounds[need], steps[need], steps[name]) for need in before[name]),
            default=0,
        )
        rounds[name] = max(least, rounds[name])
    return rounds


class _Gate(Struct, frozen=True):
    """All steps that some gated steps wait for, as one node of the graph."""

    # With an edge for each pair, a thousand gated steps behind a thousand others would need a
    # million edges; with a node in between they need two thousand.
    id: str
    """The name of the node, which no step has."""
    steps: set[str]
    """Ids of the steps that come first."""


def _find_gates(steps: Iterable[Step]) -> dict[str, _Gate]:
    """Id of each gated step that waits for others -> what it waits for."""
    waiting: dict[tuple[str, Request], list[str]] = defaultdict(list)
    groups_by_request: dict[tuple[str, Request], set[str]] = defaultdict(set)
    for step in steps:
        key = step.identity.instance, step.request
        groups_by_request[key].add(step.id)
        if step.request.gated:
            waiting[key].append(step.id)
    gates: dict[str, _Gate] = {}
    for (instance, request), ids in waiting.items():
        earlier = set[str]().union(
            *(
                group
                for (at, group_request), group in groups_by_request.items()
                if at == instance and is_gate(request, group_request)
            )
        )
        if earlier:
            gate = _Gate(
                f"{instance} before {request.part}.{request.phase} {request.name}", earlier
            )
            gates.update(dict.fromkeys(ids, gate))
    return gates


def _sort_steps(steps: Mapping[str, Step], before: Mapping[str, set[str]]) -> list[str]:
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError as error:
        names = (steps[step_id].address for step_id in error.args[1] if step_id in steps)
        circle = " → ".join(names)
        raise ConfigurationError(
            f"these changes wait for each other: {circle}",
            "Remove one of the references between them, or apply one first with --target.",
        ) from None


def _compute_round(round_of_need: int, need: Step, step: Step) -> int:
    # Part 1 ends before part 2 begins, so such a need costs no round.
    if need.request.part < step.request.part:
        return 0
    within_provider = need.identity.provider == step.identity.provider
    earlier = within_provider and need.request.phase < step.request.phase
    return round_of_need if earlier else round_of_need + 1


def _make_batches(prefix: str, steps: Sequence[Step]) -> Iterator[Batch]:
    """Steps with equal instance and request together, cut by count and by weight."""
    groups: dict[tuple[str, Request], list[Step]] = defaultdict(list)
    for step in steps:
        groups[step.identity.instance, step.request].append(step)
    number = 0
    for (instance, request), members in groups.items():
        for cut in _cut_batches(members, request):
            yield Batch(f"{prefix}.{number}", instance, request, tuple(cut))
            number += 1


def _cut_batches(steps: Sequence[Step], request: Request) -> Iterator[list[Step]]:
    """Groups stay whole unless one of them is too large alone; the lowest ranks go first."""
    for batch in _pack_units(_group_steps(steps), request):
        yield from _pack_units([[step] for step in sorted(batch, key=_RANK)], request)


def _group_steps(steps: Sequence[Step]) -> list[list[Step]]:
    """The steps of each group by rank; a step without a group is a group of its own."""
    groups: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        groups[step.group or step.id].append(step)
    whole = [sorted(group, key=_RANK) for group in groups.values()]
    return sorted(whole, key=lambda group: group[0].rank)


def _pack_units(units: Iterable[Sequence[Step]], request: Request) -> Iterator[list[Step]]:
    """The units in batches within both limits; a unit that alone exceeds one is a batch."""
    batch: list[Step] = []
    weight = 0
    for unit in units:
        unit_weight = sum(step.weight for step in unit)
        full = (
            len(batch) + len(unit) > request.max_items or weight + unit_weight > request.max_weight
        )
        if batch and full:
            yield batch
            batch, weight = [], 0
        batch += unit
        weight += unit_weight
    if batch:
        yield batch
