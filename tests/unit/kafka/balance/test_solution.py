"""Placements of whole clusters, computed without any cluster."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform_kafka.capacity.projection import Disk
from kafkaform_kafka.placement.problem import Layout, Partition, Problem, Replicas
from kafkaform_kafka.placement.proposal import find_overflows, solve_with_room
from kafkaform_kafka.placement.search import Solution, solve

from ....kit.quick import examples

GIB = 1 << 30
Rows = Sequence[Replicas]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Small clusters: racks or none, brokers that are drained, topics that must stay."""
    count = draw(st.integers(2, 6))
    racks = draw(st.integers(1, count))
    usable = {b: f"r{b % racks}" for b in range(1, count + 1)}
    everywhere = range(1, count + 1 + draw(st.integers(0, 2)))
    partitions = []
    for topic in range(draw(st.integers(1, 4))):
        factor = draw(st.integers(1, min(3, count)))
        movable = draw(st.integers(0, 3)) > 0
        for number in range(draw(st.integers(1, 5))):
            row = draw(st.permutations(everywhere))[:factor]
            size = draw(st.integers(0, 40)) * GIB
            partitions.append(Partition(f"t{topic}", number, tuple(row), size, movable))
    limit = draw(st.none() | st.integers(0, 100).map(lambda gib: gib * GIB))
    return Problem(tuple(partitions), usable, limit)


def count_copied(problem: Problem, rows: Rows) -> int:
    pairs = zip(problem.partitions, rows, strict=True)
    return sum(one.size * len(set(row) - set(one.replicas)) for one, row in pairs)


def measure_spread(problem: Problem, row: Iterable[int]) -> int:
    """The sum of the squares of the racks' shares: lower is more even."""
    racks = Counter(problem.racks.get(broker, f"broker {broker}") for broker in row)
    return sum(share * share for share in racks.values())


def place(problem: Problem, rows: Rows, limit: int | None = None) -> Problem:
    """The problem after the moves."""
    moved = (
        Partition(one.topic, one.number, tuple(row), one.size, one.movable)
        for one, row in zip(problem.partitions, rows, strict=True)
    )
    return Problem(tuple(moved), problem.racks, limit)


def measure_excess(problem: Problem, rows: Rows) -> float:
    """How uneven brokers are, over the bands of the problem."""
    layout = Layout(place(problem, rows))
    before = Layout(problem)
    layout.count_band, layout.size_band = before.count_band, before.size_band
    return layout.measure_all()


@settings(max_examples=examples(400), deadline=None)
@given(problems())
def test_rules_hold_for_every_cluster(problem: Problem) -> None:
    """Replication factors stay, brokers are distinct, what must stay stays, no rack spread gets
    worse, the limit is kept, and the bytes are those of the moves."""
    found = solve(problem)
    assert found.copied == count_copied(problem, found.rows)
    assert problem.max_bytes is None or found.copied <= problem.max_bytes
    stranded = 0
    for one, row in zip(problem.partitions, found.rows, strict=True):
        assert len(set(row)) == len(one.replicas) == len(row)
        if not one.movable:
            assert row == one.replicas
            continue
        left = [broker for broker in row if broker not in problem.racks]
        assert set(left) <= set(one.replicas)
        stranded += len(left)
        if set(one.replicas) <= problem.racks.keys():
            assert measure_spread(problem, row) <= measure_spread(problem, one.replicas)
    assert found.whole == (stranded == 0)
    assert found.whole or problem.max_bytes is not None


@st.composite
def rooms(draw: st.DrawFn, problem: Problem) -> tuple[Disk, ...]:
    """One or two disks for each broker that may have replicas."""
    return tuple(
        Disk(
            broker,
            (f"/{number}",),
            1000 * GIB,
            draw(st.integers(0, 100)) * GIB,
            {(f"old{n}", n): 0 for n in range(draw(st.integers(0, 3)))},
            cordoned=draw(st.integers(0, 9)) == 0,
        )
        for broker in problem.racks
        for number in range(draw(st.integers(1, 2)))
    )


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_every_disk_has_room_for_what_is_copied_to_it(data: st.DataObject) -> None:
    """While old and new replicas exist together; what does not fit stays, and that is said."""
    problem = data.draw(problems())
    disks = data.draw(rooms(problem))
    found = solve_with_room(problem, disks)
    assert not find_overflows(problem, found.rows, disks)
    arrived: Counter[int] = Counter()
    for one, row in zip(problem.partitions, found.rows, strict=True):
        assert len(set(row)) == len(one.replicas)
        for broker in set(row) - set(one.replicas):
            arrived[broker] += one.size
    for broker, size in arrived.items():
        assert size <= sum(disk.usable or 0 for disk in disks if disk.broker == broker)
    stranded = sum(
        broker not in problem.racks
        for one, row in zip(problem.partitions, found.rows, strict=True)
        for broker in row
        if one.movable
    )
    assert found.whole == (stranded == 0)


