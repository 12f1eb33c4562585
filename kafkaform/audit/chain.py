"""The hash chain: each record contains the hash of the one before, so none can change unseen.

A chain alone cannot show that its end was cut off, or that all of it was written anew. An anchor
can: a head that is kept elsewhere, in the state or in the log of a pipeline.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from ..core import canonical
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.value import FrozenMap
from .event import KINDS, Glance, Line, Record, digest_line, match_last_members

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


def verify_log(lines: Iterable[Line], *anchors: Head | None) -> ChainVerdict:
    """Judge a whole log in one pass. lines: without newlines, the first one first.

    anchors: heads that are known from elsewhere. The log must contain each and may go on after it.
    """
    known_anchors = [anchor for anchor in anchors if anchor is not None]
    head = GENESIS
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
            raise _make_broken_error(source, _make_bad_verdict(glance, problem))
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


def check_bodies(lines: Iterable[Line], source: str) -> None:
    """Raises StorageError at the first record whose hash fits, but whose body no such record can
    have."""
    for glance in read_glances(lines, source):
        glance.check()


def parse_record(line: Line, source: str) -> Record:
    """The record in a line. Raises StorageError if its hash does not fit, or if no such record can
    have its body."""
    match = _match_sound_line(line, source)
    return _make_glance(line, match, _make_head(match), source).read_whole()


def _make_bad_verdict(glance: Glance, problem: str) -> ChainVerdict:
    return ChainVerdict(glance.seq - 1, Head(glance.seq, glance.hash), glance.seq, problem)


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
