"""Replication throttles of the simulated cluster: configs of topics and brokers like any others."""

from __future__ import annotations

from collections.abc import Mapping

from ..kinds.config.simulation import Configs
from ..kinds.config.simulation import key as config_key
from ..kinds.topic.simulation import key
from ..kinds.topic.throttles import Place
from ..simulation.world import World


def throttle_at(world: World, place: Place) -> Mapping[str, str]:
    """The throttle keys that are set there."""
    where = key(place.name) if place.resource == "topic" else config_key("broker", place.name)
    held = world.get(where) or Configs()
    return {name: held.config[name] for name in place.keys if held.config.get(name)}
