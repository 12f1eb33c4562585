"""The options of `sandbox up`, checked before anything is changed."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from ..core.errors import UsageError
from .versions import NO_ZOOKEEPER, choose_version, find_newest, parse_version

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
