"""Repair and copy the audit log.

A repair (`audit mend`) makes one chain of a log that two runs have written to at the same time.
Both runs went on from the same record, so what one of them wrote does not follow the line before
it. No byte of it is wrong, and all of it happened. The branch that the state follows from stays as
it is; the records of the other branches are appended to it, sealed anew.

Copies are rows for spreadsheets and data frames, or records of a topic. A copy proves nothing by
itself: `audit verify` checks the log.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import Any

from msgspec import Struct

from kafkaform_kafka.publishing import NumberedRecord, PublishResult, publish

from ..audit.index import get_run
from ..audit.journal import make_fork_body
from ..audit.records import (
    ADVICE,
    Line,
    Record,
    RecordKind,
    digest_line,
    encode,
    match_last_members,
    parse_record,
    read_glances,
    read_line,
    render_time,
    seal_record,
    verify_log,
)
from ..audit.sink import Torn, find_start, read_archived, read_manifest, read_present
from ..audit.sinks.local import LocalSink
from ..core.canonical import dumps
from ..core.clock import Clock
from ..core.errors import StorageError, UsageError
from ..core.head import GENESIS, Head
from ..core.value import FrozenMap
from ..render.text import escape_formula
from ..state.model import Lease
from .connection import Connection
from .stores import Store, find_anchor
from .workspace import find_actor, make_lock_info, make_run_id


class Fork(Struct, frozen=True):
    """The branches of a forked log."""

    head: Head
    """The end of the branch that stays."""
    begin: int
    """The first number that two records have."""
    stays: tuple[bool, ...]
    """For each line that was read, in order: it belongs to the branch that stays."""
    start: Head = GENESIS
    """The record that the first of these lines follows."""


def find_fork(
    lines: Iterable[Line], source: str, anchor: Head | None = None, start: Head = GENESIS
) -> Fork | None:
    """The branches of a log, None if it has only one.

    anchor: the state's, which decides what branch stays; of several such branches, and without an
    anchor, the longest one stays; start: the record that the first line follows. Raises
    StorageError if something else is wrong with the log: a record that was changed, or one that
    follows no other.
    """
    heads: list[Head] = []
    parents: list[int] = []
    positions = {start: -1}
    for line in lines:
        head, prev = _parse_heads(line, source, len(heads))
        if prev not in positions or head in positions:
            problem = f"record {head.seq} (line {len(heads) + 1}) follows no other record"
            raise StorageError(f"{source}: {problem}", ADVICE)
        parents.append(positions[prev])
        positions[head] = len(heads)
        heads.append(head)
    ends = set(range(len(heads))) - set(parents)
    paths = [_find_branch(end, parents) for end in sorted(ends)]
    if anchor is not None and anchor.seq:
        paths = [path for path in paths if positions.get(anchor) in path]
        if not paths:
            missing = f"record {anchor.seq}, which the state follows from, is not in it"
            raise StorageError(f"{source}: {missing}", ADVICE)
    if len(ends) < 2:
        return None
    path = max(paths, key=len)
    stays = tuple(position in path for position in range(len(heads)))
    begin = heads[stays.index(False)].seq
    return Fork(heads[max(path)], begin, stays, start)


def rejoin_branches(
    fork: Fork,
    plans: Sequence[Record],
    records: Sequence[Record],
    torn: Torn,
    *,
    time: str,
    run: str,
    actor: str,
) -> Iterator[Record]:
    """The records to append: one that describes the fork, then those of the other branches.

    plans: records of the branch that stays with plans of runs in the others; they are repeated,
    because a reader has forgotten them by then. records: the records of the other branches, in the
    order of the log; torn: where the log as it was is kept; run, actor: who mends it.
    """
    lineage = records[0].body.get("lineage")
    body = make_fork_body(torn, len(records)).with_items({"lineage": lineage})
    first = seal_record(
        fork.head, time=time, run=run, actor=actor, kind=str(RecordKind.RECOVER), body=body
    )
    yield first
    head, numbers = Head(first.seq, first.hash), dict[int, int]()
    for old in (*plans, *records):
        # Who wrote it and when must stay visible: `forked` says what the record was before. A
        # record that others name by its number is named by the new one.
        was = FrozenMap(seq=old.seq, time=old.time, hash=old.hash)
        body = _renumber_references(old.body, numbers).with_items({"forked": was})
        new = seal_record(head, time=time, run=old.run, actor=old.actor, kind=old.kind, body=body)
        yield new
        head = Head(new.seq, new.hash)
        numbers |= {} if old in plans else {old.seq: new.seq}


def _parse_heads(line: Line, source: str, position: int) -> tuple[Head, Head]:
    """The head that a line makes, and the one before it. Raises StorageError."""
    match = match_last_members(line)
    if match is None or digest_line(line, match) != match["hash"]:
        raise StorageError(f"{source}: line {position + 1} was changed or overwritten", ADVICE)
    seq = int(match["seq"])
    return Head(seq, match["hash"].decode()), Head(seq - 1, match["prev"].decode())


def _find_branch(end: int, parents: Sequence[int]) -> set[int]:
    """The lines of a branch, from its end to the first record."""
    path = set()
    while end >= 0:
        path.add(end)
        end = parents[end]
    return path


def _renumber_references(body: FrozenMap, numbers: dict[int, int]) -> FrozenMap:
    if "discharges" in body:
        return body.with_items({"discharges": numbers.get(body["discharges"], body["discharges"])})
    rows = [item for item in body.get("objects") or () if isinstance(item, FrozenMap)]
    if not any(item.get("row") for item in rows):
        return body
    return body.with_items({"objects": tuple(_renumber_origin(item, numbers) for item in rows)})


def _renumber_origin(item: FrozenMap, numbers: dict[int, int]) -> FrozenMap:
    row = item.get("row")
    if not isinstance(row, FrozenMap) or "origin" not in row:
        return item
    origin = numbers.get(row["origin"], row["origin"])
    return item.with_items({"row": row.with_items({"origin": origin})})


LARGEST = 900_000
"""The largest record that is published whole, in bytes. The default limit of a topic,
max.message.bytes, is 1,048,588 for a batch with its headers."""
STEP = ("instance", "scope_id", "address", "kind", "key", "action", "incarnation", "phase")
OF_STEP = ("attempt", "outcome", "duration_ms", "plan", "approval", "of_run")
OF_RECORD = ("lineage", "seq", "time", "run", "actor", "record")
COLUMNS = (*OF_RECORD, *STEP, *OF_STEP, "error_code", "error", "paths", "hash")

COMMAND = "audit mend"


def list_rows(store: Store, run: str | None, after: int) -> Iterator[Mapping[str, Any]]:
    """One row per record, all with the same columns: scalars, and `paths` as JSON text.

    run: only the records of this run; after: only records with a higher number. Raises
    StorageError at the first record that was altered, and for records that are archived.
    """
    archived = read_archived(store.sink.sealed)
    if after < archived.head.seq:
        raise StorageError(
            f"{store.sink.location}: records 1 to {archived.head.seq:,} are archived in "
            f"{archived.place}",
            f"Print the later ones with --after {archived.head.seq}, or bring all of them back "
            f"with `kafkaform audit archive --restore {archived.place}`.",
        )
    for record in _read_records(store, after):
        if record.seq > after and run in (None, record.run):
            yield _make_row(record)


def render_csv(rows: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    """The rows as CSV (RFC 4180). No cell is a formula for a spreadsheet."""
    yield _render_csv_line(COLUMNS)
    for row in rows:
        yield _render_csv_line(
            # A name such as =HYPERLINK(…) must not become a formula of whoever opens the file.
            "" if row[c] is None else escape_formula(str(row[c]))
            for c in COLUMNS
        )


def publish_log(store: Store, connection: Connection, topic: str) -> tuple[PublishResult, int]:
    """Copy the records that the topic lacks. Returns where the topic stands, and how many records
    were published without their bodies because they are too large. Raises KafkaformError."""
    first = next(read_present(store.sink), None)
    if first is None:
        raise UsageError(f"{store.sink.location}: there is no log yet")
    cut: list[int] = []
    settings = connection.settings
    published = publish(
        settings.instance,
        settings.config,
        connection.secrets,
        topic,
        str(first.body.get("lineage")),
        lambda after: (_make_entry(record, cut) for record in _read_records(store, after)),
    )
    return published, sum(1 for seq in cut if seq > published.before)


def _read_records(store: Store, after: int) -> Iterator[Record]:
    """All records, each checked, also against the head that the state is anchored at. after:
    records up to this one are left out if they are archived."""
    sink, anchor = store.sink, find_anchor(store.sink, store.backend.load().state)
    start = find_start(sink.sealed, anchor)
    start = start if start.seq <= after else GENESIS
    for glance in read_glances(sink.lines(start.seq), sink.location, anchor, start):
        yield glance.read_whole()


def _make_row(record: Record) -> Mapping[str, Any]:
    body, error = record.body, record.body.get("error")
    about = {name: body.get(name) for name in (*STEP, *OF_STEP)}
    return {
        "lineage": body.get("lineage"),
        "seq": record.seq,
        "time": record.time,
        "run": record.run,
        "actor": record.actor,
        "record": record.kind,
        **{name: None if isinstance(item, FrozenMap) else item for name, item in about.items()},
        "error_code": error["code"] if error else None,
        "error": error["message"] if error else None,
        "paths": dumps(body["paths"]) if "paths" in body else None,
        "hash": record.hash,
    }


def _render_csv_line(cells: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _make_entry(record: Record, cut: list[int]) -> NumberedRecord:
    line = encode(record)
    if len(line) <= LARGEST:
        return NumberedRecord(record.seq, line)
    # It keeps the hash of the whole record, so that the chain of hashes in the topic has no gap.
    cut.append(record.seq)
    short = {"lineage": record.body.get("lineage"), "omitted_bytes": len(line)}
    whole = {"seq": record.seq, "time": record.time, "run": record.run, "actor": record.actor}
    members = {"kind": record.kind, "body": short, "prev": record.prev, "hash": record.hash}
    return NumberedRecord(record.seq, dumps(whole | members).encode())


class Mended(Struct, frozen=True):
    """The result of a repair."""

    records: tuple[Record, ...]
    """The records of the other branches, as they were before they were appended."""
    first: int
    """The new number of the first of them."""
    copy: str
    """The file that has the log as it was."""


def mend_log(store: Store, clock: Clock, timeout: float) -> Mended | None:
    """Make one chain of a log that has branches; returns None if the log is sound.

    Raises StorageError for a log that is damaged in another way, Locked.
    """
    run = make_run_id()
    info = make_lock_info(run, COMMAND, render_time(clock.now()))
    with store.backend.lock(info, timeout, clock) as lease:
        state = store.backend.load().state
        anchor = find_anchor(store.sink, state)
        start = find_start(store.sink.sealed, anchor)
        if verify_log(store.sink.lines(start.seq), anchor, start=start).ok:
            return None
        fork = find_fork(store.sink.lines(start.seq), store.sink.location, anchor, start)
        # In a store a record is an object that nobody can overwrite, so no log there has branches.
        # Segments were checked when they were made, so they have none either.
        if (
            fork is None
            or not isinstance(store.sink, LocalSink)
            or fork.begin <= read_manifest(store.sink.sealed).head.seq
        ):
            raise StorageError(
                f"{store.sink.location}: it is damaged, and not because two runs wrote to it",
                "`kafkaform audit verify` shows the damage.",
            )
        return _mend_fork(store.sink, fork, lease, render_time(clock.now()), run)


def _mend_fork(sink: LocalSink, fork: Fork, lease: Lease, time: str, run: str) -> Mended:
    gone, start = [not stays for stays in fork.stays], fork.start.seq
    removed_records = tuple(
        parse_record(line, sink.location) for line in compress(sink.lines(start), gone)
    )
    plans = _find_plans(sink, fork, {get_run(record) for record in removed_records})
    copy = sink.keep_whole(f"forked-{fork.begin}")
    joined = rejoin_branches(
        fork, plans, removed_records, copy, time=time, run=run, actor=find_actor()
    )
    # Sealed lines are not in the file, and no branch begins among them.
    sealed = read_manifest(sink.sealed).head.seq
    staying = (
        read_line(line) for line in compress(sink.lines(sealed), fork.stays[sealed - start :])
    )
    # Whoever took the lock over in the meantime may be appending to the file that is replaced.
    lease.ensure(0.0)
    sink.replace_whole(chain(staying, (encode(record) for record in joined)))
    return Mended(removed_records, fork.head.seq + 2 + len(plans), copy.file)


def _find_plans(sink: LocalSink, fork: Fork, runs: Collection[str]) -> list[Record]:
    """The plans of these runs that are in the branch that stays."""
    staying = compress(sink.lines(fork.start.seq), fork.stays)
    records = (parse_record(line, sink.location) for line in staying if _is_plan(line))
    return [record for record in records if record.run in runs]


def _is_plan(line: Line) -> bool:
    members = match_last_members(line)
    return members is not None and members["kind"] == RecordKind.PLAN.encode()
