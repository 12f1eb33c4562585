"""A root with a build in it, written without Spark: rows as dicts, the rest of a row null."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from kafkaform.fleet.tables.definitions import SCHEMA_VERSION, TABLES

NOW = datetime(2026, 11, 22, 5, tzinfo=UTC)
CHANGES = pa.list_(
    pa.struct(
        [("path", pa.string()), ("before", pa.string()), ("after", pa.string())]
        + [("sensitive", pa.bool_())]
    )
)
POINTS = pa.list_(
    pa.struct(
        [
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            *((name, pa.int64()) for name in ("bytes", "records", "members")),
        ]
    )
)
TYPES: Mapping[str, Any] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    "array<string>": pa.list_(pa.string()),
    "array<struct<path:string,before:string,after:string,sensitive:boolean>>": CHANGES,
    "array<struct<day:date,at:timestamp,bytes:bigint,records:bigint,members:bigint>>": POINTS,
}
EMPTY: Mapping[str, Any] = {
    "string": "",
    "bigint": 0,
    "int": 0,
    "double": 0.0,
    "boolean": False,
    "timestamp": NOW,
    "date": NOW.date(),
    "map<string,string>": {},
    "array<string>": [],
}

Rows = Sequence[Mapping[str, Any]]


def arrow(table: str, rows: Rows) -> pa.Table:
    """Rows of a table with its exact types; what is required and not given is empty or zero."""
    columns = TABLES[table].columns
    for row in rows:
        assert row.keys() <= set(TABLES[table].names), f"{table}: {row.keys()}"
    arrays = {
        c.name: pa.array(
            [row.get(c.name, EMPTY.get(c.type, []) if c.required else None) for row in rows],
            TYPES[c.type],
        )
        for c in columns
    }
    return pa.table(arrays)


def publish(
    root: Path,
    build: str,
    tables: Mapping[str, Rows],
    as_of: datetime = NOW,
    schema_version: int = SCHEMA_VERSION,
) -> None:
    """Write these tables over what was there, and the manifest of a build that is current then."""
    parts = {}
    for name, rows in tables.items():
        place = root / "tables" / TABLES[name].layer / name
        write_deltalake(place, arrow(name, rows), mode="overwrite", schema_mode="overwrite")
        version = DeltaTable(place).version()
        parts[name] = {"version": version, "rows": len(rows), "seconds": 0.25}
    times = {"started": as_of, "ended": as_of, "as_of": as_of}
    manifest = {
        "build": build,
        "tables": parts,
        **{name: time.isoformat() for name, time in times.items()},
        "fingerprint": "f" * 64,
        "schema_version": schema_version,
    }
    (root / "builds").mkdir(parents=True, exist_ok=True)
    (root / "builds" / f"{build}.json").write_text(json.dumps(manifest))
    (root / "builds" / "current").write_text(build)
