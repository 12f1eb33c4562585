"""Take back moves that the evenness does not need, to copy fewer bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from .exchange import find_bearable
from .layout import Layout

_EQUAL = 1e-9
"""A difference in evenness that is none. Rounding errors are smaller."""
_TRIED = 40
"""Smaller replicas that are tried in place of each one that goes back."""


def take_back(layout: Layout) -> bool:
    """Put replicas back where they were, the largest first, as long as the brokers stay as even;
    if a smaller one can go in its place, in exchange. True if any went back."""
    moved = [
        (layout.sizes[index], index)
        for index, row in enumerate(layout.rows)
        if layout.origins[index].difference(row)
    ]
    reversals = [_take_back_one(layout, index) for _, index in sorted(moved, reverse=True)]
    return any(reversals)


def _take_back_one(layout: Layout, index: int) -> bool:
    for source, target in _list_ways(layout, index):
        if _is_free(layout, source, target, 1, layout.sizes[index]) and layout.can_move(
            index, source, target
        ):
            layout.move(index, source, target)
            return True
    for source, target in _list_ways(layout, index):
        replica = _find_smaller(layout, index, source, target)
        if replica is not None:
            layout.move(index, source, target)
            layout.move(replica, target, source)
            return True
    return False


def _list_ways(layout: Layout, index: int) -> Iterator[tuple[int, int]]:
    """From each broker that is new to the partition to each one that it has left and may have."""
    origin, row = layout.origins[index], layout.rows[index]
    origins = sorted(origin.difference(row).intersection(layout.problem.racks))
    for source in sorted(set(row) - origin):
        yield from ((source, target) for target in origins)


def _is_free(layout: Layout, source: int, target: int, number: int, size: int) -> bool:
    """Whether both brokers stay as even if so many replicas and bytes go from one to the other."""
    now = layout.measure(source) + layout.measure(target)
    then = layout.measure(source, -number, -size) + layout.measure(target, number, size)
    return then <= now + _EQUAL


def _find_smaller(layout: Layout, index: int, source: int, target: int) -> int | None:
    """The smallest replica that can go the other way when this one goes back; None if all leave
    brokers less even, or save nothing."""
    size = layout.sizes[index]
    target_replicas = layout.held[target]
    first = bisect_left(target_replicas, (size - max(0, find_bearable(layout, source, target)), -1))
    for target_size, back in target_replicas[first : first + _TRIED]:
        if target_size >= size:
            return None
        cost = layout.compute_cost(index, source, target)
        cost += layout.compute_cost(back, target, source)
        if (
            cost < 0
            and back != index
            and layout.can_swap(index, back, source, target)
            and _is_free(layout, source, target, 0, size - target_size)
        ):
            return back
    return None
