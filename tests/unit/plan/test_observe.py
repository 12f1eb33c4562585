"""Only a proven absence is an absence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action
from kafkaform.core.clock import SimulatedClock
from kafkaform.core.errors import PlanRefused
from kafkaform.core.finding import Block
from kafkaform.core.resource import (
    Absent,
    Depth,
    Desired,
    Failed,
    FolderObjects,
    Hidden,
    Identity,
    Observed,
    Output,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.plan.build import count_unmanaged
from kafkaform.plan.codec import encode
from kafkaform.plan.model import Unmanaged
from kafkaform.plan.observe import confirm_absent, read_world
from kafkaform.provider.contract import Session
from kafkaform.state.model import State
from kafkaform_kafka.memory import MemoryProvider

from ...kit.findings import list_notes
from ...kit.simulated.engine import KAFKA, House, apply, desired, house, identity, plan, topic
from .worlds import absent, live, planned, row, state

A = identity("a")


def session(where: House, said: Desired) -> Session:
    config = said.providers[KAFKA].config
    return where.providers[KAFKA].open(KAFKA, config, {})


def reading(
    where: House, said: Desired, recorded: State, *, settle: float = 0.0, with_session: bool = True
) -> Reading:
    """What is known of topic `a` after gathering."""
    sessions = {KAFKA: session(where, said)} if with_session else {}
    return read_world(sessions, said, recorded, where.clock, settle=settle)[KAFKA].readings[A]


def test_a_recorded_object_is_absent_when_every_broker_says_so() -> None:
    """All three brokers were asked, and none has it."""
    where = house(brokers=3)
    before = where.cluster.requests["DescribeTopics"]
    assert isinstance(reading(where, desired(), state(row())), Absent)
    assert where.cluster.requests["DescribeTopics"] - before == 1 + 3


def test_a_declared_object_costs_one_read() -> None:
    """What nobody recorded needs no proof: the create would be refused."""
    where = house(brokers=3)
    before = where.cluster.requests["DescribeTopics"]
    assert isinstance(reading(where, desired(topic("a")), state()), Absent)
    assert where.cluster.requests["DescribeTopics"] - before == 1


def test_what_a_listing_shows_in_full_is_not_read_again() -> None:
    """The other objects are read by name, because a listing proves no absence."""
    where = house()
    with where.cluster.others() as others:
        others.create("a", 2)
    said = desired(topic("a"), topic("b"))
    opened = Listing(session(where, said))
    readings = read_world({KAFKA: opened}, said, state(), where.clock)[KAFKA].readings
    assert opened.read_by_name == [identity("b")]
    assert isinstance(readings[A], Observed) and isinstance(readings[identity("b")], Absent)


def test_what_is_as_recorded_is_in_memory_once() -> None:
    """The attributes of an object are most of what it takes. One that differs is as it was read."""
    where = house()
    with where.cluster.others() as others:
        others.create("a", 2)
        others.create("b", 2)
    said = desired(topic("a"), topic("b"))
    opened = Listing(session(where, said))
    [a, b] = (opened.read([each])[each] for each in (A, identity("b")))
    assert isinstance(a, Observed) and isinstance(b, Observed)
    rows = [
        replace(row("a"), attributes=a.attributes),
        replace(row("b"), attributes=b.attributes.with_items({"partitions": 1})),
    ]
    seen = read_world({KAFKA: opened}, said, state(*rows), where.clock)[KAFKA]
    assert seen.readings == {A: a, identity("b"): b}
    [listed] = seen.sweeps.values()
    for found in (seen.readings, {item.identity: item for item in listed.items}):
        assert isinstance(found[A], Observed) and found[A].attributes is rows[0].attributes


class Listing:
    """A session that reads what it lists, and records what is read by name."""

    def __init__(self, inner: Session, older: Mapping[str, Any] = EMPTY) -> None:
        """older: attributes that the listing shows as they were before."""
        self._inner, self._older = inner, older
        self.read_by_name: list[Identity] = []

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        found = self._inner.sweep(kind, depth)
        readings = self._inner.read(full).values()
        whole = {
            each.identity: replace(each, attributes=each.attributes.with_items(self._older))
            for each in readings
            if isinstance(each, Observed)
        }
        items = tuple(whole.get(item.identity, item) for item in found.items)
        return replace(found, items=items, full=frozenset(whole))

    def read(self, ids: Sequence[Identity], **how: Any) -> Mapping[Identity, Reading]:
        self.read_by_name += ids
        return self._inner.read(ids, **how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_one_broker_that_sees_it_is_enough() -> None:
    """A broker that lags behind does not make a topic disappear."""
    where = house(brokers=3)
    where.cluster.lag(seconds=60, broker=1)
    with where.cluster.others() as others:
        made = others.create("a", 2)
    found = reading(where, desired(), state(row(id=made.id)))
    assert isinstance(found, Observed) and found.incarnation == made.id


def test_one_broker_that_does_not_answer_makes_it_unreadable() -> None:
    """Nobody knows what the silent broker would have said."""
    where = house(brokers=3)
    said = desired()
    opened = session(where, said)
    where.cluster.hang(2)
    world = read_world({KAFKA: opened}, said, state(row()), where.clock)
    assert isinstance(world[KAFKA].readings[A], Failed)


def test_live_brokers_are_asked_anew() -> None:
    """One that died since the connection began, and that the cluster counts as dead, can hold up
    nothing; one that came since is asked too."""
    where = house(brokers=3)
    said = desired()
    where.cluster.stop(3)
    opened = session(where, said)
    where.cluster.stop(2)
    world = read_world({KAFKA: opened}, said, state(row()), where.clock)
    assert isinstance(world[KAFKA].readings[A], Absent)
    where.cluster.start(3)
    where.cluster.hang(3)
    world = read_world({KAFKA: opened}, said, state(row()), where.clock)
    assert isinstance(world[KAFKA].readings[A], Failed)


def test_a_broker_that_is_known_to_be_down_is_not_asked() -> None:
    """Every live broker: who is gone for good cannot hold up everything."""
    where = house(brokers=3)
    where.cluster.stop(2)
    assert isinstance(reading(where, desired(), state(row())), Absent)


def test_after_a_recent_write_an_absence_must_last() -> None:
    """Reads lag: within `settle` seconds the topic may still appear."""
    where = house()
    where.cluster.lag(seconds=2)
    with where.cluster.others() as others:
        made = others.create("a")
    assert isinstance(reading(where, desired(), state(row(id=made.id)), settle=4), Observed)
    with where.cluster.others() as others:
        others.delete("a")
    where.clock.advance(2)
    start = where.clock.monotonic()
    assert isinstance(reading(where, desired(), state(row(id=made.id)), settle=4), Absent)
    assert where.clock.monotonic() - start >= 4


def test_a_change_counts_once_all_brokers_show_it() -> None:
    """A broker that lags behind shows what was there before: the plan waits for it, however long
    ago the last write is, and is not made from values that the next read would call stale."""
    for settle in (0.0, 4.0):
        where = house(brokers=3)
        with where.cluster.others() as others:
            made = others.create("a")
            where.cluster.lag(seconds=2, broker=1)
            others.grow("a", 3)
        recorded = state(row(partitions=3, id=made.id))
        start = where.clock.monotonic()
        found = reading(where, desired(), recorded, settle=settle)
        assert isinstance(found, Observed) and found.attributes["partitions"] == 3
        assert 2 <= where.clock.monotonic() - start < 4


def test_after_a_recent_write_a_single_broker_is_asked_once_more() -> None:
    """It lags behind its own log for a moment, and its listing may be from before the write."""
    where = house()
    with where.cluster.others() as others:
        made = others.create("a", 3)
    said, recorded = desired(), state(row(partitions=3, id=made.id))
    opened = Listing(session(where, said), older={"partitions": 1})
    for settle, partitions in ((0.0, 1), (4.0, 3)):
        world = read_world({KAFKA: opened}, said, recorded, where.clock, settle=settle)
        found = world[KAFKA].readings[A]
        assert isinstance(found, Observed) and found.attributes["partitions"] == partitions


def test_what_all_brokers_show_is_a_change_at_once() -> None:
    """Somebody else's change is drift, however recent our own write is."""
    where = house(brokers=3)
    with where.cluster.others() as others:
        made = others.create("a", 2)
    said, recorded = desired(), state(row(partitions=1, id=made.id))
    opened = session(where, said)
    start = where.clock.monotonic()
    world = read_world({KAFKA: opened}, said, recorded, where.clock, settle=4)
    found = world[KAFKA].readings[A]
    assert isinstance(found, Observed) and found.attributes["partitions"] == 2
    assert where.clock.monotonic() == start


