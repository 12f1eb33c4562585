"""Sail and Spark make the same tables, and each continues what the other has begun."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pysail  # noqa: F401  # the programs that the test starts need it
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafkaform.core.landing import META, ROOT, ROWS
from kafkaform.core.objects import Folder
from kafkaform.fleet.build.driver import DATASETS, BuildOptions, run_build
from kafkaform.fleet.spark.session import EMBEDDED
from kafkaform.fleet.tables import manifest
from kafkaform.fleet.tables.definitions import TABLES
from kafkaform.version import VERSION

from ..kit.fleet.landings import Landing, at, in_order, log, row, step
from ..kit.fleet.world import Size, World

CLUSTERS, MAX_CORRUPT = 2, 0.9
EMPTY = {"event_conflict", "disks", "credentials"}
"""Tables that this fleet has no rows for."""
SCOPE, LINEAGE = "id-shop", "shop-lineage"
WHOLE = ("cluster", "kafka_topic", "kafka_acl", "kafka_quota", "topic_usage", "group_usage")
QUOTAS = {
    "user=ci": {"config.producer_byte_rate": "1048576.5"},
    "user": {"config.producer_byte_rate": "none", "config.request_percentage": "50"},
    "user|client-id=app": {"entity.client-id": "app", "config.consumer_byte_rate": "7"},
    "client-id=app": {"entity.client-id": "app", "config.consumer_byte_rate": "8"},
    "ip": {"config.connection_creation_rate": "3"},
}
RULES = (
    ("brief", "high", "kafka_topic", "try_cast(attrs['config.retention.ms'] AS BIGINT) < 3600000"),
    ("few", "medium", "kafka_*", "attrs['partitions'] in ('1') and key rlike '^o.*s$'"),
    ("unset", "low", "kafka_topic", "attrs['config.retention.ms'] is null"),
    ("sum", "low", "kafka_topic", "(attrs['partitions'] + 0.5) * 2 - 1 / 2 > 2 and key like '%o%'"),
)
CHANGES: Sequence[tuple[Any, Any]] = (
    (Decimal("12345678.5"), Decimal("0.00001")),
    (10**20, -1),
    (None, True),
    ("12", 'a "quoted" text: \\'),
    ([1, "b"], {"a": None, "b": 1}),
)


def acl(principal: str, operation: str, name: str, pattern: str, effect: str) -> dict[str, Any]:
    attrs = {
        **{"acl_principal": principal, "acl_host": "*", "acl_operation": operation},
        **{"acl_permission_type": effect, "resource_type": "Topic", "resource_name": name},
        "resource_pattern_type_filter": pattern,
    }
    return row("kafka_acl", "|".join(attrs.values()), attrs)


def shop(day: int) -> list[dict[str, Any]]:
    """What the cluster shows on a day; on the third, one topic is gone."""
    names = ("orders", "orders.dlq", "archive", "päyments")[: 3 if day == 2 else 4]
    topics = [
        row(
            "kafka_topic",
            name,
            {
                **{"partitions": "2", "replication_factor": "2", "replica_assignment": placed},
                **({"config.retention.ms": str(60_000 * (day + 1))} if name == "orders" else {}),
            },
            incarnation=f"{name}-1",
        )
        for name, placed in zip(
            names, ("[[1,2],[2,1]]", "[[1],[2]]", "[[2],[1]]", "[]"), strict=False
        )
    ]
    usage = [
        row("topic_usage", name, {"end_offsets_sum": str(end), "bytes": str(10**9 * (n + day))})
        for n, name in enumerate(names)
        for end in [9 if name == "archive" else day * n]
    ]
    groups = [
        row("group_usage", "billing orders", {"committed_sum": str(day), "members": "0"}),
        row("group_usage", "idle orders.dlq", {"committed_sum": "5", "members": "0"}),
    ]
    return [
        row("cluster", SCOPE, {"brokers": "2", "nodes": '["1","2"]'}),
        *(*topics, *usage, *groups),
        acl("User:*", "Read", "*", "Literal", "Allow"),
        acl("User:ci", "Write", "ord", "Prefixed", "Allow"),
        acl("User:ci", "Read", "orders", "Literal", "Deny"),
        acl("User:gone", "All", "nothing", "Literal", "Allow"),
        *(
            row("kafka_quota", key, {"entity.user": "ci", **attrs} if "=ci" in key else attrs)
            for key, attrs in QUOTAS.items()
        ),
        row("kafka_user_scram_credential", "ci", {"username": "ci"}),
    ]


def land(root: Path, day: int) -> None:
    """A day of two regular clusters, of one that has everything, and of one that fails."""
    world, landing = World(root, size=Size.scaled(0.01)), Landing(root / ROOT)
    world.register(CLUSTERS, day)
    world.write(range(CLUSTERS), days=(day,))
    # Besides what a fleet of the kit declares.
    path = max((root / ROOT / "register").iterdir())
    data = json.loads(path.read_text("utf-8"))
    data["clusters"] += [
        {"name": "shop", "env": "prod", "allow_if_no_acl": False, "limit_replicas": 9},
        {"name": "dark", "env": "prod"},
    ]
    data["states"].append({"name": "shop", "lineage": LINEAGE})
    data["owners"].append({"name": "orders", "topics": ["or?er*"], "principals": ["User:ci"]})
    data["naming"].append({"kind": "kafka_topic", "pattern": "[a-z.]+", "cluster": "sh?p"})
    data["rules"] += [
        {
            **{"name": name, "severity": severity, "kind": kind, "where": where, "message": "No."},
            "waivers": [{"until": "2026-01-02", "reason": "moves", "key": "orders*"}],
        }
        for name, severity, kind, where in RULES
    ]
    data["settings"] = {"grace_days": 1}
    data["keeps"] = [
        {"until": "2026-12-31", "reason": "asked for", "cluster": "s*", "key": "arch?*e"}
    ]
    path.write_text(json.dumps(data), "utf-8")
    hours = 24.0 * day + 1
    whole = dict.fromkeys(WHOLE, "complete")
    landing.snapshot("live", "shop", hours, shop(day), scope_id=SCOPE, coverage=whole)
    landing.snapshot("live", "dark", hours, None, error="no broker answers", coverage={})
    own = {"instance": "kafka", "scope_id": SCOPE, "owner": "orders"}
    topics = [r for r in shop(0) if r["kind"] == "kafka_topic"]
    state = [{**r, **own, "address": f"kafka_topic.{r['key']}"} for r in topics[:2]]
    desired = [{**r, "attrs": {**r["attrs"], "partitions": "4"}} for r in state[: 2 - day % 2]]
    for source, rows in (("state", state), ("desired", desired)):
        landing.snapshot(source, LINEAGE, hours, rows, scopes={"kafka": SCOPE})
    if day == 1:
        # Changed after it was written, and bytes that are no text.
        stem = landing.snapshot("live", "shop", hours + 1, shop(1), scope_id=SCOPE, coverage=whole)
        (landing.root / f"{stem}{ROWS}").write_bytes(b'{"kind":"kafka_topic"}\n\xff\n')
        assert (landing.root / f"{stem}{META}").exists()
    audit(landing, day)


def audit(landing: Landing, day: int) -> None:
    """A run a day. A log is landed in overlapping pieces, one of them with a bad line."""
    lines = log(LINEAGE, [record for n in range(day + 1) for record in run(n)])
    landing.audit(LINEAGE, 1, lines)
    landing.audit("other", 10 * day + 1, [b"{not json", b"\xff", lines[0]])


def run(day: int) -> list[tuple[str, str, Mapping[str, Any]]]:
    name = f"run-{day}"
    begun = {"command": "apply", "host": "h", "commit": "e5", "scopes": {"kafka": SCOPE}}
    paths = [
        {"path": f"config.{n}", "before": before, "after": after, "sensitive": False}
        for n, (before, after) in enumerate(CHANGES)
    ]
    steps = [
        step(key, scope_id=SCOPE, paths=paths, _time=at(24 * day + 0.1 * n))
        for n, key in enumerate(("orders", "orders.dlq"), 1)
    ]
    error = {"code": "TIMEOUT", "message": "m", "kind": "k", "where": None}
    ends = ({"outcome": "applied"}, {"outcome": "failed", "error": error})
    outcomes = zip(steps, ends, (7, 11 * day), strict=True)
    return [
        ("run_begin", name, begun),
        *(("intent", name, body) for body in steps),
        *(("outcome", name, {**s, **end, "duration_ms": ms}) for s, end, ms in outcomes),
        ("run_end", name, {"complete": True, "counts": {}}),
    ]


def build_on_spark(root: Path, spark: SparkSession) -> None:
    options = BuildOptions(VERSION, max_corrupt=MAX_CORRUPT)
    run_build(lambda _: spark, Folder(root), str(root), DATASETS, options)


def build_on_sail(root: Path) -> None:
    command = [sys.executable, "-m", "kafkaform", "fleet", "run", "--root", str(root), "--quiet"]
    done = subprocess.run(
        [*command, "--master", EMBEDDED, "--max-corrupt", str(MAX_CORRUPT)],
        capture_output=True,
        text=True,
        check=False,
    )
    # 5: not all clusters are known. Sail itself writes nothing.
    assert done.returncode == 5, done.stderr[-3000:]
    assert all(line.startswith("Not known: ") for line in done.stderr.splitlines()), done.stderr


def read(root: Path) -> dict[str, list[str]]:
    """All tables as delta-rs reads them, without the times of reading."""
    found = manifest.read_current(Folder(root))
    assert found is not None
    tables = {}
    for name, written in found.tables.items():
        table = DeltaTable(str(root / "tables" / TABLES[name].layer / name), written.version)
        rows = table.to_pyarrow_table().to_pylist(maps_as_pydicts="strict")
        tables[name] = in_order({**r, "_ingested_at": None} for r in rows)
        assert len(tables[name]) == written.rows
    return tables


def test_sail_and_spark_make_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    """All of them, of a fleet of three days. On the second day, each engine goes on with what the
    other has made: it reads those tables and replaces a part of them. On the third, Sail has
    both."""
    one, other = tmp_path / "one", tmp_path / "other"
    both = [one, other]
    turns = (([one], [other]), ([other], [one]), ([], both))
    for day, (spark_roots, sail_roots) in enumerate(turns):
        for root in both:
            land(root, day)
        for root in spark_roots:
            build_on_spark(root, spark)
        for root in sail_roots:
            build_on_sail(root)
        tables, other_tables = read(one), read(other)
        assert tables.keys() == TABLES.keys()
        for name in TABLES:
            assert tables[name] == other_tables[name], f"{name} on day {day}"
    assert {name for name, rows in tables.items() if not rows} <= EMPTY
    assert any("it until 2026-12-31: asked for" in row for row in tables["unused_topics"])
