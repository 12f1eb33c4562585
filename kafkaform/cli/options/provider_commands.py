"""Commands that providers offer, such as those of `describe`: their signatures are translated for
typer, their flags say how to connect, and their answers are shown as text or JSON.

--bootstrap-server, --command-config and --client-property name a cluster as Kafka's own tools do;
without them, the configuration of the folder names it, or --provider a cluster of the repository
file, from anywhere in the repository. A shell keeps its sessions open for the commands that are
typed in it.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from msgspec import Struct, field
from msgspec.structs import replace

from ... import workflow
from ...core.canonical import digest
from ...core.errors import KafkaformError, UsageError
from ...provider.commands import (
    Command,
    Complete,
    Operand,
    Option,
    Question,
)
from ...provider.contract import Session
from ...provider.registry import Registry
from ...render.text import render_json, render_page
from ...workflow.configuration.evaluation import Inputs
from ...workflow.configuration.instances import Systems
from ...workflow.connection import (
    KAFKA,
    Connection,
    ConnectionInputs,
    resolve_configured,
    resolve_direct,
    resolve_partners,
)
from ..terminal.console import Console
from .flags import InOrder, NoColor, Var, VarFile, complete_names, take_flags

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
        self.systems.scopes.clear()
        while self.sessions:
            # A session of a cluster that has gone away cannot end properly, and need not.
            with suppress(KafkaformError):
                self.sessions.popitem()[1].close()


class Opener(Struct, frozen=True):
    """Opens sessions for a command: by its own flags, or by those of the shell around it."""

    flags: ConnectionInputs
    console: Console
    shell: ShellContext | None = None
    """The shell that the command is typed in, None outside of one."""
    provider: str = KAFKA
    """The provider that the command is for."""

    @property
    def inputs(self) -> ConnectionInputs:
        """The command's own flags, or else those of the shell."""
        own = self.flags.direct or self.flags.provider is not None
        if own or self.shell is None:
            return self.flags
        if self.provider == KAFKA:
            return self.shell.flags
        # What the shell names is a Kafka cluster.
        return ConnectionInputs(inputs=self.shell.flags.inputs)

    def resolve_connection(self) -> Connection:
        """Find the connection that the flags mean, and show warnings. Raises UsageError,
        ConfigurationError with every fault."""
        if not self.inputs.direct:
            return resolve_configured(self.inputs, self.provider)
        connection, warnings = resolve_direct(self.inputs, os.environ)
        if self.inputs is self.flags:  # a shell has shown its own when it began
            self.console.show_diagnostics(warnings)
        return connection

    @contextmanager
    def open_session(self) -> Iterator[Session]:
        """Open a session until the block ends, or take the one of the shell."""
        with self.open(self.resolve_connection()) as session:
            yield session

    @contextmanager
    def open(self, connection: Connection) -> Iterator[Session]:
        """The same over a connection that is resolved."""
        if self.shell is not None:
            yield self.shell.get_session(connection)
            return
        session = connection.open()
        try:
            yield session
        finally:
            session.close()


def make_opener(
    context: typer.Context,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    client_property: ClientProperty = [],
    provider: ProviderInstance = None,
    var: Var = [],
    var_file: VarFile = [],
    no_color: NoColor = False,
) -> Opener:
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
    return Opener(
        direct, Console.make_standard(no_color=no_color), context.find_object(ShellContext)
    )


def make_configured_opener(
    context: typer.Context,
    provider: ProviderInstance = None,
    var: Var = [],
    var_file: VarFile = [],
    no_color: NoColor = False,
) -> Opener:
    """Read the flags of a command for a system that only a provider block names."""
    flags = ConnectionInputs(provider=provider, inputs=Inputs.read(var, var_file))
    return Opener(
        flags, Console.make_standard(no_color=no_color), context.find_object(ShellContext)
    )


def read_direct_flags(
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    client_property: ClientProperty = [],
) -> ConnectionInputs:
    """The flags of a command that otherwise uses all provider blocks of the folder."""
    return ConnectionInputs(bootstrap_server, command_config, tuple(client_property))


connects = take_flags("opener", make_opener)
"""Decorates a command that needs a cluster: it gets an Opener as its parameter `opener`."""


