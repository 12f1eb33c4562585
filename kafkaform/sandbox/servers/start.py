"""Start servers beside running brokers, wait until they answer, or end those that do not.

The servers are a worker of Kafka Connect in distributed mode, as a cluster of one, and Apicurio
Registry, which has the API of Confluent's Schema Registry.

Apicurio keeps schemas in an H2 database. In a file, they survive a restart of the sandbox; its
variant that keeps them in Kafka would need a topic and rights on every cluster. Its files come from
an archive of the Maven repository; each must have the SHA-256 of the list. It has no logins: users
come from an OpenID provider or not at all
(https://www.apicur.io/registry/docs/apicurio-registry/2.6.x/getting-started/assembly-configuring-registry-security.html).
"""

from __future__ import annotations

import base64
import http.client
import tarfile
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import resources
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import ConnectError, Interrupted, KafkaformError, UsageError
from ...core.progress import Message, Progress, Reporter, ignore_event
from ...core.storage import make_private_folder
from .. import brokers, configuration, record, versions
from ..brokers import PortTaken, Runtime, make_log_error, read_tail
from ..configuration import ADMIN, CONNECT, INTERNAL, escape_value
from ..jars import (
    PARTIAL,
    Jar,
    Source,
    ensure_jars,
    list_distribution,
    open_repository,
    parse_jar,
    remove_abandoned,
    split_list,
    verify_file,
    verify_jar,
)
from ..process import GRACE, defer_signals, end_processes, is_alive, launch_process
from ..record import HOST, Sandbox, Server, ServerKind
from ..versions import choose_version

_STARTS = 3
_POLL = 0.3
_ANSWER_SECONDS = 5.0
_LOG_LINES = 15
_LOG_TAIL = 200  # including stack frames, which are not shown
_NO_PORT = ("java.net.BindException", "Address already in use", "seems to be in use by another")
_PROPERTIES, _LOGINS, _USERS = "connect.properties", "connect-logins.conf", "connect-users"
_EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension"
_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
_LISTS = "class_paths"
_TOPICS = {
    "config": "connect-configs",
    "offset": "connect-offsets",
    "status": "connect-status",
}
"""The names in the worker properties that come with Kafka."""


class Program(Struct, frozen=True):
    """How a kind of server is provided and started. All files are in the run folder, which is the
    working directory."""

    title: str
    """The program's name."""
    main: str
    """The class that Java starts."""
    find_class_path: Callable[[Sandbox, Reporter, Source], tuple[Path, ...]]
    """Raises KafkaformError, ConnectError."""
    write_files: Callable[[Sandbox, Server], None]
    """Write what the server reads when it starts."""
    make_options: Callable[[Sandbox, Server], Sequence[str]]
    """Options of Java."""
    make_arguments: Callable[[Sandbox, Server], Sequence[str]]
    """Arguments of the program."""
    ready_path: str
    """A page that is answered with 200 as soon as the server can work."""
    make_headers: Callable[[Sandbox], Mapping[str, str]]
    """The login for that page, as HTTP headers."""


def list_connect_versions() -> tuple[str, ...]:
    """The versions of Kafka whose Connect is pinned, in no order."""
    files = resources.files(__package__).joinpath(_LISTS).iterdir()
    names = (file.name.removesuffix(".txt") for file in files)
    return tuple(name for name in names if name[0].isdigit())


def check_version(version: str) -> None:
    """Raise UsageError if there is no Connect of this version."""
    if version not in list_connect_versions() and not list_distribution():
        raise UsageError(
            f"the sandbox has no list of the jars of Kafka Connect {version}",
            f"known: {', '.join(sorted(list_connect_versions()))}; for another version unpack the "
            "archive of Kafka and set KAFKA_HOME to the folder",
        )


def read_pinned_jars(version: str) -> tuple[Jar, ...]:
    """The jars of Connect of this version. Raises UsageError if there is no list."""
    check_version(version)
    file = resources.files(__package__).joinpath(_LISTS, f"{version}.txt")
    return tuple(map(parse_jar, split_list(file.read_text("ascii"))))


def render_properties(sandbox: Sandbox, server: Server) -> str:
    """The text of the worker's properties file."""
    settings = {
        **_make_cluster_settings(sandbox),
        **_make_client_settings(sandbox),
        **_make_rest_settings(server),
        # Names of plugins are read from the jars' service files (KIP-898), not found by a search
        # of all classes.
        "plugin.discovery": "service_load",
        # Records are text as they are; a connector can name other converters.
        "key.converter": _CONVERTER,
        "value.converter": _CONVERTER,
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        # Without it, a connector could read the passwords of the brokers from the run folder.
        "config.providers.file.param.allowed.paths": str(sandbox.connect_secrets),
        # A minute by default: a consumer group of a sink would seem to stand still.
        "offset.flush.interval.ms": "5000",
    }
    return "".join(f"{key}={escape_value(value)}\n" for key, value in settings.items())


