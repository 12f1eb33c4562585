"""The tables in the hands of another program, DuckDB, with the code of docs/fleet/report.md."""

from __future__ import annotations

from pathlib import Path
from random import Random

import duckdb
import pytest
from deltalake import DeltaTable, write_deltalake

from docs.release.fleet_trial import list_code_blocks
from kafkaform.fleet.tables import reader
from kafkaform.fleet.tables.definitions import TABLES

from ...kit.fleet import sample
from ...kit.fleet.lake import arrow, publish

TYPES = {
    "string": "VARCHAR",
    "bigint": "BIGINT",
    "int": "INTEGER",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "date": "DATE",
    "map<string,string>": "MAP(VARCHAR, VARCHAR)",
    "map<string,bigint>": "MAP(VARCHAR, BIGINT)",
    "array<string>": "VARCHAR[]",
}
"""Type in tables.txt -> what DuckDB makes of it."""


def test_the_code_of_the_documents_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It shows the rows of the current build, and not those that a build writes at that time."""
    root = tmp_path / "fleet"
    rows = [{"cluster": "eu", "kind": "kafka_topic", "key": "a", "drift_class": "drifted"}]
    publish(root, "b-1", {"drift": rows})
    later = arrow("drift", [{**rows[0], "cluster": "unfinished"}])
    write_deltalake(root / "tables/gold/drift", later, mode="overwrite")
    monkeypatch.chdir(tmp_path)
    manifest, polars, duck = list_code_blocks()
    assert polars.startswith("import polars\n")
    exec(manifest + duck, {})
    shown = capfd.readouterr().out
    assert "drifted" in shown and "eu" in shown and "unfinished" not in shown


def test_every_table_reads_as_it_is_described(tmp_path: Path) -> None:
    """All columns have the types that tables.txt says, and the rows of the manifest are there; a
    key of a map and a word of a mask can be named."""
    tables = sample.tables(Random(7))
    publish(tmp_path, "b-1", tables)
    build = reader.read_current(str(tmp_path))
    for name, built in build.tables.items():
        folder = tmp_path / "tables" / TABLES[name].layer / name
        table = DeltaTable(folder, version=built.version).to_pyarrow_dataset()
        connection = duckdb.connect()
        connection.register(name, table)
        described = {row[0]: row[1] for row in connection.execute(f"describe {name}").fetchall()}
        for column in TABLES[name].columns:
            assert described[column.name] == TYPES.get(column.type, described[column.name])
            assert described[column.name].endswith("[]") == column.type.startswith("array")
        counted = connection.execute(f"select count(*) from {name}").fetchall()
        assert counted == [(built.rows,)]
        if name == "cluster":
            sql = "select cluster from cluster where coverage['kafka_topic'] = 'complete'"
            read = {row[0] for row in connection.execute(sql).fetchall()}
            covered = {row["cluster"] for row in tables["cluster"] if row.get("coverage")}
            assert read == covered and read
        if name == "effective_permissions":
            sql = "select effective_mask from effective_permissions where 'Read' in effective"
            masks = [row[0] for row in connection.execute(sql).fetchall()]
            assert masks and all(mask & 1 << 3 for mask in masks)
