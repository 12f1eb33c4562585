"""The sandbox as data, and the file `sandbox.json` that remembers it."""

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

FILE = "sandbox.json"
HOST = "127.0.0.1"


class Phase(StrEnum):
    """What the last command made of it; whether it still lives is for `status` to find out."""

    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    STOPPED = "stopped"


class Ports(Struct, frozen=True):
    """One broker's listeners on the loopback address; tls is None without --tls."""

    client: int
    internal: int
    controller: int
    tls: int | None = None


class Broker(Struct, frozen=True):
    id: int
    ports: Ports
    process: Process | None = None


class Sandbox(Struct, frozen=True):
    """One sandbox. usable: its data was served by a ready cluster once, so a failed start must
    not throw it away; reason: why the last start failed; config and classpath as in Options."""

    name: str
    phase: Phase
    cluster_id: str
    brokers: tuple[Broker, ...]
    admin_password: str
    ci_password: str
    broker_password: str
    config: tuple[tuple[str, str], ...] = ()
    classpath: tuple[str, ...] = ()
    keep_data: bool = False
    usable: bool = False
    reason: str = ""

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
        """host:port of every broker's SASL_PLAINTEXT listener, with commas."""
        return ",".join(f"{HOST}:{broker.ports.client}" for broker in self.brokers)

    @property
    def bootstrap_tls(self) -> str | None:
        """The same for the SASL_SSL listener; None without --tls."""
        if not self.tls:
            return None
        return ",".join(f"{HOST}:{broker.ports.tls}" for broker in self.brokers)

    @property
    def ca_file(self) -> Path | None:
        """The certificate that the SASL_SSL listeners are to be checked against."""
        return self.folder / "tls" / "ca.pem" if self.tls else None

    def list_processes(self) -> tuple[Process, ...]:
        """Every broker process on record, alive or not."""
        return tuple(broker.process for broker in self.brokers if broker.process is not None)

    def get_log_file(self, broker: Broker) -> Path:
        return self.folder / f"broker-{broker.id}.log"

    def make_options(self) -> SandboxOptions:
        """The options that would make this sandbox again."""
        return SandboxOptions(
            self.name,
            len(self.brokers),
            self.tls,
            self.config,
            tuple(map(Path, self.classpath)),
            self.keep_data,
        )


def save_sandbox(sandbox: Sandbox) -> None:
    """Writes sandbox.json, readable by its owner only: it holds passwords."""
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
            f"look for broker processes that name {path.parent}, end them, remove that folder",
        ) from None


def list_sandboxes() -> tuple[str, ...]:
    """Every sandbox that has a record, in order."""
    return tuple(
        sorted(path.parent.name for path in places.get_sandboxes_folder().glob(f"*/{FILE}"))
    )


def _decode_record(text: bytes, name: str) -> Sandbox:
    """Raises Misfit for what no command of ours wrote under this name."""
    sandbox = from_data(Sandbox, parse_json(text))
    if sandbox.name != name:
        raise Misfit(f"is not {name}").nest_in("name")
    if not sandbox.brokers:
        raise Misfit("is empty").nest_in("brokers")
    for number, broker in enumerate(sandbox.brokers):
        where = f"brokers[{number}]"
        ports = broker.ports
        if (ports.tls is None) is sandbox.tls:
            raise Misfit("is not as that of the first broker").nest_in(f"{where}.ports.tls")
        for port in (ports.client, ports.internal, ports.controller, ports.tls):
            if port is not None and not 0 < port < 1 << 16:
                raise Misfit("is not a port").nest_in(f"{where}.ports")
        if broker.process is not None and broker.process.pid <= 1:
            raise Misfit("is not the id of a process").nest_in(f"{where}.process.pid")
    return sandbox
