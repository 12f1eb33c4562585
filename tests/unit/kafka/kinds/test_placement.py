"""Where replicas go: as little as possible moves, spread over racks, even over brokers, stable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform_kafka.kinds.topic import placement
from kafkaform_kafka.kinds.topic.placement import (
    Assignment,
    Racks,
    make_move_ticket,
    parse_ticket,
    plan_assignment,
    plan_creation,
)

from ....kit.quick import examples

Case = tuple[Assignment, int, int, Racks]

RACKS = {1: "a", 2: "b", 3: "c"}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A live assignment with a replica here and there on a broker that is gone, and a wish."""
    racks = draw(st.dictionaries(st.integers(1, 6), st.sampled_from("abc"), min_size=1))
    everybody = sorted({*racks, *draw(st.sets(st.integers(7, 8), max_size=1))})
    row = st.lists(st.sampled_from(everybody), min_size=1, max_size=4, unique=True)
    live = tuple(tuple(r) for r in draw(st.lists(row, min_size=1, max_size=6)))
    factor = draw(st.integers(1, len(racks)))
    return live, factor, len(live) + draw(st.integers(0, 3)), racks


def spread(row: Sequence[int], racks: Racks) -> list[int]:
    """Replicas in each rack, most first: the smaller, the more even."""
    return sorted(Counter(racks.get(b, f"gone-{b}") for b in row).values(), reverse=True)


def copied(live: Assignment, there: Assignment) -> int:
    """Replicas that must be copied for partitions that are there."""
    return sum(len(set(b) - set(a)) for a, b in zip(live, there, strict=False))


def choices(row: Sequence[int], factor: int, racks: Racks) -> list[tuple[int, ...]]:
    """All sets of replicas that need no more copies or removals than any other."""
    if len(row) <= factor:
        others = [b for b in racks if b not in row]
        return [(*row, *more) for more in combinations(others, factor - len(row))]
    alive = [b for b in row if b in racks]
    must = len(alive) >= factor
    pool = alive if must else list(row)
    found = list(combinations(pool, factor))
    return [c for c in found if row[0] in c or row[0] not in pool] if must else found


@settings(max_examples=examples(300))
@given(cases())
def test_every_partition_gets_the_wanted_number_of_different_live_brokers(case: Case) -> None:
    """New replicas are on live brokers only, and no broker has a partition twice."""
    live, factor, partitions, racks = case
    there = plan_assignment(live, factor, partitions, racks)
    assert len(there) == partitions
    for number, row in enumerate(there):
        assert len(row) == len(set(row)) == factor
        assert set(row) - {*(live[number] if number < len(live) else ())} <= set(racks)


@settings(max_examples=examples(300))
@given(cases())
def test_no_assignment_moves_less(case: Case) -> None:
    """Raising only adds and lowering only removes, which is the least there can be; a partition
    that has the number already is not touched."""
    live, factor, partitions, racks = case
    there = plan_assignment(live, factor, partitions, racks)
    for old, new in zip(live, there, strict=False):
        if len(old) == factor:
            assert new == old
        elif len(old) < factor:
            assert new[: len(old)] == old
        else:
            assert tuple(b for b in old if b in new) == new
    least = sum(max(0, factor - len(row)) for row in live)
    assert copied(live, there) == least


@settings(max_examples=examples(300))
@given(cases())
def test_the_preferred_leader_stays_while_its_broker_lives(case: Case) -> None:
    """Nobody elects another leader because of a change of numbers."""
    live, factor, partitions, racks = case
    there = plan_assignment(live, factor, partitions, racks)
    for old, new in zip(live, there, strict=False):
        if old[0] in racks or len(old) <= factor:
            assert new[0] == old[0]


@settings(max_examples=examples(300))
@given(cases())
def test_no_choice_spreads_a_partition_better_over_racks(case: Case) -> None:
    """Against every set of replicas that moves as little, tried one by one."""
    live, factor, partitions, racks = case
    for old, new in zip(live, plan_assignment(live, factor, partitions, racks), strict=False):
        assert spread(new, racks) == min(spread(c, racks) for c in choices(old, factor, racks))


@settings(max_examples=examples(300))
@given(cases())
def test_the_same_inputs_give_the_same_and_a_second_run_moves_nothing(case: Case) -> None:
    """Whatever order the brokers are listed in."""
    live, factor, partitions, racks = case
    there = plan_assignment(live, factor, partitions, racks)
    listed = dict(sorted(racks.items(), reverse=True))
    assert plan_assignment(live, factor, partitions, listed) == there
    assert plan_assignment(there, factor, partitions, racks) == there


