"""The sandbox as data: the options of `sandbox up`, checked before anything is changed, and its
file `sandbox.json`.

Also the folders of a user's sandboxes and downloaded jars, and the lock that lets one command at a
time work on a sandbox. The lock ends with its process.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ..core.canonical import Misfit, from_data, parse_json
from ..core.errors import KafkaformError, Locked, UsageError
from ..core.storage import make_private_folder
from .process import Process
from .versions import NO_ZOOKEEPER, choose_version, find_newest, is_version, parse_version

CACHE_VARIABLE = "KAFKAFORM_CACHE_DIR"


def get_cache_folder() -> Path:
    """The folder of downloaded files, which all sandboxes of the user share."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kafkaform"
    return _get_base_folder("XDG_CACHE_HOME", ".cache") / "kafkaform"


def get_sandboxes_folder() -> Path:
    """The folder with one run folder for each sandbox."""
    return _get_base_folder("XDG_STATE_HOME", ".local/state") / "kafkaform" / "sandbox"


def get_run_folder(name: str) -> Path:
    return get_sandboxes_folder() / name


def get_lock_file(name: str) -> Path:
    """The lock file of a sandbox."""
    # Beside the run folder: `down` removes that folder while it has the lock, and another command
    # would lock a new file. No sandbox has a name that begins with a dot.
    return get_sandboxes_folder() / f".{name}.lock"


