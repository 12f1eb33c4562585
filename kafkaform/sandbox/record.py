"""The sandbox as data, and its file `sandbox.json`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path

from msgspec import Struct, to_builtins

from ..core.errors import KafkaformError
from ..core.nouns import Misfit, from_data, parse_json
from . import places
from .options import SandboxOptions, check_name
from .process import Process
from .versions import is_version

FILE = "sandbox.json"
HOST = "127.0.0.1"
_MOST = 1 << 31
"""Ids of brokers and of processes are less."""


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

    def __repr__(self) -> str:
        return f"Sandbox({self.name}, {self.phase}, {self.bootstrap})"

    @property
    def folder(self) -> Path:
        return places.get_run_folder(self.name)

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

    def list_processes(self) -> tuple[Process, ...]:
        """All recorded processes, alive or not, in the order in which they end: a broker can say
        goodbye to ZooKeeper."""
        found = (*(broker.process for broker in self.brokers), self.zookeeper_process)
        return tuple(process for process in found if process is not None)

    def get_log_file(self, broker: Broker | None) -> Path:
        """The log of a broker, or that of ZooKeeper for None."""
        return self.folder / ("zookeeper.log" if broker is None else f"broker-{broker.id}.log")

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
    places.make_private_folder(sandbox.folder)
    text = json.dumps(to_builtins(sandbox), indent=2, sort_keys=True) + "\n"
    places.write_private(sandbox.folder / FILE, text)


def load_sandbox(name: str) -> Sandbox | None:
    """The sandbox of this name, or None. Raises KafkaformError if its record is damaged."""
    path = places.get_run_folder(check_name(name)) / FILE
    try:
        return _decode_record(path.read_bytes(), name)
    except FileNotFoundError:
        return None
    except (OSError, Misfit) as error:
        why = error if isinstance(error, Misfit) else error.strerror
        raise KafkaformError(
            f"the record of sandbox {name} cannot be read: {path}: {why}",
            f"end the broker processes that name {path.parent}, then remove that folder",
        ) from None


def list_sandboxes() -> tuple[str, ...]:
    """The names of all sandboxes with a record, in order."""
    return tuple(
        sorted(path.parent.name for path in places.get_sandboxes_folder().glob(f"*/{FILE}"))
    )


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
    processes = {
        f"brokers[{number}].process": broker.process
        for number, broker in enumerate(sandbox.brokers)
    }
    for where, process in {**processes, "zookeeper_process": sandbox.zookeeper_process}.items():
        # It becomes part of a path, which has a longest length.
        if process is not None and not 1 < process.pid < _MOST:
            raise Misfit("is not the id of a process").nest_in(f"{where}.pid")
    for number, broker in enumerate(sandbox.brokers):
        where = f"brokers[{number}]"
        ports = broker.ports
        if not 0 <= broker.id < _MOST:
            raise Misfit("is not the id of a broker").nest_in(f"{where}.id")
        if (ports.tls is None) is sandbox.tls:
            raise Misfit("is not as that of the first broker").nest_in(f"{where}.ports.tls")
        for port in (ports.client, ports.internal, ports.controller, ports.tls):
            if port is not None and not 0 < port < 1 << 16:
                raise Misfit("is not a port").nest_in(f"{where}.ports")
    return sandbox
