"""Landing files are made once, wholly or not at all, and where they belong."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from kafkaform.core.errors import StorageError
from kafkaform.core.landing import LIVE, LandedRow, Meta
from kafkaform.core.objects import Folder, ObjectChanged, ObjectExists
from kafkaform.inventory import landing
from kafkaform.inventory.landing import LandingPlace, open_place

META = Meta(LIVE, "eu", "s1", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", True, scope_id="x")
ROWS = tuple(LandedRow("kafka_topic", name, {"name": name}) for name in ("a", "b"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["folder", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LandingPlace]:
    where = str(tmp_path / "deep/er") if request.param == "folder" else f"memory://{uuid4().hex}/p"
    yield open_place(where)


def test_a_file_is_made_once(place: LandingPlace) -> None:
    """A second one under its name is refused and told what is there; the first keeps its bytes."""
    place.create("landing/a/1.json", b"first")
    with pytest.raises(ObjectExists) as refused:
        place.create("landing/a/1.json", b"second")
    assert refused.value.found.data == b"first"
    found = place.read("landing/a/1.json")
    assert found is not None and found.data == b"first"


def test_one_of_many_gets_the_name(place: LandingPlace) -> None:
    """Of several who write one file at the same time one succeeds, and its bytes are there."""

    def write(number: int) -> bytes | None:
        data = b"%d" % number * 100_000
        try:
            place.create("landing/x", data)
        except ObjectExists:
            return None
        return data

    with ThreadPoolExecutor(8) as pool:
        made = [data for data in pool.map(write, range(8)) if data is not None]
    found = place.read("landing/x")
    assert found is not None and made == [found.data]


def test_what_is_there_is_listed(place: LandingPlace) -> None:
    """Below a folder, sorted, also after a key; a folder that is not there has nothing."""
    for key in ("landing/b/2", "landing/b/1", "landing/bc/3", "landing/b/c/4"):
        place.create(key, b"x")
    keys = [entry.key for entry in place.names("landing/b")]
    assert keys == ["landing/b/1", "landing/b/2", "landing/b/c/4"]
    assert [e.key for e in place.names("landing/b", "landing/b/1")] == keys[1:]
    assert place.names("nothing") == () and place.read("landing/none") is None


def test_links_are_not_written_through(tmp_path: Path) -> None:
    """A link in the place of a folder or a file is refused; what it leads to stays as it is. The
    root itself may be a link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    place = Folder(tmp_path / "root")
    (tmp_path / "real/landing").symlink_to(outside)
    with pytest.raises(StorageError, match="landing/live/eu/1"):
        place.create("landing/live/eu/1", b"x")
    (tmp_path / "real/landing").unlink()
    place.create("landing/live/eu/1", b"x")
    victim = outside / "victim"
    victim.write_bytes(b"theirs")
    (tmp_path / "real/landing/live/eu/2").symlink_to(victim)
    with pytest.raises(StorageError):
        place.create("landing/live/eu/2", b"x")
    with pytest.raises(StorageError, match="link"):
        place.read("landing/live/eu/2")
    assert victim.read_bytes() == b"theirs" and names(outside) == ["victim"]


def test_a_file_is_replaced_and_removed(tmp_path: Path) -> None:
    """Over the version that was read and no other; a file that is gone is not missed. Half a file
    is never seen, nor left."""
    place = Folder(tmp_path)
    first = place.create("builds/current", b"b-1")
    second = place.replace("builds/current", b"b-2", first)
    assert (found := place.read("builds/current")) and (found.data, found.version) == (
        b"b-2",
        second,
    )
    for version in (first, ""):
        with pytest.raises(ObjectChanged) as refused:
            place.replace("builds/current", b"b-3", version)
        assert refused.value.found == found
    place.delete("builds/current")
    place.delete("builds/current")
    place.delete("nothing/at/all")
    with pytest.raises(ObjectChanged) as refused:
        place.replace("builds/current", b"b-3", second)
    assert refused.value.found is None and names(tmp_path / "builds") == []


def test_who_may_read_it(tmp_path: Path) -> None:
    """The owner alone, or whom the umask lets."""
    before = os.umask(0o022)
    try:
        for shared in (False, True):
            Folder(tmp_path / str(shared), shared=shared).create("a/b", b"x")
    finally:
        os.umask(before)
    paths = [tmp_path / name / part for name in ("False", "True") for part in ("", "a", "a/b")]
    modes = [path.stat().st_mode & 0o777 for path in paths]
    assert modes == [0o700, 0o700, 0o600, 0o755, 0o755, 0o644]


