"""The writing end of the log: when a write returns, its records are durable."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core.clock import Clock
from ..core.errors import StorageError
from ..core.head import GENESIS, Head
from ..core.value import FrozenMap
from .chain import parse_line_head, seal_line
from .event import UNUSABLE, Record, RecordKind, decode, render_time
from .record_bodies import make_torn_body
from .sink import Sink


class Journal:
    """Appends one run's records to the log of one state, under that state's lock."""

    def __init__(
        self,
        sink: Sink,
        clock: Clock,
        run: str,
        actor: str,
        lineage: str,
        ensure: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """Read the end of the log; nothing is written yet.

        run: the id of this run; actor: who runs it; ensure: raises Locked unless the lock is
        certain to be ours for so many seconds, and is asked before each write. Raises StorageError
        if the log ends with a changed record or belongs to another state.
        """
        self.sink, self._clock, self._ensure = sink, clock, ensure
        self.run, self.actor, self.lineage = run, actor, lineage
        self._head = self._claim_end()
        self._checked = False

    @property
    def head(self) -> Head:
        """The last durable record."""
        return self._head

    def write(self, kind: str, body: FrozenMap) -> Record:
        """Append one record. Raises StorageError, after which nothing must be sent any more."""
        return self.write_all([(kind, body)])[0]

    def write_all(self, entries: Iterable[tuple[str, FrozenMap]]) -> tuple[Record, ...]:
        """Append records that become durable together. Raises StorageError."""
        self.mend()
        return self._append(entries)

    def _append(self, entries: Iterable[tuple[str, FrozenMap]]) -> tuple[Record, ...]:
        head, records, lines = self._head, [], []
        moment = render_time(self._clock.now())
        for kind, body in entries:
            owned = body.with_items({"lineage": self.lineage})
            record, line = seal_line(
                head, time=moment, run=self.run, actor=self.actor, kind=str(kind), body=owned
            )
            records.append(record)
            lines.append(line)
            head = Head(record.seq, record.hash)
        if records:
            # Whoever lost the lock must not write: the next run has read the log by now.
            self._ensure(0.0)
            self.sink.append(lines)
            self._head = head
        return tuple(records)

    def mend(self) -> None:
        """Keep aside what a crash left of an append, and record that. Raises StorageError."""
        # Before the first record, and not when the log is opened: a run that is refused before it
        # sends anything leaves the log as it found it.
        if self._checked:
            return
        self._ensure(0.0)
        torn = self.sink.set_aside(self._head.seq + 1)
        if torn:
            self._append([(RecordKind.RECOVER, make_torn_body(torn))])
        self._checked = True

    def _claim_end(self) -> Head:
        line = self.sink.claim()
        if line is None:
            return GENESIS
        head = parse_line_head(line, self.sink.location)
        try:
            lineage = decode(line).body.get("lineage")
        except ValueError as error:
            problem = f"{self.sink.location}: the last record cannot be used: {error}"
            raise StorageError(problem, UNUSABLE) from None
        if lineage != self.lineage:
            # A log beside another state would prove ownership of that one's objects.
            raise StorageError(
                f"{self.sink.location} belongs to another state: its lineage is {lineage}, "
                f"this state's is {self.lineage}",
                "State and log are a pair. Restore both from the same backup, and check the next "
                "plan before you apply it: what was let go since then is managed again.",
            )
        return head