def take_connection(provider: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command that needs a system of this provider, which only Kafka's flags can name
    without a block: it gets an Opener as its parameter `opener`."""
    return connects if provider == KAFKA else take_flags("opener", make_configured_opener)


class _Offered(InOrder):
    """A command whose usage line has operands as the documents write them."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        # typer writes `{NAME…}` for an operand that must be given, and `[NAME…]` for others.
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


def make_app(
    group: str, run: Callable[[Callable[..., Any], str], Callable[..., None]]
) -> typer.Typer:
    """The commands of a group. run: makes a command from the function that checks its arguments,
    and the name of the provider."""
    groups = Registry().load_commands(group)
    app = typer.Typer(help=" ".join(item.help for item in groups), no_args_is_help=True)
    for item in groups:
        for command in item.commands:
            function = run(_translate_signature(command), item.provider)
            function.__doc__ = command.make.__doc__
            app.command(command.name, cls=_Offered)(function)
    return app


def find_completions(group: str, name: str) -> Mapping[str, Complete]:
    """How the words of a command are completed: by flag, and "" for operands."""
    commands = (
        command for loaded in Registry().load_commands(group) for command in loaded.commands
    )
    command = next((command for command in commands if command.name == name), None)
    completions: dict[str, Complete] = {}
    for argument in map(_read_argument, _list_parameters(command) if command else ()):
        if argument.complete is not None:
            key = argument.flag if isinstance(argument, Option) else ""
            completions[key] = argument.complete
    return completions


def _list_parameters(command: Command) -> list[inspect.Parameter]:
    return list(inspect.signature(command.make, eval_str=True).parameters.values())


def _read_argument(parameter: inspect.Parameter) -> Option | Operand:
    """The `Option` or `Operand` in a parameter's annotation."""
    assert get_origin(parameter.annotation) is Annotated, f"{parameter.name} has no Option"
    argument = get_args(parameter.annotation)[1]
    assert isinstance(argument, Option | Operand)
    return argument


def _translate_signature(command: Command) -> Callable[..., Any]:
    """The function of a command with the annotations of typer."""

    @wraps(command.make)
    def make(**values: Any) -> Any:
        return command.make(**values)

    parameters = [_translate_parameter(parameter) for parameter in _list_parameters(command)]
    # typer reads flags and help from signatures (PEP 362) and docstrings only.
    make.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # PEP 362
    return make


def _translate_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    argument, type_ = _read_argument(parameter), get_args(parameter.annotation)[0]
    offer = None if argument.complete is None else _make_completion(argument.complete)
    meaning = (
        typer.Option(
            argument.flag,
            metavar=argument.metavar,
            help=argument.help,
            autocompletion=offer,
            hidden=argument.hidden,
        )
        if isinstance(argument, Option)
        else typer.Argument(metavar=argument.metavar, autocompletion=offer)
    )
    return parameter.replace(annotation=Annotated[type_, meaning])


def _make_completion(complete: Complete) -> Callable[[typer.Context, str], list[str]]:
    def offer(ctx: typer.Context, incomplete: str) -> list[str]:
        return complete_names(ctx, incomplete, complete)

    return offer


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def answer_question(make: Callable[..., Question], provider: str) -> Callable[..., None]:
    """A command that asks the question that `make` makes from its flags, and shows the answer."""

    @take_connection(provider)
    @take_flags("question", make, first=True)
    def command(opener: Opener, question: Question, json: Json = False) -> None:
        _show_answer(replace(opener, provider=provider), question, json)

    return command


def _show_answer(opener: Opener, question: Question, json: bool) -> None:
    """Ask and show. Raises KafkaformError for what cannot be read, after everything else is
    shown."""
    opener.console.show_diagnostics(question.warnings)
    connection = opener.resolve_connection()
    with opener.open(connection) as session:
        answer = question.read(session)
        partner = question.ask_partner(answer.document)
        if partner is not None:
            connections = resolve_partners(connection, opener.inputs, partner.provider)
            id = session.facts.partners.get(partner.provider)
            reply = workflow.live_looks.ask_partner(partner, connections, id, opener.open)
            answer = replace(answer, document=partner.add(answer.document, reply))
    if json:
        opener.console.write(render_json(answer.document))
    else:
        width = get_terminal_width(opener.console)
        opener.console.write_lines(render_page(question.page(answer.document), width))
    if answer.fault is not None:
        raise answer.fault


def get_terminal_width(console: Console) -> int | None:
    """The largest width of a table; None for a pipe, where nothing is cut off."""
    return console.width if sys.stdout.isatty() else None
