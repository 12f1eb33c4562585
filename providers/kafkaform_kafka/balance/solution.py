"""Compute a placement: the goals in their order.

1. No replica is on a broker that must be left (drained, dead, not named).
2. The replicas of each partition are spread over the racks as evenly as possible.
3. Replicas and bytes are even over the brokers, within a band around the average.
4. Preferred leaders are even over the brokers, within a band.
5. As few bytes as possible are copied.

Each goal is reached without giving up an earlier one, and a topic is concentrated on a broker only
if the third goal needs it. The third is a local search, which guarantees nothing; its tests compare
it with the best of all placements of small clusters.
"""

from __future__ import annotations

from msgspec import Struct

from .exchange import Search, Worth, by_gain, by_gain_per_byte
from .layout import Layout
from .leadership import even_out_leaders
from .problem import Problem, Replicas
from .repair import leave_brokers, spread_over_racks
from .reversal import take_back

_ROUNDS = 20
"""Searches, each after moves were taken back. Two or three are usual."""


class Solution(Struct, frozen=True):
    """A placement."""

    rows: tuple[Replicas, ...]
    """The replicas of each partition of the problem, in its order."""
    copied: int
    """Bytes that the moves copy."""
    whole: bool
    """False if the limit on bytes keeps replicas on brokers that must be left."""


def solve(problem: Problem) -> Solution:
    """The placement for a problem. The same problem has the same solution, and the solution of its
    solution is itself, unless a limit on bytes cut it short. Raises ValueError if a partition has
    more replicas than there are brokers for it."""
    attempts = [_place(problem, worth) for worth in (by_gain, by_gain_per_byte)]
    # Evenness first, but not a difference of less than a hundredth of the average.
    layout = min(attempts, key=lambda attempt: (round(attempt.measure_all(), 4), attempt.copied))
    rows = [
        _order_row(partition.replicas, row)
        for partition, row in zip(problem.partitions, layout.rows, strict=True)
    ]
    movable = [partition.movable for partition in problem.partitions]
    return Solution(
        even_out_leaders(rows, movable, layout.brokers),
        layout.copied,
        whole=not layout.list_stranded(),
    )


def _place(problem: Problem, worth: Worth) -> Layout:
    layout = Layout(problem)
    if not leave_brokers(layout):
        return layout
    spread_over_racks(layout)
    for _ in range(_ROUNDS):
        # Each pair of calls makes the brokers more even, or copies less and leaves them as even as
        # they are.
        Search(layout, worth).run()
        if not take_back(layout):
            break
    return layout


def _order_row(replicas: Replicas, after: list[int]) -> Replicas:
    """The replicas that stay keep their places, and new ones take those of the others."""
    added = iter(sorted(set(after).difference(replicas)))
    return tuple(broker if broker in after else next(added) for broker in replicas)
