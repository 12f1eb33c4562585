"""Checkpoints: what the records of a log up to one of them say together, so that a reader needs
only those that follow.

    checkpoints/SEQ.json.gz        the index of the records 1 to SEQ

A checkpoint proves nothing by itself, because who can write the log can write one. A record of the
kind `checkpoint`, the first one after what is covered, has the digest of its content, and the state
is anchored at that record or at a later one. So the anchored chain proves the record, the record
proves the content, and the content is what a reader of all records knew when it was written. Any
other checkpoint is passed over, and the log is read as if there were none.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from ..core.canonical import Misfit, dumps, from_data, loads
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.objects import Folder, ObjectChanged, ObjectExists, Objects
from ..core.resource import Identity
from ..core.value import FrozenMap
from .bodies import check_body, check_members
from .index import Growth, Indexer, LoggedRun, LogIndex, MendedLog, OpenRun, Origin, index_log
from .journal import Checkpointer, make_checkpoint_body
from .records import (
    KINDS,
    Glance,
    Line,
    LongLine,
    Record,
    RecordKind,
    Unseen,
    parse_record,
    read_glances,
)
from .sink import Sink
from .writes import LastWrite, ObjectWrites, parse_path

FOLDER = "checkpoints"
FORMAT = 1
"""The format of a checkpoint; a reader passes over all others."""
LARGEST = 128 << 20
"""The largest content, in bytes. A log that needs more is read whole."""
TRIED = 3
"""How many of the newest checkpoints a reader looks at."""
APPENDS, SIZE = 4, 256 << 10
"""What a log in a store (appends), and one in a file (bytes), must have grown by before the next
checkpoint."""
_KEY = re.compile(rf"{FOLDER}/(\d{{20}})\.json\.gz")


class CoveredRun(Struct, frozen=True):
    """One of the last runs, or one with something open."""

    run: str
    """Its id."""
    approval: str
    """The digest that was approved."""
    time: str
    """When it ended, or when it began if it has no end."""
    complete: bool = False
    """Every step was applied or started."""
    planned: Head | None = None
    """The record with its plan."""
    command: str = ""
    """The command that it was."""


class CoveredOpenRun(Struct, frozen=True):
    """The run that can be resumed."""

    run: str
    """The id of the first run under its approval."""
    approval: str
    """The digest that was approved."""
    members: tuple[str, ...]
    """The ids of all runs under this approval since then."""
    outcomes: tuple[int, ...] = ()
    """The last terminal record of each of its steps that has one."""


class CoveredOrigin(Struct, frozen=True):
    """A record that proves that an object is ours."""

    seq: int
    """Its number."""
    identity: Identity
    """The object."""
    incarnation: str | None
    """The system's id of the object."""
    scope_id: str
    """The system that has it."""


class CoveredWrites(Struct, frozen=True):
    """What was written to one object. A step is named by its place in `steps`."""

    identity: Identity
    """The object."""
    own_paths: tuple[str, ...] = ()
    """The paths that are ours."""
    paths: Mapping[str, int] = FrozenMap()
    """Path -> the step that set it last."""
    last: int | None = None
    """The last step that set anything, or deleted the object."""


class Checkpoint(Struct, frozen=True):
    """What the records up to one of them say together. Records are named by their numbers."""

    format: int
    """The format of the checkpoint."""
    lineage: str
    """The state that the log belongs to."""
    covers: Head
    """The last record that is covered."""
    records: tuple[Record, ...] = ()
    """The records that are needed as a whole, in log order."""
    open_intents: tuple[int, ...] = ()
    """Intents without a terminal outcome."""
    obligations: tuple[int, ...] = ()
    """Obligations that are not discharged."""
    grounds: tuple[int, ...] = ()
    """Plans and approvals of runs with something open, and the intents that follow an open
    obligation to remove a setting."""
    open_run: CoveredOpenRun | None = None
    """The run that can be resumed."""
    runs: tuple[CoveredRun, ...] = ()
    """The last runs, and those with something open, in the order of their begin."""
    origins: tuple[CoveredOrigin, ...] = ()
    """What proves that objects are ours."""
    scopes: Mapping[str, str] = FrozenMap()
    """Provider instance -> the system that its last applied step was sent to."""
    vague: int = 0
    """How many edits cannot be repeated from the log."""
    unseen: tuple[Unseen, ...] = ()
    """What the last verification did not see as it was applied."""
    steps: tuple[LastWrite, ...] = ()
    """The steps that `writes` names."""
    writes: tuple[CoveredWrites, ...] = ()
    """What was written to objects."""


