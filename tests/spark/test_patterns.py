"""Which names match which patterns, in Spark, against comparing each with each."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from kafkaform.fleet.access.permissions import match_patterns, select_acls, select_groups
from kafkaform_kafka.protocol.acl import Acl

from ..kit.fleet.access_worlds import NAMES, PATTERNS, live
from ..kit.fleet.frames import frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_name_finds_its_patterns(spark: SparkSession) -> None:
    """In many clusters at once, code points beyond 16 bits and the empty prefix among them; the
    wildcard is left out."""
    chance, patterns, names = Random(41), set(), set()
    for number in range(60):
        for _ in range(chance.randint(0, 25)):
            kind, type_ = chance.choice(("Topic", "Group")), chance.choice(("Literal", "Prefixed"))
            patterns.add((f"c{number}", kind, type_, chance.choice(PATTERNS)))
        for _ in range(chance.randint(0, 12)):
            names.add((f"c{number}", chance.choice(("Topic", "Group")), chance.choice(NAMES)))
    frames = (
        spark.createDataFrame(
            sorted(patterns),
            "cluster string, resource_type string, pattern_type string, pattern string",
        ),
        spark.createDataFrame(sorted(names), "cluster string, resource_type string, name string"),
    )
    expected = sorted(
        (cluster, kind, type_, pattern, name)
        for cluster, kind, type_, pattern in patterns
        for other, other_kind, name in names
        if (cluster, kind) == (other, other_kind)
        and (name.startswith(pattern) if type_ == "Prefixed" else name == pattern != "*")
    )
    assert len(expected) > 100
    assert sorted(tuple(row) for row in match_patterns(*frames).collect()) == expected


def test_acls_with_newer_words_are_left_out(spark: SparkSession) -> None:
    """As the provider's index does; other kinds are no ACLs."""
    known = Acl("User:u", "*", "Read", "Allow", "Topic", "t", "Literal")
    fields = {"acl_operation": "Invent", "resource_type": "Queue", "acl_permission_type": "Ask"}
    newer = [{**known.attributes, name: word} for name, word in fields.items()]
    some = [live("c", "kafka_acl", known.key, known.attributes)]
    some += [live("c", "kafka_acl", f"k{n}", attributes) for n, attributes in enumerate(newer)]
    some.append(live("c", "kafka_topic", "t", known.attributes))
    found = select_acls(frame(spark, "live", some)).collect()
    assert [(row.key, row.name, row.operation) for row in found] == [(known.key, "t", "Read")]


def test_a_group_can_have_spaces_in_its_name(spark: SparkSession) -> None:
    """The topic behind it has none."""
    keys = ("g t1", "g t2", "my group t1", " t1")
    rows = [live("c", "group_usage", key, {}) for key in keys]
    found = select_groups(frame(spark, "live", rows)).collect()
    assert sorted(row["name"] for row in found) == ["", "g", "my group"]
