"""A command on a simulated cluster, in a process of its own: its streams are real ones. It loads
what the command itself would, since hundreds are started."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

from kafkaform.cli import app
from kafkaform.provider.registry import Registry

if TYPE_CHECKING:
    from kafkaform.provider.contract import Provider


@cache
def _make_provider() -> Provider:
    from kafkaform_kafka.memory import MemoryProvider, SimulatedClock, SimulatedCluster

    return MemoryProvider(SimulatedCluster(brokers=3, clock=SimulatedClock()))


def simulate() -> None:
    """Every command of this process finds the cluster."""
    Registry.load = lambda self, name: _make_provider()  # type: ignore[method-assign]


def main() -> None:
    simulate()
    app.main(sys.argv[1:])
