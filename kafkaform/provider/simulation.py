"""The optional part of the contract for `kafkaform test`: a system that exists only in memory."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ..core.clock import Clock
from ..core.schema import ObjectSchema
from ..core.value import FrozenMap
from .contract import Provider


class Simulation(Struct, frozen=True):
    """How a provider simulates a system."""

    settings: ObjectSchema
    """What a `simulate` block of a test file can contain. No setting is required."""
    make: Callable[[FrozenMap, str, Clock], Provider]
    """Settings, scope id, clock -> the provider of one new system, in which nothing exists yet. All
    its sessions lead there, without a network, and wait on this clock only."""