def test_brokers_that_never_agree_hold_up_a_plan_for_a_limited_time() -> None:
    """The plan is then made from what the usual broker shows, and names all of them with their
    values."""
    where = house(brokers=3)
    assert apply(where, desired(topic("a", 3))).report is not None
    where.clock.advance(3600)
    where.cluster.lag(seconds=60, broker=3)
    with where.cluster.others() as others:
        others.alter("a", {"retention.ms": "60000"})
    start = where.clock.monotonic()
    (change,) = plan(where, desired(topic("a", 3))).changes
    assert 4 <= where.clock.monotonic() - start <= 5
    assert list_notes(change) == (
        "the brokers disagree: config.retention.ms is 1 min (60000) on broker 1, 2, and not set on "
        "broker 3",
    )


def test_what_may_not_be_seen_is_hidden_not_absent() -> None:
    """The right that is missing is named."""
    where = house()
    where.cluster.grant("ci", ("Describe", "topic:other"))
    where.providers = {KAFKA: MemoryProvider(where.cluster, "ci")}
    found = reading(where, desired(topic("a")), state(row()))
    assert isinstance(found, Hidden) and "Describe" in found.right


def test_rows_of_a_provider_that_is_gone_cannot_be_read() -> None:
    """They are blocked, with the advice to keep the provider block."""
    found = reading(house(), desired(), state(row()), with_session=False)
    assert isinstance(found, Failed) and "provider block" in found.fault.advice