def test_room_that_suffices_changes_nothing() -> None:
    """The placement of a cluster with large disks is that of one whose disks are unknown."""
    problem = Problem(
        tuple(Partition("t", n, (1, 2), 10 * GIB) for n in range(6)), {1: "a", 2: "b", 3: "c"}
    )
    large = [Disk(b, ("/1",), 1000 * GIB, 900 * GIB, {}) for b in problem.racks]
    assert solve_with_room(problem, large) == solve(problem) == solve_with_room(problem, ())
    full = [Disk(b, ("/1",), 1000 * GIB, 25 * GIB, {}) for b in problem.racks]
    found = solve_with_room(problem, full)
    assert found.copied == 20 * GIB, "two of four replicas fit on broker 3"
    assert solve_with_room(problem, full, {3: 20 * GIB}).copied == 0, "a move takes the room"


@settings(max_examples=examples(300), deadline=None)
@given(problems())
def test_a_solution_is_its_own_solution(problem: Problem) -> None:
    """The proposal for a cluster that follows a proposal is to do nothing."""
    unlimited = Problem(problem.partitions, problem.racks)
    found = solve(unlimited)
    again = solve(place(unlimited, found.rows))
    assert again == Solution(found.rows, 0, whole=True)


@settings(max_examples=examples(200), deadline=None)
@given(problems())
def test_racks_are_used_as_evenly_as_brokers_allow(problem: Problem) -> None:
    """No other choice of brokers spreads a partition more evenly."""
    found = solve(Problem(problem.partitions, problem.racks))
    for one, row in zip(problem.partitions, found.rows, strict=True):
        if one.movable:
            best = min(
                measure_spread(problem, other)
                for other in itertools.combinations(problem.racks, len(row))
            )
            assert measure_spread(problem, row) == best


@settings(max_examples=examples(200), deadline=None)
@given(problems(), st.integers(0, 60))
def test_small_steps_leave_a_broker_in_the_end(problem: Problem, gib: int) -> None:
    """With a limit that lets at least one replica pass, proposals that follow each other end
    where nothing has to be left any more."""
    limit = (40 + gib) * GIB
    current = Problem(problem.partitions, problem.racks, limit)
    for _ in range(len(problem.partitions) * 3 + 1):
        found = solve(current)
        if found.whole:
            break
        assert found.copied > 0
        current = place(current, found.rows, limit)
    assert found.whole


