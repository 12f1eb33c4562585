"""What `describe topics` says about topics whose replicas are not as they should be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkaform.core.value import FrozenMap
from kafkaform_kafka.inspect import documents
from kafkaform_kafka.inspect.document_page import document_page
from kafkaform_kafka.inspect.documents import describe
from kafkaform_kafka.inspect.source import DescribeQuery
from kafkaform_kafka.kinds.topic.placement import REPLICAS, find_remarks
from kafkaform_kafka.protocol.cluster_facts import LEVELS
from kafkaform_kafka.wire.answers import ConfigEntry, ItemAnswer
from kafkaform_kafka.wire.cluster import BrokerVersions
from kafkaform_kafka.wire.describe import BrokerRow, DescribedTopic, PartitionRow

NO_AUTHORIZER = FrozenMap({"class": None, "super_users": None, "allow_if_no_acl": None})


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


def test_throttles_of_brokers_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate that somebody left on a broker, and a broker that does not say."""
    rows = tuple(BrokerRow(id=n, host="h", port=1, rack=None, fenced=False) for n in (1, 2))
    rate = "leader.replication.throttled.rate"

    def read(_: object, __: str, names: Any, ___: float, *, keys: Any, node: str) -> Any:
        assert rate in keys and names == [node]
        if node == "2":
            return {node: ItemAnswer(31, None)}
        return {node: ItemAnswer(0, None, configs=(ConfigEntry(rate, "1000", 2),))}

    versions = BrokerVersions({}, {}, 30)
    monkeypatch.setattr(documents.wire, "describe_brokers", lambda *_, **__: rows)
    monkeypatch.setattr(documents.cluster_wire, "read_versions", lambda *_: versions)
    monkeypatch.setattr(documents, "find_controller", lambda _: 1)
    monkeypatch.setattr(documents, "describe_configs", read)
    context: Any = SimpleNamespace(facts=SimpleNamespace(scope_id="c"), wire=None, timeout=3.0)
    found = describe("brokers", context, lambda *_: pytest.fail("not asked"), DescribeQuery())
    assert [row["throttles"] for row in found["brokers"]] == [{rate: "1000"}, None]
    grid: Any = next(iter(document_page(found)))
    assert [row[-1] for row in grid.rows[1:]] == [f"{rate} = 1000 B/s", "-"]


def test_a_release_newer_than_the_tables_is_shown_by_its_level(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was shown as 4.3, the newest release that this version knows."""
    level = max(LEVELS) + 1
    row = BrokerRow(id=1, host="h", port=1, rack=None, fenced=False)
    monkeypatch.setattr(documents.wire, "describe_brokers", lambda *_, **__: (row,))
    versions = BrokerVersions({}, {}, level)
    monkeypatch.setattr(documents.cluster_wire, "read_versions", lambda *_, **__: versions)
    monkeypatch.setattr(documents, "find_controller", lambda _: 1)
    monkeypatch.setattr(documents, "_read_throttles", lambda *_: None)
    monkeypatch.setattr(documents, "_document_authorizer", lambda _: NO_AUTHORIZER)
    known = FrozenMap(kafka_version=LEVELS[max(LEVELS)], newer_level=level)
    facts = SimpleNamespace(scope_id="c", nodes=("1",), values=known, principal=None)
    context: Any = SimpleNamespace(facts=facts, wire=None, timeout=3.0)
    shown = f"not known: its metadata.version is {level}"
    for kind in ("brokers", "cluster"):
        found = describe(kind, context, lambda *_: pytest.fail("not asked"), DescribeQuery())
        grid: Any = next(iter(document_page(found)))
        assert any(shown in line for line in grid.rows), grid.rows
    assert found["cluster"]["kafka_version"] is None
    assert found["cluster"]["metadata_version_max"] == level