# ── reading a log ───────────────────────────────────────────────────────────────────────


def read_index(sink: Sink, anchor: Head | None, *, whole: bool = False) -> LogIndex:
    """The index of a log, which is read from its newest proven checkpoint on, or as a whole.

    anchor: the record that the state follows from. Raises StorageError for a record that is not
    what was written, and for a log that lacks the anchor.
    """
    stored = list_checkpoints(sink)
    if anchor is not None and not whole:
        # What comes after the anchor is not proven: somebody may have appended it. The next run
        # names another checkpoint behind it, so only the last one that is named can be used.
        for key in [key for key in stored if _parse_key(key) < anchor.seq][: -TRIED - 1 : -1]:
            opened = _open_checkpoint(sink, key)
            if opened is not None:
                # The next one is tried, or the whole log is read.
                with suppress(MendedLog, _Superseded):
                    return _index_lines(
                        sink, opened[1], anchor, opened[0], Growth(0, 0, stored, key)
                    )
    return _index_lines(sink, sink.lines(), anchor, None, Growth(0, 0, stored))


def continue_index(sink: Sink, index: LogIndex, saved: Head | None) -> LogIndex:
    """The index of a log that has grown since it was read. saved: the state's audit head. Raises
    StorageError."""
    earlier = replace(
        index, unsaved=tuple(r for r in index.unsaved if not saved or r.seq > saved.seq)
    )
    lines = sink.lines(index.head.seq)
    anchor = saved if saved is not None and saved.seq > index.head.seq else None
    glances = read_glances(lines, sink.location, anchor, index.head)
    return replace(index_log(glances, saved, earlier), growth=index.growth)


def list_checkpoints(sink: Sink) -> tuple[str, ...]:
    """The names of the checkpoints that are stored, the oldest first."""
    if sink.sealed is None:
        return ()
    try:
        names = [entry.key for entry in sink.sealed.names(FOLDER) if entry.size <= LARGEST]
    except StorageError:
        return ()  # a log can be read without them
    return tuple(name for name in sorted(names) if _KEY.fullmatch(name))


def _parse_key(key: str) -> int:
    match = _KEY.fullmatch(key)
    assert match is not None  # `list_checkpoints` lists no other names
    return int(match[1])


def _open_checkpoint(sink: Sink, key: str) -> tuple[LogIndex, Iterator[Line]] | None:
    """The index in a checkpoint and the lines that follow what it covers; None if the first of them
    does not name it."""
    seq = _parse_key(key)
    lines = sink.lines(seq)
    try:
        first = next(lines, None)
        if first is None or isinstance(first, LongLine):
            return None
        record = parse_record(first, sink.location)
        if record.seq != seq + 1 or record.kind != RecordKind.CHECKPOINT:
            return None
        stored = sink.sealed.read(key) if sink.sealed is not None else None
        if stored is None:
            return None
        return read_checkpoint(stored.data, record), chain([first], lines)
    except (StorageError, ValueError):
        # A checkpoint only saves time: without a sound one, all records are read.
        return None


def _index_lines(
    sink: Sink,
    lines: Iterator[Line],
    anchor: Head | None,
    start: LogIndex | None,
    growth: Growth,
) -> LogIndex:
    counter = _ReadCounter()
    glances = read_glances(
        counter.count(lines), sink.location, anchor, *([] if start is None else [start.head])
    )
    watch = _CheckpointWatch(anchor.seq if anchor is not None else 0, start)
    index = index_log(watch.watch(glances), anchor, start)
    return replace(
        index,
        growth=replace(growth, size=counter.size, appends=counter.appends, unproven=watch.unproven),
    )


class _Superseded(Exception):
    """A later record names another checkpoint."""


