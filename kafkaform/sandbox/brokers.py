"""The brokers of a sandbox: format their storage, start them on free ports of the loopback address,
wait until they answer or clean up; find out their state by comparing the record with the processes
that really run; and read the logs of brokers and servers."""

from __future__ import annotations

import os
import random
import shutil
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import astuple, replace

from ..core.errors import ConnectError, Failure, KafkaformError, UsageError, make_detailed_error
from ..core.progress import Message, Progress, Reporter
from ..jvm import Archive
from . import configuration, jars, record
from .process import (
    GRACE,
    Process,
    defer_signals,
    end_processes,
    is_alive,
    launch_process,
    wait_for_exit,
)
from .record import HOST, Broker, Phase, Ports, Sandbox, Server, is_held

Probe = Callable[[Sandbox], int]
"""Counts the brokers that answer as one cluster. It raises nothing."""

_POLL = 0.2
_LOG_LINES = 15
_LOG_TAIL = 4 * _LOG_LINES  # including stack frames, which are not shown
_FORMAT_SECONDS = 180.0
_NO_PORT = ("Socket server failed to bind", "java.net.BindException")  # Kafka's, ZooKeeper's
_CLEAN = ".kafka_cleanshutdown"  # a file of a broker that ended by itself
_EXPIRY = configuration.ZOOKEEPER_SESSION + 3  # ZooKeeper's clock ticks every 2 seconds
# The brokers outlive the command, so they get nothing else from the user's environment, above all
# no secrets. These variables decide how Java reads file names, clocks and its own settings.
_INHERITED = (
    "HOME",
    "JAVA_TOOL_OPTIONS",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "PATH",
    "TZ",
)


class Runtime(Struct, frozen=True):
    """The Java and the jars that brokers run with."""

    java: Path
    class_path: tuple[Path, ...]
    classes: Archive | None
    """The archive of classes from which they start; None: each broker reads the jars."""

    def make_environment(self) -> Mapping[str, str]:
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {**inherited, "CLASSPATH": os.pathsep.join(map(str, self.class_path))}


class PortTaken(ConnectError):
    """Another program took one of the ports before the broker started."""


def start_sandbox(
    sandbox: Sandbox, runtime: Runtime, ready_within: float, probe: Probe, report: Reporter
) -> Sandbox:
    """Start a sandbox and wait until it is ready. ready_within: seconds.

    After any failure no process is left, and the record says why. Data that was never used by a
    ready cluster is removed. Raises ConnectError, PortTaken.
    """
    try:
        if sandbox.zookeeper:
            sandbox = _prepare_zookeeper(sandbox, runtime, report)
        elif not sandbox.usable:
            sandbox = _format_storage(sandbox, runtime, report)
        for broker in sandbox.brokers:
            sandbox = _launch_broker(sandbox, broker, runtime)
        _await_ready(sandbox, ready_within, probe, report)
        cluster_id = sandbox.cluster_id or _read_cluster_id(sandbox)
    except BaseException as error:  # Ctrl-C too
        _clean_up(sandbox.name, str(error).partition("\n")[0] or "the last `up` was interrupted")
        raise
    ready = replace(sandbox, phase=Phase.RUNNING, usable=True, cluster_id=cluster_id)
    record.save_sandbox(ready)
    return ready


def end_sandbox(sandbox: Sandbox) -> tuple[Process, ...]:
    """End all processes of a sandbox, ZooKeeper last. Returns those that were alive."""
    # A broker that cannot reach ZooKeeper any more does not end by itself.
    return tuple(
        process for stage in sandbox.list_stages() for process in end_processes(stage, GRACE)
    )


def name_properties_file(broker: Broker) -> str:
    """The name of the file in the run folder, which is the working directory of all Java
    processes."""
    return f"broker-{broker.id}.properties"


def _format_storage(sandbox: Sandbox, runtime: Runtime, report: Reporter) -> Sandbox:
    """Format the storage of all brokers."""
    # The storage tools are recorded processes, too: one that outlives a killed `up` would write
    # into the data of the next.
    report(Message(f"formatting the storage of {len(sandbox.brokers)} broker(s)"))
    with jars.keep_classes(runtime.classes) as start_options:
        first, *followers = sandbox.brokers
        sandbox = _launch_format(sandbox, first, runtime, start_options)
        for broker in followers:
            sandbox = _launch_format(
                sandbox, broker, runtime, jars.list_start_options(runtime.classes)
            )
        deadline = time.monotonic() + _FORMAT_SECONDS
        for broker, process in zip(sandbox.brokers, sandbox.list_processes(), strict=True):
            code = wait_for_exit(process, deadline - time.monotonic())
            if code != 0:
                task = f"formatting the storage of broker {broker.id}"
                raise _make_failed_error(sandbox, task, (broker,), code)
            (sandbox.folder / f"format-{broker.id}.arguments").unlink()
    return sandbox


