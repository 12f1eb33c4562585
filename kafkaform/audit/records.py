"""Audit records: their kinds, their members, their lines (architecture §6), their summaries, and
the chain of their hashes.

A record is one line of canonical JSON. `journal` makes the bodies, `bodies` checks them. A line can
be as large as a plan of everything. A long one is not kept in memory: its last members are found
and its hash is computed without parsing it, piece by piece, and it is read again if its content is
needed.

Each record contains the hash of the one before, so none can change unseen. A chain alone cannot
show that its end was cut off, or that all of it was written anew. An anchor can: a head that is
kept elsewhere, in the state or in the log of a pipeline.
"""

from __future__ import annotations

import functools
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
from ..core.head import GENESIS, Head
from ..core.resource import Identity
from ..core.text import render_count
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
    CHECKPOINT = "checkpoint"


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

    @property
    def actor(self) -> str:
        """Who ran its run. Raises StorageError."""
        return str(self._parse_line()["actor"])

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

    def forget(self) -> None:
        """Keep only the line, which is much smaller than what was parsed from it."""
        self._data = None

    def _parse_line(self) -> Mapping[str, Any]:
        if self._data is None:
            # Plain JSON, not frozen values: making those takes several times as long.
            line = read_line(self.line)
            try:
                self._data = _parse_sound(line, self.kind) or _check_record(
                    _JSON.decode(line.decode("ascii")), self.kind
                )
            except (ValueError, RecursionError) as error:
                raise _make_unusable_error(self, error) from None
        return self._data


Seen = Record | Glance


def _parse_sound(line: bytes, kind: str) -> Mapping[str, Any] | None:
    """The record in a line, None if the strict parser has to look at it."""
    # orjson needs half the time, but it takes more than ASCII, and rounds numbers beyond 64 bits.
    if not line.isascii():
        return None
    try:
        return parse_step_record(line, kind) or _check_record(orjson.loads(line), kind)
    except ValueError:
        return None


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
    "checkpoint": lambda body: f"covers record {body['covers']['seq']}",
}
"""Kind of a record -> the summary of its body; all other kinds are about a step."""


ADVICE = (
    "Somebody or something changed the log after it was written. Keep the file as it is, restore "
    "it from a backup, and find out who could write to it."
)


FORKED = (
    "If two runs wrote to it at the same time (the lock file of one was removed), run `kafkaform "
    "audit mend`, which puts their records one after the other and loses nothing. "
    "Otherwise somebody changed the log: keep the file as it is, and restore it from a backup."
)


class ChainVerdict(Struct, frozen=True):
    """The judgement of a whole log."""

    records: int
    """How many records are sound, from the first."""
    head: Head
    """The last sound one."""
    seq: int | None = None
    """The number of the first bad one, None if all are sound."""
    problem: str = ""
    """What is wrong with it."""
    repeats: bool = False
    """It is a sound record, but an earlier one has its number already."""

    @property
    def advice(self) -> str:
        """What to do about a bad log."""
        return FORKED if self.repeats else ADVICE

    @property
    def ok(self) -> bool:
        """True if all records are sound and every anchor is among them."""
        return self.seq is None


def seal_record(
    prev: Head, *, time: str, run: str, actor: str, kind: str, body: FrozenMap
) -> Record:
    """The record that follows `prev`."""
    return seal_line(prev, time=time, run=run, actor=actor, kind=kind, body=body)[0]


def seal_line(
    prev: Head, *, time: str, run: str, actor: str, kind: str, body: FrozenMap
) -> tuple[Record, bytes]:
    """The record that follows `prev`, and its line, as `event.encode` makes it."""
    seq = prev.seq + 1
    # A body can be a plan of everything, so it is written once, for the hash and for the line. The
    # hash covers all other members, and stands between those that sort before and after it.
    members = {"kind": kind, "prev": prev.hash, "run": run, "seq": seq, "time": time}
    first = canonical.dumps({"actor": actor, "body": body}).encode("ascii")[:-1]
    last = canonical.dumps(members).encode("ascii")[1:]
    hashed = hashlib.sha256(first)
    hashed.update(b"," + last)
    digest = hashed.hexdigest()
    line = b'%b,"hash":"%b",%b' % (first, digest.encode("ascii"), last)
    return Record(seq, time, run, actor, kind, body, prev.hash, digest), line


def verify_log(lines: Iterable[Line], *anchors: Head | None, start: Head = GENESIS) -> ChainVerdict:
    """Judge a whole log in one pass. lines: without newlines, the first one first.

    anchors: heads that are known from elsewhere. The log must contain each and may go on after it.
    start: the record that the first line follows.
    """
    known_anchors = [anchor for anchor in anchors if anchor is not None]
    head = start
    for line in lines:
        follower, problem = _follow_line(head, line, match_last_members(line), known_anchors)
        if follower is None:
            return _judge_bad_line(head, line, problem)
        head = follower
    last = max((anchor.seq for anchor in known_anchors), default=0)
    return _make_cut_verdict(head, last) if head.seq < last else ChainVerdict(head.seq, head)


