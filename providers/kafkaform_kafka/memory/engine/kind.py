"""What one kind of object contributes to a simulated session: rows of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from kafkaform.core.change import Step
from kafkaform.core.resource import Depth, Facts, Fault, Identity, Reading, Sweep
from kafkaform.core.value import FrozenMap

from .controller import Answer
from .rights import User
from .world import World


class Scene(Struct, frozen=True):
    """Who looks, at what. world: as one broker shows it to one read; defaults: broker-wide topic
    configs; live: numbers of the brokers that are up."""

    instance: str
    user: User
    facts: Facts
    world: World
    defaults: Mapping[str, str]
    live: tuple[int, ...]

    def objects(self, kind: str) -> Mapping[str, Any]:
        return self.world.of(kind)


class Kind(Struct, frozen=True):
    """How one kind is listed and read. listing, describing: the names under which mishaps are
    scheduled for them; api: the name that faults give; sweep, read: never raise."""

    listing: str
    describing: str
    api: str
    sweep: Callable[[Scene, Depth], Sweep]
    read: Callable[[Scene, Identity], Reading]


Check = Callable[[Scene, Step], Fault | None]
"""What stands in for a dry run that the controller does not have."""

Made = Callable[[Scene, Answer], tuple[str | None, FrozenMap | None]]
"""Incarnation and attributes that the answer to an applied step tells."""
