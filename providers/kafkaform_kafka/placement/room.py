"""A placement for which the disks of the brokers have room.

A broker puts a new replica into the log directory with the fewest replicas, however full it is. So
the room of a broker with several disks depends on which replicas it gets, and in which order: the
search takes the sum, and a solution that would overflow a disk is computed again with less room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ..capacity.projection import Disk, choose_disk
from .problem import Problem, Replicas
from .search import Solution, solve

_ROUNDS = 4
"""Solutions with less room before an overflowing broker gets nothing more."""


def solve_with_room(
    problem: Problem, disks: Sequence[Disk], pending: Mapping[int, int] = {}
) -> Solution:
    """The placement that fits on these disks. pending: broker -> bytes that moves which run already
    still copy to it. A broker with a disk of unknown size has no limit. Raises ValueError as
    `solve`."""
    room = _add_up_room(disks, pending)
    rounds = 0
    while True:
        solution = solve(replace(problem, room=room))
        overflows = find_overflows(problem, solution.rows, disks, pending)
        if not overflows:
            return solution
        rounds += 1
        room = {
            **room,
            **{
                broker: max(0, arrivals - excess) if rounds < _ROUNDS else 0
                for broker, (arrivals, excess) in overflows.items()
            },
        }


def _add_up_room(disks: Sequence[Disk], pending: Mapping[int, int]) -> dict[int, int]:
    room: dict[int, int] = defaultdict(int)
    for disk in disks:
        room[disk.broker] += 0 if disk.cordoned else disk.usable or 0
    unknown = {disk.broker for disk in disks if disk.usable is None}
    return {
        broker: max(0, size - pending.get(broker, 0))
        for broker, size in room.items()
        if broker not in unknown
    }


def find_overflows(
    problem: Problem,
    rows: Sequence[Replicas],
    disks: Sequence[Disk],
    pending: Mapping[int, int] = {},
) -> Mapping[int, tuple[int, int]]:
    """Broker -> bytes that are copied to it, and by how much that is too much for one of its
    disks."""
    by_broker: dict[int, list[Disk]] = defaultdict(list)
    for disk in disks:
        by_broker[disk.broker].append(disk)
    counts = {(disk.broker, disk.directories): disk.load for disk in disks}
    arrivals: dict[int, int] = defaultdict(int)
    copied: dict[tuple[int, tuple[str, ...]], int] = defaultdict(int)
    for partition, row in zip(problem.partitions, rows, strict=True):
        for broker in sorted(set(row).difference(partition.replicas)):
            arrivals[broker] += partition.size
            target = choose_disk(by_broker[broker], counts)
            if target is not None:
                counts[broker, target.directories] += 1
                copied[broker, target.directories] += partition.size
    overflows: dict[int, tuple[int, int]] = {}
    for disk in disks:
        # Nobody knows which of several disks the running copies go to.
        size = copied[disk.broker, disk.directories] + pending.get(disk.broker, 0)
        excess = 0 if disk.usable is None else size - disk.usable
        if excess > 0 and copied[disk.broker, disk.directories]:
            worst = max(excess, overflows.get(disk.broker, (0, 0))[1])
            overflows[disk.broker] = (arrivals[disk.broker], worst)
    return overflows
