"""The same deaths with a real schema registry and a real worker of Kafka Connect."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from ...kit.commands.struck import BEFORE, LOST, Strike
from ...kit.connect.rounds import use_worker
from ...kit.lane import KILLED
from ...kit.schema_registry.rounds import use_registry
from ...kit.servers import Registry, Worker
from .http_lane import HttpLane, Opener, make_lane
from .lanes import Point

pytestmark = pytest.mark.timeout(600)


def find_faults(opener: Opener, path: Path, moments: Sequence[tuple[str, str]]) -> list[str]:
    """What does not hold after a death at each of these moments: request, and how."""
    with ExitStack() as stack:
        lane: HttpLane = make_lane(stack, opener, path)
        lane.begin()
        found = []
        for request, how in moments:
            struck, faults = lane.strike(Point(Strike(1, how, lane.system.requests[request])))
            assert struck.code == KILLED, struck.out
            found += [f"{how} {request}: {fault}" for fault in faults]
    return found


def test_a_registry(registry: Registry, tmp_path: Path) -> None:
    """SIGKILL before a level is set, and when a subject was registered or deleted and nobody has
    read the answer: applied again, the five promises hold."""
    opener = partial(use_registry, registry=registry, prefix=f"crash-{uuid.uuid4().hex[:8]}-")
    moments = (("SetCompatibility", BEFORE), ("RegisterSchema", LOST), ("DeleteSubject", LOST))
    assert not find_faults(opener, tmp_path / "lane", moments)


def test_a_worker(connect: Worker, tmp_path: Path) -> None:
    """SIGKILL before a connector is configured, and when one was created or deleted and nobody has
    read the answer: applied again, the five promises hold."""
    opener = partial(use_worker, worker=connect, prefix=f"crash-{uuid.uuid4().hex[:8]}-")
    moments = (
        ("ConfigureConnectors", BEFORE),
        ("CreateConnectors", LOST),
        ("DeleteConnectors", LOST),
    )
    assert not find_faults(opener, tmp_path / "lane", moments)
