"""Audit records, and the bodies that their readers rely on (architecture §6).

A record is one line of canonical JSON. Bodies are data: the functions here make each kind's,
so that its shape is written down once. Sensitive paths carry no values, secrets are references.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from ..core import canonical
from ..core.errors import StorageError
from ..core.value import FrozenMap
from .bodies import BadRecord, check_body, check_members
from .line import Line, read_line


class RecordKind(StrEnum):
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
    """seq: from 1, without gaps; time: RFC 3339, UTC, microseconds; run: id of the run; actor:
    who; prev: hash of the record before; hash: SHA-256 over all other members."""

    seq: int
    time: str
    run: str
    actor: str
    kind: str
    body: FrozenMap
    prev: str
    hash: str

    @property
    def event_id(self) -> str:
        """The name that every later reader uses: lineage/seq."""
        return f"{self.body['lineage']}/{self.seq}"

    def read_whole(self) -> Record:
        return self


class Glance:
    """A record in passing: its line, taken apart when somebody asks, into plain JSON that must
    not be kept. A log has many records, and all but a few are looked at once."""

    __slots__ = ("_data", "hash", "kind", "line", "run", "seq", "where")

    def __init__(self, line: Line, seq: int, run: str, kind: str, hash: str, where: str) -> None:
        self.line, self.seq, self.run, self.kind, self.hash = line, seq, run, kind, hash
        self.where = where
        self._data: Mapping[str, Any] | None = None

    @property
    def body(self) -> Mapping[str, Any]:
        body: Mapping[str, Any] = self._parse_line()["body"]
        return body

    @property
    def time(self) -> str:
        return str(self._parse_line()["time"])

    def read_whole(self) -> Record:
        """The record itself. Raises StorageError for one that says what no record says."""
        try:
            record = decode(read_line(self.line))
            check_body(record.kind, record.body)
        except ValueError as error:
            raise _make_unusable_error(self, error) from None
        return record

    def check(self) -> None:
        """Raises StorageError for a record that says what no record says."""
        self._parse_line()
        self.forget()

    def forget(self) -> None:
        """Keep the line alone, which is a fraction of what was made of it."""
        self._data = None

    def _parse_line(self) -> Mapping[str, Any]:
        """Raises StorageError, as `whole` does."""
        if self._data is None:
            try:
                data = _JSON.decode(read_line(self.line).decode("ascii"))
                check_members(data)
                check_body(self.kind, data["body"])
            except (ValueError, RecursionError) as error:
                raise _make_unusable_error(self, error) from None
            self._data = data
        return self._data


def _refuse_constant(text: str) -> Any:
    raise BadRecord(f"{text} is not a JSON number")


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


def _make_unusable_error(glance: Glance, error: Exception) -> StorageError:
    problem = "nested too deeply" if isinstance(error, RecursionError) else error
    return StorageError(
        f"{glance.where}: record {glance.seq} ({glance.kind}) cannot be used: {problem}", UNUSABLE
    )


UNUSABLE = (
    "Its hashes fit, so it was edited and chained anew, or a newer version of kafkaform wrote it. "
    "Use that version, or put the log back from a backup together with its state. Nothing was sent."
)


def encode(record: Record) -> bytes:
    """The record as its line, without the newline."""
    return canonical.dumps({name: getattr(record, name) for name in MEMBERS}).encode("ascii")


def decode(line: bytes) -> Record:
    """The record of this line. Raises ValueError saying what is wrong; checks no hash."""
    data = canonical.loads(line)
    if not isinstance(data, FrozenMap) or data.keys() != MEMBERS:
        raise ValueError("it does not have the members of a record")
    check_members(data)
    if data["kind"] not in KINDS:
        raise BadRecord(f"its kind {data['kind']!r} is not known to this version")
    return Record(**data)


def render_time(moment: float) -> str:
    """RFC 3339 in UTC with microseconds, of seconds since the epoch."""
    utc = datetime.fromtimestamp(moment, UTC)
    return utc.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_time(time: str) -> float:
    """Seconds since the epoch, of what `render_time` wrote."""
    return datetime.fromisoformat(time).timestamp()
