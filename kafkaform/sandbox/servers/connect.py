"""Run a worker of Kafka Connect in distributed mode, as a cluster of one."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from ...core.errors import UsageError
from ...core.progress import Reporter
from ...core.storage import make_private_folder
from .. import folders
from ..configuration import ADMIN, CONNECT, INTERNAL, escape_value
from ..jars import Jar, Source, ensure_jars, list_distribution, parse_jar, split_list
from ..record import HOST, Sandbox, Server
from .program import Program

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
        read_pinned_jars(version), report, source, f"{PROGRAM.title} {version}"
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
        folders.write_private(file, text)


def _make_options(_: Sandbox, __: Server) -> Sequence[str]:
    return (f"-Djava.security.auth.login.config={_LOGINS}",)


def _make_headers(sandbox: Sandbox) -> Mapping[str, str]:
    login = base64.b64encode(f"{ADMIN}:{sandbox.admin_password}".encode()).decode("ascii")
    return {"Authorization": f"Basic {login}"}


PROGRAM = Program(
    title="Kafka Connect",
    main="org.apache.kafka.connect.cli.ConnectDistributed",
    find_class_path=_find_class_path,
    write_files=_write_files,
    make_options=_make_options,
    make_arguments=lambda _, __: (_PROPERTIES,),
    ready_path="/connectors",
    make_headers=_make_headers,
)
