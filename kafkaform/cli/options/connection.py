"""Flags of commands that connect with or without a configuration.

--bootstrap-server, --command-config and --client-property name a cluster as Kafka's own tools do;
without them, the configuration of the folder names it, or --provider a cluster of the repository
file, from anywhere in the repository. A shell keeps its sessions open for the commands that are
typed in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct, field

from ...core.canonical import digest
from ...core.errors import KafkaformError, UsageError
from ...provider.contract import Session
from ...workflow.configuration.evaluation import Inputs
from ...workflow.configuration.instances import Systems
from ...workflow.connection import Connection, ConnectionInputs, resolve_configured, resolve_direct
from ..terminal.console import Console
from .flags import NoColor, Var, VarFile, take_flags

BootstrapServer = Annotated[
    str | None,
    typer.Option("--bootstrap-server", metavar="HOST:PORT,…", help="Connect to this cluster."),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config", metavar="FILE", help="Read Java client properties from this file."
    ),
]
ClientProperty = Annotated[
    list[str],
    typer.Option(
        "--client-property", metavar="KEY=VALUE", help="Set a client property; overrides the file."
    ),
]
ProviderInstance = Annotated[
    str | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        help="Use this provider block (kafka.eu) or cluster of the repository (cluster.prod).",
    ),
]


class ShellContext(Struct, frozen=True):
    """What a shell hands to the commands that are typed in it."""

    flags: ConnectionInputs
    """How the shell connects."""
    writes: bool = False
    """Commands can change something (--allow-apply)."""
    sessions: dict[str, Session] = field(default_factory=dict)
    """The open sessions."""
    systems: Systems = field(default_factory=Systems)
    """The clusters of the sessions that a configuration names."""

    def get_session(self, connection: Connection) -> Session:
        """The session of this connection, opened when it is first needed."""
        # Two commands with the same settings share a session, whatever flags gave the settings.
        key = digest([connection.instance, connection.settings.config])
        if key not in self.sessions:
            session = connection.open()
            if connection.configuration is not None:
                self.systems.enter(connection.settings, session)
            self.sessions[key] = session
        return self.sessions[key]

    def close(self) -> None:
        """End all sessions; the next command connects again."""
        self.systems.known.clear()
        while self.sessions:
            # A session of a cluster that has gone away cannot end properly, and need not.
            with suppress(KafkaformError):
                self.sessions.popitem()[1].close()


class Way(Struct, frozen=True):
    """How a command reaches its cluster."""

    flags: ConnectionInputs
    console: Console
    kept: ShellContext | None = None
    """The shell that the command is typed in, None outside of one."""

    @property
    def wanted(self) -> ConnectionInputs:
        """The command's own flags, or else those of the shell."""
        own = self.flags.direct or self.flags.provider is not None
        return self.flags if own or self.kept is None else self.kept.flags

    def resolve_connection(self) -> Connection:
        """Find the connection that the flags mean, and show warnings. Raises UsageError,
        ConfigurationError with every fault."""
        if not self.wanted.direct:
            return resolve_configured(self.wanted)
        connection, warnings = resolve_direct(self.wanted, os.environ)
        if self.wanted is self.flags:  # a shell has shown its own when it began
            self.console.show_diagnostics(warnings)
        return connection

    @contextmanager
    def open_session(self) -> Iterator[Session]:
        """Open a session until the block ends, or take the one of the shell."""
        connection = self.resolve_connection()
        if self.kept is not None:
            yield self.kept.get_session(connection)
            return
        session = connection.open()
        try:
            yield session
        finally:
            session.close()


def make_way(
    context: typer.Context,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    client_property: ClientProperty = [],
    provider: ProviderInstance = None,
    var: Var = [],
    var_file: VarFile = [],
    no_color: NoColor = False,
) -> Way:
    """Read the flags. Raises UsageError if they name a cluster in two ways."""
    inputs = Inputs.read(var, var_file)
    direct = ConnectionInputs(
        bootstrap_server, command_config, tuple(client_property), provider, inputs
    )
    if direct.direct and provider is not None:
        raise UsageError(
            "--provider names a block of the configuration or a cluster of the repository, and "
            "--bootstrap-server and its like go without one",
            "Give one of them.",
        )
    return Way(direct, Console.make_standard(no_color=no_color), context.find_object(ShellContext))


def read_direct_flags(
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    client_property: ClientProperty = [],
) -> ConnectionInputs:
    """The flags of a command that otherwise uses all provider blocks of the folder."""
    return ConnectionInputs(bootstrap_server, command_config, tuple(client_property))


connects = take_flags("way", make_way)
"""Decorates a command that needs a cluster: it gets the flags as its parameter `way`."""
