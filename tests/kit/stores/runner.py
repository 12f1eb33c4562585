"""Runs that share one remote state, as processes that can be killed and stopped.

A run does what an apply does to lock, log and state, with the real classes: lock → load → close
what a run before left open → intent → be sure of the lock → send → outcome → save. "Sending" is a
line in a witness file that all of them share, so that what was sent is known whatever happens to
the sender. `judge` reads log, state and witness, and says what was broken.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from msgspec.structs import replace

from kafkaform.apply.ledger import Ledger
from kafkaform.apply.stop import Stop
from kafkaform.audit.journal import Journal
from kafkaform.audit.records import Record, RecordKind, decode, read_line, verify_log
from kafkaform.audit.sink import SealLimits
from kafkaform.audit.sinks.objects import ObjectSink
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import KafkaformError, Locked, exit_code
from kafkaform.core.head import Head
from kafkaform.core.progress import ignore_event
from kafkaform.core.value import FrozenMap
from kafkaform.state.backends.objects import ObjectBackend
from kafkaform.state.backends.obstores import open_objects
from kafkaform.state.model import Backend, Lease, LockInfo, State, set_head
from kafkaform.workflow.model import Announcer
from kafkaform.workflow.sealing import seal_log

from . import s3

LINEAGE = "runners-lineage"
LEASE = 1.0
PATIENCE = 0.3
"""Seconds within which what was sent has taken effect, or never will."""
DAWDLES = "everywhere"
"""Of a run that takes its time between its steps, so that what is done to it meets it there."""
SOON_SEALED = SealLimits(pieces=8, segment=4000, grace=0.0)
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])


@dataclass(frozen=True)
class Place:
    """endpoint: of the store; folder: for witness and progress of all runs; key: of the state;
    lease: seconds; seals: runs seal a log of a few objects, and remove them at once."""

    endpoint: str
    folder: Path
    key: str = "shared"
    lease: float = LEASE
    seals: bool = False

    @property
    def witness(self) -> Path:
        return self.folder / "witness"

    def backend(self) -> ObjectBackend:
        os.environ.update(s3.ENVIRONMENT)
        options = s3.options(self.endpoint, timeout="5")
        return ObjectBackend(open_objects(f"s3://bucket/{self.key}", options), self.lease)

    def say(self, file: str, line: str | Callable[[], str]) -> None:
        """One short line, appended at once; what makes it is asked at the last moment."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        descriptor = os.open(self.folder / file, flags, 0o600)
        os.write(descriptor, f"{line if isinstance(line, str) else line()}\n".encode())
        os.close(descriptor)

    def said(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text().splitlines() if path.exists() else []


# ── one run ─────────────────────────────────────────────────────────────────────────────


def run(place: Place, name: str, timeout: float, pauses: str = "") -> None:
    """One run. pauses: where it stops itself, as if the computer had been put to sleep."""
    backend, clock = place.backend(), SystemClock()
    info = LockInfo(name, "runner", "here", os.getpid(), "now", "apply")
    with backend.lock(info, timeout, clock) as lease:
        loaded = backend.load()
        sink = ObjectSink(backend.objects)
        last = sink.last()
        end = decode(last) if last is not None else None
        journal = Journal(sink, clock, name, "runner", LINEAGE)
        if journal.head.seq != (end.seq if end else 0):
            raise Locked("another run went on with this log while it was opened")
        state = loaded.state or State(LINEAGE)
        if end is not None:
            _let_settle(lease, end, clock)
            end = _closed(place, journal, end)
        state, version = _caught_up(backend, state, loaded.version, end)
        _pause(pauses, "intent")
        intent = journal.write(RecordKind.INTENT, FrozenMap(serial=state.serial + 1))
        _pause(pauses, "ensure")
        lease.ensure(PATIENCE)
        sure = clock.monotonic()
        place.say("witness", lambda: f"send {intent.seq} {clock.monotonic() - sure:.3f}")
        _pause(pauses, "outcome")
        done = journal.write(RecordKind.OUTCOME, FrozenMap(serial=state.serial + 1, of=intent.seq))
        _pause(pauses, "save")
        state, version = _caught_up(backend, state, version, done)
        if place.seals:
            ledger = Ledger(backend, journal, state, version)
            announce = Announcer(ignore_event)
            seal_log(sink, ledger, lease, clock, announce, Stop(), SOON_SEALED)


def _pause(pauses: str, here: str) -> None:
    if pauses == here:
        os.kill(os.getpid(), signal.SIGSTOP)
    if pauses == DAWDLES:
        time.sleep(random.uniform(0, 0.01))


def _let_settle(lease: Lease, end: Record, clock: SystemClock) -> None:
    """As the command does: whoever lost the lock may have sent something at its last moment."""
    if lease.taken_over is not None and end.kind == RecordKind.INTENT:
        clock.sleep(max(0.0, lease.taken_over + PATIENCE - clock.monotonic()))


def _closed(place: Place, journal: Journal, end: Record) -> Record:
    """The last record, after a run that died between intent and outcome was recovered."""
    if end.kind != RecordKind.INTENT:
        return end
    place.say("witness", f"recover {end.seq}")
    sent = any(line.startswith(f"send {end.seq} ") for line in place.said("witness"))
    serial = int(end.body["serial"]) - (not sent)
    return journal.write(RecordKind.RECOVER, FrozenMap(serial=serial, of=end.seq))


def _caught_up(
    backend: Backend, state: State, version: str | None, end: Record | None
) -> tuple[State, str | None]:
    """The state with what the log says is done."""
    if end is None or int(end.body["serial"]) <= state.serial:
        return state, version
    state = set_head(replace_serial(state, int(end.body["serial"])), Head(end.seq, end.hash))
    return state, backend.save(state, version)


def replace_serial(state: State, serial: int) -> State:
    return replace(state, serial=serial)  # type: ignore[type-var]  # the lighter dataclass


# ── processes ───────────────────────────────────────────────────────────────────────────


def _once(place: Place, name: str, timeout: float, pauses: str) -> None:
    try:
        run(place, name, timeout, pauses)
    except KafkaformError as error:
        place.say(f"{name}.said", error.message)
        raise SystemExit(exit_code(error)) from None


def _often(place: Place, name: str, rounds: int, timeout: float, pauses: str) -> None:
    """That many rounds, less those that a process of this name has done before it was killed."""
    progress = place.folder / f"{name}.done"
    done = progress.stat().st_size // 2 if progress.exists() else 0
    for number in range(done, rounds):
        try:
            run(place, f"{name}.{number}.{os.getpid()}", timeout, pauses)
        except KafkaformError as error:
            place.say(f"{name}.refused", f"{exit_code(error)} {error.message}")
        place.say(f"{name}.done", ".")


def once(place: Place, name: str, timeout: float = 0.0, pauses: str = "") -> ForkServerProcess:
    """A process that is one run; its exit code is the command's."""
    process = CONTEXT.Process(target=_once, args=(place, name, timeout, pauses))
    process.start()
    return process


def often(
    place: Place, name: str, rounds: int, timeout: float, pauses: str = ""
) -> ForkServerProcess:
    process = CONTEXT.Process(target=_often, args=(place, name, rounds, timeout, pauses))
    process.start()
    return process


def is_stopped(pid: int) -> bool:
    """Whether this process was stopped by a signal."""
    text = Path(f"/proc/{pid}/stat").read_text()
    return text.rpartition(")")[2].split()[0] == "T"


def until_stopped(process: ForkServerProcess) -> None:
    """Wait until it has stopped itself; fails if it ends, or after a minute."""
    assert process.pid is not None
    for _ in range(6000):
        if process.exitcode is not None:
            raise AssertionError(f"it ended with {process.exitcode}")
        if is_stopped(process.pid):
            return
        time.sleep(0.01)
    raise AssertionError("it never stopped itself")


# ── what was promised ───────────────────────────────────────────────────────────────────


def judge(place: Place) -> tuple[Mapping[str, int], tuple[str, ...]]:
    """What happened, and which promises were broken. Nobody may run meanwhile."""
    backend = place.backend()
    sink = ObjectSink(backend.objects)
    verdict = verify_log(sink.lines())
    records = [decode(read_line(line)) for line in sink.lines()]
    state = backend.load().state
    said = place.said("witness")
    broken = [] if verdict.ok else [f"the log does not verify: {verdict.problem}"]
    broken += [*_of_the_log(records), *_of_the_witness(records, said)]
    serial = state.serial if state else 0
    reached = int(records[-1].body["serial"]) - (records[-1].kind == RecordKind.INTENT)
    # A run that was killed before its save leaves that to the next one, which knows it by the log.
    if serial not in (reached, reached - 1):
        broken.append(f"the state has serial {serial}, the log says {reached}")
    counts = {
        "records": len(records),
        "sent": sum(line.startswith("send") for line in said),
        "recovered": sum(record.kind == RecordKind.RECOVER for record in records),
        "frozen between the check and the send": sum(map(_was_frozen, said)),
    }
    return counts, tuple(broken)


def _of_the_log(records: list[Record]) -> Iterator[str]:
    """One run at a time has an intent open, each has one end, and no serial is lost or doubled."""
    pending: Record | None = None
    serial = 0
    for record in records:
        if record.kind == RecordKind.INTENT:
            if pending is not None:
                yield f"intents {pending.seq} and {record.seq} are open at once"
            if record.body["serial"] != serial + 1:
                yield f"intent {record.seq} is for serial {record.body['serial']}, not {serial + 1}"
            pending = record
            continue
        if pending is None or record.body["of"] != pending.seq:
            yield f"record {record.seq} ends an intent that is not open"
        elif record.kind == RecordKind.OUTCOME and record.run != pending.run:
            yield f"record {record.seq} is an outcome of another run's intent"
        pending, serial = None, int(record.body["serial"])


def _of_the_witness(records: list[Record], said: list[str]) -> Iterator[str]:
    """What was sent has an intent and was sent once, and never after it was recovered."""
    intents = {record.seq for record in records if record.kind == RecordKind.INTENT}
    applied = {
        int(record.body["of"])
        for before, record in zip(records, records[1:], strict=False)
        if record.kind != RecordKind.INTENT and record.body["serial"] == before.body["serial"]
    }
    sent: set[int] = set()
    recovered: set[int] = set()
    for line in said:
        what, seq = line.split()[0], int(line.split()[1])
        if what == "recover":
            recovered.add(seq)
            continue
        if seq not in intents:
            yield f"{line}: it has no intent"
        if seq in sent:
            yield f"{line}: it was sent twice"
        if seq in recovered and not _was_frozen(line):
            yield f"{line}: it was sent after it had been recovered"
        sent.add(seq)
    frozen = {int(line.split()[1]) for line in said if _was_frozen(line)}
    for seq in sorted(sent - applied - frozen):
        if seq != records[-1].seq:
            yield f"intent {seq} was sent, and the log says that it was not"
    for seq in sorted(applied - sent):
        yield f"intent {seq} was not sent, and the log says that it was"


def _was_frozen(line: str) -> bool:
    """Whether the sender stood still for too long between being sure and sending: the one gap that
    no client can close, because nothing is asked in between."""
    what, _, *late = line.split()
    return what == "send" and float(late[0]) > PATIENCE
