"""Repair and copy the audit log.

A repair (`audit mend`) makes one chain of a log that two runs have written to at the same time.
Copies are rows for spreadsheets and data frames, or records of a topic. A copy proves nothing by
itself: `audit verify` checks the log.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, compress
from typing import Any

from msgspec import Struct

from kafkaform_kafka.publishing import NumberedRecord, PublishResult, publish

from ..audit.chain import parse_record, read_glances, verify_log
from ..audit.event import (
    Line,
    Record,
    RecordKind,
    encode,
    match_last_members,
    read_line,
    render_time,
)
from ..audit.fork import Fork, find_fork, rejoin_branches
from ..audit.index import get_run
from ..audit.segments import find_start, read_archived, read_manifest
from ..audit.sink import read_present
from ..audit.sinks.local import LocalSink
from ..core.canonical import dumps
from ..core.clock import Clock
from ..core.errors import StorageError, UsageError
from ..core.head import GENESIS
from ..core.value import FrozenMap
from ..render.text import escape_formula
from ..state.backend import Lease
from .connection import Connection
from .stores import Store, find_anchor
from .workspace import find_actor, make_lock_info, make_run_id

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

    others: tuple[Record, ...]
    """The records of the other branches, as they were before they were appended."""
    first: int
    """The new number of the first of them."""
    kept: str
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