def _launch_format(
    sandbox: Sandbox, broker: Broker, runtime: Runtime, options: Sequence[str]
) -> Sandbox:
    """Start the storage tool of a broker. Returns the sandbox with its process."""
    command = configuration.make_format_command(sandbox, runtime.java, name_properties_file(broker))
    file = sandbox.folder / f"format-{broker.id}.arguments"
    return _launch(sandbox, broker, runtime, options, _hide_arguments(command, file))


def _hide_arguments(command: Sequence[str], file: Path) -> tuple[str, ...]:
    """The command with its arguments in this file."""
    # All users of a computer can read command lines, and these have passwords.
    record.write_private(file, configuration.render_argument_file(command[1:]))
    return command[0], f"@{file}"


def _prepare_zookeeper(sandbox: Sandbox, runtime: Runtime, report: Reporter) -> Sandbox:
    """Start ZooKeeper, and store the users in a new one."""
    command = configuration.make_java_command(
        sandbox,
        runtime.java,
        configuration.ZOOKEEPER_MAIN,
        f"./{configuration.ZOOKEEPER_PROPERTIES}",
    )
    options = jars.list_start_options(runtime.classes)
    sandbox = _launch(sandbox, None, runtime, options, command)
    if not sandbox.usable:
        report(Message("storing the users in ZooKeeper"))
        for user in (configuration.ADMIN, configuration.CI):
            sandbox = _store_user(sandbox, user, runtime, options)
    elif not (sandbox.data / "1" / _CLEAN).exists():
        # A broker that crashed did not give its id back, and no other broker gets it before.
        report(Message(f"waiting {_EXPIRY} seconds until ZooKeeper lets go of the last broker"))
        time.sleep(_EXPIRY)
    return sandbox


def _store_user(sandbox: Sandbox, user: str, runtime: Runtime, options: Sequence[str]) -> Sandbox:
    """Store the SCRAM credentials of a user in ZooKeeper."""
    broker, file = sandbox.brokers[0], sandbox.folder / f"user-{user}.arguments"
    command = configuration.make_users_command(sandbox, runtime.java, user)
    sandbox = _launch(sandbox, broker, runtime, options, _hide_arguments(command, file))
    process = sandbox.brokers[0].process
    code = wait_for_exit(process, _FORMAT_SECONDS) if process else None
    if code != 0:
        _check_zookeeper(sandbox)
        task = f"storing the user {user} in ZooKeeper"
        raise _make_failed_error(sandbox, task, (broker, None), code)
    file.unlink()
    return sandbox


def _check_zookeeper(sandbox: Sandbox) -> None:
    """Raise ConnectError, or PortTaken, if ZooKeeper has ended."""
    if not is_zookeeper_alive(sandbox):
        raise _make_ended_error(sandbox, (None,))


def _read_cluster_id(sandbox: Sandbox) -> str:
    """The id that a broker got from ZooKeeper."""
    text = (sandbox.data / "1" / "meta.properties").read_text("ascii")
    lines = (line.partition("=") for line in text.splitlines())
    return {key: value for key, _, value in lines}["cluster.id"]


def _make_failed_error(
    sandbox: Sandbox, task: str, witnesses: Sequence[Broker | None], code: int | None
) -> KafkaformError:
    outcome = (
        f"took more than {_FORMAT_SECONDS:g} seconds" if code is None else f"ended with {code}"
    )
    return make_log_error(
        KafkaformError,
        f"sandbox {sandbox.name}: {task} {outcome}",
        _read_last_words(sandbox, witnesses),
        "correct --config, --classpath or KAFKA_HOME if the lines name them, then try again",
    )


def _launch_broker(sandbox: Sandbox, broker: Broker, runtime: Runtime) -> Sandbox:
    """Start a broker. Returns the sandbox with its process."""
    main, file = "kafka.Kafka", name_properties_file(broker)
    # Kafka's own scripts read this variable, too.
    heap = os.environ.get("KAFKA_HEAP_OPTS", "").split()
    command = configuration.make_java_command(sandbox, runtime.java, main, file, options=heap)
    return _launch(sandbox, broker, runtime, jars.list_start_options(runtime.classes), command)


def _launch(
    sandbox: Sandbox,
    broker: Broker | None,
    runtime: Runtime,
    options: Sequence[str],
    command: Sequence[str],
) -> Sandbox:
    """Start a process of this broker, or ZooKeeper for None, and record it before anything can
    interrupt us. options: further options for Java."""
    java, *words = command
    log = sandbox.get_log_file(broker)
    with defer_signals():
        process = launch_process(
            (java, *options, *words), sandbox.folder, log, runtime.make_environment()
        )
        launched = _keep_process(sandbox, broker, process)
        record.save_sandbox(launched)
    return launched


def _keep_process(sandbox: Sandbox, broker: Broker | None, process: Process) -> Sandbox:
    if broker is None:
        return replace(sandbox, zookeeper_process=process)
    brokers = tuple(
        replace(member, process=process) if member.id == broker.id else member
        for member in sandbox.brokers
    )
    return replace(sandbox, brokers=brokers)


