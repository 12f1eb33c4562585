"""One Spark session for all tests of the pipeline that a process runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_SECONDS = 900
"""Of a test with Spark: its first session waits for jars and for a Java process."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.timeout(PATIENCE_SECONDS))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Two threads on this machine, with Delta."""
    from kafkaform.cli.fleetjars import with_jars
    from kafkaform.fleet.session import Place, build_session
    from kafkaform.sandbox.places import cache

    session = build_session(with_jars(Place("local[2]", cache())))
    yield session
    session.stop()
