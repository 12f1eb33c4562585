"""A warm server and a looking client for the short forms of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from . import lanes


@pytest.fixture(scope="module")
def town(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lanes.Town]:
    """The run's broker, on which each lane has names of its own."""
    scratch = tmp_path_factory.mktemp("crashes")
    with lanes.town(broker.bootstrap, broker.admin_password, scratch) as made:
        yield made
