"""State and log in memory, and a fate that ends the process at any durable write."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from kafkaform.audit.event import Record
from kafkaform.audit.event import decode as decode_record
from kafkaform.audit.sink import Torn
from kafkaform.core.clock import Clock
from kafkaform.core.errors import Locked, StorageError
from kafkaform.state.backend import Held, Loaded, LockInfo
from kafkaform.state.codec import decode, encode
from kafkaform.state.model import State
from kafkaform_providers.kafka.memory import Killed

MOMENTS = ("before", "torn", "after")


@dataclass(slots=True)
class Fate:
    """Ends the process at one durable write to come. what: glob over `state` and the kinds of
    records; skip: how many of them to let pass; moment: `torn` leaves half of an append."""

    what: str = ""
    skip: int = 0
    moment: str = "before"

    def set(self, what: str = "*", skip: int = 0, moment: str = "before") -> None:
        self.what, self.skip, self.moment = what, skip, moment

    def clear(self) -> None:
        self.what = ""

    def strikes(self, what: str) -> str:
        """The moment at which this write kills, or an empty text."""
        if not self.what or not fnmatchcase(what, self.what):
            return ""
        if self.skip:
            self.skip -= 1
            return ""
        self.what = ""
        return self.moment


@dataclass(slots=True)
class MemoryBackend:
    """A state as bytes; every save replaces them whole. full: saves fail as on a full disk;
    versions: all bytes that ever were the state."""

    fate: Fate
    data: bytes | None = None
    held: bool = False
    full: bool = False
    versions: list[bytes] = field(default_factory=list)
    rescued: list[State] = field(default_factory=list)

    @property
    def location(self) -> str:
        return "memory"

    @contextmanager
    def lock(self, info: LockInfo, timeout: float, clock: Clock) -> Iterator[Held]:
        if self.held:
            raise Locked("somebody else holds the lock")
        self.held = True
        try:
            yield Held()
        finally:
            self.held = False

    def holder(self) -> LockInfo | None:
        return None

    def load(self) -> Loaded:
        if self.data is None:
            return Loaded(None, None)
        return Loaded(decode(self.data, "memory"), hashlib.sha256(self.data).hexdigest())

    def save(self, state: State, version: str | None) -> str:
        if version != self.load().version:
            raise Locked("the state was moved on")
        if self.full:
            raise StorageError("the disk is full")
        moment = self.fate.strikes("state")
        if moment and moment != "after":
            raise Killed("before the state was saved")
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


@dataclass(slots=True)
class MemorySink:
    """A log as lines. torn: what a death left of an append; after_append: called with the
    records that just became durable."""

    fate: Fate
    whole: list[bytes] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    torn: bytes = b""
    full: bool = False
    aside: dict[int, list[bytes]] = field(default_factory=dict)
    after_append: Callable[[Sequence[Record]], None] = lambda records: None

    @property
    def location(self) -> str:
        return "log in memory"

    def lines(self) -> Iterator[bytes]:
        return iter(tuple(self.whole))

    def last(self) -> bytes | None:
        return self.whole[-1] if self.whole else None

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
        moment = self.fate.strikes(decode_record(lines[0]).kind)
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
