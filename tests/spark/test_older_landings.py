"""Landing files of the first version with a fleet are read as docs/upgrades.md promises."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkaform.fleet.build.intake import BuildStamp, list_ready, take_in
from kafkaform.fleet.landed.register import read_register

from ..kit.fleet.landings import collected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LANDED = Path(__file__).parents[1] / "unit/formats/landed"
VERSIONS = sorted(path.name for path in LANDED.iterdir() if path.is_dir())


@pytest.mark.parametrize("version", VERSIONS)
def test_landing_files_of_every_version_are_taken_in(spark: SparkSession, version: str) -> None:
    """Every record of the log and every object of cluster, state and configuration; nothing is set
    aside, and no snapshot counts as failed."""
    root = LANDED / version
    files = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    new: dict[str, DataFrame] = {}

    def write(table: str, rows: DataFrame) -> DataFrame:
        return new.setdefault(table, rows)

    stamp = BuildStamp("b1", datetime(2026, 12, 1, tzinfo=UTC))
    take_in(spark, str(root), [*list_ready(files, ())], stamp, 1.0, {}, write)
    taken: dict[str, list[dict[str, Any]]] = {name: collected(new[name]) for name in new}
    assert taken["quarantine"] == []
    (log,) = root.glob("audit/*/*.jsonl")
    assert len(taken["audit_raw"]) == len(log.read_text().splitlines()) == 12
    assert all(row["sha256"] is not None for row in taken["snapshot"])
    assert {row["source"] for row in taken["snapshot"]} == {"live", "state", "desired"}
    rows = [path.read_text().splitlines() for path in root.glob("[lsd]*/*/*.jsonl")]
    assert len(taken["snapshot_raw"]) == sum(map(len, rows))
    (register,) = taken["register_raw"]
    assert [one.name for one in read_register(register["body"]).clusters] == ["eu"]
