"""Audit records: their kinds, their members, and their lines (architecture §6).

A record is one line of canonical JSON. `record_bodies` makes the bodies, `bodies` checks them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, cast

import orjson
from msgspec import Struct

from ..core import canonical
from ..core.errors import StorageError
from ..core.value import FrozenMap
from .bodies import BadRecord, check_body, check_members
from .line import Line, read_line
from .step_records import parse_step_record


class RecordKind(StrEnum):
    """What a record says (docs/formats/audit.md)."""

    RUN_BEGIN = "run_begin"
    PLAN = "plan"
    APPROVAL = "approval"
    VALIDATE = "validate"
    INTENT = "intent"
    OUTCOME = "outcome"
    VERIFY = "verify"
    STATE = "state"
    OBLIGATION = "obligation"
    DISCHARGED = "discharged"
    RECOVER = "recover"
    RUN_END = "run_end"


KINDS = tuple(kind.value for kind in RecordKind)
MEMBERS = frozenset({"seq", "time", "run", "actor", "kind", "body", "prev", "hash"})


class Record(Struct, frozen=True):
    """One record, decoded."""

    seq: int
    """Its number: from 1, without gaps."""
    time: str
    """When it was written: RFC 3339, UTC, microseconds."""
    run: str
    """The id of the run that wrote it."""
    actor: str
    """Who ran that."""
    kind: str
    """A RecordKind."""
    body: FrozenMap
    """What it says."""
    prev: str
    """The hash of the record before it."""
    hash: str
    """SHA-256 over all other members, hexadecimal."""

    def read_whole(self) -> Record:
        """The record itself, as of a Glance."""
        return self


class Glance:
    """A record that was found in its line and is parsed when somebody asks.

    A log has many records, and almost all are looked at once. So the parsed JSON must not be kept.
    """

    __slots__ = ("_data", "hash", "kind", "line", "run", "seq", "where")

    def __init__(self, line: Line, seq: int, run: str, kind: str, hash: str, source: str) -> None:
        """source: the name of the log, for messages."""
        self.line, self.seq, self.run, self.kind, self.hash = line, seq, run, kind, hash
        self.where = source
        self._data: Mapping[str, Any] | None = None

    @property
    def body(self) -> Mapping[str, Any]:
        """What it says, checked. Raises StorageError."""
        body: Mapping[str, Any] = self._parse_line()["body"]
        return body

    @property
    def time(self) -> str:
        """When it was written. Raises StorageError."""
        return str(self._parse_line()["time"])

    def read_whole(self) -> Record:
        """The record itself. Raises StorageError for a body that no such record can have."""
        try:
            record = decode(read_line(self.line))
            check_body(record.kind, record.body)
        except ValueError as error:
            raise _make_unusable_error(self, error) from None
        return record

    def check(self) -> None:
        """Raises StorageError for a body that no such record can have."""
        self._parse_line()
        self.forget()

    def forget(self) -> None:
        """Keep only the line, which is much smaller than what was parsed from it."""
        self._data = None

    def _parse_line(self) -> Mapping[str, Any]:
        if self._data is None:
            # Plain JSON, not frozen values: making those takes several times as long.
            line = read_line(self.line)
            try:
                self._data = _parse_sound(line, self.kind) or _parse_any(line, self.kind)
            except (ValueError, RecursionError) as error:
                raise _make_unusable_error(self, error) from None
        return self._data


def _parse_sound(line: bytes, kind: str) -> Mapping[str, Any] | None:
    """The record in a line, None if the strict parser has to look at it."""
    # orjson needs half the time, but it takes more than ASCII, and rounds numbers beyond 64 bits.
    if not line.isascii():
        return None
    try:
        return parse_step_record(line, kind) or _check_record(orjson.loads(line), kind)
    except ValueError:
        return None


def _parse_any(line: bytes, kind: str) -> Mapping[str, Any]:
    """The record in a line. Raises ValueError or RecursionError."""
    return _check_record(_JSON.decode(line.decode("ascii")), kind)


def _check_record(data: Any, kind: str) -> Mapping[str, Any]:
    check_members(data)
    check_body(kind, data["body"])
    return cast(Mapping[str, Any], data)


def _refuse_constant(text: str) -> Any:
    raise BadRecord(f"{text} is not a JSON number")


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


def _make_unusable_error(glance: Glance, error: Exception) -> StorageError:
    problem = "nested too deeply" if isinstance(error, RecursionError) else error
    return StorageError(
        f"{glance.where}: record {glance.seq} ({glance.kind}) cannot be used: {problem}", UNUSABLE
    )


UNUSABLE = (
    "Its hashes are right, so it was edited and chained again, or a newer version of kafkaform "
    "wrote it. "
    "Use that version, or restore the log and its state from the same backup. Nothing was sent."
)


def encode(record: Record) -> bytes:
    """The record as its line, without the newline."""
    return canonical.dumps({name: getattr(record, name) for name in MEMBERS}).encode("ascii")


def decode(line: bytes) -> Record:
    """The record in this line. Raises ValueError saying what is wrong; the hash is not checked."""
    data = canonical.loads(line)
    if not isinstance(data, FrozenMap) or data.keys() != MEMBERS:
        raise ValueError("it does not have the members of a record")
    check_members(data)
    if data["kind"] not in KINDS:
        raise BadRecord(f"its kind {data['kind']!r} is not known to this version")
    return Record(**data)


def render_time(moment: float) -> str:
    """Seconds since the epoch as RFC 3339 in UTC, with microseconds."""
    utc = datetime.fromtimestamp(moment, UTC)
    return utc.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_time(time: str) -> float:
    """The seconds since the epoch that `render_time` wrote."""
    return datetime.fromisoformat(time).timestamp()
