"""Start servers beside running brokers, wait until they answer, or end those that do not."""

from __future__ import annotations

import http.client
import time
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from ...core.errors import ConnectError, Interrupted, UsageError
from ...core.progress import Message, Progress, Reporter, ignore_event
from .. import brokers, configuration, record, versions
from ..brokers import PortTaken, Runtime, make_log_error, read_tail
from ..jars import open_repository
from ..process import GRACE, defer_signals, end_processes, is_alive, launch_process
from ..record import HOST, Sandbox, Server, ServerKind
from ..versions import choose_version
from . import programs
from .programs import Program

PROGRAMS: Mapping[ServerKind, Program] = {
    ServerKind.SCHEMA_REGISTRY: programs.SCHEMA_REGISTRY_PROGRAM,
    ServerKind.CONNECT: programs.CONNECT_PROGRAM,
}
_STARTS = 3
_POLL = 0.3
_ANSWER_SECONDS = 5.0
_LOG_LINES = 15
_LOG_TAIL = 200  # including stack frames, which are not shown
_NO_PORT = ("java.net.BindException", "Address already in use", "seems to be in use by another")


def check_servers(kinds: Collection[ServerKind], kafka_version: str | None) -> None:
    """Raise UsageError for a server that cannot be had for this version. None: the version that
    `up` takes then."""
    if ServerKind.CONNECT in kinds:
        programs.check_version(choose_version(kafka_version))


def start_servers(
    name: str,
    kinds: Collection[ServerKind] = (),
    ready_within: float = 180.0,
    report: Reporter = ignore_event,
) -> Sandbox:
    """Start servers of these kinds beside the brokers of a sandbox, and those that it had before.
    Returns as soon as all of them answer. Those that run already stay. ready_within: seconds.

    Servers that fail are ended; the brokers run on. Raises UsageError, ConnectError (not ready in
    time), Locked, KafkaformError (Java, files), Interrupted.
    """
    try:
        with record.hold_lock(name):
            return _start_servers(name, kinds, ready_within, report)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; the brokers of {name} run, and the servers that were starting have ended"
        ) from None


def _start_servers(
    name: str, kinds: Collection[ServerKind], ready_within: float, report: Reporter
) -> Sandbox:
    sandbox = record.load_sandbox(name)
    if sandbox is None:
        raise brokers.make_unknown_error(name)
    missing = tuple(kind for kind in ServerKind if _is_missing(sandbox, kind, kinds))
    if not missing:
        return sandbox
    _check_brokers(sandbox, missing)
    runtimes = {kind: _find_runtime(sandbox, kind, report) for kind in missing}
    for _ in range(_STARTS - 1):
        try:
            return _start_missing(sandbox, runtimes, ready_within, report)
        except PortTaken:
            report(Message("another program has taken one of its ports: trying others"))
            sandbox = record.load_sandbox(name) or sandbox
    return _start_missing(sandbox, runtimes, ready_within, report)


def _is_missing(sandbox: Sandbox, kind: ServerKind, kinds: Collection[ServerKind]) -> bool:
    server = sandbox.find_server(kind)
    return kind in kinds if server is None else not is_alive(server.process)


def _check_brokers(sandbox: Sandbox, missing: Collection[ServerKind]) -> None:
    """Raise UsageError if these servers could not work with the brokers."""
    if not brokers.are_brokers_running(sandbox):
        raise UsageError(
            f"the brokers of sandbox {sandbox.name} do not run",
            "`kafkaform sandbox up` starts them",
        )
    if ServerKind.CONNECT in missing and not sandbox.connect_password:
        raise UsageError(
            f"sandbox {sandbox.name} was started by an earlier version of kafkaform: its brokers "
            "have no user for Connect",
            f"`kafkaform sandbox down --name {sandbox.name} --keep-data`, then `up` again",
        )


def _find_runtime(sandbox: Sandbox, kind: ServerKind, report: Reporter) -> Runtime:
    used = versions.find_java(sandbox.kafka_version)
    class_path = PROGRAMS[kind].find_class_path(sandbox, report, open_repository)
    return Runtime(used, class_path, None)


