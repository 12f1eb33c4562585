"""State and log in memory, and a fate that ends the process at any durable write."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from kafkaform.audit.records import Record
from kafkaform.audit.records import decode as decode_record
from kafkaform.audit.sink import Tail, Torn, find_tail
from kafkaform.core.clock import Clock
from kafkaform.core.errors import Locked, StorageError
from kafkaform.core.objects import Entry, ObjectChanged, ObjectExists, StoredObject
from kafkaform.state.codec import decode, encode
from kafkaform.state.model import Lease, Loaded, LockInfo, State, StateOutline, outline_state
from kafkaform_kafka.memory import Killed

MOMENTS = ("before", "torn", "after")


@functools.lru_cache(maxsize=256)
def state_in(data: bytes) -> State:
    """The state in these bytes, which nobody changes. Raises StorageError."""
    return decode(data, "memory")


@dataclass(slots=True)
class Surprise:
    """Something that happens just before a durable write, or a request, to come. what: glob over
    their names; skip: how many of them to let pass."""

    what: str
    skip: int
    happen: Callable[[], None]


@dataclass(slots=True)
class Fate:
    """Ends the process at one durable write to come. what: glob over `state` and the kinds of
    records; skip: how many of them to let pass; moment: `torn` leaves half of an append;
    surprises: what else happens, before it."""

    what: str = ""
    skip: int = 0
    moment: str = "before"
    surprises: list[Surprise] = field(default_factory=list)

    def set(self, what: str = "*", skip: int = 0, moment: str = "before") -> None:
        self.what, self.skip, self.moment = what, skip, moment

    def clear(self) -> None:
        self.what = ""
        self.surprises.clear()

    def surprise(self, what: str) -> None:
        """Let happen what is due before this write or request."""
        for item in [s for s in self.surprises if fnmatchcase(what, s.what)]:
            if item.skip:
                item.skip -= 1
            elif item in self.surprises:  # what happens may itself write
                self.surprises.remove(item)
                item.happen()

    def strikes(self, what: str) -> str:
        """The moment at which this write kills, or an empty text."""
        self.surprise(what)
        if not self.what or not fnmatchcase(what, self.what):
            return ""
        if self.skip:
            self.skip -= 1
            return ""
        self.what = ""
        return self.moment


@dataclass(slots=True)
class MemoryBackend:
    """A state as bytes; every save replaces them whole. lost: somebody took the lock over; full:
    saves fail as on a full disk; versions: all bytes that were saved; bases: over what each of
    them was saved."""

    fate: Fate
    data: bytes | None = None
    held: bool = False
    lost: bool = False
    full: bool = False
    versions: list[bytes] = field(default_factory=list)
    bases: list[bytes | None] = field(default_factory=list)
    rescued: list[State] = field(default_factory=list)

    @property
    def location(self) -> str:
        return "memory"

    @property
    def earlier(self) -> str:
        return "earlier versions in memory"

    @contextmanager
    def lock(self, info: LockInfo, timeout: float, clock: Clock) -> Iterator[Lease]:
        if self.held:
            raise Locked("somebody else holds the lock")
        self.held, self.lost = True, False
        try:
            yield Leased(self)
        finally:
            self.held = False

    def holder(self) -> LockInfo | None:
        return None

    def break_lock(self, run: str) -> LockInfo:
        raise Locked("nobody holds the lock")

    def probe(self) -> None:
        """It is what it is."""

    def load(self) -> Loaded:
        if self.data is None:
            return Loaded(None, None)
        return Loaded(state_in(self.data), hashlib.sha256(self.data).hexdigest())

    def outline(self) -> StateOutline | None:
        return None if self.data is None else outline_state(state_in(self.data))

    def save(self, state: State, version: str | None) -> str:
        moment = self.fate.strikes("state")
        if version != self.load().version:
            raise Locked("somebody else has changed the state")
        if self.full:
            raise StorageError("the disk is full")
        if moment and moment != "after":
            raise Killed("before the state was saved")
        self.bases.append(self.data)
        self.data = encode(state)
        self.versions.append(self.data)
        if moment:
            raise Killed("after the state was saved")
        return hashlib.sha256(self.data).hexdigest()

    def check_writable(self, size: int = 0) -> None:
        if self.full:
            raise StorageError("the disk is full")

    def rescue(self, state: State) -> str:
        self.rescued.append(state)
        return "another disk"


@dataclass(frozen=True, slots=True)
class Leased:
    """A lock that somebody may take over while it is held."""

    backend: MemoryBackend
    taken_over: float | None = None

    def ensure(self, seconds: float) -> None:
        if self.backend.lost:
            raise Locked("somebody else holds the lock now")


@dataclass(slots=True)
class MemoryObjects:
    """Objects of one process; every write can end it."""

    fate: Fate
    stored: dict[str, bytes] = field(default_factory=dict)

    @property
    def location(self) -> str:
        return "objects in memory"

    def read(self, key: str) -> StoredObject | None:
        data = self.stored.get(key)
        return None if data is None else StoredObject(data, hashlib.sha256(data).hexdigest(), 0.0)

    def create(self, key: str, data: bytes) -> str:
        moment = self.fate.strikes("checkpoint")
        if moment in ("before", "torn"):
            raise Killed("before a checkpoint")
        found = self.read(key)
        if found is not None:
            raise ObjectExists(found)
        self.stored[key] = data
        if moment:
            raise Killed("after a checkpoint")
        return hashlib.sha256(data).hexdigest()

    def replace(self, key: str, data: bytes, version: str) -> str:
        found = self.read(key)
        if found is None or found.version != version:
            raise ObjectChanged(found)
        self.stored[key] = data
        return hashlib.sha256(data).hexdigest()

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        keys = [k for k in sorted(self.stored) if k.startswith(prefix) and k > (after or "")]
        return tuple(Entry(key, len(self.stored[key]), 0.0) for key in keys)

    def delete(self, key: str) -> None:
        self.stored.pop(key, None)


@dataclass(slots=True)
class MemorySink:
    """A log as lines. torn: what a death left of an append; after_append: called with the
    records that just became durable; sealed: where checkpoints are, if there are any."""

    fate: Fate
    whole: list[bytes] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    torn: bytes = b""
    full: bool = False
    aside: dict[int, list[bytes]] = field(default_factory=dict)
    after_append: Callable[[Sequence[Record]], None] = lambda records: None
    sealed: MemoryObjects | None = None

    @property
    def location(self) -> str:
        return "log in memory"

    def lines(self, after: int = 0) -> Iterator[bytes]:
        return iter(tuple(self.whole[after:]))

    def tail(self, count: int) -> Tail:
        return find_tail(self, count)

    def last(self) -> bytes | None:
        return self.whole[-1] if self.whole else None

    def claim(self) -> bytes | None:
        return self.last()

    def pass_over_torn(self) -> None:
        """Half a line is all that can be torn here."""

    def set_aside(self, seq: int) -> tuple[Torn, ...]:
        if self.torn:
            self.aside.setdefault(seq, []).append(self.torn)
            self.torn = b""
        return tuple(
            Torn(f"torn-{seq}.{number}", len(piece), hashlib.sha256(piece).hexdigest())
            for number, piece in enumerate(self.aside.get(seq, ()))
        )

    def append(self, lines: Sequence[bytes]) -> None:
        assert not self.torn, "an append after a torn line would glue two records together"
        if self.full:
            raise StorageError("the disk is full")
        kinds = [decode_record(line).kind for line in lines[:2]]
        # A checkpoint is named in front of what a run would append anyway.
        moment = self.fate.strikes(kinds[-1] if kinds[0] == "checkpoint" else kinds[0])
        if moment == "before":
            raise Killed("before an append")
        if moment == "torn":
            self._tear(lines)
            raise Killed("in the middle of an append")
        self._keep(lines)
        if moment:
            raise Killed("after an append")

    def check_writable(self, size: int = 0) -> None:
        if self.full:
            raise StorageError("the disk is full")

    def _tear(self, lines: Sequence[bytes]) -> None:
        data = b"".join(line + b"\n" for line in lines)
        kept = data[: len(data) // 2]
        end = kept.rfind(b"\n") + 1
        self.torn = kept[end:]
        if end:
            self._keep(kept[: end - 1].split(b"\n"))

    def _keep(self, lines: Sequence[bytes]) -> None:
        records = [decode_record(line) for line in lines]
        self.whole.extend(lines)
        self.records.extend(records)
        self.after_append(records)
