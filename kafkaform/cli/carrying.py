"""Carry a state and its log from one place to another: `state pull` and `state push`.

A state without its log proves nothing and could not be recovered, so both go together. The log of
the place that is written must be the beginning of the one that comes: nothing that happened there
may be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from ..audit.chain import head_of, verify
from ..audit.event import Kind, state_body, timestamp
from ..audit.index import Index
from ..audit.journal import Journal
from ..audit.line import Line, held
from ..core.clock import Clock
from ..core.dataclass import replace
from ..core.errors import OutcomeUnknown, UsageError
from ..core.head import GENESIS, Head
from ..core.resource import Identity
from ..render.text import count
from ..state.backend import LockInfo
from ..state.edit import with_head
from ..state.model import State, new_state
from .stores import Store
from .workspace import lock_info, new_run_id, read_log, who

AT_ONCE = 1 << 20
"""Bytes of the log that are written together."""


def pull(source: Store, target: Store, clock: Clock, timeout: float) -> State:
    """Copy both to a place where there is neither; the state. Raises UsageError."""
    state = _state(source)
    with target.backend.lock(_info("state pull", clock), timeout, clock):
        if target.backend.load().state is not None or target.sink.last() is not None:
            raise UsageError(
                f"{target.backend.location}: there is a state or a log already",
                "Name a file that does not exist yet.",
            )
        _copy(source, target, GENESIS)
        target.backend.save(state, None)
    return state


def push(source: Store, target: Store, clock: Clock, timeout: float, *, force: bool) -> State:
    """Write both over what is there; the state as it is there now. force: an older one too.

    Raises UsageError for another state, Locked, StorageError.
    """
    state, info = _state(source), _info("state push", clock)
    with target.backend.lock(info, timeout, clock):
        target.backend.check_writable()
        loaded = target.backend.load()
        _refuse_other(state, loaded.state, target, force=force)
        _copy(source, target, _end(target))
        journal = Journal(target.sink, clock, info.run, who(), state.lineage)
        before = loaded.state or new_state(state.lineage)
        later = replace(before, serial=max(before.serial, state.serial))
        body = state_body(
            later.serial + 1, loaded.version or "", "state push", touched(before, state)
        )
        record = journal.write(Kind.STATE, body)
        anchored = with_head(state, Head(record.seq, record.hash))
        pushed = replace(anchored, serial=later.serial + 1)
        target.backend.save(pushed, loaded.version)
        return pushed


def _info(command: str, clock: Clock) -> LockInfo:
    return lock_info(new_run_id(), command, timestamp(clock.now()))


def _state(source: Store) -> State:
    """The state of a place whose log is whole, and has nothing that the state lacks."""
    state = source.backend.load().state
    if state is None:
        raise UsageError(f"{source.backend.location}: there is no state", "Check the place.")
    refuse_before_recovery(read_log(source.sink, state))
    return state


def _refuse_other(new: State, old: State | None, target: Store, *, force: bool) -> None:
    """Raises UsageError unless `new` follows `old`, or may."""
    if old is None:
        return
    refuse_before_recovery(read_log(target.sink, old))
    if new.lineage != old.lineage:
        raise UsageError(
            f"{target.backend.location} holds another state: its lineage is {old.lineage}, the "
            f"new one's is {new.lineage}",
            "Push to a place of its own.",
        )
    if new.serial < old.serial and not force:
        raise UsageError(
            f"{target.backend.location} holds serial {old.serial}, the new state is older: serial "
            f"{new.serial}",
            "If the older one is meant (a backup, put back), push with --force. What it does not "
            "know is no longer managed; nothing is deleted in a cluster.",
        )


# ── the log ─────────────────────────────────────────────────────────────────────────────


def _end(target: Store) -> Head:
    line = target.sink.last()
    return head_of(line, target.sink.location) if line is not None else GENESIS


def _copy(source: Store, target: Store, there: Head) -> None:
    """Append what the log of `target`, which ends at `there`, lacks. Raises UsageError if it goes
    on otherwise than the source."""
    result = verify(source.sink.lines(), there if there.seq else None)
    if not result.ok:
        raise UsageError(
            f"the log at {target.sink.location} goes on otherwise than {source.sink.location}: "
            f"record {result.seq}: {result.problem}",
            "Something was applied there meanwhile. `kafkaform state pull` gets what is there now.",
        )
    target.sink.set_aside(there.seq + 1)
    for lines in _portions(source.sink.lines(), there.seq):
        target.sink.append(lines)


def _portions(lines: Iterable[Line], known: int) -> Iterator[list[bytes]]:
    """The lines after the first `known` ones, some at once."""
    portion: list[bytes] = []
    size = 0
    for line in islice(lines, known, None):
        whole = held(line)
        if portion and size + len(whole) > AT_ONCE:
            yield portion
            portion, size = [], 0
        portion.append(whole)
        size += len(whole)
    if portion:
        yield portion


# ── edits of a state ────────────────────────────────────────────────────────────────────


def refuse_before_recovery(found: Index) -> None:
    """An edit anchors the state at the log's end; what it lacks until there would be lost."""
    if found.unsaved:
        raise OutcomeUnknown(
            f"{count(len(found.unsaved), 'outcome')} of an earlier run: in the audit log, but "
            "not in the state yet",
            "Run `kafkaform apply` first: it takes them in.",
        )


def touched(before: State, after: State) -> list[Identity]:
    """The objects whose rows differ."""
    return [
        identity
        for identity in before.objects.keys() | after.objects.keys()
        if before.objects.get(identity) != after.objects.get(identity)
    ]
