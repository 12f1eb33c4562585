"""Seal the logs of tests, which are small: as a run with the lock does it, with other limits. Logs
that die while they are sealed, and what must hold after that."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kafkaform.apply.ledger import Ledger
from kafkaform.apply.stop import Stop
from kafkaform.audit.journal import Journal
from kafkaform.audit.records import RecordKind, read_line, verify_log
from kafkaform.audit.sealing import remove_superseded, seal_lines
from kafkaform.audit.sink import SealableSink, SealLimits, SegmentManifest, read_manifest
from kafkaform.audit.sinks.objects import FOLDER
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import KafkaformError
from kafkaform.core.objects import Entry, Objects, StoredObject
from kafkaform.core.value import FrozenMap
from kafkaform.state.model import LockInfo, State, set_head
from kafkaform.workflow import applying
from kafkaform.workflow.model import Announcer, Note
from kafkaform.workflow.sealing import seal_log
from kafkaform.workflow.stores import Store

from .audit_story import LINEAGE
from .commands.server import COMMAND

SOON = "2026-11-28T12:00:00.000000Z"
TINY = SealLimits(pieces=3, live=1500, segment=2500, grace=0.0)
DOCUMENT = Path(__file__).parents[2] / "docs/formats/audit.md"
BODY = FrozenMap(n=1)


SEALS_SOON = f"from tests.kit.sealing import seal_soon; seal_soon(); {COMMAND}"
"""The program of a command that seals its log as soon as it has a few records."""


def seal_soon() -> None:
    """From now on applies of this process seal small logs."""
    applying.seal_log = partial(seal_log, limits=TINY)  # type: ignore[attr-defined]


def be_sure(seconds: float) -> None:
    """The lock stays ours."""


def seal(
    sink: SealableSink,
    size: int = 1000,
    time: str = SOON,
    lineage: str = LINEAGE,
    ensure: Callable[[float], None] = be_sure,
) -> SegmentManifest:
    """Seal all but the last append, in segments of so many bytes of lines."""
    after = read_manifest(sink.sealed).head.seq
    portions = sink.read_unsealed(after)
    return seal_lines(sink.sealed, portions, lineage=lineage, time=time, size=size, ensure=ensure)


def remove(sink: SealableSink, ensure: Callable[[float], None] = be_sure) -> tuple[str, ...]:
    """Remove everything that was sealed, however short ago."""
    manifest = read_manifest(sink.sealed)
    strays = sink.remove_sealed(manifest, ensure, lambda time: True)
    return strays + remove_superseded(sink.sealed, manifest, ensure, lambda time: True)


# ── runs ────────────────────────────────────────────────────────────────────────────────


def write_runs(store: Store, *sizes: int) -> list[bytes]:
    """Runs that append so many records each and save a state that follows from them, without
    sealing; returns all lines of the log."""
    for size in sizes:
        ledger = _open_ledger(store)
        ledger.journal.write_all([(RecordKind.STATE, BODY)] * size)
        ledger.save_state(ledger.state)
    return read_lines(store)


def run_seal(store: Store, limits: SealLimits = TINY) -> list[str]:
    """The end of a run that has the lock; what it said went wrong."""
    notes: list[str] = []

    def listen(event: object) -> None:
        if isinstance(event, Note):
            notes.append(event.text)

    info = LockInfo("sealer", "ada", "here", 1, "now", "apply")
    clock = SystemClock()
    with store.backend.lock(info, 0.0, clock) as lease:
        ledger = _open_ledger(store)
        seal_log(store.sink, ledger, lease, clock, Announcer(listen), Stop(), limits)
    return notes


def _open_ledger(store: Store) -> Ledger:
    loaded = store.backend.load()
    journal = Journal(store.sink, SystemClock(), "run", "ada@ci", LINEAGE)
    state = loaded.state or State(LINEAGE)
    return Ledger(store.backend, journal, state, loaded.version)


def read_lines(store: Store) -> list[bytes]:
    return [read_line(line) for line in store.sink.lines()]


def find_faults(store: Store, lines: list[bytes]) -> Iterator[str]:
    """What is lost. lines: of the log, as they were written."""
    try:
        state = store.backend.load().state
        found = read_lines(store)
    except KafkaformError as error:
        yield f"{error.message}"
        return
    if found != lines:
        yield f"{len(found)} lines, not {len(lines)}"
    verdict = verify_log(store.sink.lines(), set_head(state, state.audit_head).audit_head)  # type: ignore[union-attr, arg-type]
    if not verdict.ok:
        yield f"record {verdict.seq}: {verdict.problem}"
    objects: Any = store.sink.sealed
    pieces = count_unsealed(store)
    if pieces < len(lines) and not (state is not None and state.sealed):
        yield "lines were removed although the state does not say that its log is sealed"
    if read_manifest(objects).head.seq + pieces < len(lines):
        yield "there are neither segments nor objects of some lines"


def count_unsealed(store: Store) -> int:
    """How many lines there are outside of segments."""
    sink: Any = store.sink
    if hasattr(sink, "path"):
        return len(sink.path.read_bytes().splitlines())
    keys = [e.key for e in sink.objects.names(FOLDER) if e.key.endswith(".jsonl")]
    return sum(sink.objects.read(key).data.count(b"\n") for key in keys)


def check_as_documented(path: Path) -> str:
    """What the program in docs/formats/audit.md says of a log; empty if it is sound. path: of the
    file, or of a copy of the folder in a store."""
    program = DOCUMENT.read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    command = [sys.executable, "-I", "-S", "-c", program, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


# ── deaths ──────────────────────────────────────────────────────────────────────────────


class Died(BaseException):
    """The process was killed."""


@dataclass
class Mortal:
    """Objects whose user dies at one request. number: which, from 1; after: when the store has done
    it, and not before; meanwhile: what happens then in place of a death."""

    objects: Objects
    number: int
    after: bool
    meanwhile: Callable[[], None] | None = None
    count: int = field(default=0)

    @property
    def location(self) -> str:
        return self.objects.location

    def _do(self, request: Callable[[], Any]) -> Any:
        self.count += 1
        strikes = self.count == self.number
        if self.count > self.number and self.meanwhile is None:
            raise Died  # whatever other threads of the process still want
        if strikes and not self.after:
            self._strike()
        answer = request()
        if strikes and self.after:
            self._strike()
        return answer

    def _strike(self) -> None:
        if self.meanwhile is None:
            raise Died
        self.meanwhile()

    def read(self, key: str) -> StoredObject | None:
        found: StoredObject | None = self._do(lambda: self.objects.read(key))
        return found

    def create(self, key: str, data: bytes) -> str:
        return str(self._do(lambda: self.objects.create(key, data)))

    def replace(self, key: str, data: bytes, version: str) -> str:
        return str(self._do(lambda: self.objects.replace(key, data, version)))

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        found: tuple[Entry, ...] = self._do(lambda: self.objects.names(prefix, after))
        return found

    def delete(self, key: str) -> None:
        self._do(lambda: self.objects.delete(key))
