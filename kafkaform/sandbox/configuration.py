"""Renders a broker's properties, the storage format command and the Java command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from .record import HOST, Broker, Sandbox

ADMIN, CI, INTERNAL = "admin", "ci", "broker"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_LOGIN = "org.apache.kafka.common.security"
_JVM = (
    "-Xms256m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-XX:-UsePerfData",
)
LOGGING = """\
rootLogger.level=warn
rootLogger.appenderRef.c.ref=C
appender.c.type=Console
appender.c.name=C
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p %m (%c)%n
"""


def render_properties(sandbox: Sandbox, broker: Broker) -> str:
    """The text of this broker's properties file; the user's overrides come last and win."""
    settings = {
        **_make_node_settings(sandbox, broker),
        **_make_listener_settings(sandbox, broker),
        **_make_login_settings(sandbox),
        **_make_replication_settings(len(sandbox.brokers)),
        **dict(sandbox.config),
    }
    return "".join(f"{key}={escape_value(value)}\n" for key, value in settings.items())


def escape_value(value: str) -> str:
    """A value as Java's Properties.load reads it back: ISO 8859-1 with backslash escapes."""
    text = value.replace("\\", "\\\\")
    if text.startswith((" ", "\t", "\f")):
        text = "\\" + text
    return re.sub(r"[^\x09\x20-\x7e]", _escape_utf16, text)


def make_java_command(sandbox: Sandbox, java: Path, main: str, *arguments: str) -> list[str]:
    """The command line; the class path travels in the environment, where it may be long."""
    folder = sandbox.folder
    own = (
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        f"-XX:ErrorFile={folder / 'jvm-error.log'}",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
    )
    return [str(java), *_JVM, *own, main, *arguments]


def make_format_command(sandbox: Sandbox, java: Path, properties_file: str) -> list[str]:
    """The storage tool's command line: one cluster id and the SCRAM users for every broker."""
    users = ((ADMIN, sandbox.admin_password), (CI, sandbox.ci_password))
    arguments = ["format", "-t", sandbox.cluster_id, "-c", properties_file]
    for mechanism in SCRAM:
        for user, password in users:
            arguments += ["--add-scram", f"{mechanism}=[name={user},password={password}]"]
    return make_java_command(
        sandbox, java, "kafka.tools.StorageTool", *arguments, "--ignore-formatted"
    )


def render_argument_file(arguments: Sequence[str]) -> str:
    """The text of a file for `java @FILE`: one quoted argument a line, backslashes doubled."""
    quoted = (each.replace("\\", "\\\\").replace('"', '\\"') for each in arguments)
    return "".join(f'"{each}"\n' for each in quoted)


def _make_node_settings(sandbox: Sandbox, broker: Broker) -> Mapping[str, str]:
    voters = (f"{each.id}@{HOST}:{each.ports.controller}" for each in sandbox.brokers)
    return {
        "process.roles": "broker,controller",
        "node.id": str(broker.id),
        "broker.rack": f"r{broker.id}",
        # Static voters, for one broker too: they let the ports change when kept data is reused.
        "controller.quorum.voters": ",".join(voters),
        "log.dirs": str(sandbox.data / str(broker.id)),
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        # An idle controller writes a record twice a second, for monitors (KIP-835), which is almost
        # half of what an idle broker computes.
        "metadata.max.idle.interval.ms": "0",
    }


def _make_listener_settings(sandbox: Sandbox, broker: Broker) -> Mapping[str, str]:
    ports = broker.ports
    clients = {"CLIENT": ports.client, "INTERNAL": ports.internal}
    if ports.tls is not None:
        clients["TLS"] = ports.tls
    advertised = ",".join(f"{name}://{HOST}:{port}" for name, port in clients.items())
    protocols = dict.fromkeys((*clients, "CONTROLLER"), "SASL_PLAINTEXT")
    if ports.tls is not None:
        protocols["TLS"] = "SASL_SSL"
    tls = _make_tls_settings(sandbox.folder / "tls") if ports.tls is not None else {}
    return {
        "listeners": f"{advertised},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": advertised,
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
        "inter.broker.listener.name": "INTERNAL",
        "controller.listener.names": "CONTROLLER",
        **tls,
    }


def _make_tls_settings(folder: Path) -> Mapping[str, str]:
    # No passwords: Kafka rejects them with PEM stores (KIP-651).
    return {
        "listener.name.tls.ssl.keystore.type": "PEM",
        "listener.name.tls.ssl.keystore.location": str(folder / "server.pem"),
        "listener.name.tls.ssl.truststore.type": "PEM",
        "listener.name.tls.ssl.truststore.location": str(folder / "ca.pem"),
    }


def _make_login_settings(sandbox: Sandbox) -> Mapping[str, str]:
    """PLAIN and SCRAM for clients. Brokers use PLAIN among themselves: SCRAM credentials live
    in the log that the first contact is needed to read, and no login at all would make every
    local user a super user."""
    clients = ("client", "tls") if sandbox.tls else ("client",)
    users = {ADMIN: sandbox.admin_password, CI: sandbox.ci_password}
    own = {INTERNAL: sandbox.broker_password}
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:{INTERNAL}",
        "allow.everyone.if.no.acl.found": "false",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
    }
    for listener in clients:
        prefix = f"listener.name.{listener}"
        settings[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(("PLAIN", *SCRAM))
        settings[f"{prefix}.plain.sasl.jaas.config"] = _render_plain_login(users)
        for mechanism in SCRAM:
            key = f"{prefix}.{mechanism.lower()}.sasl.jaas.config"
            settings[key] = f"{_LOGIN}.scram.ScramLoginModule required;"
    for listener in ("internal", "controller"):
        settings[f"listener.name.{listener}.sasl.enabled.mechanisms"] = "PLAIN"
        settings[f"listener.name.{listener}.plain.sasl.jaas.config"] = _render_plain_login(
            own, INTERNAL
        )
    return settings


def _render_plain_login(users: Mapping[str, str], login: str | None = None) -> str:
    accepted = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    own = f'username="{login}" password="{users[login]}" ' if login else ""
    return f"{_LOGIN}.plain.PlainLoginModule required {own}{accepted};"


def _make_replication_settings(brokers: int) -> Mapping[str, str]:
    factor, in_sync = ("3", "2") if brokers == 3 else ("1", "1")
    return {
        "default.replication.factor": factor,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def _escape_utf16(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
