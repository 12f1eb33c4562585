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
from .line import Line, digest_line, match_last_members

ADVICE = (
    "Somebody or something changed the log after it was written. Keep the file as it is, restore "
    "it from a backup, and find out who could write to it."
)


FORKED = (
    "If two runs were there at the same time (the lock file of one was removed), both have written "
    "to it: `kafkaform audit mend` puts what they wrote behind each other and loses nothing. "
    "Otherwise somebody changed the log: keep the file as it is, and restore it from a backup."
)


class ChainVerdict(Struct, frozen=True):
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


def seal_record(
    prev: Head, *, time: str, run: str, actor: str, kind: str, body: FrozenMap
) -> Record:
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


def verify_log(lines: Iterable[Line], *anchors: Head | None) -> ChainVerdict:
    """Judge a whole log in one pass: lines without their newlines, the first one first.

    anchors: heads known from elsewhere; the log must contain each, and may go on after it.
    """
    known = [anchor for anchor in anchors if anchor is not None]
    head = GENESIS
    for line in lines:
        follower, problem = _follow_line(head, line, known)
        if follower is None:
            return _judge_bad_line(head, line, problem)
        head = follower
    return _judge_end(head, known)


def read_records(lines: Iterable[Line], where: str, anchor: Head | None = None) -> Iterator[Record]:
    """The records of a log, each checked before it is handed out. where: the log's name.

    Raises StorageError at the first record that is not what was written.
    """
    for glance in read_glances(lines, where, anchor):
        yield glance.read_whole()


def read_glances(lines: Iterable[Line], where: str, anchor: Head | None = None) -> Iterator[Glance]:
    """The same records, checked as well, but not taken apart.

    Raises StorageError at the first record that is not what was written, or whose kind is not
    known to this version.
    """
    head, known = GENESIS, [anchor] if anchor is not None else []
    for line in lines:
        follower, problem = _follow_line(head, line, known)
        if follower is None:
            raise _make_broken_error(where, _judge_bad_line(head, line, problem))
        head = follower
        glance = _make_glance(line, head, where)
        if glance.kind not in KINDS:
            problem = f"its kind {glance.kind!r} is not known to this version"
            raise _make_broken_error(where, _make_bad_verdict(glance, problem))
        yield glance
    verdict = _judge_end(head, known)
    if not verdict.ok:
        raise _make_broken_error(where, verdict)


def _make_glance(line: Line, head: Head, where: str) -> Glance:
    match = match_last_members(line)
    assert match is not None  # it follows the record before it, so it has been matched
    try:
        run = json.loads(match["run"])
    except ValueError:
        problem = "its run is not text"
        raise _make_broken_error(
            where, ChainVerdict(head.seq - 1, head, head.seq, problem)
        ) from None
    return Glance(line, head.seq, run, match["kind"].decode(), head.hash, where)


def check_bodies(lines: Iterable[Line], where: str) -> None:
    """Raises StorageError at the first record that says what no record says, although its hash
    fits."""
    for glance in read_glances(lines, where):
        glance.check()


def parse_record(line: Line, where: str) -> Record:
    """The record of a line whose hash fits. Raises StorageError for one that says what no record
    says."""
    return _make_glance(line, parse_line_head(line, where), where).read_whole()


def _make_bad_verdict(glance: Glance, problem: str) -> ChainVerdict:
    return ChainVerdict(glance.seq - 1, Head(glance.seq, glance.hash), glance.seq, problem)


def parse_line_head(line: Line, where: str) -> Head:
    """The head that a log ends with, of its last line. Raises StorageError if it was changed."""
    match = match_last_members(line)
    if match is None or digest_line(line, match) != match["hash"]:
        raise StorageError(f"{where}: the last record was changed", ADVICE)
    return Head(int(match["seq"]), match["hash"].decode())


def _make_broken_error(where: str, verdict: ChainVerdict) -> StorageError:
    return StorageError(f"{where}: record {verdict.seq}: {verdict.problem}", verdict.advice)


def _judge_bad_line(head: Head, line: Line, problem: str) -> ChainVerdict:
    match = match_last_members(line)
    sound = match is not None and digest_line(line, match) == match["hash"]
    repeats = match is not None and sound and int(match["seq"]) <= head.seq
    return ChainVerdict(head.seq, head, head.seq + 1, problem, repeats)


def _judge_end(head: Head, known: Iterable[Head]) -> ChainVerdict:
    """The verdict on a log that is sound up to `head` and ends there."""
    last = max((anchor.seq for anchor in known), default=0)
    if head.seq < last:
        cut = f"the log ends at record {head.seq}, but record {last} is known to exist"
        return ChainVerdict(head.seq, head, head.seq + 1, cut)
    return ChainVerdict(head.seq, head)


def _follow_line(head: Head, line: Line, known: Iterable[Head]) -> tuple[Head | None, str]:
    """The head after this line, or None and why it cannot follow `head`."""
    match = match_last_members(line)
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
    follower = Head(seq, match["hash"].decode())
    if any(anchor.seq == seq and anchor != follower for anchor in known):
        return None, "the log was written anew: its hash is not the one that was kept elsewhere"
    return follower, ""
