"""Declared, recorded and observed topics to decide about, without a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kafkaform.core.change import Change
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Desired,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    InstanceWorld,
    Observed,
    Pending,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap, freeze
from kafkaform.plan.build import PlanHeader, make_plan
from kafkaform.plan.claims import Case, make_claims
from kafkaform.plan.lifecycle import decide
from kafkaform.plan.model import Options, Plan
from kafkaform.plan.observe import Look
from kafkaform.state.model import Row, State
from kafkaform_kafka.provider import PROVIDER

from ...kit.simulated.engine import KAFKA, NORMAL, identity

TYPES = PROVIDER.types
FAULT = Fault("REQUEST_TIMED_OUT", "no answer", FaultClass.AMBIGUOUS, where="broker 1")
A = identity("a")


def facts(*, protect: bool = True, **values: Any) -> Facts:
    """Facts of a cluster with one broker whose defaults are one partition and one replica."""
    known = {"default_partitions": 1, "default_replication_factor": 1, **values}
    return Facts("cluster-1", ("1",), "User:admin", FrozenMap(known), protect=protect)


def live(
    name: str = "a", partitions: int = 1, config: Mapping[str, str] = EMPTY, id: str = "id-1"
) -> Observed:
    """A topic as a session reads it."""
    attributes = {
        "name": name,
        "partitions": partitions,
        "replication_factor": 1,
        "replica_assignment": [[1]] * partitions,
        "config": dict(config),
    }
    fallbacks = FrozenMap({f"config.{key}": "default" for key in config})
    return Observed(
        identity(name),
        FrozenMap(freeze(attributes)),
        id,
        fallbacks=fallbacks,  # type: ignore[arg-type]
    )


def row(
    name: str = "a",
    partitions: int = 1,
    config: Mapping[str, str] = EMPTY,
    id: str | None = "id-1",
    **members: Any,
) -> Row:
    """What an apply left in the state of a topic `kafka_topic.NAME`, protected by default."""
    attributes = FrozenMap(
        name=name, partitions=partitions, replication_factor=1, config=FrozenMap(config)
    )
    usual: dict[str, Any] = {"owners": (f"kafka_topic.{name}",), "protected": "default"}
    return Row(identity(name), origin=3, attributes=attributes, incarnation=id, **usual | members)


def state(*rows: Row, serial: int = 7) -> State:
    return State("lineage", serial, {r.identity: r for r in rows}, FrozenMap(kafka="cluster-1"))


def absent(name: str = "a") -> Absent:
    return Absent(identity(name))


def hidden(name: str = "a") -> Hidden:
    return Hidden(identity(name), "Describe on Topic a")


def failed(name: str = "a") -> Failed:
    return Failed(identity(name), FAULT)


def pending(action: str, target: FrozenMap, name: str = "a") -> Pending:
    return Pending(identity(name), "run-1", f"kafka/kafka_topic/{name}#1", action, target, 0.0)


def decided(
    said: Desired,
    reading: Reading,
    recorded: Row | None = None,
    *,
    options: Options = NORMAL,
    open_intent: Pending | None = None,
    known: Facts | None = None,
) -> Change:
    """The decision for the one object of this configuration or this state."""
    found, faults = make_claims(said, state(recorded) if recorded else state(), TYPES, options)
    assert not faults, faults
    (claim,) = found
    kind = TYPES[claim.identity.kind]
    return decide(Case(claim, reading, kind, known or facts(), options.mode, open_intent))


class Broker:
    """A session that was read already: it lists topics and destroys nothing."""

    def __init__(self, readings: Mapping[Identity, Reading], known: Facts) -> None:
        self.readings, self.facts = readings, known

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        items = tuple(
            r for r in self.readings.values() if isinstance(r, Observed) and r.identity.kind == kind
        )
        return Sweep(kind, depth, items, Coverage(CoverageKind.COMPLETE))

    def assess(self, changes: Sequence[Change]) -> dict[Identity, Any]:
        return {}


def planned(
    said: Desired,
    readings: Sequence[Reading],
    recorded: State | None = None,
    *,
    options: Options = NORMAL,
    known: Facts | None = None,
    pending: Sequence[Pending] = (),
    unmanaged: Sequence[Observed] = (),
    created: str = "2026-01-01T00:00:00Z",
) -> Plan:
    """A whole plan from readings alone."""
    known = known or facts()
    by_identity = {reading.identity: reading for reading in readings}
    items = tuple(r for r in (*readings, *unmanaged) if isinstance(r, Observed))
    swept = Sweep("kafka_topic", Depth.NAMES, items, Coverage(CoverageKind.COMPLETE))
    world = {KAFKA: InstanceWorld(known, by_identity, {"kafka_topic": swept})}
    session: Any = Broker(by_identity, known)
    return make_plan(
        said,
        world,
        recorded or state(),
        pending,
        {KAFKA: PROVIDER},
        Look({KAFKA: session}, world),
        options,
        PlanHeader(created, "0.1.0", "12/abc"),
    )


def without(plan: Plan, **members: Any) -> Plan:
    return replace(plan, **members)