def _start_missing(
    sandbox: Sandbox, runtimes: Mapping[ServerKind, Runtime], ready_within: float, report: Reporter
) -> Sandbox:
    """Start a server for each runtime, and wait until all of them answer."""
    # All at the same time: each takes many seconds, and they do not need each other.
    started: list[Server] = []
    try:
        for kind, runtime in runtimes.items():
            if not _is_missing(sandbox, kind, (kind,)):
                continue
            sandbox, server = _launch(sandbox, kind, runtime)
            started.append(server)
        _await_ready(sandbox, started, ready_within, report)
    except BaseException:  # Ctrl-C too
        _end_silent(sandbox, started)
        raise
    return sandbox


def _launch(sandbox: Sandbox, kind: ServerKind, runtime: Runtime) -> tuple[Sandbox, Server]:
    """Start a server. Returns the sandbox, and the server with its process."""
    program, old = PROGRAMS[kind], sandbox.find_server(kind)
    port_free = old is not None and brokers.are_free((old.port,))
    # With the port of before, clients find the server again.
    port = old.port if old is not None and port_free else brokers.find_free_ports(1)[0]
    server = Server(kind, port)
    program.write_files(sandbox, server)
    command = configuration.make_java_command(
        sandbox,
        runtime.java,
        program.main,
        *program.make_arguments(sandbox, server),
        options=program.make_options(sandbox, server),
    )
    log = sandbox.get_log_file(server)
    with defer_signals():
        process = launch_process(command, sandbox.folder, log, runtime.make_environment())
        server = replace(server, process=process)
        launched = _keep_server(sandbox, server)
        record.save_sandbox(launched)
    return launched, server


def _keep_server(sandbox: Sandbox, server: Server) -> Sandbox:
    remaining = (entry for entry in sandbox.servers if entry.kind is not server.kind)
    order = tuple(ServerKind)
    servers = sorted((*remaining, server), key=lambda entry: order.index(entry.kind))
    return replace(sandbox, servers=tuple(servers))


def _await_ready(
    sandbox: Sandbox, servers: Sequence[Server], seconds: float, report: Reporter
) -> None:
    deadline = time.monotonic() + seconds
    silent, total = list(servers), len(servers)
    while time.monotonic() < deadline:
        for server in servers:
            if not is_alive(server.process):
                raise _make_ended_error(sandbox, server)
        silent = [server for server in servers if not is_answering(sandbox, server)]
        ready = total - len(silent)
        title = " and ".join(PROGRAMS[server.kind].title for server in silent) or "ready"
        report(Progress("servers", f"starting {title}", ready, total, "servers", not silent))
        if not silent:
            return
        time.sleep(_POLL)
    title = " and ".join(PROGRAMS[server.kind].title for server in silent)
    fault = f"{title} did not answer within {seconds:g} seconds"
    raise _make_not_ready_error(sandbox, fault, silent)


def is_answering(sandbox: Sandbox, server: Server) -> bool:
    """True if this server answers as one that can work."""
    program = PROGRAMS[server.kind]
    connection = http.client.HTTPConnection(HOST, server.port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", program.ready_path, headers=dict(program.make_headers(sandbox)))
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        # Nothing listens yet, or the program is not far enough to answer.
        return False
    finally:
        connection.close()


def _end_silent(sandbox: Sandbox, started: Sequence[Server]) -> None:
    """End those of these servers that do not answer. They stay on record, without a process."""
    ended = [server for server in started if not is_answering(sandbox, server)]
    end_processes([server.process for server in ended if server.process], GRACE)
    for server in ended:
        sandbox = _keep_server(sandbox, replace(server, process=None))
    record.save_sandbox(sandbox)


def _make_ended_error(sandbox: Sandbox, server: Server) -> ConnectError:
    written = read_tail(sandbox.get_log_file(server), _LOG_TAIL)
    port_taken = any(words in line for line in written for words in _NO_PORT)
    kind = PortTaken if port_taken else ConnectError
    fault = f"{PROGRAMS[server.kind].title} ended while it was starting"
    return _make_not_ready_error(sandbox, fault, (server,), kind)


def _make_not_ready_error(
    sandbox: Sandbox, fault: str, servers: Sequence[Server], kind: type[ConnectError] = ConnectError
) -> ConnectError:
    lines = [
        line
        for server in servers
        for line in read_tail(sandbox.get_log_file(server), _LOG_TAIL)
        if not line.startswith("\tat ")
    ]
    return make_log_error(
        kind,
        f"sandbox {sandbox.name}: {fault}",
        lines[-_LOG_LINES:],
        f"its brokers run; `kafkaform sandbox logs --name {sandbox.name}` shows more; on a slow "
        "computer give it more time with --timeout; `up` tries again",
    )
