"""Whatever happens to the simulated cluster, outcomes are true and brokers catch up."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaform.core.change import Action, OutcomeStatus, Step
from kafkaform.core.resource import Depth, Observed
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.testing.workbench import Bench
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.memory import (
    Killed,
    SimulatedTopic,
    killed_after,
    killed_before,
    late_effect,
    lost_reply,
    lost_request,
    not_sent,
    refused_items,
    throttled_items,
)

from ..kit.kafka.topic_systems import SimulatedSystem
from ..kit.quick import examples

NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "c"])
CONFIGS = st.dictionaries(
    st.sampled_from(["flush.ms", "retention.ms", "cleanup.policy", "no.such"]),
    st.sampled_from(["1", "delete", "compact", "-1"]),
    max_size=2,
)
MISHAPS = st.sampled_from(
    [
        not_sent(),
        lost_request(),
        lost_reply(),
        late_effect(20),
        killed_before(),
        killed_after(),
        killed_after(20),
        throttled_items(1, first=1),
        refused_items(44, "a*"),
        refused_items(41),
    ]
)
APIS = st.sampled_from(["*", "CreateTopics", "CreatePartitions", "DeleteTopics", "*Topics"])


class Cluster(RuleBasedStateMachine):
    """Requests, mishaps, outside edits, lag and outages in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.system = SimulatedSystem(brokers=3)
        self.cluster = self.system.cluster
        self.bench = Bench(self.system)
        self.partitions: dict[str, int] = {}
        self.names: dict[str, str] = {}

    def _send(self, steps: list[Step]) -> None:
        before = dict(self.cluster.topics)
        try:
            outcomes = self.bench.send(self.bench.make_batch(steps))
        except Killed:
            return
        for step, outcome in zip(steps, outcomes, strict=True):
            name = step.identity.key
            changed = before.get(name) != self.cluster.topics.get(name)
            if outcome.status is OutcomeStatus.FAILED and len({s.identity for s in steps}) == 1:
                assert not changed, f"{outcome} but {name} changed"
            if outcome.status is OutcomeStatus.APPLIED:
                assert _holds(step, self.cluster.topics), f"{outcome} but no effect"

    @rule(names=st.lists(NAMES, min_size=1, max_size=3), count=st.integers(0, 4), config=CONFIGS)
    def create(self, names: list[str], count: int, config: dict[str, str]) -> None:
        given = {"partitions": count, "config": FrozenMap(config)}
        wanted = [self.system.fresh(FrozenMap({"name": name, **given})) for name in names]
        self._send([self.bench.make_creation(attributes) for attributes in wanted])

    @precondition(lambda self: self.cluster.topics)
    @rule(data=st.data(), count=st.integers(1, 6), config=CONFIGS)
    def update(self, data: st.DataObject, count: int, config: dict[str, str]) -> None:
        topic = data.draw(st.sampled_from(sorted(self.cluster.topics.values(), key=str)))
        declared = self.system.fresh(
            FrozenMap({"name": topic.name, "partitions": count, "config": FrozenMap(config)})
        )
        before = self._observed(topic)
        after = self.bench.compute_target(declared, before)
        change = self.bench.make_change(Action.UPDATE, declared, before, after)
        for step in self.bench.list_steps(change):
            self._send([step])

    @precondition(lambda self: self.cluster.topics)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        topic = data.draw(st.sampled_from(sorted(self.cluster.topics.values(), key=str)))
        declared = self.system.fresh(FrozenMap({"name": topic.name}))
        change = self.bench.make_change(Action.DELETE, declared, self._observed(topic), None)
        self._send(list(self.bench.list_steps(change)))

    @precondition(lambda self: self.cluster.topics)
    @rule(data=st.data())
    def outside_recreates(self, data: st.DataObject) -> None:
        self.cluster.outside.recreate(data.draw(st.sampled_from(sorted(self.cluster.topics))))

    @rule(mishap=MISHAPS, api=APIS, skip=st.integers(0, 2))
    def plan_mishap(self, mishap: object, api: str, skip: int) -> None:
        self.cluster.faults.schedule(mishap, api, skip=skip)  # type: ignore[arg-type]

    @rule(reads=st.integers(0, 3), seconds=st.integers(0, 9), broker=st.integers(1, 3))
    def lag(self, reads: int, seconds: int, broker: int) -> None:
        self.cluster.lag(reads=reads, seconds=seconds, broker=broker)

    @rule(broker=st.integers(1, 3), up=st.booleans())
    def power(self, broker: int, up: bool) -> None:
        (self.cluster.start if up else self.cluster.stop)(broker)

    @rule(seconds=st.integers(1, 15))
    def wait(self, seconds: int) -> None:
        self.cluster.clock.sleep(seconds)

    @rule()
    def every_broker_catches_up(self) -> None:
        self.cluster.faults.clear()
        self.cluster.clock.sleep(20)
        list(self.cluster.world)  # what was under way has landed, and may lag from now on
        self.cluster.clock.sleep(10)
        truth = dict(self.cluster.topics)
        for node in self.cluster.live:
            views = [self.cluster.look("DescribeTopics", node).topics for _ in range(5)]
            assert dict(views[-1]) == truth

    @invariant()
    def identities_hold(self) -> None:
        for topic in self.cluster.topics.values():
            assert self.names.setdefault(topic.id, topic.name) == topic.name
            assert self.partitions.get(topic.id, 0) <= topic.partitions
            self.partitions[topic.id] = topic.partitions

    def _observed(self, topic: SimulatedTopic) -> Observed:
        attributes = {
            "name": topic.name,
            "partitions": topic.partitions,
            "replication_factor": topic.replication_factor,
            "replica_assignment": topic.assignment,
            "config": topic.config,
        }
        identity = self.bench.make_identity(FrozenMap({"name": topic.name}))
        return Observed(identity, FrozenMap(attributes), topic.id)


def _holds(step: Step, living: Mapping[str, SimulatedTopic]) -> bool:
    topic, payload = living.get(step.identity.key), step.payload
    if step.request.name == "DeleteTopics":
        return topic is None or topic.id != payload["topic_id"]
    if topic is None:
        return False
    if step.request.name == "IncrementalAlterConfigs":
        return all(topic.config.get(key) for key in payload["set"]) and not (
            set(payload["delete"]) & set(topic.config)
        )
    return topic.partitions == payload.get("count", payload.get("partitions"))


Cluster.TestCase.settings = settings(
    max_examples=examples(60),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestCluster = Cluster.TestCase


def test_a_thousand_topics_take_no_time() -> None:
    """Property tests can afford big clusters: 1,000 creates, a listing and a read of each."""
    system = SimulatedSystem()
    with Bench(system) as bench:
        names = [system.fresh(EMPTY) for _ in range(1000)]
        bench.send(bench.make_batch([bench.make_creation(attributes) for attributes in names]))
        listing = bench.session.sweep(topics.KIND, Depth.FULL)
        readings = bench.read([bench.make_identity(attributes) for attributes in names])
        assert len(listing.items) == 1000
        assert all(isinstance(reading, Observed) for reading in readings.values())
    assert system.cluster.requests.total() == 3
