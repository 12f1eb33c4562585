"""What `describe topics` says about topics whose replicas are not as they should be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkaform_kafka.inspect import documents
from kafkaform_kafka.inspect.document_page import document_page
from kafkaform_kafka.inspect.documents import describe
from kafkaform_kafka.inspect.source import DescribeQuery
from kafkaform_kafka.kinds.topic.throttles import REPLICAS, find_remarks
from kafkaform_kafka.wire.answers import ConfigEntry, ItemAnswer
from kafkaform_kafka.wire.describe import DescribedTopic, PartitionRow


def _described(name: str, *rows: tuple[int, ...]) -> DescribedTopic:
    parts = (PartitionRow(n, row[0], row, row, ()) for n, row in enumerate(rows))
    return DescribedTopic(name, 0, "id", False, tuple(parts))


def test_uneven_partitions_and_throttles_are_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of partition 0 stood for all, and a throttle that somebody left was nowhere but in
    `describe configs`. A topic whose configs may not be read counts as unknown."""
    rows = (_described("a", (1, 2), (1,)), _described("b", (1,)), _described("c", (1,)))
    entry = ConfigEntry(REPLICAS[0], "*", 1)
    answers = {"a": ItemAnswer(0, None, configs=(entry,)), "b": ItemAnswer(0, None, configs=())}
    answers["c"] = ItemAnswer(29, None)
    asked = []

    def read(_: object, resource: str, names: Any, *, keys: Any, timeout: float) -> Any:
        asked.append((resource, tuple(names), keys))
        return answers

    monkeypatch.setattr(documents.wire, "describe_topics", lambda *_, **__: rows)
    monkeypatch.setattr(documents, "describe_configs", read)
    context: Any = SimpleNamespace(facts=SimpleNamespace(scope_id="c"), wire=None, timeout=3.0)
    found = describe("topics", context, lambda *_: pytest.fail("not asked"), DescribeQuery())
    assert asked == [("topic", ("a", "b", "c"), REPLICAS)]
    topics = {row["name"]: row for row in found["topics"]}
    assert [topics[name]["throttled"] for name in "abc"] == [True, False, None]
    grid: Any = next(iter(document_page(found)))
    shown = {row[0]: row[2:4] for row in grid.rows}
    assert shown["a"] == ("1 to 2", "different numbers of replicas, replication throttled")
    assert shown["b"] == shown["c"] == ("1", "")


def test_a_running_move_explains_both() -> None:
    """While replicas move, their numbers differ and a throttle is nobody's leftover."""
    config = dict.fromkeys(REPLICAS, "*")
    assert len(find_remarks(((1, 2), (1,)), config, moving=False)) == 2
    assert find_remarks(((1, 2), (1,)), config, moving=True) == ()
    assert find_remarks(((1,), (2,)), {}, moving=False) == ()
