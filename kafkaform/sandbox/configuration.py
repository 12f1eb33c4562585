"""Render what brokers, ZooKeeper and their clients are configured with: properties, logins, command
lines of Java, provider blocks, shell exports.

Kafka before 4.0 can keep its metadata in ZooKeeper instead of with a controller.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from .record import DEFAULT_NAME, HOST, Broker, Sandbox, ServerKind
from .versions import find_traits, parse_version

ADMIN, CI, CONNECT, INTERNAL = "admin", "ci", "connect", "broker"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_LOGIN = "org.apache.kafka.common.security"
_SUPER_USERS = "super.users"
_ALLOW_IF_NO_ACL = "allow.everyone.if.no.acl.found"
_SHARE_GROUPS = (4, 0)  # KIP-932
ZOOKEEPER_LOGINS = "zookeeper-logins.conf"
ZOOKEEPER_SESSION = 18
"""Seconds after which ZooKeeper takes a broker for dead that said nothing, and lets go of its id:
Kafka's default. A busy computer can stop a broker for several seconds."""
# A broker for some minutes on a small machine: the heap starts small, and the first compiler alone
# and the serial collector need the least processor time until it answers.
_JVM = (
    "-Xms256m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-XX:-UsePerfData",
)
_AUTHORIZERS = {
    False: "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    True: "kafka.security.authorizer.AclAuthorizer",
}
"""By whether the ACLs are in ZooKeeper."""
# Without allow.everyone.if.no.acl.found: brokers hide its value, but a plan knows Kafka's default
# where they do not list it.
_ACCESS = {_SUPER_USERS: f"User:{ADMIN};User:{INTERNAL}"}
ZOOKEEPER_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
ZOOKEEPER_PROPERTIES = "zookeeper.properties"
_ZOOKEEPER_LOGIN = "org.apache.zookeeper.server.auth.DigestLoginModule required"
PASSWORD = "KAFKAFORM_SANDBOX_PASSWORD"
_AUTHORIZER = """
  authorizer {{
    super_users     = {}
    allow_if_no_acl = {}
  }}
"""
_URLS = {
    ServerKind.SCHEMA_REGISTRY: "KAFKAFORM_SANDBOX_SCHEMA_REGISTRY_URL",
    ServerKind.CONNECT: "KAFKAFORM_SANDBOX_CONNECT_URL",
}
_BLOCKS = {
    ServerKind.SCHEMA_REGISTRY: """
provider "schema_registry" {{
  url = "{url}"
}}
""",
    ServerKind.CONNECT: f"""
provider "kafka_connect" {{{{
  url      = "{{url}}"
  username = "{ADMIN}"
  password = secret_env("{PASSWORD}")
}}}}
""",
}


class SandboxAccess(Struct, frozen=True):
    """What the brokers' authorizer allows without an ACL."""

    super_users: tuple[str, ...]
    allow_if_no_acl: bool


def read_access(sandbox: Sandbox) -> SandboxAccess | None:
    """What the authorizer of this sandbox allows; the user can have overridden it. None without an
    authorizer."""
    if not sandbox.authorizer:
        return None
    settings = {**_ACCESS, **dict(sandbox.config)}
    users = (user.strip() for user in settings[_SUPER_USERS].split(";"))
    allow = settings.get(_ALLOW_IF_NO_ACL, "").strip().lower() == "true"
    return SandboxAccess(tuple(filter(None, users)), allow)


def render_properties(sandbox: Sandbox, broker: Broker) -> str:
    """The text of a broker's properties file. The user's overrides come last and win."""
    settings = {
        **_make_node_settings(sandbox, broker),
        **_make_listener_settings(sandbox, broker),
        **_make_login_settings(sandbox),
        **_make_replication_settings(len(sandbox.brokers), parse_version(sandbox.kafka_version)),
        **dict(sandbox.config),
    }
    return "".join(f"{key}={escape_value(value)}\n" for key, value in settings.items())


def escape_value(value: str) -> str:
    """A value in the form that Java's Properties.load reads: ISO 8859-1 with escapes."""
    text = value.replace("\\", "\\\\")
    if text.startswith((" ", "\t", "\f")):
        text = "\\" + text
    return re.sub(r"[^\x09\x20-\x7e]", _escape_utf16, text)


