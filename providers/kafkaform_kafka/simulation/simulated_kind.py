"""The part of the simulated cluster that one kind of object provides."""

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
    """One read of the simulated cluster: who reads, and what one broker shows."""

    instance: str
    user: User
    facts: Facts
    world: SimulatedWorld
    """The objects as one broker shows them to one read."""
    defaults: Mapping[str, str]
    """The brokers' topic configs."""
    live: tuple[int, ...]
    """The brokers that are up."""

    def objects(self, kind: str) -> Mapping[str, Any]:
        """The objects of a kind by key."""
        return self.world.of(kind)


class SimulatedReads(Struct, frozen=True):
    """How one kind is listed and read."""

    listing: str
    """The name of a listing in schedules of mishaps."""
    describing: str
    """The name of a read by identity in schedules; kinds with the same name share one read."""
    api: str
    """The API's name in faults."""
    sweep: Callable[[ReadScene, Depth], Sweep]
    """Never raises."""
    read: Callable[[ReadScene, Identity], Reading]
    """Never raises."""


StepCheck = Callable[[ReadScene, Step], Fault | None]
AnswerReader = Callable[[ReadScene, AdminAnswer], tuple[str | None, FrozenMap | None]]


class SimulatedKind(Struct, frozen=True):
    """The part of the simulated cluster for one kind."""

    reads: SimulatedReads
    handlers: Mapping[str, Handler] = EMPTY
    """API -> what the controller does with its requests."""
    # As on a real cluster, where these requests have no `validate_only`.
    checks: Mapping[str, StepCheck] = EMPTY
    """API without a dry run -> the check that replaces it."""
    made: Mapping[str, AnswerReader] = EMPTY
    """API -> reads the incarnation and the attributes in the answer to an applied step."""
