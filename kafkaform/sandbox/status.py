"""Find out the state of a sandbox by comparing its record with the processes that really run,
and read the logs of its brokers and servers."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from ..core.errors import Failure, UsageError, make_detailed_error
from . import record
from .process import is_alive
from .record import Broker, Phase, Sandbox, Server, is_held


class SandboxState(StrEnum):
    RUNNING = "running"
    STARTING = "starting"
    DEGRADED = "degraded"
    CRASHED = "crashed"
    HALF_STARTED = "half-started"
    FAILED = "failed"
    STOPPED = "stopped"


_EXPLANATIONS = {
    SandboxState.RUNNING: "",
    SandboxState.STARTING: "another `kafkaform sandbox` command is working on it",
    SandboxState.DEGRADED: "some of its processes have ended; `kafkaform sandbox logs` says why, "
    "`up` starts all of them again with their data",
    SandboxState.CRASHED: "its brokers ended without `down` (a crash, or a restart of the "
    "computer); `kafkaform sandbox logs` can say why, `up` starts them again with their data",
    SandboxState.HALF_STARTED: "an `up` ended before the brokers answered; `up` starts again, "
    "`down` removes it",
    SandboxState.FAILED: "the last `up` failed; `kafkaform sandbox logs` shows what the brokers "
    "wrote, `up` tries again, `down` removes it",
    SandboxState.STOPPED: "its data is kept; `up` uses it again, `down --no-keep-data` removes it",
}


class SandboxStatus(Struct, frozen=True):
    """A sandbox as it is now."""

    sandbox: Sandbox
    state: SandboxState
    alive: tuple[Broker, ...]
    """Brokers whose processes run."""
    alive_servers: tuple[Server, ...]
    """Servers whose processes run."""
    data_bytes: int
    """Bytes that their data takes on disk."""
    explanation: str
    """What happened and what to do; empty for a running sandbox."""


def read_status(name: str) -> SandboxStatus:
    """The state of this sandbox. Raises UsageError if there is none of this name, KafkaformError if
    its record is damaged."""
    sandbox = record.load_sandbox(name)
    if sandbox is None:
        raise make_unknown_error(name)
    return judge_sandbox(sandbox, busy=is_held(name))


def judge_sandbox(sandbox: Sandbox, busy: bool) -> SandboxStatus:
    """The state of a sandbox. busy: another command has its lock."""
    living = tuple(broker for broker in sandbox.brokers if is_alive(broker.process))
    servers = tuple(server for server in sandbox.servers if is_alive(server.process))
    state = _judge_state(sandbox, len(living), len(servers), busy)
    explained = _explain_servers(sandbox) if are_brokers_running(sandbox) else _EXPLANATIONS[state]
    explanation = " — ".join(reason for reason in (sandbox.reason, explained) if reason)
    used = measure_disk_use(sandbox.data)
    return SandboxStatus(sandbox, state, living, servers, used, explanation)


def are_brokers_running(sandbox: Sandbox) -> bool:
    """True if all brokers run, and ZooKeeper if there is one; whatever the servers do."""
    brokers = all(is_alive(broker.process) for broker in sandbox.brokers)
    return sandbox.phase is Phase.RUNNING and brokers and is_zookeeper_alive(sandbox)


def is_zookeeper_alive(sandbox: Sandbox) -> bool:
    """True also for a sandbox without ZooKeeper."""
    return not sandbox.zookeeper or is_alive(sandbox.zookeeper_process)


def make_unknown_error(name: str) -> UsageError:
    names = ", ".join(record.list_sandboxes())
    return UsageError(
        f"there is no sandbox named {name}",
        f"sandboxes: {names}" if names else "`kafkaform sandbox up` makes one",
    )


def measure_disk_use(folder: Path) -> int:
    """Bytes that the files of a folder take on disk."""
    # By blocks, not by length: Kafka preallocates 10 MB for each index file, which stays sparse.
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(root) / name).stat().st_blocks * 512
            except FileNotFoundError:  # a running broker removes segments at any time
                continue
    return total


def _explain_servers(sandbox: Sandbox) -> str:
    """Which servers have ended, while the brokers run."""
    ended = [server.kind.value for server in sandbox.servers if not is_alive(server.process)]
    if not ended:
        return ""
    return (
        f"the brokers run, but not {' and '.join(ended)}; `kafkaform sandbox logs` says why, `up` "
        "starts what is missing"
    )


def _judge_state(sandbox: Sandbox, living: int, servers: int, busy: bool) -> SandboxState:
    if sandbox.phase is Phase.STARTING:
        return SandboxState.STARTING if busy else SandboxState.HALF_STARTED
    if sandbox.phase is Phase.RUNNING:
        if are_brokers_running(sandbox) and servers == len(sandbox.servers):
            return SandboxState.RUNNING
        return SandboxState.DEGRADED if living else SandboxState.CRASHED
    return SandboxState(sandbox.phase.value)


_POLL = 0.3


def read_tail(path: Path, lines: int) -> tuple[str, ...]:
    """The last lines of a file, none if it does not exist."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return tuple(line.rstrip("\n") for line in deque(file, lines))
    except FileNotFoundError:
        return ()


def make_log_error(kind: type[Failure], summary: str, lines: Sequence[str], advice: str) -> Failure:
    """An error that shows these lines of a log. lines: none if nothing was written."""
    return make_detailed_error(kind, summary, lines or ("It wrote no log.",), advice)


def read_last_lines(sandbox: Sandbox, lines: int) -> tuple[str, ...]:
    """The last lines of each log. If there are several, each line has the broker or server."""
    return tuple(
        f"{label}{line}" for label, path in _list_files(sandbox) for line in read_tail(path, lines)
    )


def follow_logs(sandbox: Sandbox, lines: int) -> Iterator[str]:
    """The last lines, then all new ones until the run folder is removed."""
    positions = {path: path.stat().st_size for _, path in _list_files(sandbox) if path.exists()}
    yield from read_last_lines(sandbox, lines)
    while sandbox.folder.exists():
        for label, path in _list_files(sandbox):
            text, positions[path] = _read_new_lines(path, positions.get(path, 0))
            yield from (f"{label}{line}" for line in text.splitlines())
        time.sleep(_POLL)


def _list_files(sandbox: Sandbox) -> Iterator[tuple[str, Path]]:
    several = len(sandbox.brokers) > 1 or sandbox.zookeeper or bool(sandbox.servers)
    for broker in sandbox.brokers:
        yield f"[{broker.id}] " if several else "", sandbox.get_log_file(broker)
    if sandbox.zookeeper:
        yield "[zookeeper] ", sandbox.get_log_file(None)
    for server in sandbox.servers:
        yield f"[{server.kind}] ", sandbox.get_log_file(server)


def _read_new_lines(path: Path, position: int) -> tuple[str, int]:
    """Whole lines after this byte, and the byte where they end."""
    # A file that has become shorter belongs to a new start: it is read from its beginning.
    try:
        with path.open("rb") as file:
            file.seek(position if position <= path.stat().st_size else 0)
            start = file.tell()
            content = file.read()
    except FileNotFoundError:
        # A server that was started just now may have written nothing.
        return "", 0
    complete = content[: content.rfind(b"\n") + 1]
    return complete.decode("utf-8", "replace"), start + len(complete)
