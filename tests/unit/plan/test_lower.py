"""From changes to waves: the order in which requests leave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Evidence, Repeat, Request, Step
from kafkaform.core.errors import ConfigurationError
from kafkaform.core.value import EMPTY
from kafkaform.plan.lower import CREATING, DELETING, find_needs, is_gate, lower_plan, place_changes
from kafkaform.plan.model import Plan
from kafkaform.plan.rules import UNMANAGED

from ...kit.simulated.engine import identity

TOPICS = Request("CreateTopics", 1, 20, 200, 5000)
CONFIGS = Request("IncrementalAlterConfigs", 1, 31, 500, 5000)
DELETES = Request("DeleteTopics", 2, 50, 200, 5000)


def change(name: str, *requests: Request, needs: str = "", weight: int = 1) -> Change:
    """A change with one step for each request; needs: names of topics, one letter each."""
    deleting = bool(requests) and requests[0].part == DELETING
    steps = tuple(
        Step(
            f"{name}#{n}",
            identity(name),
            f"kafka_topic.{name}",
            request,
            EMPTY,
            weight,
            (),
            Repeat.SAFE,
            Evidence.REMOTE,
        )
        for n, request in enumerate(requests, 1)
    )
    return Change(
        identity(name),
        f"kafka_topic.{name}",
        Action.DELETE if deleting else Action.UPDATE,
        depends_on=tuple(f"kafka_topic.{need}" for need in needs),
        steps=steps,
    )


def plan(*changes: Change) -> Plan:
    return Plan("l", 0, "", {}, changes)


def order(*changes: Change) -> list[list[str]]:
    """Step ids, wave by wave."""
    return [[s.id for b in wave.batches for s in b.steps] for wave in lower_plan(plan(*changes))]


def test_phases_order_a_round() -> None:
    """Topics before configs, whatever the order of the changes."""
    assert order(change("a", CONFIGS), change("b", TOPICS)) == [["b#1"], ["a#1"]]


def test_a_dependency_on_an_earlier_phase_costs_no_round() -> None:
    """Configs of a topic that the same plan creates go in the same round."""
    waves = lower_plan(plan(change("a", TOPICS), change("b", CONFIGS, needs="a")))
    assert [(w.round, w.phase) for w in waves] == [(0, 20), (0, 31)]


def test_a_dependency_on_a_later_or_equal_phase_waits_a_round() -> None:
    """A topic that waits for another topic's configs comes in the next round."""
    assert order(change("a", CONFIGS), change("b", TOPICS, needs="a"), change("c", TOPICS)) == [
        ["c#1"],
        ["a#1"],
        ["b#1"],
    ]
    chain = order(
        change("a", TOPICS), change("b", TOPICS, needs="a"), change("c", TOPICS, needs="b")
    )
    assert chain == [["a#1"], ["b#1"], ["c#1"]]


def test_deletes_come_last_and_backwards() -> None:
    """What depends on a topic goes before that topic."""
    waves = order(
        change("a", DELETES), change("b", DELETES, needs="a"), change("c", CONFIGS, needs="a")
    )
    assert waves == [["c#1"], ["b#1"], ["a#1"]]


def test_a_creation_does_not_wait_for_a_deletion() -> None:
    """Parts are never mixed: the deletion would have to come first and cannot."""
    need = find_needs([change("a", DELETES), change("b", TOPICS, needs="a")])
    assert need == {"a#1": set(), "b#1": set()}


def test_every_step_of_a_change_waits_for_every_step_of_its_needs() -> None:
    """A dependent starts when the whole object is there."""
    need = find_needs([change("a", TOPICS, CONFIGS), change("b", TOPICS, needs="a")])
    assert need["b#1"] == {"a#1", "a#2"}


def test_steps_that_share_a_request_travel_together() -> None:
    """One batch for one request to one instance and one broker."""
    other = replace(TOPICS, node="2")
    wave, *rest = lower_plan(plan(change("a", TOPICS), change("b", other), change("c", TOPICS)))
    assert not rest
    assert [[s.id for s in b.steps] for b in wave.batches] == [["a#1", "c#1"], ["b#1"]]
    assert len({b.id for b in wave.batches}) == 2


def test_instances_never_share_a_batch() -> None:
    """Two clusters, two requests."""
    there = change("b", TOPICS)
    moved = replace(there.steps[0], identity=replace(there.identity, instance="kafka.b"))
    (wave,) = lower_plan(plan(change("a", TOPICS), replace(there, steps=(moved,))))
    assert [b.instance for b in wave.batches] == ["kafka", "kafka.b"]


def elsewhere(name: str, *requests: Request, needs: str = "") -> Change:
    """The same, of another provider."""
    made = change(name, *requests, needs=needs)
    here = replace(made.identity, instance="connect")
    return replace(made, identity=here, steps=tuple(replace(s, identity=here) for s in made.steps))