@settings(max_examples=examples(200), deadline=None)
@given(problems())
def test_no_order_of_the_replicas_leads_more_evenly(problem: Problem) -> None:
    """Leaders that exceed the band are as few as any choice among the replicas leaves."""
    found = solve(Problem(problem.partitions, problem.racks))
    count = len(problem.racks)
    led = sum(row[0] in problem.racks for row in found.rows)
    high = -(-led // count)

    def count_excess(firsts: Iterable[int]) -> int:
        shares = Counter(first for first in firsts if first in problem.racks)
        return sum(max(0, share - high) for share in shares.values())

    choices = [
        row if one.movable else row[:1]
        for one, row in zip(problem.partitions, found.rows, strict=True)
    ]
    if len(choices) > 8:
        choices = choices[:8] + [(row[0],) for row in found.rows[8:]]
    best = min(count_excess(firsts) for firsts in itertools.product(*choices))
    assert count_excess(row[0] for row in found.rows) <= best


def test_the_bytes_are_near_the_fewest() -> None:
    """Over many small clusters, at most a tenth more bytes are copied than by the best placement
    that is as even, and no placement is more even."""
    source = random.Random(3)
    copied = fewest = 0
    for _ in range(40):
        count = source.choice([3, 4])
        racks = {b: f"r{b % source.choice([2, count])}" for b in range(1, count + 1)}
        used, factor = range(1, count + source.randrange(2)), source.choice([1, 2])
        problem = Problem(
            tuple(
                Partition(
                    f"t{n}",
                    0,
                    tuple(source.sample(used, factor)),
                    int(source.lognormvariate(0, 1) * 20 * GIB),
                )
                for n in range(4)
            ),
            racks,
        )
        found = solve(problem)
        excess = measure_excess(problem, found.rows)
        spreads = [measure_spread(problem, row) for row in found.rows]
        choices = [
            [
                row
                for row in itertools.combinations(racks, factor)
                if measure_spread(problem, row) <= most
            ]
            for most in spreads
        ]
        others = [
            (measure_excess(problem, rows), count_copied(problem, rows))
            for rows in itertools.product(*choices)
        ]
        assert excess <= min(others)[0] + 1e-4
        copied += found.copied
        fewest += min(cost for other, cost in others if other <= excess + 1e-9)
    assert copied <= 1.1 * fewest


def make_cluster(brokers: int, used: int, partitions: int) -> Problem:
    """Three racks, topics of different sizes, three replicas in three racks on the brokers that
    are used."""
    source = random.Random(1)
    racks = {b: f"r{b % 3}" for b in range(1, brokers + 1)}
    made: list[Partition] = []
    while len(made) < partitions:
        typical = source.lognormvariate(0, 1.5) * GIB
        for number in range(source.choice([1, 3, 6, 12, 24, 48, 96])):
            start = source.randrange(used)
            row = tuple((start + step) % used + 1 for step in range(3))
            size = int(typical * source.lognormvariate(0, 0.7))
            made.append(Partition(f"t{typical}", number, row, size))
    return Problem(tuple(made[:partitions]), racks)


def measure_range(problem: Problem, rows: Rows) -> tuple[float, float, float]:
    """The largest amounts of a broker as parts of the averages: replicas, bytes, leaders."""
    count = len(problem.racks)
    replicas, size, leaders = Counter[int](), Counter[int](), Counter[int]()
    for one, row in zip(problem.partitions, rows, strict=True):
        leaders[row[0]] += 1
        for broker in row:
            replicas[broker] += 1
            size[broker] += one.size
    most = [
        max(found.values()) * count / sum(found.values()) for found in (replicas, size, leaders)
    ]
    return most[0], most[1], most[2]


def test_new_brokers_get_their_share_for_few_bytes() -> None:
    """Three more brokers for 27: at most a fifth more bytes move than what even an ideal placement
    must give them."""
    problem = make_cluster(30, 27, 2_000)
    found = solve(problem)
    everything = sum(one.size * len(one.replicas) for one in problem.partitions)
    assert found.copied <= 1.2 * 0.9 * everything * 3 / 30
    replicas, size, leaders = measure_range(problem, found.rows)
    assert replicas <= 1.11 and size <= 1.11 and leaders <= 1.11


def test_a_drained_broker_gives_away_what_it_has() -> None:
    """At most a tenth more bytes are copied than the broker holds."""
    whole = make_cluster(30, 30, 2_000)
    racks = {broker: rack for broker, rack in whole.racks.items() if broker != 7}
    problem = Problem(whole.partitions, racks)
    found = solve(problem)
    held = sum(one.size for one in problem.partitions if 7 in one.replicas)
    evened = solve(whole).copied
    assert held <= found.copied <= 1.1 * held + evened
    assert not any(7 in row for row in found.rows)


@pytest.mark.slow("ten thousand partitions")
def test_ten_thousand_partitions_take_seconds() -> None:
    """30 brokers, three of them new: processor time, which does not depend on other programs."""
    problem = make_cluster(30, 27, 10_000)
    begin = time.process_time()
    found = solve(problem)
    assert time.process_time() - begin < 60
    assert found.whole and found.copied


def test_a_partition_with_more_replicas_than_brokers_is_refused() -> None:
    """The message names it."""
    problem = Problem((Partition("orders", 4, (1, 2), 0),), {1: "a"})
    with pytest.raises(ValueError, match="partition 4 of orders has 2 replicas, and only 1 broker"):
        solve(problem)


def test_what_is_even_enough_stays() -> None:
    """A difference within the band, or of less than a segment, moves nothing."""
    rows = [(1, 2), (2, 1), (1, 2), (2, 1)]
    sizes = [GIB // 2, 0, 0, 0]
    problem = Problem(
        tuple(
            Partition("t", n, row, size)
            for n, (row, size) in enumerate(zip(rows, sizes, strict=True))
        ),
        {1: "a", 2: "b"},
    )
    assert solve(problem) == Solution(tuple(rows), 0, whole=True)


def test_the_first_replica_stays_where_it_can() -> None:
    """A drained preferred leader is replaced by the replica that takes its place, and all others
    keep theirs."""
    problem = Problem(
        (Partition("t", 0, (3, 1, 2), GIB), Partition("t", 1, (1, 2, 4), GIB)),
        {1: "a", 2: "b", 4: "c"},
    )
    assert solve(problem).rows == ((4, 1, 2), (1, 2, 4))


def test_topics_are_not_gathered_to_even_out_others() -> None:
    """A topic that is spread evenly stays so, although its partitions are the handiest to move."""
    spread = [Partition("even", n, (n + 1,), GIB) for n in range(4)]
    heavy = [Partition(f"h{n}", 0, (1,), 50 * GIB) for n in range(8)]
    problem = Problem((*spread, *heavy), {b: f"r{b}" for b in range(1, 5)})
    rows = solve(problem).rows
    assert sorted(rows[:4]) == [(1,), (2,), (3,), (4,)]
    assert Counter(row[0] for row in rows[4:]) == {1: 2, 2: 2, 3: 2, 4: 2}
