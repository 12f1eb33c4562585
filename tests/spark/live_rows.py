"""Rows of `live` as a snapshot lands them, and tables of them, for the judging tables' tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kafkaform.core.landing import flatten_attributes
from kafkaform.core.value import FrozenMap
from kafkaform.fleet.landed.register import Register
from kafkaform.fleet.tables.definitions import TABLES, BuildContext
from kafkaform_kafka.kinds.quota.resource_type import KIND as QUOTA
from kafkaform_kafka.kinds.quota.resource_type import entity_key

from ..kit.fleet.frames import frame

NOW = datetime(2026, 6, 15, 4, 30, tzinfo=UTC)
BUILD = "b1"
Row = dict[str, Any]


def days(count: float) -> datetime:
    """So many days before NOW."""
    return NOW - timedelta(days=count)


def context(register: Register | None = None, build: str = BUILD) -> BuildContext:
    return BuildContext(register or Register(), NOW, build)


_ANY = {"string": "", "bigint": 0, "int": 0, "boolean": False, "double": 0.0, "timestamp": NOW}


def frames(spark: SparkSession, tables: Mapping[str, Iterable[Row]]) -> dict[str, DataFrame]:
    """Table -> its rows. Members that no case is about may be left out, required ones too."""
    return {name: frame(spark, name, _filled(name, rows)) for name, rows in tables.items()}


def _filled(table: str, rows: Iterable[Row]) -> list[Row]:
    required = [column for column in TABLES[table].columns if column.required]
    some: Row = {c.name: [] if "<" in c.type else _ANY[c.type] for c in required}
    some |= {c.name: {} for c in required if c.type.startswith("map")}
    return [{**some, **row} for row in rows]


def rows_of(made: DataFrame) -> list[Row]:
    """Its rows, with times in UTC."""
    return [{k: _in_utc(v) for k, v in row.asDict().items()} for row in made.collect()]


def _in_utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def live(cluster: str, kind: str, key: str, attrs: Mapping[str, str], **more: Any) -> Row:
    known = {"snapshot": "s1", "captured_at": NOW}
    return {"cluster": cluster, "kind": kind, "key": key, "attrs": dict(attrs), **known, **more}


def cluster(name: str, **more: Any) -> Row:
    known = {"registered": True, "status": "read", "captured_at": NOW, "coverage": {}}
    return {"cluster": name, **known, **more}


def topic(name: str, key: str, assignment: Sequence[Sequence[int]] = ((1,),), **more: Any) -> Row:
    attrs = {
        "name": key,
        "partitions": str(len(assignment)),
        "replication_factor": str(len(assignment[0])),
        "replica_assignment": json.dumps(assignment, separators=(",", ":")),
    }
    return live(name, "kafka_topic", key, attrs, **more)


def past(name: str, key: str, attrs: Mapping[str, str], begin: datetime, **more: Any) -> Row:
    """An interval of a topic in `history`."""
    row = {"cluster": name, "kind": "kafka_topic", "key": key, "attrs": dict(attrs)}
    return {**row, "valid_from": begin, **more}


def quota(name: str, entity: Mapping[str, str | None], config: Mapping[str, Any]) -> Row:
    """As `inventory` lands it: null parts of an entity leave no attribute."""
    attributes = FrozenMap(entity=FrozenMap(entity), config=FrozenMap(config))
    return live(name, QUOTA, entity_key(entity), flatten_attributes(attributes))


def acl(name: str, principal: str, **more: str) -> Row:
    """All reads of the topic `t`, unless told otherwise."""
    attrs = {
        "acl_principal": principal,
        "acl_host": "*",
        "acl_operation": "Read",
        "acl_permission_type": "Allow",
        "resource_type": "Topic",
        "resource_name": "t",
        "resource_pattern_type_filter": "Literal",
        **more,
    }
    return live(name, "kafka_acl", "|".join(attrs.values()), attrs)