def read_records(
    lines: Iterable[Line], source: str, anchor: Head | None = None
) -> Iterator[Record]:
    """The records of a log, each checked before it is handed out. source: the name of the log.

    Raises StorageError at the first record that is not what was written.
    """
    for glance in read_glances(lines, source, anchor):
        yield glance.read_whole()


def read_glances(
    lines: Iterable[Line], source: str, anchor: Head | None = None, start: Head = GENESIS
) -> Iterator[Glance]:
    """The records of a log, each checked, but not parsed. source: the name of the log; start: the
    record that the first line follows.

    Raises StorageError at the first record that is not what was written, or whose kind this version
    does not know.
    """
    head, known_anchors = start, [anchor] if anchor is not None else []
    for line in lines:
        match = match_last_members(line)
        follower, problem = _follow_line(head, line, match, known_anchors)
        if follower is None or match is None:
            raise _make_broken_error(source, _judge_bad_line(head, line, problem))
        head = follower
        glance = _make_glance(line, match, head, source)
        if glance.kind not in KINDS:
            problem = f"its kind {glance.kind!r} is not known to this version"
            raise _make_broken_error(
                source,
                ChainVerdict(glance.seq - 1, Head(glance.seq, glance.hash), glance.seq, problem),
            )
        yield glance
    if anchor is not None and head.seq < anchor.seq:
        raise _make_broken_error(source, _make_cut_verdict(head, anchor.seq))


def _make_glance(line: Line, match: re.Match[bytes], head: Head, source: str) -> Glance:
    """match: the last members of the line."""
    try:
        run = _parse_run(match["run"])
    except ValueError:
        problem = "its run is not text"
        raise _make_broken_error(
            source, ChainVerdict(head.seq - 1, head, head.seq, problem)
        ) from None
    return Glance(line, head.seq, run, match["kind"].decode(), head.hash, source)


# A run writes many records, and its id is the same in each.
@functools.lru_cache(maxsize=256)
def _parse_run(text: bytes) -> str:
    return str(json.loads(text))


def check_bodies(lines: Iterable[Line], source: str, start: Head = GENESIS) -> None:
    """Raises StorageError at the first record whose hash fits, but whose body no such record can
    have. start: the record that the first line follows."""
    for glance in read_glances(lines, source, start=start):
        glance.check()
        glance.forget()


def parse_record(line: Line, source: str) -> Record:
    """The record in a line. Raises StorageError if its hash does not fit, or if no such record can
    have its body."""
    match = _match_sound_line(line, source)
    return _make_glance(line, match, _make_head(match), source).read_whole()


def parse_line_head(line: Line, source: str) -> Head:
    """The head of a log that ends with this line. Raises StorageError if the line was changed."""
    return _make_head(_match_sound_line(line, source))


def _match_sound_line(line: Line, source: str) -> re.Match[bytes]:
    match = match_last_members(line)
    if match is None or digest_line(line, match) != match["hash"]:
        raise StorageError(f"{source}: the last record was changed", ADVICE)
    return match


def _make_head(match: re.Match[bytes]) -> Head:
    return Head(int(match["seq"]), match["hash"].decode())


def _make_broken_error(source: str, verdict: ChainVerdict) -> StorageError:
    return StorageError(f"{source}: record {verdict.seq}: {verdict.problem}", verdict.advice)


def _judge_bad_line(head: Head, line: Line, problem: str) -> ChainVerdict:
    match = match_last_members(line)
    sound = match is not None and digest_line(line, match) == match["hash"]
    repeats = match is not None and sound and int(match["seq"]) <= head.seq
    return ChainVerdict(head.seq, head, head.seq + 1, problem, repeats)


def _make_cut_verdict(head: Head, last: int) -> ChainVerdict:
    cut = f"the log ends at record {head.seq}, but record {last} is known to exist"
    return ChainVerdict(head.seq, head, head.seq + 1, cut)


def _follow_line(
    head: Head, line: Line, match: re.Match[bytes] | None, known_anchors: Iterable[Head]
) -> tuple[Head | None, str]:
    """The head after this line, or None and why it cannot follow `head`. match: what
    `match_last_members` found in it."""
    if match is None:
        return None, "it is not a record: it was changed or overwritten"
    if digest_line(line, match) != match["hash"]:
        return None, "its content was changed: its hash differs"
    seq, expected = int(match["seq"]), head.seq + 1
    if seq > expected:
        return None, f"it is missing: record {seq} stands in its place"
    if seq < expected:
        return None, f"record {seq} was inserted or moved here"
    if match["prev"].decode() != head.hash:
        return None, "it does not follow the record before it: one of the two was replaced"
    follower = _make_head(match)
    if any(anchor.seq == seq and anchor != follower for anchor in known_anchors):
        return None, "the log was rewritten: its hash is not the one that was kept elsewhere"
    return follower, ""
