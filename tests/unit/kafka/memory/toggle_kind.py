"""Toggles with levels, a kind of object that neither Kafka nor the provider has: all that a folder
of `kinds/` would hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkaform.core.change import Action, Change, Evidence, Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import ResourceType
from kafkaform_kafka.kinds.context import ClusterContext, Order, Reads, Reply, Requests
from kafkaform_kafka.kinds.kind import (
    CREATING,
    DELETING,
    Document,
    KindRights,
    ResourceKind,
    all_paths,
    list_attributes,
    make_request,
    make_step,
)
from kafkaform_kafka.kinds.simulation import (
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
from kafkaform_kafka.protocol.apis import Api, RequestLimits
from kafkaform_kafka.protocol.faults import name_right

NAME = "kafka_toggle"
UPDATE_TOGGLES = Api("UpdateToggles", 1057, "Alter", since="2.7", limits=RequestLimits(10, 10))
"""Its row of the API table."""
SET_LEVELS = make_request(UPDATE_TOGGLES, CREATING, 90)
REMOVE_LEVELS = make_request(UPDATE_TOGGLES, DELETING, 60)
HIGHEST = 7
READ_API = "ApiVersions"


# ── the type ────────────────────────────────────────────────────────────────────────────


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return declared


def _steps(change: Change, _: Facts) -> tuple[Step, ...]:
    if change.action not in (Action.CREATE, Action.UPDATE, Action.DELETE):
        return ()
    level = (change.after or EMPTY).get("level", 0)
    request = REMOVE_LEVELS if change.action is Action.DELETE else SET_LEVELS
    payload = {"toggle": change.identity.key, "level": level}
    paths = all_paths(change)
    return (make_step(change, 1, request, payload, paths, weight=1, evidence=Evidence.LOCAL),)


TYPE = ResourceType(
    name=NAME,
    schema=make_schema(
        "The level of a toggle.",
        AttributeSchema("toggle", STRING, "Name of the toggle.", required=True),
        AttributeSchema("level", NUMBER, "Its level.", required=True, whole=True),
    ),
    key=lambda attributes: str(attributes["toggle"]),
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_steps,
    import_key=lambda text: text,
)


# ── a real cluster, here one that does not answer ───────────────────────────────────────

SILENT = Fault("SILENT", "this cluster says nothing", FaultClass.NOT_APPLIED)


def _sweep_toggles(_: ClusterContext, depth: Depth) -> Sweep:
    return Sweep(NAME, depth, (), Coverage(CoverageKind.FAILED, SILENT))


def _read_toggles(
    _: ClusterContext, ids: Sequence[Identity], __: str | None
) -> Mapping[Identity, Reading]:
    return {identity: Failed(identity, SILENT) for identity in ids}


def _send(_: ClusterContext, order: Order) -> Sequence[Reply]:
    return [Reply(step, SILENT) for step in order.steps]


# ── the simulated cluster ───────────────────────────────────────────────────────────────


def _update(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    def update(item: Item) -> ItemVerdict:
        require(call.user.may("Alter", CLUSTER), 31)
        if item["level"] > HIGHEST:
            raise Refusal(95, f"{item['toggle']} has no level {item['level']}")
        return AdminAnswer(), item["level"] or None, 1

    return run_batch(call, items, lambda item: (NAME, item["toggle"]), update)


def _check(scene: ReadScene, _: Step) -> Fault | None:
    """There is no dry run: only the right is looked at."""
    if scene.user.may("Alter", CLUSTER):
        return None
    return Fault("CLUSTER_AUTHORIZATION_FAILED", "no right", FaultClass.PERMISSION)


def _observed(identity: Identity, level: int) -> Observed:
    return Observed(identity, FrozenMap(toggle=identity.key, level=level))


def _sweep(scene: ReadScene, depth: Depth) -> Sweep:
    levels = scene.objects(NAME).items()
    items = (_observed(Identity(scene.instance, NAME, name), level) for name, level in levels)
    return Sweep(NAME, depth, tuple(items), Coverage(CoverageKind.COMPLETE))


def _read(scene: ReadScene, identity: Identity) -> Reading:
    if not scene.user.may("Describe", CLUSTER):
        return Hidden(identity, name_right("UpdateToggles", ""))
    level = scene.objects(NAME).get(identity.key)
    return Absent(identity) if level is None else _observed(identity, level)


# ── all that the provider has to know ───────────────────────────────────────────────────

KINDS = (
    ResourceKind(
        NAME,
        TYPE,
        rights=KindRights(
            "Cluster", sees=("DescribeConfigs",), changes=("Alter",), deletes="Alter"
        ),
        connect=lambda: Requests(Reads(_sweep_toggles, _read_toggles), {"UpdateToggles": _send}),
        simulate=lambda: SimulatedKind(
            reads=SimulatedReads(READ_API, READ_API, READ_API, _sweep, _read),
            handlers={"UpdateToggles": _update},
            checks={"UpdateToggles": _check},
        ),
        document=Document("toggles", list_attributes, "other toggles may be hidden"),
    ),
)