@settings(max_examples=examples(200))
@given(
    partitions=st.integers(1, 30),
    brokers=st.integers(1, 9),
    data=st.data(),
)
def test_equal_brokers_get_equally_much(partitions: int, brokers: int, data: st.DataObject) -> None:
    """From one replica each, laid out in turn, over brokers in one rack: no broker ends up with
    two replicas more than another, whatever the number."""
    racks = dict.fromkeys(range(1, brokers + 1), "r")
    live = tuple((number % brokers + 1,) for number in range(partitions))
    factor = data.draw(st.integers(1, brokers))
    there = plan_assignment(live, factor, partitions, racks)
    load = Counter(b for row in there for b in row)
    assert max(load[b] for b in racks) - min(load[b] for b in racks) <= 1


@settings(max_examples=examples(300))
@given(cases())
def test_no_single_exchange_would_even_out_the_brokers(case: Case) -> None:
    """Of what was free to choose, nothing can be put on a broker with two replicas less without
    a partition losing spread."""
    live, factor, partitions, racks = case
    there = plan_assignment(live, factor, partitions, racks)
    load = Counter(b for row in there for b in row)
    for old, new in zip(live, there, strict=False):
        for better in choices(old, factor, racks) if len(old) != factor else ():
            came, went = set(better) - set(new), set(new) - set(better)
            if len(came) == 1 and went <= set(racks) and came <= set(racks):
                [b], [a] = came, went
                evener = load[b] + 1 < load[a]
                assert not evener or spread(better, racks) > spread(new, racks)


def test_three_racks_get_one_replica_each() -> None:
    """The plain case, as anybody would do it."""
    assert plan_assignment([(1,), (2,), (3,)], 3, 3, RACKS) == ((1, 2, 3), (2, 1, 3), (3, 1, 2))


def test_lowering_keeps_the_leader_and_takes_from_the_full_brokers() -> None:
    """Two of three stay, the first among them, and every broker gives one."""
    there = plan_assignment([(1, 2, 3), (2, 3, 1), (3, 1, 2)], 2, 3, RACKS)
    assert [row[0] for row in there] == [1, 2, 3]
    assert Counter(b for row in there for b in row) == {1: 2, 2: 2, 3: 2}


def test_a_broker_that_is_gone_loses_its_replicas_first() -> None:
    """Even if it was the preferred leader; raising leaves its replica where it is."""
    assert plan_assignment([(9, 1, 2)], 2, 1, RACKS) == ((1, 2),)
    assert plan_assignment([(9, 1)], 3, 1, RACKS)[0][:2] == (9, 1)


def test_brokers_without_racks_are_racks_of_their_own() -> None:
    """As Kafka's placement has it: they are not one big rack."""
    from ....kit.kafka.changes import FACTS

    assert len(set(placement.live_racks(FACTS).values())) == 3


def test_too_many_replicas_are_refused() -> None:
    """The rules say so first; nobody loops for ever."""
    with pytest.raises(ValueError, match="fewer live brokers"):
        plan_assignment([(1,)], 4, 1, RACKS)


def test_new_partitions_are_created_as_wide_as_the_old_ones() -> None:
    """Kafka refuses another number of replicas there, so the move after it corrects it."""
    assert plan_creation([(3, 1, 2)], 1, RACKS) == ((3,),)
    assert plan_creation([(3,)], 2, RACKS) == ((3, 1),)


def test_a_ticket_names_its_target_and_survives_growth() -> None:
    """Any later process can tell from the text whether the move got there."""
    ticket = parse_ticket(str(make_move_ticket("a.b-c", "id", [(1, 2), (2, 3)])))
    assert isinstance(ticket, placement.MoveTicket) and ticket.topic == "a.b-c"
    assert ticket.matches([(1, 2), (2, 3)]) and ticket.matches([(1, 2), (2, 3), (3, 1)])
    assert not ticket.matches([(2, 1), (2, 3)]) and not ticket.matches([(1, 2)])


def test_a_throttle_ticket_says_all_that_was_set() -> None:
    """Topic, rate and brokers come back from the text; other text is no ticket."""
    ticket = placement.ThrottleTicket("t", "id", 1000, (1, 3))
    assert parse_ticket(str(ticket)) == ticket
    assert [parse_ticket(text) for text in ("", "t", "a/b/c/d", "a/b/throttle/x/1")] == [None] * 4
