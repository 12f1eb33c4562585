"""The hash chain: each record holds the hash of the one before, so none can change unseen.

A chain alone cannot show that its end was cut off, or that all of it was written anew; an
anchor can: a head that is kept elsewhere (in the state, in a pipeline's log).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator

from ..core import canonical
from ..core.dataclass import dataclass
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.value import FrozenMap
from .event import KINDS, Glance, Record

_TAIL = re.compile(
    rb'"hash":"(?P<hash>[0-9a-f]{64})",'
    rb'(?P<rest>"kind":"(?P<kind>[a-z_]+)","prev":"(?P<prev>[0-9a-f]{64})",'
    rb'"run":(?P<run>"(?:[^"\\]|\\.)*"),"seq":(?P<seq>[1-9][0-9]{0,17}),"time":"[^"\\]*"\})'
)
ADVICE = (
    "Somebody or something changed the log after it was written. Keep the file as it is, restore "
    "it from a backup, and find out who could write to it."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """records: how many are sound, from the first; head: the last sound one; seq: the first bad
    one, None if all is well; problem: what is wrong with it."""

    records: int
    head: Head
    seq: int | None = None
    problem: str = ""

    @property
    def ok(self) -> bool:
        return self.seq is None


def seal(prev: Head, *, time: str, run: str, actor: str, kind: str, body: FrozenMap) -> Record:
    """The record that follows `prev`."""
    parts = {
        "seq": prev.seq + 1,
        "time": time,
        "run": run,
        "actor": actor,
        "kind": kind,
        "body": body,
        "prev": prev.hash,
    }
    return Record(prev.seq + 1, time, run, actor, kind, body, prev.hash, canonical.digest(parts))


def verify(lines: Iterable[bytes], anchor: Head | None = None) -> Verdict:
    """Judge a whole log in one pass: lines without their newlines, the first one first.

    anchor: a head known from elsewhere; the log must contain it, and may go on after it.
    """
    head = GENESIS
    for line in lines:
        follower, problem = _follow(head, line, anchor)
        if follower is None:
            return Verdict(head.seq, head, head.seq + 1, problem)
        head = follower
    if anchor is not None and head.seq < anchor.seq:
        cut = f"the log ends at record {head.seq}, but record {anchor.seq} is known to exist"
        return Verdict(head.seq, head, head.seq + 1, cut)
    return Verdict(head.seq, head)


def trusted(lines: Iterable[bytes], where: str, anchor: Head | None = None) -> Iterator[Record]:
    """The records of a log, each checked before it is handed out. where: the log's name.

    Raises StorageError at the first record that is not what was written.
    """
    for glance in glances(lines, where, anchor):
        try:
            yield glance.whole()
        except ValueError as error:
            raise _broken(where, _bad(glance, str(error))) from None


def glances(lines: Iterable[bytes], where: str, anchor: Head | None = None) -> Iterator[Glance]:
    """The same records, checked as well, but not taken apart.

    Raises StorageError at the first record that is not what was written, or whose kind is not
    known to this version.
    """
    head = GENESIS
    for line in lines:
        follower, problem = _follow(head, line, anchor)
        if follower is None:
            raise _broken(where, Verdict(head.seq, head, head.seq + 1, problem))
        head = follower
        glance = _glance(line, head)
        if glance.kind not in KINDS:
            problem = f"its kind {glance.kind!r} is not known to this version"
            raise _broken(where, _bad(glance, problem))
        yield glance
    if anchor is not None and head.seq < anchor.seq:
        raise _broken(where, verify((), anchor))


def _glance(line: bytes, head: Head) -> Glance:
    match = _last_match(line)
    assert match is not None  # it follows the record before it, so it has been matched
    run, kind = json.loads(match["run"]), match["kind"].decode()
    return Glance(line, head.seq, run, kind, head.hash)


def _bad(glance: Glance, problem: str) -> Verdict:
    return Verdict(glance.seq - 1, Head(glance.seq, glance.hash), glance.seq, problem)


def head_of(line: bytes, where: str) -> Head:
    """The head that a log ends with, of its last line. Raises StorageError if it was changed."""
    match = _last_match(line)
    if match is None or _digest(line, match) != match["hash"]:
        raise StorageError(f"{where}: the last record was changed", ADVICE)
    return Head(int(match["seq"]), match["hash"].decode())


def _broken(where: str, verdict: Verdict) -> StorageError:
    return StorageError(f"{where}: record {verdict.seq}: {verdict.problem}", ADVICE)


def _follow(head: Head, line: bytes, anchor: Head | None) -> tuple[Head | None, str]:
    """The head after this line, or None and why it cannot follow `head`."""
    match = _last_match(line)
    if match is None:
        return None, "it is not a record: it was changed or overwritten"
    if _digest(line, match) != match["hash"]:
        return None, "its content was changed: its hash differs"
    seq, expected = int(match["seq"]), head.seq + 1
    if seq > expected:
        return None, f"it is missing: record {seq} stands in its place"
    if seq < expected:
        return None, f"record {seq} was inserted or moved here"
    if match["prev"].decode() != head.hash:
        return None, "it does not follow the record before it: one of the two was replaced"
    if anchor is not None and anchor.seq == seq and match["hash"].decode() != anchor.hash:
        return None, "the log was written anew: its hash is not the one that was kept elsewhere"
    return Head(seq, match["hash"].decode()), ""


def _last_match(line: bytes) -> re.Match[bytes] | None:
    """The members after the body. Only the record's own "hash" can be the last one: `run` and
    `time` are strings, and a quote inside a string is escaped."""
    start = line.rfind(b'"hash":"')
    return _TAIL.fullmatch(line, start) if start > 0 else None


def _digest(line: bytes, match: re.Match[bytes]) -> bytes:
    """A line can be as large as a plan, so no copy of it is made."""
    hashed = hashlib.sha256(memoryview(line)[: match.start()])
    hashed.update(match["rest"])
    return hashed.hexdigest().encode()