def _make_cluster_settings(sandbox: Sandbox) -> Mapping[str, str]:
    """Of the cluster of workers, and of the topics in which it keeps its state."""
    factor = str(len(sandbox.brokers))
    topics = {
        f"{topic_name}.storage.{key}": value
        for topic_name, topic in _TOPICS.items()
        for key, value in (("topic", topic), ("replication.factor", factor))
    }
    return {
        "group.id": "connect-cluster",
        **topics,
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        # No other worker waits for one that left, so that connectors start again at once
        # (KIP-415); by default they would wait for five minutes.
        "scheduled.rebalance.max.delay.ms": "0",
    }


def _make_client_settings(sandbox: Sandbox) -> Mapping[str, str]:
    """Logins: the worker's own is that of the brokers, on their own listener; connectors have a
    user who can do what ACLs allow."""
    # With rights of its own, each sandbox would begin with ACLs that a configuration does not
    # declare; as a super user, no connector would ever miss a right.
    internal = ",".join(f"{HOST}:{broker.ports.internal}" for broker in sandbox.brokers)
    worker = _make_login(internal, INTERNAL, sandbox.broker_password)
    connectors = _make_login(sandbox.bootstrap, CONNECT, sandbox.connect_password)
    clients = {
        f"{client}.{key}": value
        for client in ("producer", "consumer", "admin")
        for key, value in connectors.items()
    }
    return {**worker, **clients}


def _make_login(bootstrap: str, user: str, password: str) -> Mapping[str, str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
    }


def _make_rest_settings(server: Server) -> Mapping[str, str]:
    return {
        "listeners": f"http://{HOST}:{server.port}",
        "rest.advertised.host.name": HOST,
        "rest.advertised.port": str(server.port),
        "rest.extension.classes": f"{_EXTENSION}.BasicAuthSecurityRestExtension",
    }


def _find_class_path(sandbox: Sandbox, report: Reporter, source: Source) -> tuple[Path, ...]:
    version = sandbox.kafka_version
    return list_distribution() or ensure_jars(
        read_pinned_jars(version), report, source, f"{CONNECT_PROGRAM.title} {version}"
    )


def _write_files(sandbox: Sandbox, server: Server) -> None:
    folder = sandbox.folder
    secrets = make_private_folder(sandbox.connect_secrets, parents=True)
    passwords = {ADMIN: sandbox.admin_password, CONNECT: sandbox.connect_password}
    texts = {
        folder / _PROPERTIES: render_properties(sandbox, server),
        folder / _LOGINS: f"KafkaConnect {{\n  {_EXTENSION}.PropertyFileLoginModule required "
        f'file="./{_USERS}";\n}};\n',
        folder / _USERS: f"{ADMIN}={sandbox.admin_password}\n",
        secrets / "users.properties": "".join(f"{u}={p}\n" for u, p in passwords.items()),
    }
    for file, text in texts.items():
        record.write_private(file, text)


def _make_options(_: Sandbox, __: Server) -> Sequence[str]:
    return (f"-Djava.security.auth.login.config={_LOGINS}",)


def _make_headers(sandbox: Sandbox) -> Mapping[str, str]:
    login = base64.b64encode(f"{ADMIN}:{sandbox.admin_password}".encode()).decode("ascii")
    return {"Authorization": f"Basic {login}"}


CONNECT_PROGRAM = Program(
    title="Kafka Connect",
    main="org.apache.kafka.connect.cli.ConnectDistributed",
    find_class_path=_find_class_path,
    write_files=_write_files,
    make_options=_make_options,
    make_arguments=lambda _, __: (_PROPERTIES,),
    ready_path="/connectors",
    make_headers=_make_headers,
)


class Member(Struct, frozen=True):
    """A file in the archive."""

    name: str
    """Its path in the archive, with slashes."""
    sha256: str
    """64 hexadecimal digits."""
    size: int
    """Bytes."""


class ProgramArchive(Struct, frozen=True):
    """An archive and those of its files that a program needs."""

    jar: Jar
    """Where the repository has it."""
    members: tuple[Member, ...]

    @property
    def folder(self) -> Path:
        """Where its files are, in the user's cache."""
        return record.get_cache_folder() / f"{self.jar.artifact}-{self.jar.sha256[:16]}"


def parse_archive(text: str) -> ProgramArchive:
    """A list: the archive in its first line, then one file in each."""
    first, *member_lines = split_list(text)
    jar = parse_jar(first)
    members = (line.split() for line in member_lines)
    return ProgramArchive(
        Jar(jar.group, jar.artifact, jar.version, jar.classifier, jar.sha256, jar.size, "tar.gz"),
        tuple(Member(name, sha256, int(size)) for name, sha256, size in members),
    )