def _await_ready(sandbox: Sandbox, seconds: float, probe: Probe, report: Reporter) -> None:
    deadline, total = time.monotonic() + seconds, len(sandbox.brokers)
    answering = 0
    while time.monotonic() < deadline:
        dead = [broker for broker in sandbox.brokers if not is_alive(broker.process)]
        if dead:
            raise _make_ended_error(sandbox, dead)
        _check_zookeeper(sandbox)
        answering = probe(sandbox)
        ready = answering >= total
        report(Progress("brokers", "starting", min(answering, total), total, "brokers", ready))
        if ready:
            return
        time.sleep(_POLL)
    fault = f"{answering} of {total} brokers answered within {seconds:g} seconds"
    raise _make_not_ready_error(sandbox, fault, sandbox.brokers)


def _make_ended_error(sandbox: Sandbox, dead: Sequence[Broker | None]) -> ConnectError:
    written = (
        line for process in dead for line in read_tail(sandbox.get_log_file(process), _LOG_TAIL)
    )
    port_taken = any(words in line for line in written for words in _NO_PORT)
    kind = PortTaken if port_taken else ConnectError
    title = "ZooKeeper" if dead[0] is None else f"broker {dead[0].id}"
    fault = f"{title} ended while it was starting"
    return _make_not_ready_error(sandbox, fault, dead, kind)


def _make_not_ready_error(
    sandbox: Sandbox,
    fault: str,
    brokers: Sequence[Broker | None],
    kind: type[ConnectError] = ConnectError,
) -> ConnectError:
    return make_log_error(
        kind,
        f"sandbox {sandbox.name}: {fault}",
        _read_last_words(sandbox, brokers),
        f"`kafkaform sandbox logs --name {sandbox.name}` shows more; correct --config, --classpath "
        "or KAFKA_HEAP_OPTS if the lines name them or what is in them; on a slow computer give it "
        "more time with --timeout",
    )


def _read_last_words(sandbox: Sandbox, brokers: Sequence[Broker | None]) -> list[str]:
    """The last lines that these brokers wrote (None: ZooKeeper), without stack frames."""
    lines = [
        line
        for broker in brokers
        for line in read_tail(sandbox.get_log_file(broker), _LOG_TAIL)
        if not line.startswith("\tat ")
    ]
    return lines[-_LOG_LINES:]


def _clean_up(name: str, reason: str) -> None:
    """End all processes of a failed start."""
    # The record has every process, wherever the start failed.
    sandbox = record.load_sandbox(name)
    if sandbox is None:
        return
    end_sandbox(sandbox)
    if not sandbox.usable:
        shutil.rmtree(sandbox.data, ignore_errors=True)
    record.save_sandbox(replace(sandbox.without_processes(), phase=Phase.FAILED, reason=reason))


# Below the ports that a system gives to outgoing connections (Linux from 32768, RFC 6335 from
# 49152). A client could get one of those before the broker starts or while it restarts, even the
# client that waits for this broker: a connection to a free port of that range can connect to
# itself.
_FIRST, _LAST = 20_000, 29_999


def allocate_ports(brokers: int, tls: bool, previous: tuple[Ports, ...] = ()) -> tuple[Ports, ...]:
    """Ports for this many brokers: the previous ones if they fit and are all free, otherwise new
    ones."""
    # With the previous ports, clients of a sandbox with kept data find it again.
    fits = len(previous) == brokers and all((p.tls is not None) == tls for p in previous)
    if fits and are_free(port for ports in previous for port in astuple(ports) if port):
        return previous
    width = 4 if tls else 3
    numbers = find_free_ports(brokers * width)
    return tuple(Ports(*numbers[at : at + width]) for at in range(0, len(numbers), width))


def are_free(ports: Iterable[int]) -> bool:
    with ExitStack() as stack:
        try:
            for port in ports:
                stack.enter_context(_bind_port(port))
        except OSError:
            # Another program has one of them.
            return False
    return True


def find_free_ports(count: int) -> tuple[int, ...]:
    """This many free ports, chosen at random. Raises KafkaformError."""
    # At random, so that two sandboxes that start at the same time rarely choose the same.
    shuffled = random.sample(range(_FIRST, _LAST + 1), _LAST - _FIRST + 1)
    free_ports = tuple(islice((port for port in shuffled if are_free((port,))), count))
    if len(free_ports) < count:
        raise KafkaformError(
            f"fewer than {count} ports of {HOST} are free between {_FIRST} and {_LAST}",
            "`kafkaform sandbox status` lists the sandboxes; end those that you do not need",
        )
    return free_ports


def _bind_port(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # As the broker does: otherwise connections of the last run in TIME_WAIT would block a port.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
    except OSError:
        sock.close()
        raise
    return sock


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


_LOG_POLL = 0.3


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
        time.sleep(_LOG_POLL)


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
