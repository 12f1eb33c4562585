"""`kafka_topic_leaders`: the leaders of a topic's partitions, which `alter` can change.

No block declares leaders and no state records them, because brokers change them at any time. But an
election that somebody asks for is planned, approved, logged and recovered like any other change.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform.core.change import Action, Change, Evidence, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, make_schema, map_of
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from ..kind import ELECT_LEADERS, ResourceKind, defer, make_step, paths_below

KIND = "kafka_topic_leaders"
API = ELECT_LEADERS.name


def make_attributes(topic: str, leaders: Mapping[int, int]) -> FrozenMap:
    """leaders: partition -> broker, -1 if none leads."""
    named: dict[str, Value] = {str(number): leader for number, leader in leaders.items()}
    return FrozenMap(topic=topic, leaders=FrozenMap(named))


def find_foreign_paths(attributes: FrozenMap) -> frozenset[tuple[str, ...]]:
    """All leaders: a plan ignores those that its change does not name."""
    return frozenset(("leaders", number) for number in attributes["leaders"])


def _key(attributes: FrozenMap) -> str:
    name = attributes.get("topic")
    if not isinstance(name, str) or not name:
        raise ValueError("a kafka_topic_leaders needs a topic")
    return name


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return declared


def _steps(change: Change, _: Facts) -> tuple[Step, ...]:
    paths = paths_below(change, "leaders")
    if change.action is not Action.UPDATE or not paths:
        return ()
    target = (change.after or EMPTY)["leaders"]
    payload: dict[str, Value] = {
        "name": change.identity.key,
        "topic_id": change.incarnation,
        "leaders": FrozenMap({number: target[number] for _, number in paths}),
    }
    return (
        make_step(
            change, 1, ELECT_LEADERS, payload, paths, weight=len(paths), evidence=Evidence.LOCAL
        ),
    )


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "The leaders of a topic's partitions.",
        AttributeSchema("topic", STRING, "Name of the topic.", required=True),
        AttributeSchema("leaders", map_of(NUMBER), "Partition -> the broker that leads it."),
    ),
    key=_key,
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_steps,
    import_key=lambda text: text,
)


KINDS = (
    ResourceKind(
        KIND,
        TYPE,
        commanded=True,
        connect=defer(__package__, "requests:REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED"),
    ),
)
