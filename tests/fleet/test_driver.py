"""Builds: what is made anew, what stays, what readers see when one fails, and what is owed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

from kafkaform.core.errors import KafkaformError, StorageError, UsageError
from kafkaform.fleet import inputs, manifest, registers, resources
from kafkaform.fleet.checks import conforming, sound
from kafkaform.fleet.dataset import Context, Dataset, Frames
from kafkaform.fleet.driver import Options, Result, run
from kafkaform.fleet.folder import Folder
from kafkaform.fleet.manifest import ALL
from kafkaform.fleet.order import ordered, selected
from kafkaform.fleet.store import Store
from kafkaform.fleet.tables import TABLES, Layer
from kafkaform.fleet.touched import touched

from .frames import frame
from .landings import Landing, log, row, step


def owner(frames: Frames, context: Context) -> DataFrame:
    """A small table of scope `cluster` that is made of others: objects of each cluster."""
    rows = frames["live"].groupBy("cluster").count()
    return rows.select(
        "cluster",
        F.lit("cluster").alias("subject"),
        *(F.lit(0).cast("bigint").alias(name) for name in ("partitions", "replicas")),
        F.col("count").alias("topics"),
        F.lit(0).cast("bigint").alias("below_rf"),
        *(F.lit(None).cast(kind).alias(name) for name, kind in NOT_KNOWN),
        F.lit(context.as_of).alias("as_of"),
    )


NOT_KNOWN = (
    ("bytes", "bigint"),
    ("growth_per_day", "double"),
    ("limit_replicas", "bigint"),
    ("breach_on", "date"),
    ("cost", "double"),
    ("currency", "string"),
)
DATASETS = (
    Dataset("capacity", ("live",), owner),
    Dataset("live", ("snapshot", "snapshot_raw"), resources.live),
    Dataset("cluster", ("audit_raw", "snapshot", "snapshot_raw"), registers.cluster),
    Dataset("lineage", ("audit_raw", "snapshot"), registers.lineage),
)


@dataclass
class Fleet:
    """A root on disk, and what its builds are made with."""

    spark: SparkSession
    root: Path
    datasets: tuple[Dataset, ...] = DATASETS
    code: str = "1"
    started: int = 0
    given: dict[str, set[str]] = field(default_factory=dict)

    @property
    def landing(self) -> Landing:
        return Landing(self.root / "landing")

    @property
    def objects(self) -> Folder:
        return Folder(self.root)

    def run(self, **options: Any) -> Result:
        datasets = tuple(replace(d, build=self._watched(d)) for d in self.datasets)
        self.given = {}
        return run(self._start, self.objects, str(self.root), datasets, self._options(**options))

    def _options(self, **options: Any) -> Options:
        return Options(self.code, **options)

    def _start(self) -> SparkSession:
        self.started += 1
        return self.spark

    def _watched(self, dataset: Dataset) -> Callable[[Frames, Context], DataFrame]:
        """Notes for which clusters it was asked."""

        def build(frames: Frames, context: Context) -> DataFrame:
            seen = frames.get("live", frames.get("snapshot"))
            if seen is not None and dataset.table in ("live", "capacity"):
                name = "cluster" if "cluster" in seen.columns else "subject"
                self.given[dataset.table] = {r[0] for r in seen.select(name).distinct().collect()}
            return dataset.build(frames, context)

        return build

    def read(self, table: str) -> list[Any]:
        """As a reader sees it."""
        now = manifest.current(self.objects)
        assert now is not None
        return Store(self.spark, str(self.root)).read(table, now.tables[table].version).collect()

    def topics(self) -> dict[str, int]:
        return {r["cluster"]: r["topics"] for r in self.read("capacity")}


def topics(*names: str) -> list[dict[str, Any]]:
    return [row("kafka_topic", name, {"partitions": "1"}) for name in names]


def never() -> NoReturn:
    raise AssertionError("Spark was started")


# ── without Spark ───────────────────────────────────────────────────────────────────────


def test_nothing_that_landed_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing has landed") as caught:
        run(never, Folder(tmp_path), str(tmp_path), DATASETS, Options("1"))
    assert "fleet snapshot" in caught.value.advice


def test_a_table_that_is_not_made_is_told_with_its_neighbour(tmp_path: Path) -> None:
    Landing(tmp_path / "landing").register(0)
    with pytest.raises(UsageError, match="--only capasity") as caught:
        run(never, Folder(tmp_path), str(tmp_path), DATASETS, Options("1", only=("capasity",)))
    assert caught.value.advice == "Did you mean capacity?"


def test_tables_come_after_what_they_are_made_from() -> None:
    """In whatever order they are listed; what tells who is touched comes first of all."""
    names = [each.table for each in ordered(DATASETS)]
    assert set(names[:2]) == {"cluster", "lineage"}
    assert names[2:] == ["live", "capacity"]
    for seed in range(50):
        mixed = Random(seed).sample(DATASETS, len(DATASETS))
        assert [each.table for each in ordered(mixed)][2:] == ["live", "capacity"]
    assert {each.table for each in selected(DATASETS, ["live"])} == {"live", "cluster", "lineage"}


def test_the_name_of_a_build_is_of_what_landed() -> None:
    """The same files give the same name, in any order; any other file, size or option another."""
    files = {"live/a/1.meta.json": 10, "audit/l/1-2.jsonl": 20}
    same = dict(reversed(files.items()))
    one = inputs.fingerprint(files, ("1",))
    assert one == inputs.fingerprint(same, ("1",))
    others = [
        inputs.fingerprint({**files, "audit/l/1-2.jsonl": 21}, ("1",)),
        inputs.fingerprint({**files, "audit/l/3-4.jsonl": 1}, ("1",)),
        inputs.fingerprint(files, ("2",)),
        inputs.fingerprint(files, ("1", "live")),
    ]
    assert len({one, *others}) == 5


def test_every_table_is_made_once_of_tables_that_there_are() -> None:
    """What is not bronze is in the list of datasets, and no circle of inputs is in it."""
    from kafkaform.fleet.datasets import DATASETS as all_of_them

    made = [each.table for each in ordered(all_of_them)]
    assert sorted(made) == sorted(n for n, t in TABLES.items() if t.layer is not Layer.BRONZE)
    assert {name for each in all_of_them for name in each.inputs} <= TABLES.keys()
    assert set(made[:2]) == {"cluster", "lineage"}


# ── who is touched ──────────────────────────────────────────────────────────────────────


def cluster_row(name: str, **more: Any) -> dict[str, Any]:
    empty: Mapping[str, str] = {}
    return {"cluster": name, "registered": True, "status": "read", "coverage": empty, **more}


def lineage_row(name: str, **more: Any) -> dict[str, Any]:
    return {"lineage": name, "desired_known": True, "scopes": {}, **more}


@pytest.mark.spark
def test_clusters_are_touched_by_what_is_about_them(spark: SparkSession) -> None:
    """Each reason alone; and a reason that names all clusters there are means all."""
    before = [cluster_row(n, cluster_id=f"id-{n}") for n in "abcd"]
    stale = [*before[:2], {**before[2], "status": "stale"}, before[3]]
    lineages = [lineage_row("l", scopes={"kafka": "id-a"}), lineage_row("m")]
    moved = [lineage_row("l", scopes={"kafka": "id-b"}), lineage_row("m")]
    body = '{"scope_id":"id-c","scopes":{"kafka":"id-d","x":"unknown"}}'
    line = {"line": "", "origin": "file", "_file": "f", "_build": "b"}
    line["_ingested_at"] = datetime(2026, 1, 1, tzinfo=UTC)

    def found(
        files: tuple[str, ...] = (),
        now: list[dict[str, Any]] = before,
        states: list[dict[str, Any]] = lineages,
        bodies: tuple[str, ...] = (),
    ) -> manifest.Clusters:
        return touched(
            files,
            (frame(spark, "cluster", before), frame(spark, "cluster", now)),
            (frame(spark, "lineage", lineages), frame(spark, "lineage", states)),
            frame(spark, "audit_raw", [{**line, "body": text} for text in bodies]),
        )

    assert found() == frozenset()
    assert found(files=("live/a/1.meta.json", "live/a/1.jsonl")) == {"a"}
    assert found(files=("register/1.json",)) is ALL
    assert found(now=stale) == {"c"}
    assert found(now=before[:3]) == {"d"}
    assert found(states=moved) == {"a", "b"}
    assert found(bodies=('{"steps":[]}', body)) == {"c", "d", "unknown"}
    assert found(files=tuple(f"live/{n}/1.meta.json" for n in "abcd")) is ALL


# ── checks ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.spark
def test_a_table_that_breaks_its_own_rules_is_told_with_an_example(spark: SparkSession) -> None:
    one = {"taken": datetime(2026, 1, 1, tzinfo=UTC), "body": "{}", "_file": "f", "_build": "b"}
    good = {**one, "_ingested_at": one["taken"]}
    assert sound("register_raw", frame(spark, "register_raw", [good])) == 1
    assert sound("register_raw", frame(spark, "register_raw", [])) == 0
    with pytest.raises(StorageError, match="two rows have the same taken: .*2026-01-01"):
        sound("register_raw", frame(spark, "register_raw", [good, {**good, "body": "[]"}]))
    nulled = frame(spark, "register_raw", [good]).withColumn("body", F.lit(None).cast("string"))
    with pytest.raises(StorageError, match=r"column body is null in 1 rows, such as .*2026"):
        sound("register_raw", nulled)
    bad = {**good, "source": "live", "reason": "not_json"}
    rows = frame(
        spark, "quarantine", [{n: v for n, v in bad.items() if n not in ("taken", "body")}]
    )
    keyless = rows.withColumn("source", F.lit(None).cast("string"))
    with pytest.raises(StorageError, match="table quarantine: column source is null in 1 rows"):
        sound("quarantine", keyless)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows.withColumn("body", F.lit(1)), r"\('body', 'int'\)"),
        (lambda rows: rows.drop("_build"), "'_ingested_at', 'timestamp'"),
        (lambda rows: rows.withColumn("more", F.lit(1)), "'more', 'int'"),
    ],
)
def test_other_columns_than_the_tables_are_refused(
    spark: SparkSession, change: Callable[[DataFrame], DataFrame], told: str
) -> None:
    with pytest.raises(StorageError, match=told):
        conforming("register_raw", change(frame(spark, "register_raw", [])))


# ── builds ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.spark
def test_a_build_makes_anew_what_something_new_is_about(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nothing new: nothing is started. One cluster's snapshot: its rows alone. A build that
    fails: readers see the one before, and the next one is as if it had never been. `--only`: the
    others are made up for later."""
    fleet = Fleet(spark, tmp_path)
    fleet.landing.register(0, clusters=[{"name": "a"}, {"name": "b"}])
    fleet.landing.snapshot("live", "a", 1, topics("x"), scope_id="id-a")
    fleet.landing.snapshot("live", "b", 1, topics("x", "y"), scope_id="id-b")
    first = fleet.run()
    assert first.clusters is ALL
    assert fleet.topics() == {"a": 1, "b": 2}
    assert first.manifest.tables["capacity"].rows == 2
    assert first.manifest.as_of == "2026-01-01T01:00:00+00:00"
    assert {row["_build"] for row in fleet.read("snapshot_raw")} == {first.manifest.build}

    again = fleet.run()
    assert (again.made, again.manifest, fleet.started) == ((), first.manifest, 1)

    fleet.landing.snapshot("live", "a", 2, topics("x", "z", "zz"), scope_id="id-a")
    second = fleet.run()
    assert second.clusters == {"a"}
    assert fleet.given == {"live": {"a"}, "capacity": {"a"}}
    assert fleet.topics() == {"a": 3, "b": 2}
    assert second.manifest.tables["snapshot_raw"].rows == 6
    assert second.manifest.tables["capacity"].rows == 2
    old = Store(spark, str(tmp_path)).read("capacity", first.manifest.tables["capacity"].version)
    assert sorted(row["topics"] for row in old.collect()) == [1, 2]

    _fails(fleet)
    assert manifest.current(fleet.objects) == second.manifest
    assert fleet.topics() == {"a": 3, "b": 2}

    fleet.landing.snapshot("live", "b", 4, topics("only"), scope_id="id-b")
    third = fleet.run(only=("live",))
    assert third.manifest.tables["snapshot_raw"].rows == 11
    assert third.manifest.owed == {"capacity": ALL}
    assert third.manifest.tables["capacity"] == second.manifest.tables["capacity"]
    assert len(fleet.read("live")) == 5
    assert fleet.run(only=("live",)).made == ()
    fourth = fleet.run()
    assert fleet.topics() == {"a": 4, "b": 1}
    assert fourth.manifest.owed == {}

    fleet.code = "2"
    assert fleet.run().clusters is ALL
    assert fleet.started == 6