def test_a_folder_that_cannot_be_listed_is_not_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a place that nobody may look into would have nothing."""
    place = Folder(tmp_path)
    place.create("a/b", b"x")

    def locked(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", locked)
    with pytest.raises(StorageError, match="cannot list: .*permission denied"):
        place.names("a")


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system that has none a file is still made once, and nothing else is left."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    place = Folder(tmp_path)
    place.create("a/b", b"first")
    with pytest.raises(ObjectExists):
        place.create("a/b", b"second")
    assert (tmp_path / "a/b").read_bytes() == b"first" and names(tmp_path / "a") == ["b"]


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happened, where, and what to do; no file is there, not even a beginning of one."""

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match=r"a/b: the disk is full") as told:
        Folder(tmp_path).create("a/b", b"x")
    assert told.value.advice and names(tmp_path / "a") == []


def test_rows_come_first(place: LandingPlace) -> None:
    """The rows are written before what says that they are there, and both once."""
    landed = landing.land_rows(place, META, ROWS)
    assert landed.key == "landing/live/eu/s1.meta.json" and landed.meta.rows == 2
    rows, meta = place.read("landing/live/eu/s1.jsonl"), place.read(landed.key)
    assert rows is not None and meta is not None
    assert rows.data == (
        b'{"attrs":{"name":"a"},"key":"a","kind":"kafka_topic"}\n'
        b'{"attrs":{"name":"b"},"key":"b","kind":"kafka_topic"}\n'
    )
    sha256 = hashlib.sha256(rows.data).hexdigest()
    assert json.loads(meta.data) == {
        **{"source": "live", "subject": "eu", "snapshot": "s1", "format": 1},
        **{"started": "2026-01-01T00:00:00Z", "ended": "2026-01-01T00:00:01Z"},
        **{"complete": True, "rows": 2, "sha256": sha256},
        **{"scope_id": "x", "coverage": {}, "scopes": {}},
    }
    with pytest.raises(StorageError, match="already exists"):
        landing.land_rows(place, META, ROWS[:1])


def test_a_failure_has_no_rows(place: LandingPlace) -> None:
    """What could not be read leaves a word about that and no file of rows, which would say that
    there is nothing."""
    failed = Meta(LIVE, "eu", "s1", "then", "then", False, error="no broker answered")
    landing.land_rows(place, failed, None)
    assert [entry.key for entry in place.names("landing")] == ["landing/live/eu/s1.meta.json"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", "-x", ".x", "a\nb", "ä", "x" * 129])
def test_no_name_leads_elsewhere(name: str, tmp_path: Path) -> None:
    """A lineage comes from a file that anybody may have written."""
    meta = Meta(LIVE, name, "s1", "then", "then", True)
    with pytest.raises(StorageError, match="cannot be the name"):
        landing.land_rows(Folder(tmp_path), meta, ROWS)
    assert names(tmp_path) == []


KILLED = """
import os, sys
from kafkaform.inventory import landing
from kafkaform.core.objects import Folder
from pathlib import Path
from tests.unit.inventory.test_place import META, ROWS
call, number = sys.argv[2], int(sys.argv[3])
real, seen = getattr(os, call), []
def deadly(*args, **kwargs):
    seen.append(1)
    if len(seen) == number:
        if call == "write":
            real(args[0], bytes(args[1])[:20])
        os._exit(9)
    return real(*args, **kwargs)
setattr(os, call, deadly)
landing.land_rows(Folder(Path(sys.argv[1])), META, ROWS)
"""


@pytest.mark.parametrize(
    ("call", "number", "visible"),
    [("write", 1, []), ("link", 1, []), ("write", 2, ["s1.jsonl"]), ("link", 2, ["s1.jsonl"])],
)
def test_killed_while_it_writes(tmp_path: Path, call: str, number: int, visible: list[str]) -> None:
    """Wherever the process dies, no half file has a name that anybody reads, and rows are there
    without the file that says so: no snapshot. The next one is whole."""
    command = [sys.executable, "-c", KILLED, str(tmp_path), call, str(number)]
    done = subprocess.run(command, check=False, cwd=Path(__file__).parents[3])
    assert done.returncode == 9
    place = Folder(tmp_path)
    found = place.names("landing")
    assert [entry.key.rpartition("/")[2] for entry in found] == visible
    for entry in found:
        whole = place.read(entry.key)
        assert whole is not None and whole.data == b"".join(map(landing.render_row, ROWS))
    again = Meta(LIVE, "eu", "s2", "then", "then", True)
    assert landing.land_rows(place, again, ROWS).meta.rows == 2
