"""Replication throttles of the simulated cluster, which are configs of topics and brokers."""

from __future__ import annotations

from collections.abc import Mapping

from ..kinds.config.simulation import Configs
from ..kinds.config.simulation import resource_key as config_key
from ..kinds.topic.simulation import topic_key
from ..kinds.topic.throttles import ThrottlePlace
from ..simulation.world import SimulatedWorld


def read_throttle(world: SimulatedWorld, throttle_place: ThrottlePlace) -> Mapping[str, str]:
    """The throttle keys that are set at this place, with their values."""
    key = (
        topic_key(throttle_place.name)
        if throttle_place.resource == "topic"
        else config_key("broker", throttle_place.name)
    )
    configs = world.get(key) or Configs()
    return {name: configs.config[name] for name in throttle_place.keys if configs.config.get(name)}
