"""Tables of a build are read at the versions that its manifest names, and errors say what to do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable

from kafkaform.core.errors import StorageError, UsageError
from kafkaform.fleet.spark.store import TableStore
from kafkaform.fleet.tables import reader
from kafkaform.fleet.tables.definitions import SCHEMA_VERSION, TABLES, quote_text
from kafkaform.fleet.tables.reader import Gold

from ...kit.fleet.lake import NOW, publish
from ...kit.stores import s3

ROOT = Path(__file__).parents[3]
TOPIC = {"cluster": "a", "kind": "kafka_topic", "key": "orders", "path": "", "as_of": NOW}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    publish(tmp_path, "b-1", {"drift": [{**TOPIC, "drift_class": "drifted"}]}, NOW - timedelta(1))
    publish(tmp_path, "b-2", {"drift": [{**TOPIC, "drift_class": "in_sync"}]})
    return tmp_path


def classes(root: Path, build: str) -> list[str]:
    tables = Gold(reader.read_build(str(root), build))
    return [row["drift_class"] for row in tables.read_rows("select drift_class from drift")]


def test_each_build_keeps_its_own_rows(root: Path) -> None:
    """A table that the next build has replaced is still as it was for the build before."""
    assert classes(root, "b-1") == ["drifted"]
    assert classes(root, "b-2") == ["in_sync"]


def test_a_table_without_a_manifest_is_not_read(root: Path) -> None:
    """What a build has written that died before its manifest stays unseen."""
    pointer = root / "builds" / "current"
    publish(root, "b-3", {"drift": []})
    (root / "builds" / "b-3.json").unlink()
    pointer.write_text("b-2")
    assert reader.read_current(str(root)).name == "b-2"
    assert classes(root, "b-2") == ["in_sync"]


def test_builds_are_listed_and_the_one_before_is_found(root: Path) -> None:
    """Other files of the folder are no builds."""
    (root / "builds" / "b-2.inputs.gz").write_bytes(b"")
    build = reader.read_current(str(root))
    assert (build.name, build.as_of, build.tables["drift"].rows) == ("b-2", NOW, 1)
    assert reader.list_builds(str(root)) == ("b-1", "b-2")
    earlier = reader.find_before(build)
    assert earlier is not None
    assert earlier.name == "b-1"
    assert reader.find_before(earlier) is None


def test_a_url_is_a_root_too(root: Path) -> None:
    """The same reader takes an address."""
    assert reader.read_current(root.as_uri()).name == "b-2"
    assert len(Gold(reader.read_current(root.as_uri() + "/")).read_rows("select * from drift")) == 1


def test_a_store_is_a_root_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifest, tables and the list of builds come from an S3-like store.

    It is another process: delta-rs keeps Python's lock while it waits for an answer.
    """
    code = f"from {__name__} import serve; serve({str(root)!r})"
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as store:
        assert store.stdin and store.stdout
        address = store.stdout.readline().strip()
        for name, value in {**s3.ENVIRONMENT, "AWS_ENDPOINT_URL": address}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        try:
            assert reader.list_builds("s3://bucket/fleet") == ("b-1", "b-2")
            tables = Gold(reader.read_current("s3://bucket/fleet"))
            assert tables.read_rows("select drift_class from drift") == [{"drift_class": "in_sync"}]
            with pytest.raises(UsageError, match="there is no build yet"):
                reader.read_current("s3://bucket/elsewhere")
        finally:
            store.stdin.close()


def serve(root: str) -> None:
    """The files of a root as a store, until the standard input ends."""
    bucket = s3.Bucket()
    for path in Path(root).rglob("*"):
        if path.is_file():
            key = f"fleet/{path.relative_to(root)}"
            bucket.serve(s3.Request("PUT", key, {}, {}, path.read_bytes()))
    bucket.always.append(part)
    with s3.serving(bucket) as address:
        print(address, flush=True)
        sys.stdin.read()


def part(bucket: s3.Bucket, request: s3.Request) -> s3.Answer | None:
    """Answers for a range of bytes, which Parquet's readers ask for."""
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
    whole = bucket.serve(request)
    if found is None or whole.status != 200:
        return None
    size = len(whole.body)
    first = int(found[1]) if found[1] else size - int(found[2])
    last = min(int(found[2]), size - 1) if found[1] and found[2] else size - 1
    headers = whole.headers | {"Content-Range": f"bytes {first}-{last}/{size}"}
    return s3.Answer(206, whole.body[first : last + 1], headers)


def test_no_build_yet(tmp_path: Path) -> None:
    """A root that is empty, or not there, has no build; reading makes nothing."""
    for root in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match="there is no build yet"):
            reader.read_current(str(root))
    assert not (tmp_path / "nowhere").exists()
    assert reader.list_builds(str(tmp_path)) == ()


