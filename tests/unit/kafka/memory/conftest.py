"""A simulated cluster with an administrator's bench."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaform.provider.testing.workbench import Bench
from kafkaform_kafka.memory import SimulatedCluster

from ....kit.kafka.topic_systems import SimulatedSystem


@pytest.fixture
def system() -> SimulatedSystem:
    """Three brokers without lag."""
    return SimulatedSystem(brokers=3)


@pytest.fixture
def cluster(system: SimulatedSystem) -> SimulatedCluster:
    return system.cluster


@pytest.fixture
def bench(system: SimulatedSystem) -> Iterator[Bench]:
    """An administrator's session."""
    with Bench(system) as bench:
        yield bench
