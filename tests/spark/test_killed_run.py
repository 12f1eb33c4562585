"""A run that is killed leaves the build before to its readers, and nothing to the next run."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkaform.core.errors import UsageError
from kafkaform.core.objects import Folder
from kafkaform.fleet.tables import manifest
from kafkaform.fleet.tables.reader import Gold, read_current

from .killing import NAMES, PIECE, at, built, killed, landed, rows, struck


def test_a_run_that_is_ended_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """The first build by SIGKILL when it has written its first table; the second by Ctrl-C while
    tables are made side by side, and again by SIGKILL when all but its manifest is there. Readers
    have the build before, each next command finds no lock in its way, and what is made in the end
    has each file once."""
    root, objects = tmp_path / "root", Folder(tmp_path / "root")
    landed(root, 1)
    assert killed(root, at(root, "bronze"))
    with pytest.raises(UsageError, match="no build yet"):
        read_current(str(root))
    _all_of(root, 1, built(spark, root).manifest)

    landed(root, 2)
    before, first = rows(root), manifest.read_current(objects)
    code, said = struck(root, at(root, "silver"), signal.SIGINT)
    assert code == 128 + signal.SIGINT, said
    assert "Interrupted" in said and "Traceback" not in said
    assert (rows(root), manifest.read_current(objects)) == (before, first)
    assert killed(root, at(root, "gold"))
    assert (rows(root), manifest.read_current(objects)) == (before, first)
    _all_of(root, 2, built(spark, root).manifest)
    assert len(manifest.list_builds(objects)) == 2
    assert objects.read(manifest.UNFINISHED) is None


def _all_of(root: Path, hour: int, made: manifest.Manifest) -> None:
    """The newest of what has landed, and of what is only ever added all, each once."""
    gold = Gold(read_current(str(root)))
    keys = {(row["cluster"], row["key"]) for row in gold.read_rows("select * from live")}
    assert keys == {(n, key) for n in NAMES for key in (f"{n}{hour}", "user=ci")}
    quotas = gold.read_rows("select * from effective_quotas where level is not null")
    assert {(row["cluster"], row["value"]) for row in quotas} == {(n, float(hour)) for n in NAMES}
    counts = {"audit_raw": PIECE * hour, "snapshot": len(NAMES) * hour, "register_raw": 1}
    assert {name: made.tables[name].rows for name in counts} == counts
