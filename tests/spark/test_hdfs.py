"""A root in HDFS: what the seam to stores promises, and a build there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hdfs_native import Client
from pyspark.sql import SparkSession

from kafkaform import __version__
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import Locked, StorageError, UsageError
from kafkaform.core.objects import ObjectChanged, ObjectExists
from kafkaform.fleet.build import driver
from kafkaform.fleet.build.driver import DATASETS, BuildOptions
from kafkaform.fleet.tables.reader import Gold, read_current
from kafkaform.inventory import landing
from kafkaform.inventory.landing import Hdfs, open_place, open_remote
from kafkaform.state.backends.objects import ObjectBackend
from kafkaform.state.backends.obstores import open_objects
from kafkaform.workflow.fleet.runs import _lock_root

from ..kit.fleet.tiny import ASKED, expected, in_order, land_in, landed
from ..kit.stores import minidfs
from ..unit.inventory.test_place import (
    test_a_file_is_made_once,
    test_one_of_many_gets_the_name,
    test_what_is_there_is_listed,
)

__all__ = (
    "test_a_file_is_made_once",
    "test_one_of_many_gets_the_name",
    "test_what_is_there_is_listed",
)
"""What is asked of every place of landing files."""
pytestmark = pytest.mark.timeout(900)
"""The first of them waits for jars, the last one for the NameNode."""
PATIENCE = 300.0
ONLY = ("live",)
HOLD = """
import sys, time
from hdfs_native import Client
right = Client(sys.argv[1]).append(sys.argv[2])
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def namenode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with minidfs.serving(tmp_path_factory.mktemp("hdfs")) as found:
        yield found


