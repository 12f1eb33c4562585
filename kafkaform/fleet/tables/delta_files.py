"""Which files a version of a table is made of, how to go back to it, and which files nobody needs,
without Spark.

Delta Lake's log says it, and the least and greatest value of each column of a file. To ask Spark
costs jobs of its own for each table that a query names: on small tables more than the query.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

Among = Mapping[str, Collection[str]]
"""Column -> the values of which one is wanted."""
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def delta_address(root: str) -> str:
    """As delta-rs names it. `gcs://` is what obstore calls it too; delta-rs knows `gs://` alone."""
    if "://" not in root:
        return str(Path(root).expanduser().absolute())
    return re.sub("^gcs:", "gs:", root.rstrip("/"))


def make_storage_options() -> dict[str, str]:
    """What delta-rs would not take from the environment itself: that a store on this computer
    needs no encryption."""
    endpoint = next(filter(None, map(os.environ.get, _ENDPOINTS)), "")
    here = urlsplit(endpoint).hostname in ("localhost", "127.0.0.1", "::1")
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"} if here else {}


def find_latest_version(folder: str) -> int | None:
    """The newest version of a table, whoever wrote it; None: there is no such table."""
    from deltalake import DeltaTable  # noqa: PLC0415  # the fleet extra has it, and it is slow to load
    from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    try:
        return int(
            DeltaTable(delta_address(folder), storage_options=make_storage_options()).version()
        )
    except TableNotFoundError:
        return None


def restore_table(folder: str, version: int) -> int:
    """Make a table again what it was: the version that it then has. Spark takes seconds for it."""
    from deltalake import DeltaTable  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    table = DeltaTable(delta_address(folder), storage_options=make_storage_options())
    table.restore(version)
    return int(table.version())


def vacuum(folder: str, hours: int) -> None:
    """Remove files that no version of so many hours had, also those that a dead build has left.
    Spark's own keeps every file for a week, whatever it is told."""
    from deltalake import DeltaTable  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    table = DeltaTable(delta_address(folder), storage_options=make_storage_options())
    table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)


def list_files(folder: str, version: int, among: Among | None = None) -> tuple[str, ...]:
    """Paths below the table's folder, sorted: of all files, or of those that may have rows with
    such values. A file of which the log does not tell may have any."""
    wanted = (among or {}).items()
    kept = (
        row
        for row in _read_log(folder, version)
        if all(_may_have(row, name, values) for name, values in wanted)
    )
    return tuple(sorted(unquote(row["path"]) for row in kept))


def count_rows(folder: str, version: int) -> int:
    """Rows of a table. Whoever writes one of ours counts them."""
    return sum(row["num_records"] for row in _read_log(folder, version))


def _read_log(folder: str, version: int) -> list[dict[str, Any]]:
    """What the log says of each file."""
    import pyarrow as pa  # noqa: PLC0415  # the fleet extra has it, and it is slow to load
    from deltalake import DeltaTable  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    table = DeltaTable(
        delta_address(folder), version=version, storage_options=make_storage_options()
    )
    rows: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return rows


def _may_have(row: Mapping[str, Any], column: str, values: Collection[str]) -> bool:
    least, most = row.get(f"min.{column}"), row.get(f"max.{column}")
    return least is None or most is None or any(least <= value <= most for value in values)
