"""`kafka_feature`: the finalized level of one feature of the cluster, which `alter` can change.

No block declares a level: a downgrade is often impossible, so there is no way back that a plan
could show. But a change that somebody asks for is planned, approved, logged and recovered like any
other one.
"""

from __future__ import annotations

from kafkaform.core.change import Action, Change, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from ...protocol.cluster_facts import UpgradeType
from ..kind import UPDATE_FEATURES, ResourceKind, defer, make_step, paths_below

KIND = "kafka_feature"
API = UPDATE_FEATURES.name
LEVEL, UNSAFE = "level", "unsafe_downgrade_to"
"""Two names of one number. A change sets one of them, and so says which downgrade is allowed."""


def make_attributes(name: str, level: int) -> FrozenMap:
    """The attributes of a feature at this level."""
    return FrozenMap({"name": name, LEVEL: level, UNSAFE: level})


def _key(attributes: FrozenMap) -> str:
    name = attributes.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("a kafka_feature needs a name")
    return name


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return declared


def read_levels(change: Change) -> tuple[int, int]:
    """The level before and after an update."""
    before, after = change.before or EMPTY, change.after or EMPTY
    name = UNSAFE if after.get(UNSAFE) is not None else LEVEL
    return before[name], after[name]


def _steps(change: Change, _: Facts) -> tuple[Step, ...]:
    paths = paths_below(change, LEVEL, UNSAFE)
    if change.action is not Action.UPDATE or not paths:
        return ()
    before, after = read_levels(change)
    kind = UpgradeType.SAFE_DOWNGRADE if after < before else UpgradeType.UPGRADE
    if (UNSAFE,) in paths:
        kind = UpgradeType.UNSAFE_DOWNGRADE
    payload: dict[str, Value] = {
        "name": change.identity.key,
        "level": after,
        "upgrade_type": int(kind),
    }
    # Absolute, so it can be repeated: the controller accepts the level that is there already.
    return (make_step(change, 1, UPDATE_FEATURES, payload, paths, weight=1),)


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "The level of a feature of the cluster.",
        AttributeSchema("name", STRING, "Name of the feature.", required=True),
        AttributeSchema(LEVEL, NUMBER, "The finalized level; 0 if it is off.", whole=True),
        AttributeSchema(UNSAFE, NUMBER, "A lower level, even if metadata is lost.", whole=True),
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