def make_java_command(
    sandbox: Sandbox, java: Path, main: str, *arguments: str, options: Sequence[str] = ()
) -> list[str]:
    """The command line of Java. options: of Java itself; they win over the sandbox's own."""
    # The class path is in the environment: with it, nobody could read the command line in `ps`.
    folder, logging = sandbox.folder, find_traits(sandbox.kafka_version).logging
    properties = (
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        f"-XX:ErrorFile={folder / 'jvm-error.log'}",
        f"-D{logging.option}={(folder / logging.file_name).as_uri()}",
    )
    # The brokers' listeners have logins of their own, which win over this file.
    logins = f"-Djava.security.auth.login.config={folder / ZOOKEEPER_LOGINS}"
    zookeeper = (logins,) if sandbox.zookeeper else ()
    return [str(java), *_JVM, *properties, *zookeeper, *options, main, *arguments]


def make_format_command(sandbox: Sandbox, java: Path, properties_file: str) -> list[str]:
    """The command line of the storage tool."""
    # Every broker needs the same cluster id and the same SCRAM users: these are records of the log
    # that all of them replicate (KIP-900).
    users = ((ADMIN, sandbox.admin_password), (CI, sandbox.ci_password))
    arguments = ["format", "-t", sandbox.cluster_id, "-c", properties_file]
    for mechanism in SCRAM:
        for user, password in users:
            arguments += ["--add-scram", f"{mechanism}=[name={user},password={password}]"]
    return make_java_command(
        sandbox, java, "kafka.tools.StorageTool", *arguments, "--ignore-formatted"
    )


def render_argument_file(arguments: Sequence[str]) -> str:
    """The text of a file for `java @FILE`: one quoted argument per line, with doubled
    backslashes."""
    quoted = (argument.replace("\\", "\\\\").replace('"', '\\"') for argument in arguments)
    return "".join(f'"{argument}"\n' for argument in quoted)


def _make_node_settings(sandbox: Sandbox, broker: Broker) -> Mapping[str, str]:
    make = _make_zookeeper_settings if sandbox.zookeeper else _make_controller_settings
    return {
        **make(sandbox, broker),
        "broker.rack": f"r{broker.id}",
        "log.dirs": str(sandbox.data / str(broker.id)),
        # A typing error in a client must not create a topic that a plan then finds.
        "auto.create.topics.enable": "false",
        # Kafka's 3 s wait for more members makes each test with a consumer slower.
        "group.initial.rebalance.delay.ms": "0",
    }


def _make_controller_settings(sandbox: Sandbox, broker: Broker) -> Mapping[str, str]:
    """Of a broker that is one of the controllers, too."""
    voters = (f"{voter.id}@{HOST}:{voter.ports.controller}" for voter in sandbox.brokers)
    return {
        "process.roles": "broker,controller",
        "node.id": str(broker.id),
        # Static voters (KIP-595) also for one broker. Dynamic ones (KIP-853) are records of the
        # log, with the port of the first start, which can be taken when kept data is used again.
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": "CONTROLLER",
        "sasl.mechanism.controller.protocol": "PLAIN",
        # An idle controller writes a record twice a second, for monitors (KIP-835). That is almost
        # half of the processor time of an idle broker.
        "metadata.max.idle.interval.ms": "0",
    }


def _make_zookeeper_settings(sandbox: Sandbox, broker: Broker) -> Mapping[str, str]:
    """Of a broker whose cluster has its metadata in ZooKeeper."""
    return {
        "broker.id": str(broker.id),
        "zookeeper.connect": f"{HOST}:{broker.ports.controller}",
        "zookeeper.connection.timeout.ms": "30000",
        "zookeeper.session.timeout.ms": str(ZOOKEEPER_SESSION * 1000),
        "zookeeper.set.acl": "true",
    }


def _make_listener_settings(sandbox: Sandbox, broker: Broker) -> Mapping[str, str]:
    ports = broker.ports
    clients = {"CLIENT": ports.client, "INTERNAL": ports.internal}
    if ports.tls is not None:
        clients["TLS"] = ports.tls
    controllers = {} if sandbox.zookeeper else {"CONTROLLER": ports.controller}
    protocols = dict.fromkeys((*clients, *controllers), "SASL_PLAINTEXT")
    if ports.tls is not None:
        protocols["TLS"] = "SASL_SSL"
    tls = _make_tls_settings(sandbox.folder / "tls") if ports.tls is not None else {}
    return {
        "listeners": _render_listeners({**clients, **controllers}),
        "advertised.listeners": _render_listeners(clients),
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
        "inter.broker.listener.name": "INTERNAL",
        **tls,
    }


