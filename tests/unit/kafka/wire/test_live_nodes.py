"""Who is live is asked anew; one broker's word does not remove another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafkaform_kafka import review
from kafkaform_kafka.kinds import context
from kafkaform_kafka.wire.client import RequestNotSent
from kafkaform_kafka.wire.cluster import ClusterRow, LogSize

CONTEXT: Any = SimpleNamespace(
    wire=None, timeout=1.0, facts=SimpleNamespace(nodes=("1", "2", "3")), settings=None
)
Views = Mapping[str | None, Sequence[str] | None]


def told(monkeypatch: pytest.MonkeyPatch, views: Views) -> list[str | None]:
    """Let each broker list these; None: it does not answer. The brokers that were asked."""
    asked: list[str | None] = []

    def describe(wire: object, timeout: float, node: str | None = None) -> ClusterRow:
        asked.append(node)
        listed = views.get(node)
        if listed is None:
            raise RequestNotSent("refused")
        return ClusterRow(0, None, "id", dict.fromkeys(listed), frozenset(), {})

    monkeypatch.setattr(context, "describe_cluster", describe)
    return asked


@pytest.mark.parametrize(
    ("views", "live", "asked"),
    [
        ({None: "123"}, "123", [None]),
        ({None: "1234"}, "1234", [None]),
        ({None: "12", "1": "12", "2": "12"}, "12", [None, "1", "2"]),
        ({None: "12", "1": "12", "2": "123"}, "123", [None, "1", "2"]),
        ({None: "12", "1": "12"}, "12", [None, "1", "2"]),
        ({None: "14", "1": "14", "4": "124"}, "124", [None, "1", "4"]),
        ({}, "123", [None]),
    ],
)
def test_a_broker_is_left_out_only_if_nobody_lists_it(
    monkeypatch: pytest.MonkeyPatch, views: Views, live: str, asked: list[str | None]
) -> None:
    """A broker that lags may not know yet that another one came back; new ones count at once, and
    if nobody answers nothing changes."""
    seen = told(monkeypatch, views)
    assert context.live_nodes(CONTEXT) == tuple(live)
    assert seen == asked


def test_the_first_that_answers_is_asked_for_what_any_can_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dead first broker hides nothing."""
    told(monkeypatch, {"2": "123", "3": "123"})
    assert context.find_answering_node(CONTEXT) == "2"
    told(monkeypatch, {})
    assert context.find_answering_node(CONTEXT) == ""


def test_a_topic_on_a_dead_broker_is_not_called_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size is unknown if no live broker has a copy of one of its partitions."""

    def sizes(
        wire: object, topics: Mapping[str, int], node: str, timeout: float
    ) -> Sequence[LogSize]:
        return [LogSize("whole", 0, node, 10), *([LogSize("part", 0, node, 5)] * (node == "1"))]

    monkeypatch.setattr(review, "read_log_sizes", sizes)
    monkeypatch.setattr(review, "live_nodes", lambda context: ("1", "2"))
    counts = {"whole": 1, "part": 2}
    read = review.read_sizes(cast(Any, CONTEXT), counts)
    assert review._add_up(read, counts) == {"whole": 10}
    figures = review._make_impact("part", {"whole": 10}, {}, {})
    assert figures.text.startswith("Deletes an unknown number of records (size unknown)")
