"""How far moves are, from what brokers tell of their logs."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafkaform_kafka.kinds.context import ClusterContext
from kafkaform_kafka.kinds.topic import replica_moves
from kafkaform_kafka.kinds.topic.replica_moves import UNMEASURED, measure_progress
from kafkaform_kafka.wire.client import RequestUnanswered
from kafkaform_kafka.wire.cluster import LogSize
from kafkaform_kafka.wire.topics import Move

MB = 1_000_000
MOVE = Move(replicas=(1, 2, 3), adding=(3,), removing=(1,))
"""From brokers 1 and 2 to brokers 2 and 3."""
CONTEXT = cast(ClusterContext, SimpleNamespace(wire=None, timeout=1.0))


def told(monkeypatch: pytest.MonkeyPatch, sizes: Mapping[str, int | None]) -> Mapping[str, str]:
    """What is said of the move. sizes: broker -> MB of its log; None: it does not tell; a broker
    that is left out does not answer."""

    def log_sizes(_: Any, topics: Any, node: str, __: float) -> list[LogSize] | None:
        if node not in sizes:
            raise RequestUnanswered("no answer")
        size = sizes[node]
        return None if size is None else [LogSize("t", 0, node, size * MB)]

    monkeypatch.setattr(replica_moves, "read_log_sizes", log_sizes)
    monkeypatch.setattr(replica_moves, "MOMENTS_APART", 0.0)
    return measure_progress(CONTEXT, {"t": {0: MOVE}})


@pytest.mark.parametrize(
    "sizes",
    [
        {"1": 8, "2": 8, "3": 2},
        {"2": 8, "3": 2},
        {"1": None, "2": 8, "3": 2},
    ],
)
def test_it_is_measured_where_enough_brokers_tell(
    monkeypatch: pytest.MonkeyPatch, sizes: Mapping[str, int | None]
) -> None:
    """The broker that the topic leaves may be down: another replica has everything."""
    assert told(monkeypatch, sizes)["t"].startswith("1.91 MiB of 7.63 MiB copied")


@pytest.mark.parametrize("sizes", [{"1": 8, "2": 8}, {"1": 8, "2": 8, "3": None}, {"3": 2}, {}])
def test_nothing_is_told_of_a_broker_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, sizes: Mapping[str, int | None]
) -> None:
    """A replica of unknown size would make the progress too small, or a move look finished."""
    assert told(monkeypatch, sizes) == {"t": UNMEASURED}
