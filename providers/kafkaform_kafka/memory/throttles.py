"""Replication throttles of the simulated cluster, which are configs of topics and brokers."""

from __future__ import annotations

from collections.abc import Mapping

from ..kinds.config.simulation import Configs
from ..kinds.config.simulation import resource_key as config_key
from ..kinds.topic.simulation import topic_key
from ..kinds.topic.throttles import ThrottlePlace
from ..simulation.world import SimulatedWorld


def read_throttle(world: SimulatedWorld, place: ThrottlePlace) -> Mapping[str, str]:
    """The throttle keys that are set at this place, with their values."""
    where = topic_key(place.name) if place.resource == "topic" else config_key("broker", place.name)
    held = world.get(where) or Configs()
    return {name: held.config[name] for name in place.keys if held.config.get(name)}