def _fails(fleet: Fleet) -> None:
    """A snapshot lands, and a dataset fails after others have been written."""

    def broken(frames: Frames, context: Context) -> DataFrame:
        return owner(frames, context).unionAll(owner(frames, context))

    fleet.landing.snapshot("live", "a", 3, topics("1", "2", "3", "4"), scope_id="id-a")
    fleet.datasets = (Dataset("capacity", ("live",), broken), *DATASETS[1:])
    with pytest.raises(StorageError, match='capacity: two rows have the same .*"cluster":"a"'):
        fleet.run()
    fleet.datasets = DATASETS


@pytest.mark.spark
def test_a_first_build_that_fails_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What Spark says reaches the user in one line; rows of that build are not there twice."""

    def broken(frames: Frames, context: Context) -> DataFrame:
        return owner(frames, context).withColumn(
            "cost", F.raise_error(F.lit("boom\nmore")).cast("double")
        )

    fleet = Fleet(spark, tmp_path, (Dataset("capacity", ("live",), broken), *DATASETS[1:]))
    fleet.landing.register(0, clusters=[{"name": "a"}])
    fleet.landing.snapshot("live", "a", 1, topics("x"), scope_id="id-a")
    with pytest.raises(StorageError, match="table capacity cannot be made: .*boom") as caught:
        fleet.run()
    assert "\n" not in caught.value.message
    assert manifest.current(fleet.objects) is None
    fleet.datasets = DATASETS
    fleet.landing.audit("l", 1, log("l", [("intent", "r", step("x"))]))
    made = fleet.run()
    assert made.manifest.tables["snapshot_raw"].rows == 1
    assert fleet.topics() == {"a": 1}


@pytest.mark.spark
def test_too_much_that_is_corrupt_fails_the_build(spark: SparkSession, tmp_path: Path) -> None:
    """The command line's share counts instead of the register's."""
    fleet = Fleet(spark, tmp_path)
    fleet.landing.register(0, clusters=[{"name": "a"}])
    fleet.landing.audit("l", 1, [b"{not json", *log("l", [("intent", "r", step("x"))])])
    with pytest.raises(KafkaformError, match="audit/l/000000000001"):
        fleet.run()
    assert fleet.run(max_corrupt=0.9).manifest.tables["quarantine"].rows == 1