class _CheckpointWatch(Struct):
    """Looks for records that name checkpoints."""

    anchor: int
    """The number of the record that the state follows from, 0 if there is no state."""
    start: LogIndex | None
    """What the used checkpoint says."""
    unproven: bool = False
    """One of the records is after the anchor."""

    def watch(self, glances: Iterable[Glance]) -> Iterator[Glance]:
        """The same records. Raises _Superseded."""
        used = None if self.start is None else self.start.head.seq + 1
        for glance in glances:
            if glance.kind == RecordKind.CHECKPOINT and glance.seq != used:
                self.unproven |= glance.seq > self.anchor
                if used is not None and glance.seq <= self.anchor:
                    raise _Superseded
            yield glance


class _ReadCounter(Struct):
    """Counts what is read."""

    size: int = 0
    appends: int = 0

    def count(self, lines: Iterator[Line]) -> Iterator[Line]:
        # All records of one append have the same time, which is the last member of a line.
        last = b""
        for line in lines:
            end = line.end if isinstance(line, LongLine) else line
            time = end[-_TIME:]
            self.size += line.size if isinstance(line, LongLine) else len(line)
            self.appends += time != last
            last = time
            yield line


_TIME = len('"time":"2026-01-01T00:00:00.000000Z"}')


# ── reading a checkpoint ────────────────────────────────────────────────────────────────


def read_checkpoint(data: bytes, record: Record) -> LogIndex:
    """The index in the bytes of a checkpoint. record: the one that names it, of a chain that is
    trusted. Raises ValueError for a checkpoint that the record does not prove."""
    covers, length = record.body["covers"], record.body["length"]
    if length > LARGEST:
        raise Misfit("is too large")
    content = _unpack(data, length)
    if content is None or hashlib.sha256(content).hexdigest() != record.body["sha256"]:
        raise Misfit(f"is not what record {record.seq} names")
    if Head(covers["seq"], covers["hash"]) != Head(record.seq - 1, record.prev):
        raise Misfit(f"covers other records than those before record {record.seq}")
    return parse_checkpoint(content, record)


def _unpack(data: bytes, length: int) -> bytes | None:
    """The unpacked bytes of a gzip file, None unless it has exactly so many."""
    # A few bytes of a forged file can unpack to gigabytes, so never more than expected.
    unpacking = zlib.decompressobj(wbits=31)
    try:
        content = unpacking.decompress(data, length + 1)
    except zlib.error:
        return None
    whole = unpacking.eof and not unpacking.unused_data
    return content if len(content) == length and whole else None


def parse_checkpoint(content: bytes, record: Record) -> LogIndex:
    """The index in the content of a checkpoint. Raises ValueError."""
    data = loads(content)
    if not isinstance(data, FrozenMap) or data.get("format") != FORMAT:
        # Before the members, which a later format may define differently.
        raise Misfit(f"does not have format {FORMAT}")
    checkpoint = from_data(Checkpoint, data)
    if checkpoint.lineage != record.body.get("lineage"):
        raise Misfit("is of another state")
    if checkpoint.covers != Head(record.seq - 1, record.prev):
        raise Misfit(f"covers other records than those before record {record.seq}")
    for item in checkpoint.records:
        check_members({name: getattr(item, name) for name in Record.__struct_fields__})
        if item.kind not in KINDS:
            raise Misfit(f"has a record of the kind {item.kind!r}, which is not known")
        check_body(item.kind, item.body)
    try:
        return _make_index(checkpoint)
    except (KeyError, IndexError):
        raise Misfit("names a record or a step that it does not have") from None


def _make_index(checkpoint: Checkpoint) -> LogIndex:
    records = {record.seq: record for record in checkpoint.records}
    grounds = tuple(records[seq] for seq in checkpoint.grounds)
    plans = {r.run: r.body["plan"] for r in grounds if r.kind == RecordKind.PLAN}
    runs = {
        item.run: LoggedRun(
            item.run,
            item.approval,
            item.time,
            item.complete,
            item.planned,
            plans.get(item.run),
            item.command,
        )
        for item in checkpoint.runs
    }
    return LogIndex(
        checkpoint.covers,
        tuple(records[seq] for seq in checkpoint.open_intents),
        tuple(records[seq] for seq in checkpoint.obligations),
        _make_open_run(checkpoint.open_run, records, runs),
        runs,
        grounds,
        {o.seq: Origin(o.identity, o.incarnation, o.scope_id) for o in checkpoint.origins},
        dict(checkpoint.scopes),
        (),
        checkpoint.vague,
        checkpoint.unseen,
        {
            item.identity: ObjectWrites(
                frozenset(map(parse_path, item.own_paths)),
                {parse_path(path): checkpoint.steps[n] for path, n in item.paths.items()},
                None if item.last is None else checkpoint.steps[item.last],
            )
            for item in checkpoint.writes
        },
    )


