"""A time of day that jumps or stands still: records show it, and nothing is decided by it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from kafkaform.core.errors import KafkaformError
from kafkaform_kafka.memory import (
    Killed,
    Mishap,
    killed_after,
    killed_before,
    lost_reply,
    lost_request,
)

from ..kit.simulated import engine
from ..kit.simulated.engine import Clock, House, desired, topic
from ..model.witness import Witness

YEAR, HOUR = 365 * 86400.0, 3600.0
JUMPS = {
    "ten years on": -10 * YEAR,
    "ten years back": 10 * YEAR,
    "an hour on": -HOUR,
    "an hour back": HOUR,
    "a second back": 1.0,
    "stands still": 0.0,
}
SAID = desired(topic("a"), topic("b", 2, depends_on=("kafka_topic.a",)))
DEATHS: dict[str, Callable[[], Mishap]] = {
    "before the request": killed_before,
    "after the request": killed_after,
    "no answer": lost_reply,
    "no answer and no effect": lost_request,
}


class Standing(Clock):
    """Its time of day does not move; only deadlines see that time passes."""

    def now(self) -> float:
        return 1_750_000_000.0


def jump(where: House, name: str) -> None:
    where.clock.set_back(JUMPS[name])


def house(name: str) -> House:
    """A house whose clock has this fault before it."""
    where = engine.house()
    if name == "stands still":
        where.clock = where.cluster.clock = Standing()
    return where


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("name", JUMPS)
@pytest.mark.parametrize("moment", ["intent", "outcome", "run_begin", "between runs"])
def test_the_clock_is_wrong(name: str, death: str, moment: str) -> None:
    """Whenever it jumps, and however the request ends: the run after it recovers, the one after
    that has nothing to do, the log's chain holds, and nothing is lost or done twice."""
    where = house(name)
    witness = Witness(where)
    if moment != "between runs":
        where.sink.after_append = lambda records: _once(where, name, records[0].kind == moment)
    where.cluster.faults.schedule(DEATHS[death](), "CreateTopics", skip=1)
    with contextlib.suppress(Killed, KafkaformError):
        engine.apply(where, SAID)
    if moment == "between runs":
        jump(where, name)
    for _ in range(2):
        done = engine.apply(where, SAID)
    assert done.report is None
    witness.storage()
    witness.settled(engine.plan(where, SAID), SAID)
    assert set(where.cluster.topics) == {"a", "b"}
    assert where.cluster.requests["CreateTopics"] <= 3


def _once(where: House, name: str, now: bool) -> None:
    if now:
        where.sink.after_append = lambda records: None
        jump(where, name)


def test_a_jump_back_waits_no_longer_than_usual() -> None:
    """An intent of the future is waited for as long as any other, by a clock that cannot jump."""
    where = house("ten years back")
    where.cluster.faults.schedule(killed_before(), "CreateTopics")
    with pytest.raises(Killed):
        engine.apply(where, SAID)
    jump(where, "ten years back")
    begun = where.clock.monotonic()
    engine.apply(where, SAID)
    assert where.clock.monotonic() - begun < 60
