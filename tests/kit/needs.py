"""What a test needs beside Python, known by the fixtures that it takes."""

from __future__ import annotations

import pytest

NEEDS = {
    "broker": frozenset({"broker", "other_broker", "own_brokers"}),
    "shared_broker": frozenset({"broker", "other_broker"}),
    "spark": frozenset({"spark", "own_spark", "namenode"}),
    "browser": frozenset({"chromium"}),
}
"""Marker -> the fixtures of which each one means it."""


BROKER = pytest.param("broker", marks=(pytest.mark.broker, pytest.mark.shared_broker))
"""A parameter for which a fixture asks for the run's broker by name."""


def mark(item: pytest.Item) -> None:
    """Give a test the markers of its fixtures."""
    taken = frozenset(getattr(item, "fixturenames", ()))
    for marker, fixtures in NEEDS.items():
        if not fixtures.isdisjoint(taken):
            item.add_marker(marker)


def is_pure(item: pytest.Item) -> bool:
    """True if the test needs nothing but Python."""
    return not any(item.get_closest_marker(marker) for marker in NEEDS)


@pytest.fixture(scope="session")
def own_brokers() -> None:
    """Taken by what starts brokers that nobody else uses: `own_sandbox`, `sandbox.up`."""


@pytest.fixture(scope="session")
def own_spark() -> None:
    """Taken by a test that starts programs which start Spark."""