def _make_open_run(
    open_run: CoveredOpenRun | None, records: Mapping[int, Record], runs: Mapping[str, LoggedRun]
) -> OpenRun | None:
    if open_run is None:
        return None
    members = frozenset(open_run.members)
    plans = (run.plan for name, run in runs.items() if name in members)
    return OpenRun(
        open_run.run,
        open_run.approval,
        next((plan for plan in plans if plan is not None), None),
        {records[seq].body["step"]: records[seq] for seq in open_run.outcomes},
        members,
    )


# ── writing a checkpoint ────────────────────────────────────────────────────────────────


def make_checkpointer(sink: Sink, index: LogIndex, lineage: str) -> Checkpointer | None:
    """What stores this index as a checkpoint; None if the log has hardly grown since the last one.

    index: that of the log as it is, read by a run with the lock.
    """
    objects, growth = sink.sealed, index.growth
    if objects is None:
        return None
    # Each append to a store is an object that every reader asks for.
    grown = growth.size > SIZE if isinstance(objects, Folder) else growth.appends > APPENDS
    needed = grown or growth.unproven
    return partial(_write_checkpoint, objects, index, lineage) if needed else None


def _write_checkpoint(
    objects: Objects, index: LogIndex, lineage: str, head: Head
) -> FrozenMap | None:
    """Store the index, remove older checkpoints, and return the body of the record that names it.

    head: the end of the log. None if the index could not be stored: a log can be read without it.
    But the state of this run will prove what was appended before. If that names a checkpoint which
    no run has compared with the log, the body names an empty one, so that no reader uses the other.
    """
    empty_body = make_checkpoint_body(head, hashlib.sha256(b"").hexdigest(), 0)
    fallback = empty_body if index.growth.unproven else None
    # A run that finds a state behind its log has to save it first; the next one stores more.
    if index.unsaved or head != index.head:
        return fallback
    content = render_checkpoint(index, lineage)
    if len(content) > LARGEST:
        return fallback
    key = f"{FOLDER}/{index.head.seq:020d}.json.gz"
    data = gzip.compress(content, mtime=0)
    try:
        _store(objects, key, data)
    except (StorageError, ObjectChanged):
        return fallback
    # A reader that has listed the earlier one may still need it.
    earlier = [name for name in index.growth.stored if name != key]
    kept = index.growth.used or next(reversed(earlier), None)
    # One that stays takes room and is read by nobody; the next run removes it.
    with suppress(StorageError):
        for name in earlier:
            if name != kept:
                objects.delete(name)
    return make_checkpoint_body(index.head, hashlib.sha256(content).hexdigest(), len(content))


def _store(objects: Objects, key: str, data: bytes) -> None:
    try:
        objects.create(key, data)
    except ObjectExists as error:
        # A run that read the same log was killed before it could append the record.
        if error.found.data != data:
            objects.replace(key, data, error.found.version)


