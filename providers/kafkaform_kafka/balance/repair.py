"""Leave brokers that may have no replicas, and spread partitions over racks."""

from __future__ import annotations

from .layout import Layout


def leave_brokers(layout: Layout) -> bool:
    """Move all movable replicas off brokers that must be left; False if the limit on bytes keeps
    some of them there.

    The largest replicas are placed first, each on the least loaded broker (LPT rule: R. Graham,
    "Bounds on multiprocessing timing anomalies", 1969). Raises ValueError if a partition has more
    replicas than there are brokers.
    """
    whole = True
    for _, index, source in layout.list_stranded():
        row = layout.rows[index]
        choices = [b for b in layout.brokers if b not in row]
        if not choices:
            partition = layout.problem.partitions[index]
            raise ValueError(
                f"partition {partition.number} of {partition.topic} has {len(row)} replicas, and "
                f"only {len(layout.brokers)} brokers may have them"
            )
        topic = layout.topics[layout.topic_of[index]]
        share = layout.topic_shares[layout.topic_of[index]]
        target = min(
            choices,
            key=lambda b: (
                layout.count_in_rack(index, layout.racks[b]),
                topic[b] >= share,
                layout.compute_load(b),
                b,
            ),
        )
        if layout.can_afford(layout.compute_cost(index, source, target)):
            layout.move(index, source, target)
        else:
            whole = False
    return whole


def spread_over_racks(layout: Layout) -> None:
    """Make the spread of each movable partition over the racks as even as possible."""
    # The sum of the squares of the racks' shares falls with each exchange. It is convex, so that
    # single exchanges reach its minimum (M-convexity: K. Murota, "Discrete Convex Analysis", 2003).
    for index, partition in enumerate(layout.problem.partitions):
        while partition.movable and _improve_spread(layout, index):
            pass


def _improve_spread(layout: Layout, index: int) -> bool:
    row, spread = layout.rows[index], layout.spreads[index]
    fullest = max(map(spread.count, spread))
    if fullest == 1:
        return False
    choices = [
        (spread.count(layout.racks[target]), layout.compute_load(target), target)
        for target in layout.brokers
        if target not in row
    ]
    if not choices or min(choices)[0] + 1 >= fullest:
        return False
    target = min(choices)[2]
    full = [b for b in row if spread.count(layout.racks[b]) == fullest]
    source = max(
        full, key=lambda b: (-layout.compute_cost(index, b, target), layout.compute_load(b), b)
    )
    if not layout.can_afford(layout.compute_cost(index, source, target)):
        return False
    layout.move(index, source, target)
    return True
