"""Read Delta Lake's log without Spark: the files of a version, restore, vacuum.

The log lists the files of each version with the least and the greatest value of some columns.
Asking Spark for them runs jobs of its own for every table that a query names: on small tables they
take longer than the query.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

Among = Mapping[str, Collection[str]]
"""Column -> the values that are wanted."""
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def delta_address(root: str) -> str:
    """Return the address as delta-rs writes it. obstore also accepts `gcs://`; delta-rs only
    `gs://`."""
    if "://" not in root:
        return str(Path(root).expanduser().absolute())
    return re.sub("^gcs:", "gs:", root.rstrip("/"))


def make_storage_options() -> dict[str, str]:
    """Allow plain HTTP for a store on this computer, which delta-rs does not take from the
    environment."""
    endpoint = next(filter(None, map(os.environ.get, _ENDPOINTS)), "")
    is_local = urlsplit(endpoint).hostname in ("localhost", "127.0.0.1", "::1")
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"} if is_local else {}


def find_latest_version(folder: str) -> int | None:
    """Return the newest version of a table, whoever wrote it; None: there is no such table."""
    from deltalake import DeltaTable  # noqa: PLC0415  # the fleet extra has it, and it is slow to load
    from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    try:
        return int(
            DeltaTable(delta_address(folder), storage_options=make_storage_options()).version()
        )
    except TableNotFoundError:
        return None


def restore_table(folder: str, version: int) -> int:
    """Make an old version the current one; return the version that it then has. With Spark this
    takes seconds per table."""
    from deltalake import DeltaTable  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    table = DeltaTable(delta_address(folder), storage_options=make_storage_options())
    table.restore(version)
    return int(table.version())


def vacuum(folder: str, hours: int) -> None:
    """Remove files that no version of the last `hours` hours has, including those of dead
    builds."""
    from deltalake import DeltaTable  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    table = DeltaTable(delta_address(folder), storage_options=make_storage_options())
    # Spark's VACUUM keeps every file for a week, whatever RETAIN says (docs/decisions/021). `full`:
    # files that a dead build left are in no log, so only listing the folder finds them.
    table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)


def list_files(folder: str, version: int, among: Among | None = None) -> tuple[str, ...]:
    """Return the paths below the table's folder, sorted: all files, or those that may have rows
    with the values in `among`. A file without statistics may have any."""
    conditions = (among or {}).items()
    file_rows = (
        row
        for row in _read_log(folder, version)
        if all(_may_have(row, name, values) for name, values in conditions)
    )
    # The log percent-encodes paths; Spark and the store want them plain. Sorted, so that two
    # versions with the same files compare equal.
    return tuple(sorted(unquote(row["path"]) for row in file_rows))


def count_rows(folder: str, version: int) -> int:
    """Return the number of rows, by the counts that writers of our tables always record."""
    return sum(row["num_records"] for row in _read_log(folder, version))


def _read_log(folder: str, version: int) -> list[dict[str, Any]]:
    """Return what the log says of each file."""
    import pyarrow as pa  # noqa: PLC0415  # the fleet extra has it, and it is slow to load
    from deltalake import DeltaTable  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    table = DeltaTable(
        delta_address(folder), version=version, storage_options=make_storage_options()
    )
    rows: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return rows


def _may_have(row: Mapping[str, Any], column: str, values: Collection[str]) -> bool:
    least, most = row.get(f"min.{column}"), row.get(f"max.{column}")
    # Strings in statistics are cut to a prefix, but by rounding the maximum up, so the range still
    # covers every value.
    return least is None or most is None or any(least <= value <= most for value in values)
