"""Write landing files: rows first and the `.meta.json` last, so that half a snapshot is none."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..audit.event import render_time
from ..core.canonical import dumps
from ..core.errors import StorageError
from ..core.landing import META, REGISTER, ROOT, ROWS, LandedRow, Meta
from ..core.objects import ObjectExists
from ..core.secret import mask_secrets
from .place import LandingPlace, make_exists_error

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", re.ASCII)
_ROW = ("kind", "key", "attrs", "instance", "scope_id", "address", "owner", "incarnation")
_META = (
    *("source", "subject", "snapshot", "started", "ended", "complete", "rows", "sha256"),
    *("scope_id", "coverage", "error", "scopes", "format"),
)


class Landed(Struct, frozen=True):
    """A snapshot that was written."""

    key: str
    """Of its `.meta.json`."""
    meta: Meta


def make_snapshot_name(seconds: float) -> str:
    """`20261122T051530.123456Z`: sorts by time, and is valid in every path."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S.%f}Z"


def land_rows(place: LandingPlace, meta: Meta, rows: Iterable[LandedRow] | None) -> Landed:
    """Write a snapshot. rows: None if nothing could be read; then there is no file of rows.

    Raises StorageError, also if the file exists already.
    """
    base = "/".join(
        (ROOT, check_part(meta.source), check_part(meta.subject), check_part(meta.snapshot))
    )
    if rows is not None:
        lines = [render_row(row) for row in rows]
        # The checksum is of exactly these bytes; readers compute it again before they use a row.
        data = b"".join(lines)
        meta = replace(meta, rows=len(lines), sha256=hashlib.sha256(data).hexdigest())
        # Also without rows: "read, and nothing is there" must differ from "not read".
        write_new(place, base + ROWS, data)
    # The error is in the words of a broker or a client, which may repeat a password.
    meta = replace(meta, error=None if meta.error is None else mask_secrets(meta.error))
    write_new(place, base + META, _render_line(_list_members(meta, _META)))
    return Landed(base + META, meta)


def land_register(place: LandingPlace, taken: float, register: Mapping[str, Any]) -> str:
    """Write fleet.hcl as data; return its key. taken: seconds since the epoch."""
    key = f"{ROOT}/{REGISTER}/{make_snapshot_name(taken)}.json"
    write_new(place, key, _render_line({**register, "taken": render_time(taken)}))
    return key


def write_new(place: LandingPlace, key: str, data: bytes) -> None:
    """Write a file that must not exist. Raises StorageError."""
    try:
        place.create(key, data)
    except ObjectExists:
        raise make_exists_error(place, key) from None


def render_row(row: LandedRow) -> bytes:
    """Return the row as canonical JSON, with a newline."""
    return _render_line(_list_members(row, _ROW))


def check_part(part: str) -> str:
    """Check a part of a path. Raises StorageError if it could lead elsewhere."""
    if not _PART.fullmatch(part):
        raise StorageError(
            f"{part!r} cannot be the name of a file or folder",
            "A name has at most 128 letters, digits, `.`, `_` and `-`, and begins with a letter, a "
            "digit or `_`.",
        )
    return part


def _list_members(thing: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the members that have a value."""
    found = {name: getattr(thing, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _render_line(value: Mapping[str, Any]) -> bytes:
    return dumps(value).encode("ascii") + b"\n"