def test_phases_of_two_providers_are_not_compared() -> None:
    """Numbers that only one of them gave order its own steps: neither are equal ones one wave, nor
    does a lower one of the other provider count as earlier."""
    waves = lower_plan(plan(change("a", TOPICS), elsewhere("b", TOPICS), elsewhere("c", CONFIGS)))
    assert [(w.round, w.provider, w.phase) for w in waves] == [
        (0, "connect", 20),
        (0, "connect", 31),
        (0, "kafka", 20),
    ]
    assert len({b.id for w in waves for b in w.batches}) == 3
    late = lower_plan(plan(elsewhere("a", TOPICS), change("b", CONFIGS, needs="a")))
    assert [(w.round, w.provider) for w in late] == [(0, "connect"), (1, "kafka")]


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(1, 6), st.integers(50, 99)
)
def test_batches_keep_count_and_weight(weights: list[int], items: int, limit: int) -> None:
    """No request passes a cap, no step is lost, and their order stays."""
    request = Request("CreateTopics", 1, 20, items, limit)
    changes = [change(f"t{n}", request, weight=w) for n, w in enumerate(weights)]
    (wave,) = lower_plan(plan(*changes))
    for batch in wave.batches:
        assert len(batch.steps) <= items
        assert len(batch.steps) == 1 or sum(s.weight for s in batch.steps) <= limit
    assert [s.id for b in wave.batches for s in b.steps] == [c.steps[0].id for c in changes]


def test_a_step_over_the_weight_travels_alone() -> None:
    """The broker says what it thinks of it; the others are not held up."""
    small = Request("CreateTopics", 1, 20, 200, 10)
    changes = [change("a", small), change("b", small, weight=99), change("c", small)]
    (wave,) = lower_plan(plan(*changes))
    assert [len(b.steps) for b in wave.batches] == [1, 1, 1]


@pytest.mark.parametrize("request_", [TOPICS, DELETES])
def test_a_circle_is_told_as_one(request_: Request) -> None:
    """Objects that wait for each other are an error with their names, not a crash."""
    with pytest.raises(ConfigurationError, match=r"kafka_topic\.[ab] → kafka_topic\.[ab]"):
        lower_plan(plan(change("a", request_, needs="b"), change("b", request_, needs="a")))


def test_an_object_may_name_itself() -> None:
    """A block that refers to its own address does not wait for itself."""
    assert order(change("a", TOPICS, needs="a")) == [["a#1"]]


def test_blocked_changes_are_not_sent() -> None:
    """Neither their steps nor a wait for them."""
    blocked = replace(change("a", TOPICS), findings=(UNMANAGED.find("there"),))
    assert order(blocked, change("b", CONFIGS, needs="a")) == [["b#1"]]


names = st.sampled_from("abcdef")


@given(
    st.dictionaries(
        names,
        st.tuples(st.sampled_from((TOPICS, CONFIGS, DELETES)), st.sets(names, max_size=3)),
        max_size=6,
    )
)
def test_nothing_leaves_before_what_it_needs(wishes: dict[str, tuple[Request, set[str]]]) -> None:
    """In every plan without a circle, the waves respect every dependency and every part."""
    changes = [
        change(name, request, needs="".join(sorted(n for n in need if n < name)))
        for name, (request, need) in sorted(wishes.items())
    ]
    waves = lower_plan(plan(*changes))
    place = {s.id: n for n, wave in enumerate(waves) for b in wave.batches for s in b.steps}
    assert place.keys() == {s.id for c in changes for s in c.steps}
    for step_id, need in find_needs(changes).items():
        assert all(place[other] < place[step_id] for other in need)
    parts = [wave.part for wave in waves]
    assert parts == sorted(parts)
    assert CREATING < DELETING


# ── groups, ranks, gates, and deletes that go ahead ─────────────────────────────────────

MAKE = Request("CreateAcls", 1, 60, 4, 5000)
ALLOWED = Request("DeleteAcls", 2, 10, 4, 5000)
DENIED = Request("DeleteAcls", 2, 11, 4, 5000, gated=True)
FIRST = replace(ALLOWED, ahead=55)
FIRST_DENIED = replace(DENIED, ahead=56)


def grouped(name: str, request: Request, group: str, rank: int = 0, needs: str = "") -> Change:
    """A change with one step that belongs to a group."""
    made = change(name, request, needs=needs)
    return replace(made, steps=(replace(made.steps[0], group=group, rank=rank),))


def sent(*changes: Change) -> list[list[str]]:
    """Names of the changes, batch by batch."""
    waves = lower_plan(plan(*changes))
    return [[s.id[0] for s in b.steps] for wave in waves for b in wave.batches]


