"""The hash chain: each record holds the hash of the one before, so none can change unseen.

A chain alone cannot show that its end was cut off, or that all of it was written anew; an
anchor can: a head that is kept elsewhere (in the state, in a pipeline's log).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from msgspec import Struct

from ..core import canonical
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.value import FrozenMap
from .event import KINDS, Glance, Record
from .line import Line, digest, last_members

ADVICE = (
    "Somebody or something changed the log after it was written. Keep the file as it is, restore "
    "it from a backup, and find out who could write to it."
)


FORKED = (
    "If two runs were there at the same time (the lock file of one was removed), both have written "
    "to it: `kafkaform audit mend` puts what they wrote behind each other and loses nothing. "
    "Otherwise somebody changed the log: keep the file as it is, and restore it from a backup."
)


class Verdict(Struct, frozen=True):
    """records: how many are sound, from the first; head: the last sound one; seq: the first bad
    one, None if all is well; problem: what is wrong with it; repeats: it is a sound record, with a
    number that another one before it has."""

    records: int
    head: Head
    seq: int | None = None
    problem: str = ""
    repeats: bool = False

    @property
    def advice(self) -> str:
        return FORKED if self.repeats else ADVICE

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


def verify(lines: Iterable[Line], *anchors: Head | None) -> Verdict:
    """Judge a whole log in one pass: lines without their newlines, the first one first.

    anchors: heads known from elsewhere; the log must contain each, and may go on after it.
    """
    known = [anchor for anchor in anchors if anchor is not None]
    head = GENESIS
    for line in lines:
        follower, problem = _follow(head, line, known)
        if follower is None:
            return _bad_line(head, line, problem)
        head = follower
    return _ended(head, known)


def trusted(lines: Iterable[Line], where: str, anchor: Head | None = None) -> Iterator[Record]:
    """The records of a log, each checked before it is handed out. where: the log's name.

    Raises StorageError at the first record that is not what was written.
    """
    for glance in glances(lines, where, anchor):
        yield glance.whole()


def glances(lines: Iterable[Line], where: str, anchor: Head | None = None) -> Iterator[Glance]:
    """The same records, checked as well, but not taken apart.

    Raises StorageError at the first record that is not what was written, or whose kind is not
    known to this version.
    """
    head, known = GENESIS, [anchor] if anchor is not None else []
    for line in lines:
        follower, problem = _follow(head, line, known)
        if follower is None:
            raise _broken(where, _bad_line(head, line, problem))
        head = follower
        glance = _glance(line, head, where)
        if glance.kind not in KINDS:
            problem = f"its kind {glance.kind!r} is not known to this version"
            raise _broken(where, _bad(glance, problem))
        yield glance
    verdict = _ended(head, known)
    if not verdict.ok:
        raise _broken(where, verdict)


def _glance(line: Line, head: Head, where: str) -> Glance:
    match = last_members(line)
    assert match is not None  # it follows the record before it, so it has been matched
    try:
        run = json.loads(match["run"])
    except ValueError:
        problem = "its run is not text"
        raise _broken(where, Verdict(head.seq - 1, head, head.seq, problem)) from None
    return Glance(line, head.seq, run, match["kind"].decode(), head.hash, where)


def check_bodies(lines: Iterable[Line], where: str) -> None:
    """Raises StorageError at the first record that says what no record says, although its hash
    fits."""
    for glance in glances(lines, where):
        glance.check()


def record_of(line: Line, where: str) -> Record:
    """The record of a line whose hash fits. Raises StorageError for one that says what no record
    says."""
    return _glance(line, head_of(line, where), where).whole()


def _bad(glance: Glance, problem: str) -> Verdict:
    return Verdict(glance.seq - 1, Head(glance.seq, glance.hash), glance.seq, problem)


def head_of(line: Line, where: str) -> Head:
    """The head that a log ends with, of its last line. Raises StorageError if it was changed."""
    match = last_members(line)
    if match is None or digest(line, match) != match["hash"]:
        raise StorageError(f"{where}: the last record was changed", ADVICE)
    return Head(int(match["seq"]), match["hash"].decode())


def _broken(where: str, verdict: Verdict) -> StorageError:
    return StorageError(f"{where}: record {verdict.seq}: {verdict.problem}", verdict.advice)


def _bad_line(head: Head, line: Line, problem: str) -> Verdict:
    match = last_members(line)
    sound = match is not None and digest(line, match) == match["hash"]
    repeats = match is not None and sound and int(match["seq"]) <= head.seq
    return Verdict(head.seq, head, head.seq + 1, problem, repeats)


def _ended(head: Head, known: Iterable[Head]) -> Verdict:
    """The verdict on a log that is sound up to `head` and ends there."""
    last = max((anchor.seq for anchor in known), default=0)
    if head.seq < last:
        cut = f"the log ends at record {head.seq}, but record {last} is known to exist"
        return Verdict(head.seq, head, head.seq + 1, cut)
    return Verdict(head.seq, head)


def _follow(head: Head, line: Line, known: Iterable[Head]) -> tuple[Head | None, str]:
    """The head after this line, or None and why it cannot follow `head`."""
    match = last_members(line)
    if match is None:
        return None, "it is not a record: it was changed or overwritten"
    if digest(line, match) != match["hash"]:
        return None, "its content was changed: its hash differs"
    seq, expected = int(match["seq"]), head.seq + 1
    if seq > expected:
        return None, f"it is missing: record {seq} stands in its place"
    if seq < expected:
        return None, f"record {seq} was inserted or moved here"
    if match["prev"].decode() != head.hash:
        return None, "it does not follow the record before it: one of the two was replaced"
    follower = Head(seq, match["hash"].decode())
    if any(anchor.seq == seq and anchor != follower for anchor in known):
        return None, "the log was written anew: its hash is not the one that was kept elsewhere"
    return follower, ""