@pytest.fixture(scope="module")
def abandoned(namenode: str) -> str:
    """A root of which a program died while it had its turn."""
    root = f"{namenode}/abandoned"
    place = open_remote(root)
    place.replace("a", b"2", place.create("a", b"1"))
    words = [sys.executable, "-c", HOLD, namenode, f"/abandoned/{landing.TURN}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        holder.kill()
    return root


@pytest.fixture
def place(namenode: str, abandoned: str) -> Hdfs:
    found = open_place(f"{namenode}/{uuid4().hex}/p/")
    assert isinstance(found, Hdfs) and abandoned
    return found


# ── the seam ────────────────────────────────────────────────────────────────────────────


def test_a_file_is_replaced_and_removed(place: Hdfs) -> None:
    """Over the version that was read and no other; a file that is gone is not missed, and nothing
    is left of what was on its way."""
    first = place.create("builds/current", b"b-1")
    second = place.replace("builds/current", b"b-2", first)
    found = place.read("builds/current")
    assert found and (found.data, found.version) == (b"b-2", second)
    assert abs(found.modified - time.time()) < 60
    for version in (first, ""):
        with pytest.raises(ObjectChanged) as refused:
            place.replace("builds/current", b"b-3", version)
        assert refused.value.found == found
    for key in ("builds/current", "builds/current", "nothing/at/all"):
        place.delete(key)
    with pytest.raises(ObjectChanged) as refused:
        place.replace("builds/current", b"b-3", second)
    assert refused.value.found is None and everything(place) == [landing.TURN]
    assert place.read("builds") is None


def everything(place: Hdfs) -> list[str]:
    """Files that listings do not show, too."""
    found = place.opened().list_status(place.folder, recursive=True)
    return sorted(s.path.removeprefix(f"{place.folder}/") for s in found if not s.isdir)


def test_of_many_who_replace_none_undoes_another(place: Hdfs) -> None:
    """Clients of their own count up one number; each step is there in the end."""
    people, steps = 3, 5
    version = place.create("number", b"0")
    assert version

    def count(_: int) -> None:
        mine = Hdfs(place.address, place.folder, _client(place.address), SystemClock())
        for _ in range(steps):
            while True:
                found = mine.read("number")
                assert found is not None
                try:
                    mine.replace("number", b"%d" % (int(found.data) + 1), found.version)
                    break
                except ObjectChanged:
                    continue

    with ThreadPoolExecutor(people) as pool:
        list(pool.map(count, range(people)))
    found = place.read("number")
    assert found is not None and int(found.data) == people * steps


def _client(address: str) -> Callable[[], Client]:
    made = Client(address)
    return lambda: made


@dataclass
class Losing:
    """A client whose answer to a rename is lost, before or after it was done."""

    real: Client
    done: bool
    meanwhile: Callable[[], object] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def rename(self, source: str, target: str, overwrite: bool) -> None:
        if self.done:
            self.real.rename(source, target, overwrite)
        self.meanwhile()
        raise OSError("connection reset")


def losing(place: Hdfs, done: bool, meanwhile: Callable[[], object] = lambda: None) -> Hdfs:
    client: Any = Losing(place.opened(), done, meanwhile)
    return Hdfs(place.address, place.folder, lambda: client, SystemClock())


def test_a_lost_answer_is_found_out(place: Hdfs) -> None:
    """What was done counts as done; what was not cannot happen any more."""
    first = losing(place, done=True).create("a", b"1")
    second = losing(place, done=True).replace("a", b"2", first)
    assert (found := place.read("a")) and (found.data, found.version) == (b"2", second)
    with pytest.raises(StorageError, match="cannot write .*/a: connection reset"):
        losing(place, done=False).replace("a", b"3", second)
    with pytest.raises(StorageError, match="cannot write .*/b: connection reset"):
        losing(place, done=False).create("b", b"1")
    with pytest.raises(ObjectExists) as refused:
        losing(place, False, lambda: place.create("c", b"theirs")).create("c", b"mine")
    assert refused.value.found.data == b"theirs"
    assert everything(place) == [landing.TURN, "a", "c"]
    assert [entry.key for entry in place.names("")] == ["a", "c"]


def test_what_changes_while_it_is_read_is_read_again(place: Hdfs) -> None:
    """Else old bytes could go with the new file's time."""
    version = place.create("a", b"1")

    @dataclass
    class Late(Losing):
        left: int = 2

        def read(self, path: str) -> Any:
            opened = self.real.read(path)
            if self.left:
                self.left -= 1
                self.meanwhile()
            return opened

    def replaced() -> None:
        nonlocal version
        version = place.replace("a", version.encode(), version)

    client: Any = Late(place.opened(), True, replaced)
    found = Hdfs(place.address, place.folder, lambda: client, SystemClock()).read("a")
    assert found is not None and found.version == version and client.left == 0
    client.left = 1000
    with pytest.raises(StorageError, match="it is replaced again and again"):
        Hdfs(place.address, place.folder, lambda: client, SystemClock()).read("a")


def test_the_lock_of_a_root(place: Hdfs) -> None:
    """The check that `fleet doctor` makes of a store. Who is refused is not sent to a command that
    ends the locks of states alone."""
    ObjectBackend(place).probe()
    held = pytest.raises(Locked, match=r"/lock is locked by .*`fleet run`")
    with _lock_root(place.location, 0), held as caught, _lock_root(place.location, 0):
        pass
    assert re.search(r"the lock is free in \d+ s\.$", caught.value.advice)


def test_errors_say_what_hdfs_says(place: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line. A state is not kept there: its lock must never be undone."""
    place.create("a", b"1")
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    stranger = Hdfs(place.address, place.folder, _client(place.address), SystemClock())
    with pytest.raises(StorageError) as refused:
        stranger.create("b", b"2")
    assert "Permission denied: user=bob, access=WRITE" in refused.value.message
    assert "\n" not in refused.value.message and "\\n" not in refused.value.message
    with pytest.raises(
        StorageError, match="cannot read hdfs://127.0.0.1:9/x/a: Connection refused"
    ):
        open_remote("hdfs://127.0.0.1:9/x").read("a")
    with pytest.raises(UsageError, match="hdfs:///x: the NameNode is not named"):
        open_remote("hdfs:///x")
    with pytest.raises(UsageError, match="hdfs:// is not a store for state"):
        open_objects(f"{place.address}/state", {})
    monkeypatch.setattr(landing, "MANY_SECONDS", 0.1)
    slow = Hdfs(place.address, place.folder, lambda: time.sleep(1), SystemClock())  # type: ignore
    with pytest.raises(StorageError, match="no answer in time"):
        slow.read("a")


# ── builds ──────────────────────────────────────────────────────────────────────────────


def fleet(root: str, *words: str, code: int = 0) -> str:
    """What a command says where there is no Java."""
    done = subprocess.run(
        [sys.executable, "-m", "kafkaform", "fleet", *words, "--root", root],
        env={**os.environ, "PATH": "", "JAVA_HOME": ""},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr[-3000:]
    return done.stdout


def test_a_build_is_made_in_hdfs(spark: SparkSession, place: Hdfs, tmp_path: Path) -> None:
    """Spark, the lock, manifests and the readers without Java meet in one root."""
    root, folder = place.location, landed(tmp_path)
    land_in(root, folder)
    with _lock_root(root, 0):
        driver.run_build(lambda _: spark, place, root, DATASETS, BuildOptions(__version__, ONLY))
    assert in_order(Gold(read_current(root)).read_rows(ASKED["live"])) == expected()["live"]
    assert json.loads(fleet(root, "run", "--json", "--only", *ONLY))["skipped"]
    asked = "select count(*) as n from live"
    assert json.loads(fleet(root, "query", asked, "--format", "json"))["rows"] == [{"n": 4}]
    assert "coverage not complete" in fleet(root, "status", code=5)


def test_who_died_does_not_keep_its_turn(abandoned: str) -> None:
    """The last test here, since the NameNode waits for a minute."""
    place = open_remote(abandoned)
    found = place.read("a")
    assert found is not None
    place.replace("a", b"3", found.version)
    assert (after := place.read("a")) and after.data == b"3"