def _render_listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())


def _make_tls_settings(folder: Path) -> Mapping[str, str]:
    # No passwords: Kafka rejects them with PEM stores (KIP-651).
    return {
        "listener.name.tls.ssl.keystore.type": "PEM",
        "listener.name.tls.ssl.keystore.location": str(folder / "server.pem"),
        "listener.name.tls.ssl.truststore.type": "PEM",
        "listener.name.tls.ssl.truststore.location": str(folder / "ca.pem"),
    }


def _make_login_settings(sandbox: Sandbox) -> Mapping[str, str]:
    """PLAIN and SCRAM for clients, PLAIN between brokers."""
    # Brokers cannot use SCRAM: its credentials are in the log that they can read only after the
    # first login. Without a login, ANONYMOUS would have to be a super user, and so every local
    # user.
    clients = ("client", "tls") if sandbox.tls else ("client",)
    users = {
        ADMIN: sandbox.admin_password,
        CI: sandbox.ci_password,
        # Also without Connect, which can be added while the brokers run.
        CONNECT: sandbox.connect_password,
    }
    broker_login = {INTERNAL: sandbox.broker_password}
    settings = {"sasl.mechanism.inter.broker.protocol": "PLAIN"}
    if sandbox.authorizer:
        settings |= {"authorizer.class.name": _AUTHORIZERS[sandbox.zookeeper], **_ACCESS}
    for listener in clients:
        prefix = f"listener.name.{listener}"
        settings[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(("PLAIN", *SCRAM))
        settings[f"{prefix}.plain.sasl.jaas.config"] = _render_plain_login(users)
        for mechanism in SCRAM:
            key = f"{prefix}.{mechanism.lower()}.sasl.jaas.config"
            settings[key] = f"{_LOGIN}.scram.ScramLoginModule required;"
    for listener in ("internal",) if sandbox.zookeeper else ("internal", "controller"):
        settings[f"listener.name.{listener}.sasl.enabled.mechanisms"] = "PLAIN"
        settings[f"listener.name.{listener}.plain.sasl.jaas.config"] = _render_plain_login(
            broker_login, INTERNAL
        )
    return settings


def _render_plain_login(users: Mapping[str, str], login: str | None = None) -> str:
    accepted = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    credentials = f'username="{login}" password="{users[login]}" ' if login else ""
    return f"{_LOGIN}.plain.PlainLoginModule required {credentials}{accepted};"


def _make_replication_settings(brokers: int, version: tuple[int, int]) -> Mapping[str, str]:
    # Kafka's internal topics want three replicas by default, and are never created on one broker
    # then: groups and transactions would wait for ever.
    factor, in_sync = ("3", "2") if brokers == 3 else ("1", "1")
    shares = {
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": in_sync,
    }
    return {
        "default.replication.factor": factor,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
        **(shares if version >= _SHARE_GROUPS else {}),
    }


def _escape_utf16(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def render_zookeeper_properties(sandbox: Sandbox) -> str:
    """The text of ZooKeeper's properties file."""
    settings = {
        "dataDir": str(sandbox.data / "zookeeper"),
        "clientPort": str(sandbox.brokers[0].ports.controller),
        "clientPortAddress": HOST,
        # The web page of ZooKeeper's administrator listens on all addresses.
        "admin.enableServer": "false",
        # Any local user could connect, read the credentials and write ACLs. Without a login
        # ZooKeeper answers nothing (ZOOKEEPER-3561).
        "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "enforce.auth.enabled": "true",
        "enforce.auth.schemes": "sasl",
    }
    return "".join(f"{key}={escape_value(value)}\n" for key, value in settings.items())


def render_zookeeper_logins(sandbox: Sandbox) -> str:
    """The text of the JAAS file of ZooKeeper and its clients."""
    password = sandbox.broker_password
    return (
        f'Server {{\n  {_ZOOKEEPER_LOGIN} user_{INTERNAL}="{password}";\n}};\n'
        f'Client {{\n  {_ZOOKEEPER_LOGIN} username="{INTERNAL}" password="{password}";\n}};\n'
    )


def make_users_command(sandbox: Sandbox, java: Path, user: str) -> list[str]:
    """The command line that stores the SCRAM credentials of a user."""
    # As the storage tool does with a controller: before the first broker runs, nobody could be
    # asked to alter them.
    password = {ADMIN: sandbox.admin_password, CI: sandbox.ci_password}[user]
    credentials = ",".join(f"{mechanism}=[password={password}]" for mechanism in SCRAM)
    address = f"{HOST}:{sandbox.brokers[0].ports.controller}"
    arguments = ("--zookeeper", address, "--alter", "--add-config", credentials)
    entity = ("--entity-type", "users", "--entity-name", user)
    return make_java_command(sandbox, java, "kafka.admin.ConfigCommand", *arguments, *entity)


class Format(StrEnum):
    PROVIDER = "provider"
    PROPERTIES = "properties"
    SHELL = "shell"


def render(sandbox: Sandbox, form: Format) -> str:
    """The connection to a sandbox in this format, with a final newline. The provider block has the
    variable of the password instead of the password."""
    return _FORMATS[form](sandbox)


def render_provider(sandbox: Sandbox) -> str:
    """A configuration file with the provider block, and comments that say how to get the rest."""
    name = "" if sandbox.name == DEFAULT_NAME else f" --name {sandbox.name}"
    env = f"kafkaform sandbox env{name} --format"
    # Brokers do not report the settings of their authorizer. Without them nobody can know whether
    # deleting the last ACL of a resource opens it to everybody, and a `destroy` would be blocked.
    access = read_access(sandbox)
    authorizer = (
        ""
        if access is None
        else _AUTHORIZER.format(
            _render_list(access.super_users), str(access.allow_if_no_acl).lower()
        )
    )
    description = f'"{sandbox.name}", Kafka {sandbox.kafka_version}'
    return f"""\
# The sandbox {description}. Its password is in the environment after
#   eval "$({env} {Format.SHELL})"
# Properties for Kafka's own tools: {env} {Format.PROPERTIES}
provider "kafka" {{
  bootstrap_servers = {_render_list(sandbox.bootstrap.split(","))}
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "{ADMIN}"
  sasl_password     = secret_env("{PASSWORD}")
{authorizer}}}
{_render_servers(sandbox)}"""


def _render_servers(sandbox: Sandbox) -> str:
    """The provider blocks of the servers beside the brokers."""
    return "".join(_BLOCKS[server.kind].format(url=server.url) for server in sandbox.servers)


def _render_list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_quote_string, texts))}]"