@pytest.mark.parametrize("name", ["b-9", "../b-1", "a/b", "", "b-1.json\n"])
def test_no_such_build(root: Path, name: str) -> None:
    """A name that is none cannot lead out of the folder either."""
    with pytest.raises(UsageError, match="has no build"):
        reader.read_build(str(root), name)


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    """Tables of a later kafkaform might mean something else."""
    publish(tmp_path, "b-1", {}, schema_version=SCHEMA_VERSION + 1)
    with pytest.raises(StorageError, match=f"reads up to {SCHEMA_VERSION}"):
        reader.read_current(str(tmp_path))


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema_version": 1, "tables": 3}'])
def test_a_damaged_manifest_is_told(root: Path, text: str) -> None:
    """Whatever is wrong with it."""
    (root / "builds" / "b-2.json").write_text(text)
    with pytest.raises(StorageError, match="manifest of build b-2"):
        reader.read_current(str(root))


def test_a_table_that_the_build_has_not_made(root: Path) -> None:
    """It is named, with the way to make it."""
    tables = Gold(reader.read_current(str(root)))
    assert not tables.has("drift", "capacity")
    with pytest.raises(UsageError, match="no table capacity") as caught:
        tables.require("capacity")
    assert "--only capacity" in caught.value.advice


def test_files_that_are_gone(root: Path) -> None:
    """A vacuumed table is an error of storage, not a traceback."""
    tables = Gold(reader.read_current(str(root)))
    for file in (root / "tables" / "gold" / "drift").glob("*.parquet"):
        file.unlink()
    with pytest.raises(StorageError, match="cannot read"):
        tables.read_rows("select * from drift")


_TYPE = """'Timestamp(Microsecond, Some("UTC"))'"""
_A_TIME = (
    f"select key, arrow_cast('2026-01-02T03:04:05', {_TYPE}) as at, "
    f"arrow_cast(null, {_TYPE}) as never from drift"
)


def test_the_process_ends_well_and_without_a_jvm(root: Path) -> None:
    """Neither pyspark nor pandas nor pyarrow's datasets are loaded, not even for a time, and
    nothing aborts at the end."""
    code = (
        "import json, sys; from kafkaform.fleet.tables import reader;"
        "t = reader.Gold(reader.read_current(sys.argv[1]));"
        f"rows = t.read_rows({_A_TIME!r});"
        "loaded = {'pyspark', 'pandas', 'pyarrow.dataset'} & {*sys.modules};"
        "print(json.dumps([rows, sorted(loaded)], default=str))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    row = {"key": "orders", "at": "2026-01-02 03:04:05+00:00", "never": None}
    assert json.loads(done.stdout) == [[row], []]


def test_literals_hold_anything() -> None:
    """Quotes cannot end a literal."""
    assert quote_text("o'rders\\'; drop") == "'o''rders\\''; drop'"


class FakeSession:
    """A session that has one setting, or none."""

    def __init__(self, setting: str | None) -> None:
        self.conf = SimpleNamespace(get=lambda *_: setting)


def open_lake(root: Path, setting: str | None = None) -> TableStore:
    """A store that creates tables. setting: that of Sail."""
    session: Any = FakeSession(setting)
    return TableStore(session, str(root))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("setting", [None, "true"], ids=["spark", "sail"])
def test_other_tools_see_what_a_table_is(tmp_path: Path, table: str, setting: str | None) -> None:
    """Delta Lake's metadata has its name, what it is, what columns mean and, if it is
    Spark's, which are never null; files get statistics of the key and of times."""
    definition, lake = TABLES[table], open_lake(tmp_path, setting)
    for _ in range(2):  # the second time, everything is there
        lake._create(table)
    made = DeltaTable(tmp_path / "tables" / definition.layer / table)
    assert made.version() == 0
    about = made.metadata()
    assert (about.name, about.description) == (table, definition.about)
    assert about.description.endswith(".")
    columns = {
        field.name: (not field.nullable, field.metadata.get("comment", ""))
        for field in made.schema().fields
    }
    assert columns == {
        column.name: (column.required and setting is None, column.about)
        for column in definition.columns
    }
    counted = set(about.configuration["delta.dataSkippingStatsColumns"].split(","))
    simple = {c.name for c in definition.columns if "<" not in c.type and c.type != "boolean"}
    assert {*definition.key} & simple <= counted <= simple


def test_a_table_of_another_shape_is_made_anew(tmp_path: Path) -> None:
    """Such as one of an earlier version, without descriptions. A table that exists is not emptied
    by `ensure`."""
    publish(tmp_path, "b1", {"live": [{"cluster": "a"}]})
    lake = open_lake(tmp_path)
    lake.ensure("live")
    place = tmp_path / "tables/silver/live"
    assert DeltaTable(place).version() == 0
    lake._create("live")
    assert (DeltaTable(place).version(), DeltaTable(place).metadata().name) == (1, "live")
    assert DeltaTable(place).file_uris() == []
    assert Gold(reader.read_current(str(tmp_path))).read_rows("select cluster from live") == [
        {"cluster": "a"}
    ]