def write_private(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Replace a file in one step by one that only its owner can read."""
    # O_EXCL with the mode: a file that is made first and closed to others afterwards can be opened
    # in between.
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding=encoding) as file:
        file.write(text)
    fresh.replace(path)


def _get_base_folder(variable: str, default: str) -> Path:
    # The XDG specification: a relative path in these variables is to be ignored.
    chosen = os.environ.get(variable, "")
    return Path(chosen) if chosen.startswith("/") else Path.home() / default


@contextmanager
def hold_lock(name: str) -> Iterator[None]:
    """Lock the sandbox inside the block. Raises Locked at once if another process has locked it."""
    path = get_lock_file(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if not _take_lock(file):
            raise Locked(
                f"another `kafkaform sandbox` command is working on {name}",
                "wait until it is done, then try again",
            )
        yield


def is_held(name: str) -> bool:
    """True while another command works on the sandbox."""
    path = get_lock_file(name)
    if not path.exists():
        return False
    with path.open("a") as file:
        return not _take_lock(file)


def _take_lock(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


DEFAULT_NAME = "dev"
"""The sandbox of commands without `--name`."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_KEY = re.compile(r"[A-Za-z0-9_.-]+")

# With one of these, a user could break what the sandbox promises: loopback only, its own ports, its
# own data folder, logins that work.
OWNED_KEYS = frozenset(
    (
        "advertised.listeners",
        "authorizer.class.name",
        "broker.id",
        "broker.rack",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "process.roles",
        "zookeeper.connect",
        "zookeeper.set.acl",
    )
)
FILE = "sandbox.json"
HOST = "127.0.0.1"
_MOST = 1 << 31
"""Ids of brokers and of processes are less."""


class SandboxOptions(Struct, frozen=True):
    """The options of one `sandbox up`."""

    name: str = DEFAULT_NAME
    brokers: int = 1
    """1 or 3."""
    tls: bool = False
    config: tuple[tuple[str, str], ...] = ()
    """Broker properties that override the sandbox's own."""
    classpath: tuple[Path, ...] = ()
    """Jars of policies and plugins."""
    keep_data: bool = False
    """`down` keeps the data."""
    ready_within: float = 60.0
    """Seconds."""
    kafka_version: str | None = None
    """None: that of KAFKA_HOME, or the default one."""
    zookeeper: bool = False
    """The metadata is in ZooKeeper, not with a controller of Kafka's own (KRaft)."""
    authorizer: bool = True
    """The brokers check ACLs."""


def check_name(name: str) -> str:
    """The name itself. Raises UsageError for one that cannot be the name of a folder."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} cannot be the name of a sandbox",
            "use up to 63 lower-case letters, digits, - and _, beginning with a letter or digit",
        )
    return name


def check_options(options: SandboxOptions) -> None:
    """Raise UsageError for the first option that cannot be fulfilled."""
    check_name(options.name)
    if options.brokers not in (1, 3):
        raise UsageError(f"a sandbox has 1 or 3 brokers, not {options.brokers}")
    version = choose_version(options.kafka_version)
    if options.zookeeper:
        _check_zookeeper(options, version)
    if options.ready_within <= 0:
        raise UsageError("the time to get ready must be more than 0 seconds")
    for key, value in options.config:
        _check_override(key, value)
    for jar in options.classpath:
        if not jar.is_file():
            raise UsageError(f"--classpath {jar}: there is no such file", "build the jar first")


def parse_override(text: str) -> tuple[str, str]:
    """The key and value of one `--config k=v`. Raises UsageError."""
    key, separator, value = text.partition("=")
    if not separator:
        raise UsageError(f"--config {text}: expected KEY=VALUE")
    return key.strip(), value


def _check_zookeeper(options: SandboxOptions, version: str) -> None:
    if parse_version(version) >= NO_ZOOKEEPER:
        raise UsageError(
            f"--zookeeper: Kafka {version} has no ZooKeeper mode, which was removed in 4.0 "
            "(KIP-500)",
            f"add --kafka-version {find_newest(below=NO_ZOOKEEPER)}, or leave --zookeeper out",
        )
    if options.brokers != 1:
        raise UsageError(
            f"--zookeeper: such a sandbox has 1 broker, not {options.brokers}",
            "leave --zookeeper out for 3 brokers",
        )


def _check_override(key: str, value: str) -> None:
    if _KEY.fullmatch(key) is None:
        raise UsageError(f"--config {key!r}: this is not the name of a broker property")
    if key in OWNED_KEYS or key.startswith("listener.name."):
        raise UsageError(
            f"--config {key}: the sandbox sets this itself",
            "use --brokers, --tls and --name to shape listeners, nodes and folders",
        )
    if "\n" in value or "\r" in value:
        raise UsageError(f"--config {key}: a value is a single line")


class Phase(StrEnum):
    """What the last command did. Whether the sandbox still runs is found out by `read_status`."""

    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    STOPPED = "stopped"


class Ports(Struct, frozen=True):
    """The listeners of one broker on the loopback address."""

    client: int
    internal: int
    controller: int
    """That of ZooKeeper in a sandbox with ZooKeeper, which does its work."""
    tls: int | None = None
    """None without --tls."""


class Broker(Struct, frozen=True):
    """One broker of a sandbox."""

    id: int
    ports: Ports
    process: Process | None = None


class ServerKind(StrEnum):
    """What can run beside the brokers, by the word of its option."""

    SCHEMA_REGISTRY = "schema-registry"
    CONNECT = "connect"


_PATHS = {
    # Of the APIs that Apicurio Registry has, the one that other registries have, too.
    ServerKind.SCHEMA_REGISTRY: "/apis/ccompat/v7",
    ServerKind.CONNECT: "",
}


class Server(Struct, frozen=True):
    """An HTTP server beside the brokers."""

    kind: ServerKind
    port: int
    process: Process | None = None

    @property
    def url(self) -> str:
        """The address of its API, without a slash at the end."""
        return f"http://{HOST}:{self.port}{_PATHS[self.kind]}"


class Sandbox(Struct, frozen=True):
    """One sandbox, as it is recorded."""

    name: str
    phase: Phase
    cluster_id: str
    brokers: tuple[Broker, ...]
    admin_password: str
    ci_password: str
    broker_password: str
    config: tuple[tuple[str, str], ...] = ()
    """As in SandboxOptions."""
    classpath: tuple[str, ...] = ()
    """As in SandboxOptions."""
    keep_data: bool = False
    usable: bool = False
    """Its brokers were ready once, so that a failed start must not remove its data."""
    reason: str = ""
    """Why the last start failed."""
    kafka_version: str = "4.3.1"
    """A record without it is older than this choice."""
    zookeeper: bool = False
    """As in SandboxOptions."""
    zookeeper_process: Process | None = None
    authorizer: bool = True
    """As in SandboxOptions."""
    servers: tuple[Server, ...] = ()
    """At most one of each kind."""
    connect_password: str = ""
    """That of the connectors' user; empty if the brokers do not know this user yet."""

    def __repr__(self) -> str:
        return f"Sandbox({self.name}, {self.phase}, {self.bootstrap})"

    @property
    def folder(self) -> Path:
        return get_run_folder(self.name)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def tls(self) -> bool:
        return self.brokers[0].ports.tls is not None

    @property
    def bootstrap(self) -> str:
        """host:port of the SASL_PLAINTEXT listeners of all brokers, separated by commas."""
        return ",".join(f"{HOST}:{broker.ports.client}" for broker in self.brokers)

    @property
    def bootstrap_tls(self) -> str | None:
        """The same for the SASL_SSL listeners, None without --tls."""
        if not self.tls:
            return None
        return ",".join(f"{HOST}:{broker.ports.tls}" for broker in self.brokers)

    @property
    def ca_file(self) -> Path | None:
        """The certificate of the authority for the SASL_SSL listeners."""
        return self.folder / "tls" / "ca.pem" if self.tls else None

    @property
    def connect_secrets(self) -> Path:
        """The folder from which connectors can read values: `${file:PATH:KEY}`."""
        return self.folder / "connect-secrets"

    def list_processes(self) -> tuple[Process, ...]:
        """All recorded processes, alive or not, in the order in which they end."""
        return tuple(process for stage in self.list_stages() for process in stage)

    def list_stages(self) -> tuple[tuple[Process, ...], ...]:
        """Groups of recorded processes. Each ends before the next: a worker can say goodbye to the
        brokers, and a broker to ZooKeeper."""
        stages = (
            [server.process for server in self.servers],
            [broker.process for broker in self.brokers],
            [self.zookeeper_process],
        )
        running = (tuple(process for process in stage if process is not None) for stage in stages)
        return tuple(filter(None, running))

    def find_server(self, kind: ServerKind) -> Server | None:
        return next((server for server in self.servers if server.kind is kind), None)

    def get_log_file(self, member: Broker | Server | None) -> Path:
        """The log of a broker or a server, or that of ZooKeeper for None."""
        if isinstance(member, Server):
            return self.folder / f"{member.kind}.log"
        return self.folder / ("zookeeper.log" if member is None else f"broker-{member.id}.log")

    def without_processes(self) -> Sandbox:
        """The sandbox after its end."""
        brokers = tuple(replace(broker, process=None) for broker in self.brokers)
        servers = tuple(replace(server, process=None) for server in self.servers)
        return replace(self, brokers=brokers, servers=servers, zookeeper_process=None)

    def make_options(self) -> SandboxOptions:
        """The options that make this sandbox again."""
        return SandboxOptions(
            self.name,
            len(self.brokers),
            self.tls,
            self.config,
            tuple(map(Path, self.classpath)),
            self.keep_data,
            kafka_version=self.kafka_version,
            zookeeper=self.zookeeper,
            authorizer=self.authorizer,
        )


def save_sandbox(sandbox: Sandbox) -> None:
    """Write sandbox.json, which only its owner can read, because it contains passwords."""
    make_private_folder(sandbox.folder, parents=True)
    text = json.dumps(to_builtins(sandbox), indent=2, sort_keys=True) + "\n"
    write_private(sandbox.folder / FILE, text)


def load_sandbox(name: str) -> Sandbox | None:
    """The sandbox of this name, or None. Raises KafkaformError if its record is damaged."""
    path = get_run_folder(check_name(name)) / FILE
    try:
        return _decode_record(path.read_bytes(), name)
    except FileNotFoundError:
        return None
    except (OSError, Misfit) as error:
        cause = error if isinstance(error, Misfit) else error.strerror
        raise KafkaformError(
            f"the record of sandbox {name} cannot be read: {path}: {cause}",
            f"end the Java processes that name {path.parent}, then remove that folder",
        ) from None


def list_sandboxes() -> tuple[str, ...]:
    """The names of all sandboxes with a record, in order."""
    return tuple(sorted(path.parent.name for path in get_sandboxes_folder().glob(f"*/{FILE}")))


def _decode_record(text: bytes, name: str) -> Sandbox:
    """The sandbox in a record. Raises Misfit for a record that no command of ours has written."""
    # `down` removes folders and ends processes by what stands here, so that it is checked like
    # input.
    sandbox = from_data(Sandbox, parse_json(text))
    if sandbox.name != name:
        raise Misfit(f"is not {name}").nest_in("name")
    if not is_version(sandbox.kafka_version):
        raise Misfit("is not a version").nest_in("kafka_version")
    if not sandbox.brokers:
        raise Misfit("is empty").nest_in("brokers")
    if len({server.kind for server in sandbox.servers}) < len(sandbox.servers):
        raise Misfit("has a kind twice").nest_in("servers")
    for path, process in _list_processes(sandbox):
        # It becomes part of a path, which has a longest length.
        if process is not None and not 1 < process.pid < _MOST:
            raise Misfit("is not the id of a process").nest_in(f"{path}.pid")
    for number, broker in enumerate(sandbox.brokers):
        path = f"brokers[{number}]"
        ports = broker.ports
        if not 0 <= broker.id < _MOST:
            raise Misfit("is not the id of a broker").nest_in(f"{path}.id")
        if (ports.tls is None) is sandbox.tls:
            raise Misfit("is not as that of the first broker").nest_in(f"{path}.ports.tls")
        for port in (ports.client, ports.internal, ports.controller, ports.tls):
            _check_port(port, f"{path}.ports")
    for number, server in enumerate(sandbox.servers):
        _check_port(server.port, f"servers[{number}].port")
    return sandbox


def _list_processes(sandbox: Sandbox) -> Iterator[tuple[str, Process | None]]:
    """Where each process stands in the record."""
    for number, broker in enumerate(sandbox.brokers):
        yield f"brokers[{number}].process", broker.process
    for number, server in enumerate(sandbox.servers):
        yield f"servers[{number}].process", server.process
    yield "zookeeper_process", sandbox.zookeeper_process


def _check_port(port: int | None, path: str) -> None:
    """Raise Misfit for a number that is no port; None is no port at all."""
    if port is not None and not 0 < port < 1 << 16:
        raise Misfit("is not a port").nest_in(path)