def _quote_string(text: str) -> str:
    # JSON's escapes are HCL's, apart from those of templates.
    return json.dumps(text).replace("${", "$${").replace("%{", "%%{")


def render_client_properties(sandbox: Sandbox) -> str:
    """Properties for Kafka's own tools (`--command-config FILE`)."""
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return f"""\
bootstrap.servers={sandbox.bootstrap}
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config={login} required username="{ADMIN}" password="{sandbox.admin_password}";
"""


def locate_properties(sandbox: Sandbox) -> Path:
    """The file into which `up` writes the client properties."""
    return sandbox.folder / "client.properties"


def render_shell(sandbox: Sandbox) -> str:
    """Exports for a POSIX shell: `eval "$(kafkaform sandbox env --format shell)"`."""
    values = {
        "KAFKAFORM_SANDBOX_BOOTSTRAP": sandbox.bootstrap,
        PASSWORD: sandbox.admin_password,
        "KAFKAFORM_SANDBOX_CI_PASSWORD": sandbox.ci_password,
        "KAFKAFORM_SANDBOX_CLIENT_PROPERTIES": str(locate_properties(sandbox)),
    }
    if sandbox.bootstrap_tls is not None:
        values["KAFKAFORM_SANDBOX_BOOTSTRAP_TLS"] = sandbox.bootstrap_tls
        values["KAFKAFORM_SANDBOX_CA_FILE"] = str(sandbox.ca_file)
    for server in sandbox.servers:
        values[_URLS[server.kind]] = server.url
    if sandbox.find_server(ServerKind.CONNECT) is not None:
        values["KAFKAFORM_SANDBOX_CONNECT_SECRETS"] = str(sandbox.connect_secrets)
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())


_FORMATS: dict[Format, Callable[[Sandbox], str]] = {
    Format.PROVIDER: render_provider,
    Format.PROPERTIES: render_client_properties,
    Format.SHELL: render_shell,
}
