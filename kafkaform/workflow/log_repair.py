"""`audit mend`: repair a log that two runs have written to at the same time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, compress

from msgspec import Struct

from ..audit.chain import parse_record, verify_log
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
from ..audit.sinks.local import LocalSink
from ..core.clock import Clock
from ..core.errors import StorageError
from ..state.backend import Lease
from .stores import Store, find_anchor
from .workspace import find_actor, make_lock_info, make_run_id

COMMAND = "audit mend"


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
        if verify_log(store.sink.lines(), anchor).ok:
            return None
        fork = find_fork(store.sink.lines(), store.sink.location, anchor)
        # In a store a record is an object that nobody can overwrite, so no log there has branches.
        if fork is None or not isinstance(store.sink, LocalSink):
            raise StorageError(
                f"{store.sink.location}: it is damaged, and not because two runs wrote to it",
                "`kafkaform audit verify` shows the damage.",
            )
        return _mend_fork(store.sink, fork, lease, render_time(clock.now()), run)


def _mend_fork(sink: LocalSink, fork: Fork, lease: Lease, time: str, run: str) -> Mended:
    gone = [not stays for stays in fork.stays]
    removed_records = tuple(
        parse_record(line, sink.location) for line in compress(sink.lines(), gone)
    )
    plans = _find_plans(sink, fork, {get_run(record) for record in removed_records})
    copy = sink.keep_whole(f"forked-{fork.begin}")
    joined = rejoin_branches(
        fork, plans, removed_records, copy, time=time, run=run, actor=find_actor()
    )
    # Whoever took the lock over in the meantime may be appending to the file that is replaced.
    lease.ensure(0.0)
    sink.replace_whole(chain(_read_staying(sink, fork), (encode(record) for record in joined)))
    return Mended(removed_records, fork.head.seq + 2 + len(plans), copy.file)


def _find_plans(sink: LocalSink, fork: Fork, runs: Collection[str]) -> list[Record]:
    """The plans of these runs that are in the branch that stays."""
    staying = compress(sink.lines(), fork.stays)
    records = (parse_record(line, sink.location) for line in staying if _is_plan(line))
    return [record for record in records if record.run in runs]


def _is_plan(line: Line) -> bool:
    members = match_last_members(line)
    return members is not None and members["kind"] == RecordKind.PLAN.encode()


def _read_staying(sink: LocalSink, fork: Fork) -> Iterator[bytes]:
    return (read_line(line) for line in compress(sink.lines(), fork.stays))
