"""Leaders in the simulated cluster: a leader stays until an election, unless its broker is down."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import FrozenMap

from ...protocol import faults
from ..simulation import (
    CLUSTER,
    AdminAnswer,
    AdminCall,
    Item,
    ItemVerdict,
    ReadScene,
    Refusal,
    RequestResult,
    SimulatedKind,
    SimulatedReads,
    require,
    run_batch,
)
from ..topic import resource_type as topics
from ..topic.simulation import SimulatedTopic, topic_key
from . import resource_type as leaders


def elect_leaders(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """ElectLeaders: the first replica of each named partition becomes its leader if its broker is
    up; partitions are independent of each other."""
    return run_batch(
        call, items, lambda item: topic_key(item["name"]), lambda item: _elect_topic(call, item)
    )


def _elect_topic(call: AdminCall, item: Item) -> ItemVerdict:
    require(call.user.may("Alter", CLUSTER), 31)
    topic: SimulatedTopic | None = call.world.of(topics.KIND).get(item["name"])
    named = [int(number) for number in item["leaders"]]
    if topic is None or any(number >= topic.partitions for number in named):
        raise Refusal(3)
    able = [n for n in named if topic.assignment[n][0] in call.brokers]
    led = replace(topic, leaders=topic.leaders.without(map(str, able)))
    code = 0 if able == named else 80
    return AdminAnswer(code, made=led), led, int(led != topic)


def _check_step(scene: ReadScene, step: Step) -> Fault | None:
    """The check that replaces a dry run: right, topic and first replicas."""
    name = step.payload["name"]
    topic = scene.objects(topics.KIND).get(name)
    if not scene.user.may("Alter", CLUSTER):
        return faults.fault_of(leaders.API, 31, name)
    if topic is None:
        return faults.fault_of("Metadata", 3, name)
    first = {str(number): row[0] for number, row in enumerate(topic.assignment)}
    targets = step.payload["leaders"]
    if topic.id == step.payload["topic_id"] and all(first.get(n) == targets[n] for n in targets):
        return None
    cause = f"{name} was recreated or moved outside kafkaform"
    return Fault("MOVED", cause, FaultClass.DEFINITE, where=leaders.API, advice="plan again")


def _sweep(_: ReadScene, depth: Depth) -> Sweep:
    return Sweep(leaders.KIND, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def _read(scene: ReadScene, identity: Identity) -> Reading:
    name = identity.key
    if not scene.user.may_on_topic("Describe", name):
        return Hidden(identity, faults.name_right("Metadata", name))
    topic: SimulatedTopic | None = scene.objects(topics.KIND).get(name)
    if topic is None:
        return Absent(identity)
    first = {str(number): row[0] for number, row in enumerate(topic.assignment)}
    now = {n: _find_leader(topic, n, scene.live) for n in range(topic.partitions)}
    attributes = leaders.make_attributes(name, now)
    return Observed(
        identity,
        attributes,
        topic.id,
        details=FrozenMap(
            preferred=FrozenMap(first),
            ready=tuple(n for n, broker in first.items() if broker in scene.live),
        ),
        foreign=leaders.find_foreign_paths(attributes),
    )


def _find_leader(topic: SimulatedTopic, number: int, live: Sequence[int]) -> int:
    choices = (topic.led[number], *topic.assignment[number])
    return next((broker for broker in choices if broker in live), -1)


SIMULATED = SimulatedKind(
    reads=SimulatedReads("ListTopics", "DescribeTopics", "Metadata", _sweep, _read),
    handlers={leaders.API: elect_leaders},
    checks={leaders.API: _check_step},
)
