"""Audit records: their kinds, their members, their lines (architecture §6), and their summaries.

A record is one line of canonical JSON. `journal` makes the bodies, `bodies` checks them. A line can
be as large as a plan of everything. A long one is not kept in memory: its last members are found
and its hash is computed without parsing it, piece by piece, and it is read again if its content is
needed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any, cast

import orjson
from msgspec import Struct

from ..core import canonical
from ..core.errors import StorageError
from ..core.resource import Identity
from ..core.text.quantity import render_count
from ..core.value import FrozenMap
from .bodies import BadRecord, check_body, check_members, parse_step_record

_LAST = re.compile(
    rb'"hash":"(?P<hash>[0-9a-f]{64})",'
    rb'(?P<rest>"kind":"(?P<kind>[a-z_]+)","prev":"(?P<prev>[0-9a-f]{64})",'
    rb'"run":(?P<run>"[^"\\]*(?:\\.[^"\\]*)*"),"seq":(?P<seq>[1-9][0-9]{0,17}),"time":"[^"\\]*"\})'
)


class LongLine(Struct, frozen=True):
    """A line that is not kept in memory."""

    size: int
    """How many bytes it has, without the newline."""
    end: bytes
    """The last of them: enough for the members after the body."""
    pieces: Callable[[], Iterable[bytes]]
    """Reads all of it again."""


Line = bytes | LongLine
LONG, ENOUGH = 1 << 20, 1 << 16
"""Bytes from which on a line of an object is not kept in memory, and how much of its end is."""


def split_lines(data: bytes, read_again: Callable[[], bytes | None]) -> Iterator[Line]:
    """The lines of an object, each of which ends with a newline. read_again: the object once more,
    None if it is gone."""
    start = 0
    while start < len(data):
        end = data.index(b"\n", start)
        if end - start < LONG:
            yield data[start:end]
        else:
            pieces = partial(_cut_again, read_again, start, end)
            yield LongLine(end - start, data[max(start, end - ENOUGH) : end], pieces)
        start = end + 1


def _cut_again(read_again: Callable[[], bytes | None], start: int, end: int) -> Iterator[bytes]:
    data = read_again()
    if data is not None:
        yield data[start:end]


def match_last_members(line: Line) -> re.Match[bytes] | None:
    """The members that follow the body, None for a line that is no record."""
    # Canonical JSON sorts the members, so "hash" comes after "actor" and "body". A body may contain
    # the same text, but the last occurrence is the record's own member: after it there are only
    # strings and a number, and a quote inside a string is escaped.
    end = line.end if isinstance(line, LongLine) else line
    start = end.rfind(b'"hash":"')
    return _LAST.fullmatch(end, start) if start > 0 else None


def digest_line(line: Line, members: re.Match[bytes]) -> bytes:
    """The hash that the line should contain, over everything but that hash. members: its last
    ones."""
    hashed = hashlib.sha256()
    if isinstance(line, LongLine):
        remaining = line.size - (members.end() - members.start())
        for piece in line.pieces():
            hashed.update(memoryview(piece)[: max(remaining, 0)])
            remaining -= len(piece)
    else:
        hashed.update(memoryview(line)[: members.start()])
    hashed.update(members["rest"])
    return hashed.hexdigest().encode()


def read_line(line: Line) -> bytes:
    """The whole line. Raises StorageError if a long one has changed since it was read first."""
    if not isinstance(line, LongLine):
        return line
    content = b"".join(line.pieces())
    members = match_last_members(content)
    first_members = match_last_members(line)
    # What was checked and what is used now are two reads, between which the file may change.
    if (
        members is None
        or first_members is None
        or digest_line(content, members) != first_members["hash"]
    ):
        raise StorageError(
            "a record of the audit log was changed while the log was read",
            "Find out who else writes to it, and check it with `kafkaform audit verify`.",
        )
    return content


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


class Unseen(Struct, frozen=True):
    """A change that was applied, and that one node did not show as it was applied."""

    address: str
    """What the user calls the object."""
    node: str
    """The id of the node."""
    deleted: Identity | None = None
    """Of a deletion: which object. The state has no row of it any more."""
    incarnation: str | None = None
    """Of a deletion: the system's id of the object, None for kinds without one."""


def read_unseen(data: Mapping[str, Any]) -> Unseen:
    """One member of `invisible` in a `verify` record; earlier versions do not have `deleted`."""
    deleted = data.get("deleted")
    if not deleted:
        return Unseen(data["address"], data["node"])
    identity = Identity(deleted["instance"], deleted["kind"], deleted["key"])
    return Unseen(data["address"], data["node"], identity, deleted["incarnation"])


def summarize_record(record: Record) -> str:
    """What a record says. It is foreign text: names in it have not been made harmless."""
    text = _TOLD.get(record.kind, _summarize_step)(record.body)
    return f"{text} by {record.actor}" if record.kind == "run_begin" else text


def _summarize_step(body: FrozenMap) -> str:
    """The object, the action and the outcome of a step."""
    words = [body.get("address"), body.get("action"), body.get("outcome")]
    if body.get("error"):
        words.append(body["error"]["message"])
    return " ".join(str(word) for word in words if word)


def _summarize_verification(body: FrozenMap) -> str:
    late = body["invisible"]
    return render_count(body["checked"], "object") + (
        f", {len(late)} not visible yet" if late else ""
    )


_TOLD: Mapping[str, Callable[[FrozenMap], str]] = {
    "run_begin": lambda body: str(body.get("command", "")),
    "plan": lambda body: f"approval {body['approval']}",
    "approval": lambda body: f"given by {body.get('how', 'nobody')}",
    "validate": lambda body: render_count(len(body["steps"]), "step"),
    "verify": _summarize_verification,
    "state": lambda body: (
        f"{body.get('reason')}: {render_count(len(body.get('objects', ())), 'object')}"
    ),
    "run_end": lambda body: "complete" if body["complete"] else "not complete",
}
"""Kind of a record -> the summary of its body; all other kinds are about a step."""
