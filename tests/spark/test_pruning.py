"""Builds that nobody needs any more are forgotten, with the files that only they have."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from kafkaform import __version__
from kafkaform.cli.app import run_command_line
from kafkaform.core.objects import Folder
from kafkaform.fleet.build.driver import DATASETS, BuildOptions, run_build
from kafkaform.fleet.spark.store import TableStore
from kafkaform.fleet.tables import manifest
from kafkaform.fleet.tables.manifest import Manifest
from kafkaform.fleet.tables.reader import Gold, read_current
from kafkaform.workflow.fleet import runs

from ..kit.fleet.landings import Landing, row


class Old:
    """A root whose builds lie days apart."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root, self.landing = spark, root, Landing(root / "landing")
        self.landing.register(0, clusters=[{"name": "a"}])

    def lands(self, hours: float, *topics: str) -> None:
        rows = [row("kafka_topic", name, {"partitions": "1"}) for name in topics]
        self.landing.snapshot("live", "a", hours, rows, coverage={"kafka_topic": "complete"})

    def build(self) -> Manifest:
        """Then three days go by."""
        options = BuildOptions(__version__, only=("live",))
        root, objects = str(self.root), Folder(self.root)
        made = run_build(lambda _: self.spark, objects, root, DATASETS, options).manifest
        for path in sorted(self.root.rglob("*")):
            if path.is_file():
                _older(path, 3 * 86_400)
        return made

    def command(self, *words: str) -> None:
        """`fleet run`, with the session that there is."""
        command = ("fleet", "run", "--only", "live", *words, "--root", str(self.root))
        with (
            mock.patch.object(runs, "build_session", lambda place: self.spark),
            mock.patch.object(self.spark, "stop"),
        ):
            assert run_command_line(command) == 0

    def files(self) -> set[str]:
        """The data files of the table."""
        return {path.name for path in (self.root / "tables/silver/live").glob("*.parquet")}

    def of(self, made: Manifest) -> set[str]:
        """Those that a build needs."""
        table = TableStore(self.spark, str(self.root)).read("live", made.tables["live"].version)
        return {Path(name).name for name in table.inputFiles()}


def _older(path: Path, seconds: int) -> None:
    """As if it had been written so much earlier."""
    when = path.stat().st_mtime - seconds
    if path.parent.name == "_delta_log" and path.suffix == ".json":
        text = re.sub(
            r'("deletionTimestamp":)(\d+)',
            lambda found: f"{found[1]}{int(found[2]) - seconds * 1000}",
            path.read_text(),
        )
        path.write_text(text)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    elif path.parent.name == "builds" and path.suffix == ".json":
        members = json.loads(path.read_text())
        for name in ("started", "ended"):
            then = datetime.fromisoformat(members[name]) - timedelta(seconds=seconds)
            members[name] = then.isoformat()
        path.write_text(json.dumps(members))
    os.utime(path, (when, when))


def topics(gold: Gold) -> list[str]:
    return [found["key"] for found in gold.read_rows("select key from live order by key")]


def test_what_only_old_builds_need_is_removed(spark: Any, tmp_path: Path) -> None:
    """By `fleet run --keep 1`: a build that somebody reads meanwhile stays whole, for it was the
    current one until then; of builds before it neither manifests nor files are left."""
    old = Old(spark, tmp_path)
    old.lands(1, "x")
    first = old.build()
    old.lands(2, "x", "y")
    second = old.build()
    needed = [old.of(first), old.of(second)]
    assert all(needed) and not needed[0] & needed[1] and old.files() >= needed[0] | needed[1]
    reader = Gold(read_current(str(tmp_path)))
    old.lands(3, "x", "y", "z")
    old.command("--keep", "1")
    now = Gold(read_current(str(tmp_path)))
    assert [each.build for each in manifest.list_builds(Folder(tmp_path))] == [now.build.name]
    assert topics(reader) == ["x", "y"]
    assert topics(now) == ["x", "y", "z"]
    left = old.files()
    assert needed[1] < left and not needed[0] & left
    names = {path.name.partition(".")[0] for path in (tmp_path / "builds").iterdir()}
    assert not names & {first.build, second.build}
    old.command("--keep", "1")
    assert old.files() == left
