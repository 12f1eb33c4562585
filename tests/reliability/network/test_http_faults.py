"""What becomes of an apply to a system that speaks HTTP, when its requests and answers are cut,
delayed, repeated or falsified: on a real server behind a proxy.

Each is followed by an apply without a fault; what `tests.kit.promises` demands holds then.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...kit.http.faults import FOR_EVER, Fault
from ...kit.http.store import REAL, open_store
from .http_lane import HttpLane, open_lane

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.slow("waits until lost requests can no longer be executed"),
]


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpLane]:
    """A folder behind a proxy, in which an apply comes that has everything to do."""
    with open_lane(open_store, tmp_path_factory.mktemp("http") / "lane") as made:
        yield made


def write(kind: str, nth: int = 1, **more: object) -> Fault:
    """A fault of the nth write that is no dry run."""
    return Fault("POST /write", kind, nth, holds=REAL, **more)  # type: ignore[arg-type]


UNSENT = {
    "reset before": write("reset before"),
    "a gateway's refusal": write("refuse", status=502, body=b"<html>"),
    "a redirection": write("redirect", location="http://127.0.0.1:1/write"),
}
LOST = {
    "reset after": write("reset after"),
    "cut head": write("cut head", 2),
    "cut": write("cut", 3),
    "garbage": write("garbage"),
    "endless": write("endless"),
    "a gateway's time-out": write("say", status=504, body=b"<html>"),
    "NaN": write("tamper", body=b'{"answers": NaN}'),
    "no answers": write("tamper", body=b'{"answers": []}'),
    "another number of answers": write("tamper", body=b'{"answers": [{}, {}, {}]}'),
    "an answer that is no object": write("tamper", body=b'{"answers": [1]}'),
    "no object": write("tamper", body=b"[]"),
    "compressed": write("tamper", headers=("Content-Encoding: gzip",)),
    "held": write("hold", seconds=4.0),
    "late": write("late", seconds=1.0),
}
HARMLESS = {
    "twice": write("twice"),
    "delayed": write("delay", seconds=0.3),
    "slow": write("slow", seconds=0.001),
    "one read of each sort is reset": Fault("GET *", "reset before"),
    "one read is cut": Fault("POST /read", "cut"),
}


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST)
def test_a_lost_answer_loses_nothing(fault: Fault, lane: HttpLane) -> None:
    """The write was executed and its answer is no use: the apply reads, counts it as applied, and
    sends it once."""
    done = lane.round(fault)
    assert not done.violations
    assert len(done.writes) == len(set(done.writes))


@pytest.mark.parametrize("fault", UNSENT.values(), ids=UNSENT)
def test_a_write_that_never_arrives_is_found_out(fault: Fault, lane: HttpLane) -> None:
    """Nothing of it is recorded, and the next apply does it."""
    done = lane.round(fault)
    assert not done.violations
    assert done.first.code != 0, done.first.out


@pytest.mark.parametrize("fault", HARMLESS.values(), ids=HARMLESS)
def test_a_fault_that_does_no_harm_is_not_seen(fault: Fault, lane: HttpLane) -> None:
    """The apply ends well, and the next one has nothing to do."""
    done = lane.round(fault)
    assert not done.violations
    assert done.first.code == 0, done.first.out
    assert not done.later


def test_silence_ends(lane: HttpLane) -> None:
    """From the first write on nothing answers: the apply ends by itself, and its intents are
    settled by the next one."""
    done = lane.round(write("half open"))
    assert not done.violations
    assert done.first.code == 6, done.first.out


def test_every_answer_about_who_it_is_fails(lane: HttpLane) -> None:
    """A store that no longer says who it is gets no write."""
    done = lane.round(Fault("GET /store", "refuse", nth=6, times=FOR_EVER))
    assert not done.violations
    assert done.first.code != 0
