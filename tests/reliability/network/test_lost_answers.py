"""The requests of an apply to a schema registry and to workers of Kafka Connect that are lost, and
those whose answer is.

Each is followed by an apply without a fault; what `tests.kit.promises` demands holds then, no
request arrives without a durable intent, and nothing is deleted that the state did not have.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...kit.connect.rounds import open_workers
from ...kit.http.faults import Fault
from ...kit.schema_registry.rounds import open_registry
from .http_lane import HttpLane, open_lane

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.slow("waits until lost requests can no longer be executed"),
]
UNSENT = {"reset before": {}, "refuse": {"status": 502, "body": b"<html>"}}
LOST = {"reset after": {}, "cut": {}, "garbage": {}, "say": {"status": 504, "body": b"<html>"}}
"""Kind of a fault -> what it needs."""
SUBJECTS = {
    "a subject is registered": "POST /subjects/t*/versions",
    "a level is set": "PUT /config/*",
    "a mode is removed": "DELETE /mode/*",
    "a subject is deleted": "DELETE /subjects/*",
}
CONNECTORS = {
    "one is created": "POST /connectors",
    "a secret is sent": "PATCH /connectors/stay/config",
    "one is halted": "PUT /connectors/u*",
    "one is restarted": "POST /connectors/*/restart*",
    "one is deleted": "DELETE /connectors/*",
    "offsets are set": "PATCH /connectors/v*/offsets",
}
CASES = [(kind, more) for kind, more in {**UNSENT, **LOST}.items()]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpLane]:
    with open_lane(open_registry, tmp_path_factory.mktemp("registry") / "lane") as made:
        yield made


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpLane]:
    with open_lane(open_workers, tmp_path_factory.mktemp("workers") / "lane") as made:
        yield made


def check(lane: HttpLane, number: int, what: str) -> None:
    """One kind of fault for each request: all of them meet each other in a few runs."""
    kind, more = CASES[number % len(CASES)]
    done = lane.round(Fault(what, kind, **more))  # type: ignore[arg-type]
    assert not done.violations, "\n".join(done.violations)
    assert len(done.writes) == len(set(done.writes))
    if kind in UNSENT:
        assert done.first.code != 0, done.first.out


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("number", range(len(SUBJECTS)), ids=SUBJECTS)
def test_a_registry(number: int, turn: int, registry: HttpLane) -> None:
    """What never arrived is found out and sent by the next apply; what arrived is sent once."""
    check(registry, number + turn * 3, list(SUBJECTS.values())[number])


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("number", range(len(CONNECTORS)), ids=CONNECTORS)
def test_workers(number: int, turn: int, workers: HttpLane) -> None:
    """The same of connectors; a secret whose fate nobody can read is sent once more under the
    approval that it had."""
    check(workers, number + turn * 3, list(CONNECTORS.values())[number])