def test_unmanaged_objects_are_those_that_nobody_names() -> None:
    """Declared and recorded ones are not, internal ones are nobody's business."""
    where = house()
    with where.cluster.others() as others:
        for name in ("a", "b", "x", "y", "__consumer_offsets"):
            others.create(name)
    said = desired(topic("a"))
    world = read_world({KAFKA: session(where, said)}, said, state(row("b")), where.clock)
    assert count_unmanaged(world[KAFKA]) == (Unmanaged("kafka_topic", 2, ("x", "y")),)
    elsewhere = FolderObjects(frozenset({Identity(KAFKA, "kafka_topic", "x")}))
    assert count_unmanaged(world[KAFKA], elsewhere) == (Unmanaged("kafka_topic", 1, ("y",)),)


def test_another_cluster_under_the_same_address_is_refused() -> None:
    """A state of one cluster never plans against another."""
    recorded = State("l", 1, {}, FrozenMap(kafka="other-cluster"))
    with pytest.raises(PlanRefused, match="other-cluster"):
        planned(desired(topic("a")), [absent()], recorded)


# ── the rest of a plan ──────────────────────────────────────────────────────────────────


def test_a_plan_names_the_first_unmanaged_objects_and_counts_all() -> None:
    """Fifty strangers do not fill the screen."""
    strangers = [live(f"x{n:02}", id=f"i{n}") for n in range(50)]
    plan = planned(desired(), [], unmanaged=strangers)
    (found,) = plan.instances[KAFKA].unmanaged
    assert (found.count, found.names[0], len(found.names)) == (50, "x00", 10)


def test_unchanged_objects_are_counted_and_drifted_ones_shown() -> None:
    """A plan of ten thousand topics shows the ones that matter."""
    said = desired(topic("a"), topic("b", config={"retention.ms": "7"}))
    readings = [live("a"), live("b", id="id-b", config={"retention.ms": "7"})]
    recorded = state(row("a"), row("b", id="id-b", config={"retention.ms": "1"}))
    shown = planned(said, readings, recorded)
    assert [c.address for c in shown.drifted] == ["kafka_topic.b"]
    assert shown.effective == () and shown.unchanged == 1


def test_outputs_show_what_differs_from_the_record() -> None:
    """New, changed, gone and deferred ones show; equal ones do not."""
    recorded = State(
        "lineage",
        3,
        {},
        FrozenMap(kafka="cluster-1"),
        FrozenMap(
            same=FrozenMap(value="1", sensitive=False),
            gone=FrozenMap(value="2", sensitive=False),
            other=FrozenMap(value="3", sensitive=False),
        ),
    )
    outputs = (
        Output("same", "1"),
        Output("other", "4"),
        Output("new", "5"),
        Output("later", None, deferred=True),
    )
    plan = planned(desired(outputs=outputs), [], recorded)
    shown = [
        (o.before.value if o.before else None, o.after.value if o.after else None)
        for o in plan.outputs
    ]
    assert shown == [("2", None), (None, None), (None, "5"), ("3", "4")]


def test_a_change_that_no_broker_could_make_stops_the_plan() -> None:
    """Fewer partitions: blocked, and an apply sends nothing at all."""
    plan = planned(desired(topic("a", 1)), [live(partitions=3)], state(row(partitions=3)))
    (blocked,) = plan.list_blocked(stopping=True)
    assert blocked.blocked is not None and blocked.blocked.block is Block.IMPOSSIBLE
    assert blocked.steps == ()


def test_names_that_collide_are_blocked_before_anything_is_sent() -> None:
    """a.b and a_b are one name to Kafka's metrics; the dry run would see one of the cases only."""
    said = desired(topic("a.b", address="kafka_topic.one"), topic("a_b"))
    plan = planned(said, [absent("a.b"), absent("a_b")])
    assert {c.blocked.block for c in plan.changes if c.blocked} == {Block.CONFLICT}


def test_equal_worlds_make_equal_plans() -> None:
    """The same inputs give the same bytes, so a review can be checked by making it again."""
    said = desired(topic("b", 2), topic("a", owner="x", labels={"z": "1", "y": "2"}))
    again = desired(*reversed(said.declared))
    one = planned(said, [absent("a"), live("b")], state(row("b")))
    two = planned(again, [live("b"), absent("a")], state(row("b")))
    assert [c.action for c in one.changes] == [Action.CREATE, Action.UPDATE]
    assert encode(one) == encode(planned(said, [live("b"), absent("a")], state(row("b"))))
    assert one.approval == two.approval


def test_one_node_that_knows_the_container_is_enough() -> None:
    """What an object lacks is told only if no node has it: one of them may lag behind."""
    said = {"1": Absent(A, lacks="the box"), "2": Absent(A), "3": Absent(A, lacks="the box")}

    def ask(nodes: Sequence[str]) -> Reading:
        session: Any = SimpleNamespace(
            live_nodes=lambda: nodes, read=lambda ids, *, at: dict.fromkeys(ids, said[at])
        )
        return confirm_absent(session, [A], SimulatedClock(), 0.0)[A]

    assert ask("13") == Absent(A, lacks="the box")
    assert ask("123") == ask("321") == Absent(A)
