"""Tables and manifests: what readers see while a build writes, dies, or repeats another."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import StorageError
from kafkaform.core.objects import Folder, ObjectChanged, ObjectExists, Objects
from kafkaform.fleet.build.driver import prune
from kafkaform.fleet.spark.store import TableStore, hadoop_address, quote_text, vacuum
from kafkaform.fleet.tables import manifest
from kafkaform.fleet.tables.definitions import SCHEMA_VERSION
from kafkaform.fleet.tables.manifest import ALL_CLUSTERS, Manifest, Written
from kafkaform.state.backends.obstores import open_objects

from ...kit.fleet.frames import frame

NOW = "2026-01-02T00:00:00+00:00"
BUILT = Manifest(
    "b1",
    {"drift": Written(3, 7, 0.25)},
    "2026-01-01T00:00:00+00:00",
    NOW,
    NOW,
    "f" * 64,
    "0.1.0",
    {"capacity": ALL_CLUSTERS, "drift": frozenset({"b", "a"})},
)


# ── objects ─────────────────────────────────────────────────────────────────────────────


def places(tmp_path: Path) -> tuple[Objects, ...]:
    return Folder(tmp_path), open_objects(f"memory://{tmp_path.name}/fleet", {})


def test_a_folder_is_a_store_of_objects(tmp_path: Path) -> None:
    """It keeps the promises of the seam as a real store does."""
    for objects in places(tmp_path):
        assert objects.read("builds/current") is None
        first = objects.create("builds/current", b"one")
        with pytest.raises(ObjectExists) as exists:
            objects.create("builds/current", b"two")
        assert exists.value.found.data == b"one"
        second = objects.replace("builds/current", b"two", first)
        with pytest.raises(ObjectChanged) as changed:
            objects.replace("builds/current", b"three", first)
        assert changed.value.found is not None
        assert (changed.value.found.data, changed.value.found.version) == (b"two", second)
        objects.create("builds/b.json", b"1234")
        objects.create("other/x", b"")
        found = objects.names("builds/")
        assert [(e.key, e.size) for e in found] == [("builds/b.json", 4), ("builds/current", 3)]
        assert [e.key for e in objects.names("builds/", "builds/b.json")] == ["builds/current"]
        objects.delete("builds/current")
        objects.delete("builds/current")
        assert objects.read("builds/current") is None


def test_no_half_file_is_left_in_a_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.replace("a", b"2", folder.create("a", b"1"))
    with pytest.raises(ObjectExists):
        folder.create("a", b"3")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    """Whoever can write the root must not make a reader read what it can not."""
    (tmp_path / "secret").write_text("x")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "current").symlink_to(tmp_path / "secret")
    with pytest.raises(StorageError, match="symbolic link"):
        Folder(tmp_path / "root").read("current")


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert Folder(tmp_path / "none").names("landing/") == ()


# ── manifests ───────────────────────────────────────────────────────────────────────────


def test_a_build_is_read_as_it_was_published(tmp_path: Path) -> None:
    for objects in places(tmp_path):
        assert manifest.read_current(objects) is None
        manifest.publish(objects, BUILT, ["live/a/1.meta.json", "audit/l/1.jsonl"])
        assert manifest.read_current(objects) == BUILT
        assert manifest.read_inputs(objects, "b1") == {"live/a/1.meta.json", "audit/l/1.jsonl"}
        manifest.publish(objects, BUILT, ["live/a/1.meta.json", "audit/l/1.jsonl"])
        other = replace(BUILT, build="b0", started=NOW)
        manifest.publish(objects, other, [])
        assert manifest.read_current(objects) == other
        assert manifest.read_inputs(objects, "b0") == frozenset()
        assert [each.build for each in manifest.list_builds(objects)] == ["b1", "b0"]
        manifest.forget_build(objects, "b1")
        assert [each.build for each in manifest.list_builds(objects)] == ["b0"]


def test_what_a_later_version_wrote_is_refused(tmp_path: Path) -> None:
    objects = Folder(tmp_path)
    manifest.publish(objects, replace(BUILT, schema_version=SCHEMA_VERSION + 1), [])
    words = f"version {SCHEMA_VERSION + 1}; this kafkaform knows up to {SCHEMA_VERSION}"
    with pytest.raises(StorageError, match=words):
        manifest.read_current(objects)


def test_a_pointer_to_nothing_is_told(tmp_path: Path) -> None:
    objects = Folder(tmp_path)
    objects.create(manifest.CURRENT, b"gone")
    with pytest.raises(StorageError, match="the build gone has no manifest"):
        manifest.read_current(objects)


def test_a_build_that_died_is_seen_by_the_next(tmp_path: Path) -> None:
    objects = Folder(tmp_path)
    assert manifest.begin_build(objects, "b1") is False
    assert manifest.begin_build(objects, "b2") is True
    manifest.end_build(objects)
    assert manifest.begin_build(objects, "b3") is False


def test_the_current_build_is_never_forgotten(tmp_path: Path) -> None:
    objects = Folder(tmp_path)
    assert prune(objects, str(tmp_path), 1) == 0
    for name, started in (("b2", "2026-01-02T00:00:00+00:00"), ("b1", BUILT.started)):
        manifest.publish(objects, replace(BUILT, build=name, started=started), [])
    assert prune(objects, str(tmp_path), 1) == 0
    assert {each.build for each in manifest.list_builds(objects)} == {"b1", "b2"}


# ── tables ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("root", "hadoop"),
    [
        ("/data/fleet/", "/data/fleet"),
        ("s3://bucket/fleet", "s3a://bucket/fleet"),
        ("gcs://bucket/fleet", "gs://bucket/fleet"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
    ],
)
def test_a_root_has_the_name_that_hadoop_uses(root: str, hadoop: str) -> None:
    assert hadoop_address(root) == hadoop


def usage(cluster: str, topic: str) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "topic": topic,
        "verdict": "in_use",
        "confidence": 1.0,
        "evidence": [],
        "as_of": datetime(2026, 1, 1, tzinfo=UTC),
    }


HOSTILE = "it's \\ a `name`\n%"


def test_a_table_keeps_every_version_that_a_manifest_names(spark: Any, tmp_path: Path) -> None:
    """Parts are replaced by cluster, whatever a cluster is called; a build that died is taken
    back; a table's newest version is known without a look at its log."""
    store, table = TableStore(spark, str(tmp_path / "it's here")), "unused_topics"

    def rows(version: int) -> list[tuple[str, str]]:
        found = store.read(table, version).select("cluster", "topic").collect()
        return sorted((row["cluster"], row["topic"]) for row in found)

    assert store.read(table, None).count() == 0
    assert store.latest(table) is None
    both = [usage("a", "x"), usage(HOSTILE, "y"), usage(HOSTILE, "z")]
    first = store.overwrite(table, frame(spark, table, both), "b1")
    where = f"`cluster` IN ({quote_text(HOSTILE)})"
    part = frame(spark, table, [usage(HOSTILE, "new")])
    second = store.replace(table, part, "b2", where)
    third = store.append(table, frame(spark, table, [usage("c", "more")]), "b3")
    # Version 0 is the empty table.
    assert (first, second, third) == (1, 2, 3)
    assert store.append(table, frame(spark, table, []), "nothing new") == third
    assert store.latest(table) == third
    assert rows(first) == [("a", "x"), (HOSTILE, "y"), (HOSTILE, "z")]
    assert rows(second) == [("a", "x"), (HOSTILE, "new")]
    assert rows(third) == [("a", "x"), ("c", "more"), (HOSTILE, "new")]
    kept = replace(BUILT, tables={table: Written(second, 2, 0.0)})
    back = store.recover(kept, ())
    assert back.keys() == {table}
    assert rows(back[table]) == rows(second)
    assert store.recover(replace(BUILT, tables={table: Written(back[table], 2, 0.0)}), ()) == {}
    vacuum(store.root, replace(kept, started=datetime.now(UTC).isoformat()))
    assert rows(second) == rows(back[table])
    history = spark.sql(f"DESCRIBE HISTORY {store._name(table)}").collect()
    assert [row["userMetadata"] for row in reversed(history)][1:4] == ["b1", "b2", "b3"]


def test_small_tables_are_one_file_sorted_by_cluster(spark: Any, tmp_path: Path) -> None:
    """Who asks for one cluster reads little."""
    store, table = TableStore(spark, str(tmp_path)), "unused_topics"
    many = [usage(f"c{number % 7}", f"t{number}") for number in range(50)]
    version = store.overwrite(table, frame(spark, table, many).repartition(9), "b1")
    files = list((tmp_path / "tables" / "gold" / table).glob("*.parquet"))
    assert len(files) == 1
    found = [row["cluster"] for row in store.read(table, version).select("cluster").collect()]
    assert found == sorted(found)
