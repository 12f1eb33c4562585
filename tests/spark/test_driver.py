"""Builds: what is made anew, what stays, what readers see when one fails, and what is owed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import pyspark.sql.functions as F
import pytest
from msgspec.structs import replace
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from kafkaform.core.errors import StorageError, UsageError
from kafkaform.core.objects import Entry, Folder, StoredObject
from kafkaform.fleet.build import driver, intake
from kafkaform.fleet.build.driver import DATASETS as ALL_OF_THEM
from kafkaform.fleet.build.driver import BuildOptions, BuildResult, Follow, run_build
from kafkaform.fleet.build.intake import ChangedClusters, find_changed_clusters
from kafkaform.fleet.build.workspace import explain_errors, order_datasets, select_datasets
from kafkaform.fleet.spark.session import LandedBytes
from kafkaform.fleet.spark.store import TableStore, check_rows, conform_rows, vacuum
from kafkaform.fleet.tables import manifest
from kafkaform.fleet.tables.definitions import TABLES, BuildContext, Dataset, Frames, Layer
from kafkaform.fleet.tables.manifest import ALL_CLUSTERS, Manifest
from kafkaform.fleet.tables.reader import Gold, read_current

from ..kit.fleet.frames import frame
from ..kit.fleet.landings import Landing, audit_rows, log, row, step


def sizes(frames: Frames, context: BuildContext) -> DataFrame:
    """A small table of scope `cluster` that is made of others: `message` is how many objects a
    cluster has. Waived until 2026-01-01."""
    last = date(2026, 1, 1)
    holds = context.as_of.date() <= last
    rows = frames["live"].groupBy("cluster").agg(F.count("*").cast("string").alias("message"))
    told = {name: F.lit("") for name in ("rule", "severity", "kind", "key", "path")}
    until = F.lit(last if holds else None).cast("date")
    told |= {"waived": F.lit(holds), "waived_until": until, "first_seen": F.lit(context.as_of)}
    return filled(GOLD, rows, told)


GOLD = "policy_findings"


def clusters(frames: Frames, context: BuildContext) -> DataFrame:
    """As `registers.build_cluster`, of what has landed alone."""
    found = frames["snapshot"].groupBy(F.col("subject").alias("cluster"))
    rows = found.agg(F.max("scope_id").alias("cluster_id"), F.max("snapshot").alias("snapshot"))
    told = {"status": F.lit("read"), "registered": F.lit(True), "coverage": no_map()}
    return filled("cluster", rows, told)


def lineages(frames: Frames, context: BuildContext) -> DataFrame:
    """As `registers.build_lineage`, of logs alone."""
    rows = frames["audit_raw"].where(F.col("seq").isNotNull()).select("lineage").distinct()
    told = {"state_at": F.lit(context.as_of), "desired_known": F.lit(True), "scopes": no_map()}
    return filled("lineage", rows, told)


def no_map() -> Column:
    return F.create_map().cast("map<string,string>")


def filled(table: str, rows: DataFrame, told: Mapping[str, Column]) -> DataFrame:
    """With all columns of the table; null, where nothing is told."""
    nothing = {
        column.name: F.lit(None).cast(column.type)
        for column in TABLES[table].columns
        if column.name not in (*rows.columns, *told)
    }
    return rows.withColumns({**told, **nothing}).select(*TABLES[table].names)


REAL = {each.table: each for each in ALL_OF_THEM}
DATASETS = (
    Dataset(GOLD, ("live",), sizes),
    REAL["live"],
    Dataset("cluster", ("snapshot",), clusters),
    Dataset("lineage", ("audit_raw",), lineages),
)
EVENTS = tuple(REAL[name] for name in ("run", "event_conflict", "event"))


@dataclass(frozen=True)
class Twice:
    """A store that lists everything twice, and may die before the current build is changed."""

    folder: Folder
    dies: bool = False

    @property
    def location(self) -> str:
        return self.folder.location

    def read(self, key: str) -> StoredObject | None:
        return self.folder.read(key)

    def create(self, key: str, data: bytes) -> str:
        return self.folder.create(key, data)

    def replace(self, key: str, data: bytes, version: str) -> str:
        if self.dies and key == manifest.CURRENT:
            raise Died
        return self.folder.replace(key, data, version)

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        return 2 * self.folder.names(prefix, after)

    def delete(self, key: str) -> None:
        self.folder.delete(key)


class Died(BaseException):
    """Nobody catches this."""


@dataclass
class Fleet:
    """A root on disk, and what its builds are made with."""

    spark: SparkSession
    root: Path
    datasets: tuple[Dataset, ...] = DATASETS
    code: str = "1"
    started: int = 0
    dies: bool = False
    given: dict[str, set[str]] = field(default_factory=dict)

    @property
    def landing(self) -> Landing:
        return Landing(self.root / "landing")

    @property
    def objects(self) -> Twice:
        return Twice(Folder(self.root), self.dies)

    def run(self, **options: Any) -> BuildResult:
        datasets = tuple(replace(d, build=self._watched(d)) for d in self.datasets)
        self.given = {}
        return run_build(
            self._start, self.objects, str(self.root), datasets, self._options(**options)
        )

    def _options(self, **options: Any) -> BuildOptions:
        return BuildOptions(self.code, **options)

    def _start(self, _: LandedBytes) -> SparkSession:
        self.started += 1
        return self.spark

    def _watched(self, dataset: Dataset) -> Callable[[Frames, BuildContext], DataFrame]:
        """Notes for which clusters it was asked."""

        def build(frames: Frames, context: BuildContext) -> DataFrame:
            seen = frames.get("live", frames.get("snapshot"))
            if seen is not None and dataset.table in ("live", GOLD):
                name = "cluster" if "cluster" in seen.columns else "subject"
                self.given[dataset.table] = {r[0] for r in seen.select(name).distinct().collect()}
            return dataset.build(frames, context)

        return build

    def read(self, table: str) -> list[Any]:
        """As a reader sees it, who needs no Spark."""
        rows = Gold(read_current(str(self.root))).read_rows(f"select * from {table}")
        return sorted(rows, key=repr)

    def sizes(self) -> dict[str, int]:
        return {r["cluster"]: int(r["message"]) for r in self.read(GOLD)}

    def waived(self) -> set[str]:
        return {r["cluster"] for r in self.read(GOLD) if r["waived"]}


def topics(*names: str) -> list[dict[str, Any]]:
    return [row("kafka_topic", name, {"partitions": "1"}) for name in names]


def never() -> NoReturn:
    raise AssertionError("Spark was started")


# ── without Spark ───────────────────────────────────────────────────────────────────────


def test_nothing_that_landed_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no landing files") as caught:
        run_build(never, Folder(tmp_path), str(tmp_path), DATASETS, BuildOptions("1"))
    assert "fleet snapshot" in caught.value.advice


def test_a_table_that_is_not_made_is_told_with_its_neighbour(tmp_path: Path) -> None:
    Landing(tmp_path / "landing").register(0)
    with pytest.raises(UsageError, match="--only policy_finding:") as caught:
        run_build(
            never, Folder(tmp_path), str(tmp_path), DATASETS, BuildOptions("1", only=(GOLD[:-1],))
        )
    assert caught.value.advice == "Did you mean policy_findings?"


def test_tables_come_after_what_they_are_made_from() -> None:
    """In whatever order they are listed; what tells who is touched comes first of all."""
    names = [each.table for each in order_datasets(DATASETS)]
    assert set(names[:2]) == {"cluster", "lineage"}
    assert names[2:] == ["live", GOLD]
    for seed in range(50):
        mixed = Random(seed).sample(DATASETS, len(DATASETS))
        assert [each.table for each in order_datasets(mixed)][2:] == ["live", GOLD]
    assert {each.table for each in select_datasets(DATASETS, ["live"])} == {
        "live",
        "cluster",
        "lineage",
    }


def test_the_name_of_a_build_is_of_what_landed() -> None:
    """The same files give the same name, in any order; any other file, size or option another."""
    files = {"live/a/1.meta.json": 10, "audit/l/1-2.jsonl": 20}
    same = dict(reversed(files.items()))
    one = intake.compute_fingerprint(files, ("1",))
    assert one == intake.compute_fingerprint(same, ("1",))
    others = [
        intake.compute_fingerprint({**files, "audit/l/1-2.jsonl": 21}, ("1",)),
        intake.compute_fingerprint({**files, "audit/l/3-4.jsonl": 1}, ("1",)),
        intake.compute_fingerprint(files, ("2",)),
        intake.compute_fingerprint(files, ("1", "live")),
    ]
    assert len({one, *others}) == 5


def test_every_table_is_made_once_of_tables_that_there_are() -> None:
    """What is not bronze is in the list of datasets, and no circle of inputs is in it."""
    made = [each.table for each in order_datasets(ALL_OF_THEM)]
    assert sorted(made) == sorted(n for n, t in TABLES.items() if t.layer is not Layer.BRONZE)
    assert {name for each in ALL_OF_THEM for name in each.inputs} <= TABLES.keys()
    assert set(made[:3]) == {"cluster", "lineage", "run"}


def test_what_spark_says_is_told_in_one_line() -> None:
    told = pytest.raises(StorageError, match="table x cannot be made: boom$")
    with told as caught, explain_errors("table x cannot be made"):
        raise PySparkException("boom\nmore")
    assert "stays the current one" in caught.value.advice


def test_builds_that_died_are_known_until_one_is_published(tmp_path: Path) -> None:
    """All since the current one, whatever the next ones are called; of one that was published and
    died before it could say so, nothing is left to be done."""
    objects = Folder(tmp_path)
    assert manifest.list_died(objects, None) == ()
    manifest.begin_build(objects, "b1")
    assert manifest.list_died(objects, None) == ("b1",)
    manifest.begin_build(objects, "b2")
    manifest.begin_build(objects, "b1")
    assert manifest.list_died(objects, "b0") == ("b2", "b1")
    assert manifest.list_died(objects, "b1") == ()
    manifest.begin_build(objects, "b3")
    assert manifest.list_died(objects, "b1") == ("b3",)
    manifest.end_build(objects)
    assert manifest.list_died(objects, "b3") == ()


def test_all_is_made_anew_for_another_version_or_another_register(tmp_path: Path) -> None:
    """A register that says the same again, as each snapshot lands one, touches nobody."""
    objects, landing = Folder(tmp_path), Landing(tmp_path / "landing")
    said = {"clusters": [{"name": "a"}], "settings": {"grace_days": 3}}
    landing.register(0, **said)
    made = Manifest("b", {}, "", "", "2026-01-01T00:00:00+00:00", "", "1", {})
    manifest.publish(objects, made, driver._make_plan(objects, DATASETS, BuildOptions("1")).files)
    plans = {code: driver._make_plan(objects, DATASETS, BuildOptions(code)) for code in "12"}
    assert (plans["1"].is_empty, plans["1"].stale, plans["2"].stale) == (True, False, True)
    landing.register(1, **said)
    again = driver._make_plan(objects, DATASETS, BuildOptions("1", max_corrupt=0.5))
    assert (again.is_empty, again.register_changed) == (False, False)
    assert (again.register.settings.max_corrupt, again.register.settings.grace_days) == (0.5, 3)
    landing.register(2, **said | {"settings": {"grace_days": 4}})
    assert driver._make_plan(objects, DATASETS, BuildOptions("1")).register_changed


def test_what_logs_say_is_made_anew_for_new_lines_or_new_names_alone() -> None:
    """A snapshot of a cluster leaves `event` and what is made of it as they are."""
    names = ("event", "apply_reliability", "live", "run", "declared_history")

    def due(renamed: bool, lineages: set[str]) -> list[Collection[str] | None]:
        news = ChangedClusters(frozenset("a"), renamed, frozenset("m"))
        told = [REAL[name] for name in names]
        return [driver._select_clusters(each, news, frozenset(lineages)) for each in told]

    assert due(False, set()) == [set(), set(), {"a"}, set(), {"m"}]
    assert due(True, set()) == [{"a"}, ALL_CLUSTERS, {"a"}, set(), {"m"}]
    assert due(False, {"l"}) == [{"a"}, ALL_CLUSTERS, {"a"}, {"l"}, {"m"}]


# ── who is touched ──────────────────────────────────────────────────────────────────────


def cluster_row(name: str, **more: Any) -> dict[str, Any]:
    empty: Mapping[str, str] = {}
    known = {"registered": True, "status": "read", "coverage": empty, "cluster_id": f"id-{name}"}
    return {"cluster": name, **known, **more}


def lineage_row(name: str, **more: Any) -> dict[str, Any]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return {"lineage": name, "desired_known": True, "state_at": at, "scopes": {}, **more}


KNOWN = [cluster_row(name) for name in "abcd"]
TWINS = [*KNOWN[:3], cluster_row("d", cluster_id="id-a")]
UNNAMED = [*KNOWN[:3], cluster_row("d", cluster_id=None)]
LINEAGES = [lineage_row("l", scopes={"kafka": "id-a"}), lineage_row("m")]
UNREAD = {"desired_known": False}
STEP = {"kind": "intent", "scope_id": "id-c", "body": "{}"}
BEGIN = {"kind": "run_begin", "body": '{"scopes":{"kafka":"id-d","x":"unknown","y":null}}'}
TOUCHED: tuple[tuple[dict[str, Any], Collection[str] | None], ...] = (
    ({}, ()),
    ({"files": ("live/a/1.meta.json", "live/a/1.jsonl")}, "a"),
    ({"files": tuple(f"live/{name}/1.meta.json" for name in "abcd")}, ALL_CLUSTERS),
    ({"files": ("state/a/1.meta.json", "audit/b/1-1.jsonl")}, ()),
    ({"now": [*KNOWN[:2], cluster_row("c", status="stale"), KNOWN[3]]}, "c"),
    ({"now": KNOWN[:3], "renamed": True}, "d"),
    ({"now": [*KNOWN, cluster_row("e")], "renamed": True}, "e"),
    # Two names of one cluster: its rows go over from the one to the other.
    ({"now": TWINS, "renamed": True}, "ad"),
    ({"clusters": TWINS, "now": KNOWN, "renamed": True}, "ad"),
    ({"clusters": TWINS, "now": TWINS, "renamed": True}, ()),
    ({"now_lineages": [lineage_row("l", scopes={"kafka": "id-b"}), LINEAGES[1]]}, "ab"),
    ({"lines": ({"kind": "run_end", "body": "{}"}, STEP, BEGIN)}, ("c", "d", "unknown")),
    ({"lines": ({**BEGIN, "kind": "run_end"},)}, ()),
    ({"waived": "bb"}, "b"),
    # A state that landed late: nothing of it is now, but it may have been about other clusters.
    ({"landed": [("l", "id-c"), ("l", None)]}, "ac"),
    ({"landed": [("m", None)]}, ALL_CLUSTERS),
    # A state that was not read, and of which nobody knows where it is, may be about any cluster.
    ({"now_lineages": [LINEAGES[0], lineage_row("m", **UNREAD)]}, ALL_CLUSTERS),
    ({"now_lineages": [LINEAGES[0], lineage_row("m", state_at=None)]}, ALL_CLUSTERS),
    ({"now_lineages": [*LINEAGES, lineage_row("n", **UNREAD)]}, ALL_CLUSTERS),
    (
        {"now_lineages": [lineage_row("l", scopes={"kafka": None}, **UNREAD), LINEAGES[1]]},
        ALL_CLUSTERS,
    ),
    ({"lineages": [LINEAGES[0], lineage_row("m", **UNREAD)]}, ALL_CLUSTERS),
    ({"lineages": [*LINEAGES, lineage_row("n", **UNREAD)]}, ALL_CLUSTERS),
    ({"now_lineages": [lineage_row("l", scopes={"kafka": "id-a"}, **UNREAD), LINEAGES[1]]}, "a"),
    ({"now_lineages": [LINEAGES[0], lineage_row("m", owner="x")]}, ()),
    # The same of a cluster that nobody knows the id of.
    (
        {
            "clusters": UNNAMED,
            "now": UNNAMED,
            "now_lineages": [lineage_row("l", scopes={"kafka": "id-b"}), LINEAGES[1]],
        },
        "abd",
    ),
    ({"clusters": UNNAMED, "now": UNNAMED}, ()),
)


@pytest.mark.parametrize(("change", "wanted"), TOUCHED)
def test_clusters_are_touched_by_what_is_about_them(
    spark: SparkSession, change: dict[str, Any], wanted: Collection[str] | None
) -> None:
    """Each reason alone; and a reason that names all clusters there are means all."""
    line = {"line": "", "origin": "file", "_file": "f", "_build": "b", "_ingested_at": NOON}
    texts = dict.fromkeys(("rule", "severity", "kind", "key", "path", "message"), "")
    finding = {**texts, "waived": True, "first_seen": NOON}
    lines = [{**line, **record} for record in change.get("lines", ())]
    ended = [{**finding, "cluster": name} for name in change.get("waived", ())]
    found = find_changed_clusters(
        change.get("files", ()),
        _views(spark, "cluster", change.get("clusters", KNOWN), change.get("now", KNOWN)),
        _views(
            *(spark, "lineage", change.get("lineages", LINEAGES)),
            change.get("now_lineages", LINEAGES),
        ),
        frame(spark, "audit_raw", lines),
        spark.createDataFrame(change.get("landed", []), "lineage string, scope string"),
        frame(spark, GOLD, ended),
    )
    assert found.clusters == (ALL_CLUSTERS if wanted is ALL_CLUSTERS else frozenset(wanted))
    assert found.renamed == change.get("renamed", False)
    assert found.lineages == {name for name, _ in change.get("landed", [])}


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _views(
    spark: SparkSession, table: str, before: list[dict[str, Any]], now: list[dict[str, Any]]
) -> tuple[DataFrame, DataFrame]:
    return frame(spark, table, before), frame(spark, table, now)


# ── checks ──────────────────────────────────────────────────────────────────────────────


def test_a_table_that_breaks_its_own_rules_is_told_with_an_example(spark: SparkSession) -> None:
    one = {"taken": datetime(2026, 1, 1, tzinfo=UTC), "body": "{}", "_file": "f", "_build": "b"}
    good = {**one, "_ingested_at": one["taken"]}
    assert check_rows("register_raw", frame(spark, "register_raw", [good])) == 1
    assert check_rows("register_raw", frame(spark, "register_raw", [])) == 0
    with pytest.raises(StorageError, match="two rows have the same taken: .*2026-01-01"):
        check_rows("register_raw", frame(spark, "register_raw", [good, {**good, "body": "[]"}]))
    nulled = frame(spark, "register_raw", [good]).withColumn("body", F.lit(None).cast("string"))
    with pytest.raises(StorageError, match=r"column body is null in 1 rows, such as .*2026"):
        check_rows("register_raw", nulled)
    bad = {**good, "source": "live", "reason": "not_json"}
    rows = frame(
        spark, "quarantine", [{n: v for n, v in bad.items() if n not in ("taken", "body")}]
    )
    keyless = rows.withColumn("source", F.lit(None).cast("string"))
    with pytest.raises(StorageError, match="table quarantine: column source is null in 1 rows"):
        check_rows("quarantine", keyless)


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
        conform_rows("register_raw", change(frame(spark, "register_raw", [])))


# ── builds ──────────────────────────────────────────────────────────────────────────────

LINES = log(
    "l", [("intent", "r", step(f"t{n}", scope_id=f"id-{on}")) for n, on in enumerate("aaaab")]
)


def brought(lines: list[bytes]) -> Follow:
    """A topic that has these records."""

    def follow(store: TableStore, build: str) -> None:
        rows = audit_rows("l", lines, origin="topic t/0/1", _file="t", _build=build)
        store.append("audit_raw", frame(store.spark, "audit_raw", rows), build)

    return follow


def test_a_build_makes_anew_what_something_new_is_about(
    spark: SparkSession, tmp_path: Path
) -> None:
    """From the first build, which dies, to one that makes up for what `--only` left out. What
    comes twice counts once, and builds that die are as if they had never been."""
    fleet = Fleet(spark, tmp_path)
    clusters = [{"name": name} for name in "abc"]
    fleet.landing.register(0, clusters=clusters)
    for name in "abc":
        fleet.landing.snapshot("live", name, 1, topics("x", "y"), scope_id=f"id-{name}")
    fleet.landing.audit("l", 1, [*LINES[:3], b"{not json"])
    first = _first(fleet)
    _one_cluster_and_what_a_dead_build_left(fleet, clusters, first)
    _a_waiver_ends(fleet)


def _first(fleet: Fleet) -> Manifest:
    """A table that breaks its own rules leaves no build. Then each record comes thrice, by
    overlapping files and by a topic, and each file is listed twice."""
    fleet.datasets = (Dataset(GOLD, ("live",), _doubled), *DATASETS[1:])
    with pytest.raises(StorageError, match=rf'{GOLD}: two rows have the same .*"cluster":"'):
        fleet.run(max_corrupt=0.9)
    assert manifest.read_current(fleet.objects) is None

    fleet.datasets = (*DATASETS, *EVENTS)
    fleet.landing.audit("l", 2, LINES[1:4])
    result = fleet.run(max_corrupt=0.9, follow=brought(LINES[:4]))
    first = result.manifest
    assert result.clusters is ALL_CLUSTERS
    assert fleet.sizes() == {"a": 2, "b": 2, "c": 2}
    assert fleet.waived() == {"a", "b", "c"}
    assert sorted(row["seq"] for row in fleet.read("event")) == [1, 2, 3, 4]
    wanted = {"snapshot_raw": 6, "snapshot": 3, "live": 6, "quarantine": 1, "event_conflict": 0}
    assert {name: first.tables[name].rows for name in wanted} == wanted
    assert first.as_of == "2026-01-01T01:00:00+00:00"
    assert {row["_build"] for row in fleet.read("snapshot_raw")} == {first.build}

    fleet.datasets, started = DATASETS, fleet.started
    again = fleet.run()
    assert (again.tables, again.manifest, fleet.started) == ((), first, started)
    return first


def _doubled(frames: Frames, context: BuildContext) -> DataFrame:
    return sizes(frames, context).unionAll(sizes(frames, context))


def _one_cluster_and_what_a_dead_build_left(
    fleet: Fleet, clusters: list[dict[str, str]], first: Manifest
) -> None:
    """A build dies between its manifest and the note that it is the current one. What a topic
    brought to it is new to the next build, which makes the rows of two clusters alone."""
    fleet.landing.register(2, clusters=clusters)
    fleet.landing.snapshot("live", "a", 2, topics("x", "z", "zz"), scope_id="id-a")
    fleet.dies = True
    with pytest.raises(Died):
        fleet.run(follow=brought(LINES[4:]))
    assert fleet.given == {"live": {"a", "b"}, GOLD: {"a", "b"}}
    assert manifest.read_current(fleet.objects) == first
    assert fleet.sizes() == {"a": 2, "b": 2, "c": 2}
    (dead,) = manifest.list_died(fleet.objects, first.build)
    assert dead in {each.build for each in manifest.list_builds(fleet.objects)}

    fleet.dies = False
    second = fleet.run()
    assert second.clusters == {"a", "b"}
    assert fleet.given == {"live": {"a", "b"}, GOLD: {"a", "b"}}
    assert fleet.sizes() == {"a": 3, "b": 2, "c": 2}
    assert {name: second.manifest.tables[name].rows for name in ("snapshot_raw", GOLD)} == {
        "snapshot_raw": 9,
        GOLD: 3,
    }
    left = {each.build for each in manifest.list_builds(fleet.objects)}
    assert left == {first.build, second.manifest.build}
    old = TableStore(fleet.spark, str(fleet.root)).read(GOLD, first.tables[GOLD].version)
    assert [row["message"] for row in old.collect()] == ["2", "2", "2"]


def _a_waiver_ends(fleet: Fleet) -> None:
    """On the next day one cluster's snapshot lands, and the waivers of all have ended. What
    `--only` leaves out is owed, and made up for though nothing new has landed."""
    before = fleet.read(GOLD)
    fleet.landing.snapshot("live", "b", 30, topics("only"), scope_id="id-b")
    third = fleet.run(only=("cluster",)).manifest
    assert third.owed == {GOLD: ALL_CLUSTERS, "live": ALL_CLUSTERS}
    assert (fleet.read(GOLD), third.tables["snapshot_raw"].rows) == (before, 10)
    assert fleet.run(only=("cluster",)).tables == ()
    fourth = fleet.run().manifest
    assert (fleet.sizes(), fleet.waived(), fourth.owed) == ({"a": 3, "b": 1, "c": 2}, set(), {})
    _what_is_removed_is_no_news(fleet, fourth)


def _what_is_removed_is_no_news(fleet: Fleet, last: Manifest) -> None:
    """To remove what no build needs adds to the log of a table that topics fill; a topic that has
    nothing new makes no build of it."""
    left = fleet.root / "tables/bronze/audit_raw/left.parquet"
    left.write_bytes(b"by a dead build")
    os.utime(left, (0, 0))
    vacuum(str(fleet.root), last)
    assert not left.exists()
    latest = TableStore(fleet.spark, str(fleet.root)).latest("audit_raw")
    assert latest is not None and latest > last.tables["audit_raw"].version
    assert fleet.run(follow=lambda store, build: None).manifest == last