def render_checkpoint(index: LogIndex, lineage: str) -> bytes:
    """The content of the checkpoint with this index."""
    steps: dict[LastWrite, int] = {}
    writes = tuple(
        CoveredWrites(
            identity,
            tuple(sorted(map(_render_path, item.own_paths))),
            FrozenMap(
                (_render_path(path), steps.setdefault(write, len(steps)))
                for path, write in sorted(item.paths.items())
            ),
            None if item.last is None else steps.setdefault(item.last, len(steps)),
        )
        for identity, item in sorted(index.writes.items())
    )
    open_run = index.open_run
    outcomes = tuple(open_run.outcomes.values()) if open_run is not None else ()
    needed = (*index.open_intents, *index.obligations, *index.grounds, *outcomes)
    records = {record.seq: record for record in needed}
    checkpoint = Checkpoint(
        FORMAT,
        lineage,
        index.head,
        tuple(records[seq] for seq in sorted(records)),
        tuple(record.seq for record in index.open_intents),
        tuple(record.seq for record in index.obligations),
        tuple(record.seq for record in index.grounds),
        None
        if open_run is None
        else CoveredOpenRun(
            open_run.run,
            open_run.approval,
            tuple(sorted(open_run.members)),
            tuple(record.seq for record in outcomes),
        ),
        tuple(
            CoveredRun(run.run, run.approval, run.time, run.complete, run.planned, run.command)
            for run in index.runs.values()
        ),
        tuple(
            CoveredOrigin(seq, origin.identity, origin.incarnation, origin.scope_id)
            for seq, origin in sorted(index.origins.items())
        ),
        FrozenMap(index.scopes),
        index.vague,
        index.unseen,
        tuple(steps),
        writes,
    )
    return dumps(checkpoint).encode("ascii")


def _render_path(path: tuple[str, ...]) -> str:
    return ".".join(path)


# ── checking ────────────────────────────────────────────────────────────────────────────


class Checked(Struct, frozen=True):
    """The result of a check of the stored checkpoints."""

    problems: tuple[str, ...] = ()
    """What is wrong with each checkpoint that a record of the log names."""
    missing: str | None = None
    """The newest checkpoint that a record names, if it is not stored."""


def check_checkpoints(
    sink: Sink,
    anchor: Head | None = None,
    *,
    lines: Iterable[Line] | None = None,
    start: Head = GENESIS,
) -> Checked:
    """Read the whole log, check the body of each record, and compare the stored checkpoints with
    what the records before them say.

    lines: the log, if it is read from elsewhere, too; start: the record that the first line
    follows. Without the records before it, only the digests of checkpoints are compared. Raises
    StorageError for a record that is not what was written.
    """
    stored, objects = list_checkpoints(sink), sink.sealed
    end = _parse_key(stored[-1]) if stored else 0
    # What a state may lack is in no checkpoint.
    indexer, problems, newest = Indexer(saved=sys.maxsize), list[str](), ""
    for glance in read_glances(lines or sink.lines(start.seq), sink.location, anchor, start):
        glance.check()
        # What `audit mend` has put behind others names a checkpoint of a branch that ended, and one
        # without content only ends the use of those before it.
        if (
            glance.kind == RecordKind.CHECKPOINT
            and "forked" not in glance.body
            and glance.body["length"]
        ):
            newest = f"{FOLDER}/{glance.seq - 1:020d}.json.gz"
            if objects is not None and newest in stored:
                reader = indexer if start == GENESIS else None
                problem = _find_problem(objects, newest, glance.read_whole(), reader)
                problems += [f"{objects.location}/{newest} {problem}"] if problem else []
        if glance.seq <= end:
            indexer.read(glance)
        glance.forget()
    missing = None
    if objects is not None and newest and newest not in stored:
        missing = f"{objects.location}/{newest}"
    return Checked(tuple(problems), missing)


def refuse_bad_checkpoints(checked: Checked) -> None:
    """Raises StorageError for a checkpoint that is not what a record names."""
    if checked.problems:
        raise StorageError(
            f"the audit log has a checkpoint that was changed: {'; '.join(checked.problems)}",
            "The records themselves are sound, and plan and apply pass over such a checkpoint. "
            "Find out who could write there, then delete it.",
        )


def _find_problem(objects: Objects, key: str, record: Record, indexer: Indexer | None) -> str:
    """Why a checkpoint is not what its record names, or does not say what the records before it
    say; an empty text if it does. indexer: of these records, None if they were not all read."""
    stored = objects.read(key)
    if stored is None:
        return ""  # a later run has removed it by now
    try:
        covered = read_checkpoint(stored.data, record)
    except ValueError as error:
        return str(error)
    if indexer is None:
        return ""
    index = indexer.make_index()
    names = [n for n in LogIndex.__struct_fields__ if getattr(covered, n) != getattr(index, n)]
    return f"does not say what the records before it say: {', '.join(names)}" if names else ""
