"""What a sandbox is right now: its record compared with the processes that really run."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from ..core.errors import UsageError
from . import record
from .lock import is_held
from .process import alive
from .record import Broker, Phase, Sandbox


class State(StrEnum):
    RUNNING = "running"
    STARTING = "starting"
    DEGRADED = "degraded"
    CRASHED = "crashed"
    HALF_STARTED = "half-started"
    FAILED = "failed"
    STOPPED = "stopped"


_EXPLANATIONS = {
    State.RUNNING: "",
    State.STARTING: "another `kafkaform sandbox` command is working on it",
    State.DEGRADED: "some of its brokers have ended; `kafkaform sandbox logs` says why, "
    "`up` starts all again with their data",
    State.CRASHED: "its brokers have ended without `down` (a crash, or a restart of the "
    "computer); `kafkaform sandbox logs` may say why, `up` starts them again with their data",
    State.HALF_STARTED: "an `up` was ended before the brokers answered; `up` starts over, "
    "`down` removes it",
    State.FAILED: "the last `up` failed; `kafkaform sandbox logs` has the brokers' words, "
    "`up` tries again, `down` removes it",
    State.STOPPED: "its data is kept; `up` uses it again, `down --no-keep-data` removes it",
}


class Status(Struct, frozen=True):
    """alive: brokers whose processes run; data_bytes: what their data takes on disk;
    explanation: what happened and what to do, empty while all is well."""

    sandbox: Sandbox
    state: State
    alive: tuple[Broker, ...]
    data_bytes: int
    explanation: str


def status(name: str) -> Status:
    """Raises UsageError if there is no such sandbox, KafkaformError if its record is damaged."""
    sandbox = record.load(name)
    if sandbox is None:
        raise unknown(name)
    return of(sandbox, busy=is_held(name))


def of(sandbox: Sandbox, busy: bool) -> Status:
    """busy: another command holds the sandbox's lock."""
    living = tuple(broker for broker in sandbox.brokers if alive(broker.process))
    state = _state(sandbox, len(living), busy)
    explanation = " — ".join(part for part in (sandbox.reason, _EXPLANATIONS[state]) if part)
    return Status(sandbox, state, living, disk_use(sandbox.data), explanation)


def unknown(name: str) -> UsageError:
    known = ", ".join(record.names())
    return UsageError(
        f"there is no sandbox named {name}",
        f"there are: {known}" if known else "`kafkaform sandbox up` makes one",
    )


def disk_use(folder: Path) -> int:
    """Bytes that the folder's files occupy; sparse index files count by what they really use."""
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(root) / name).stat().st_blocks * 512
            except FileNotFoundError:  # a running broker removes segments at any time
                continue
    return total


def _state(sandbox: Sandbox, living: int, busy: bool) -> State:
    if sandbox.phase is Phase.STARTING:
        return State.STARTING if busy else State.HALF_STARTED
    if sandbox.phase is Phase.RUNNING:
        if living == len(sandbox.brokers):
            return State.RUNNING
        return State.DEGRADED if living else State.CRASHED
    return State(sandbox.phase.value)
