"""What one kind of object contributes to the simulated cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from kafkaform.core.change import Step
from kafkaform.core.resource import Depth, Facts, Fault, Identity, Reading, Sweep
from kafkaform.core.value import EMPTY, FrozenMap

from .controller import AdminAnswer, Handler
from .rights import User
from .world import SimulatedWorld


class ReadScene(Struct, frozen=True):
    """Who looks, at what. world: as one broker shows it to one read; defaults: broker-wide topic
    configs; live: numbers of the brokers that are up."""

    instance: str
    user: User
    facts: Facts
    world: SimulatedWorld
    defaults: Mapping[str, str]
    live: tuple[int, ...]

    def objects(self, kind: str) -> Mapping[str, Any]:
        return self.world.of(kind)


class SimulatedReads(Struct, frozen=True):
    """How one kind is listed and read."""

    listing: str
    """The name under which mishaps are scheduled for a listing."""
    describing: str
    """The same for reads by name; kinds of one name are read in one look."""
    api: str
    """The name that faults give."""
    sweep: Callable[[ReadScene, Depth], Sweep]
    """Never raises."""
    read: Callable[[ReadScene, Identity], Reading]
    """Never raises."""


StepCheck = Callable[[ReadScene, Step], Fault | None]
AnswerReader = Callable[[ReadScene, AdminAnswer], tuple[str | None, FrozenMap | None]]


class SimulatedKind(Struct, frozen=True):
    """One kind's part of the simulated cluster."""

    reads: SimulatedReads
    handlers: Mapping[str, Handler] = EMPTY
    """API -> what the controller does with its requests."""
    checks: Mapping[str, StepCheck] = EMPTY
    """API without a dry run -> what stands in for it."""
    made: Mapping[str, AnswerReader] = EMPTY
    """API -> incarnation and attributes that the answer to an applied step tells."""