def ensure_archive(archive: ProgramArchive, report: Reporter, source: Source, product: str) -> Path:
    """The folder with the files of the archive, which is downloaded if one is missing.
    product: what the screen calls it.

    Raises KafkaformError for a file with other content, after removing it; ConnectError.
    """
    folder = archive.folder
    missing = [member for member in archive.members if not (folder / member.name).is_file()]
    for member in archive.members:
        if member not in missing:
            _verify_member(archive, member, folder / member.name)
    if missing:
        _download(archive, missing, report, source, product)
    return folder


def _download(
    archive: ProgramArchive,
    missing: Sequence[Member],
    report: Reporter,
    source: Source,
    product: str,
) -> None:
    cache = record.get_cache_folder() / "jars"
    cache.mkdir(parents=True, exist_ok=True)
    remove_abandoned(cache)
    label, total = f"downloading {product}", archive.jar.size
    report(Progress("archive", label, 0, total, "bytes"))
    with source() as fetch, tempfile.TemporaryDirectory(prefix=PARTIAL, dir=cache) as partial:
        file = fetch(archive.jar, Path(partial))
        verify_jar(archive.jar, file)
        report(Progress("archive", label, total, total, "bytes", finished=True))
        _unpack_members(archive, {member.name: member for member in missing}, file)


def _unpack_members(archive: ProgramArchive, members: Mapping[str, Member], file: Path) -> None:
    # As a stream: to go back to an earlier file, the archive would be unpacked from its beginning.
    with tarfile.open(file, "r|gz") as tar:
        for entry in tar:
            content = tar.extractfile(entry) if entry.name in members else None
            if content is not None:
                _keep_member(archive, members[entry.name], content.read(), file.parent)
    lacking = [name for name in members if not (archive.folder / name).is_file()]
    if lacking:
        raise KafkaformError(
            f"{archive.jar.coordinate} lacks {', '.join(lacking)}",
            "the list of its files is wrong: report it as a bug",
        )


def _keep_member(archive: ProgramArchive, member: Member, content: bytes, partial: Path) -> None:
    # By an atomic rename: another command may unpack the same file, or start from it.
    fresh, target = partial / "member", archive.folder / member.name
    fresh.write_bytes(content)
    _verify_member(archive, member, fresh)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh.replace(target)


def _verify_member(archive: ProgramArchive, member: Member, path: Path) -> None:
    name = f"{member.name} of {archive.jar.coordinate}"
    verify_file(name, member.sha256, member.size, path)


_FOLDER = "schema-registry"
# Without the second part, what was committed in the last half second is lost with the process.
_URL = f"jdbc:h2:file:./data/{_FOLDER}/registry;WRITE_DELAY=0"
"""Relative to the run folder: a path can contain characters that mean something here."""


def read_pinned_archive() -> ProgramArchive:
    file = resources.files(__package__).joinpath("class_paths", "schema-registry.txt")
    return parse_archive(file.read_text("ascii"))


def _find_registry_class_path(_: Sandbox, report: Reporter, source: Source) -> tuple[Path, ...]:
    archive = read_pinned_archive()
    folder = ensure_archive(archive, report, source, SCHEMA_REGISTRY_PROGRAM.title)
    # The manifest of this jar names all others.
    (runner,) = folder.glob("*-runner.jar")
    return (runner,)


def _write_registry_files(sandbox: Sandbox, _: Server) -> None:
    make_private_folder(sandbox.data / _FOLDER, parents=True)


def _make_registry_options(_: Sandbox, server: Server) -> Sequence[str]:
    settings = {
        "quarkus.http.host": HOST,
        "quarkus.http.port": str(server.port),
        "REGISTRY_DATASOURCE_URL": _URL,
        # One connection is opened at once, not 20.
        "quarkus.datasource.jdbc.initial-size": "1",
        "quarkus.datasource.jdbc.min-size": "1",
        # Every request is a line at INFO.
        "LOG_LEVEL": "WARN",
        "REGISTRY_LOG_LEVEL": "WARN",
    }
    return tuple(f"-D{key}={value}" for key, value in settings.items())


def _make_registry_headers(_: Sandbox) -> Mapping[str, str]:
    return {}


SCHEMA_REGISTRY_PROGRAM = Program(
    title="Apicurio Registry",
    main="io.quarkus.runner.GeneratedMain",
    find_class_path=_find_registry_class_path,
    write_files=_write_registry_files,
    make_options=_make_registry_options,
    make_arguments=lambda _, __: (),
    ready_path="/apis/ccompat/v7/subjects",
    make_headers=_make_registry_headers,
)
PROGRAMS: Mapping[ServerKind, Program] = {
    ServerKind.SCHEMA_REGISTRY: SCHEMA_REGISTRY_PROGRAM,
    ServerKind.CONNECT: CONNECT_PROGRAM,
}


def check_servers(kinds: Collection[ServerKind], kafka_version: str | None) -> None:
    """Raise UsageError for a server that cannot be had for this version. None: the version that
    `up` takes then."""
    if ServerKind.CONNECT in kinds:
        check_version(choose_version(kafka_version))


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