def test_a_group_travels_whole() -> None:
    """A group that no longer fits goes into the next batch whole."""
    a, b, c = (grouped(name, MAKE, "x") for name in "abc")
    d, e = (grouped(name, MAKE, "y") for name in "de")
    assert sent(a, d, b, e, c) == [["a", "b", "c"], ["d", "e"]]


def test_a_group_over_the_cap_is_cut_by_rank() -> None:
    """What is too large for one request leaves lowest rank first."""
    members = [grouped(name, MAKE, "x", rank=1) for name in "abcd"]
    low = [grouped(name, MAKE, "x") for name in "ef"]
    assert sent(*members, *low) == [["e", "f", "a", "b"], ["c", "d"]]


def test_ranks_order_a_batch_and_the_groups() -> None:
    """Inside a batch low ranks go first, and a group with a low rank goes before one without."""
    late = [grouped(name, MAKE, "x", rank=1) for name in "abc"]
    early = [grouped("d", MAKE, "y", rank=1), grouped("e", MAKE, "y")]
    assert sent(*late, *early) == [["e", "d"], ["a", "b", "c"]]


def test_a_gated_step_waits_for_every_round_of_what_it_is_gated_by() -> None:
    """An ACL that is deleted a round later, because another refers to it, holds the gate shut."""
    denied, base = grouped("d", DENIED, ""), grouped("a", ALLOWED, "")
    refers = grouped("b", ALLOWED, "", needs="a")
    assert sent(denied, base, refers) == [["b"], ["a"], ["d"]]


def test_the_gate_is_stronger_than_a_reference() -> None:
    """A DENY that refers to an ALLOW would be deleted before it; the gate keeps it for last."""
    assert sent(grouped("a", ALLOWED, ""), grouped("d", DENIED, "", needs="a")) == [["a"], ["d"]]


def test_a_gate_holds_in_its_own_instance_only() -> None:
    """Another cluster's deletes do not matter."""
    there = grouped("a", ALLOWED, "", needs="b")
    moved = replace(there.steps[0], identity=replace(there.identity, instance="kafka.b"))
    there = replace(there, steps=(moved,))
    waves = lower_plan(plan(there, grouped("d", DENIED, "")))
    assert [(w.round, w.phase) for w in waves] == [(0, 10), (0, 11)]


def test_deletes_go_ahead_only_where_their_group_gets_something() -> None:
    """They leave before the creates of their group; other deletes wait for part 2."""
    swapped, other = grouped("a", FIRST, "x"), grouped("b", FIRST, "y")
    waves = lower_plan(plan(swapped, other, grouped("c", MAKE, "x")))
    assert [(w.part, w.phase, [s.id[0] for b in w.batches for s in b.steps]) for w in waves] == [
        (1, 55, ["a"]),
        (1, 60, ["c"]),
        (2, 10, ["b"]),
    ]


def test_denials_that_go_ahead_are_still_gated() -> None:
    """Ahead, too, the DENY is deleted after the ALLOW."""
    changes = [
        grouped("d", FIRST_DENIED, "x"),
        grouped("a", FIRST, "x"),
        grouped("c", MAKE, "x", rank=1),
    ]
    assert sent(*changes) == [["a"], ["d"], ["c"]]


def test_placing_twice_places_once() -> None:
    """Whoever asks, a delete ahead is where it was put."""
    changes = [grouped("a", FIRST, "x"), grouped("b", FIRST, "y"), grouped("c", MAKE, "x")]
    once = place_changes(changes)
    assert place_changes(once) == once
    assert once[1:] == tuple(changes[1:])


@given(
    st.lists(
        st.tuples(
            st.sampled_from((MAKE, ALLOWED, DENIED, FIRST, FIRST_DENIED)),
            st.sampled_from("xyz"),
            st.integers(0, 1),
        ),
        max_size=20,
    )
)
def test_no_step_is_lost_and_no_gate_opens_early(
    wishes: list[tuple[Request, str, int]],
) -> None:
    """In every mixture each step is sent once, caps hold, and gated deletes of a part come after
    all the others of their request there."""
    changes = [
        grouped(chr(ord("A") + n), request, group, rank)
        for n, (request, group, rank) in enumerate(wishes)
    ]
    waves = lower_plan(plan(*changes))
    flat = [step for wave in waves for batch in wave.batches for step in batch.steps]
    assert sorted(s.id for s in flat) == sorted(c.steps[0].id for c in changes)
    assert all(len(b.steps) <= b.request.max_items for wave in waves for b in wave.batches)
    for at, step in enumerate(flat):
        later = flat[at + 1 :]
        assert not any(is_gate(step.request, other.request) for other in later)
