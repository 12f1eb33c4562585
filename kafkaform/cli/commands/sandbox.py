"""`kafkaform sandbox up|down|status|env|logs`: run a real Kafka on this computer."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from ... import sandbox
from ...core.errors import ConnectError, KafkaformError, UsageError
from ...core.progress import Event, Message
from ...core.secret import Secret
from ...core.text import render_amount
from ...core.value import FrozenMap, SecretRef
from ...provider.registry import Registry
from ...sandbox import ServerKind, servers
from ...sandbox.record import HOST
from ..terminal import console as terminal
from ..terminal.console import outlive_output

app = typer.Typer(help="Run a real Kafka on this computer to try things out.", no_args_is_help=True)

Name = Annotated[
    str, typer.Option("--name", help="The sandbox's name; several can run side by side.")
]
Timeout = Annotated[
    float,
    typer.Option(
        help="Wait this many seconds for the brokers, and three times as long for servers beside "
        "them."
    ),
]
KafkaVersion = Annotated[
    str | None,
    typer.Option(
        "--kafka-version",
        help="Run this version of Kafka.",
        show_default=f"{sandbox.DEFAULT_VERSION}, or that of KAFKA_HOME",
    ),
]
_CONNECT_SECONDS = 1.0
_SLOWER = 3.0
"""How much longer than brokers the servers beside them may take."""
_TITLES = {ServerKind.SCHEMA_REGISTRY: "schema registry", ServerKind.CONNECT: "Kafka Connect"}


def count_brokers(box: sandbox.Sandbox) -> int:
    """The number of brokers that the cluster names to `admin`; 0 while none answers."""
    # Opening a session looks for the cause of a failure, which takes too long while brokers start.
    if not all(_is_listening(broker.ports.client) for broker in box.brokers):
        return 0
    password = SecretRef("variable", "admin_password")
    settings = FrozenMap(
        bootstrap_servers=(box.bootstrap,),
        security_protocol="SASL_PLAINTEXT",
        sasl_username="admin",
        sasl_password=password,
    )
    try:
        kafka = Registry().load("kafka")
        session = kafka.open("kafka", settings, {str(password): Secret(box.admin_password)})
    except ConnectError:
        # Brokers that are starting or have died do not count.
        return 0
    with closing(session):
        return len(session.facts.nodes)


def _is_listening(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


@app.command()
def up(
    name: Name = sandbox.DEFAULT_NAME,
    brokers: Annotated[int, typer.Option(help="1 broker, or 3 in racks r1 to r3.")] = 1,
    tls: Annotated[bool, typer.Option("--tls", help="Add a SASL_SSL listener.")] = False,
    config: Annotated[
        list[str] | None, typer.Option("--config", help="Set a broker property: KEY=VALUE.")
    ] = None,
    classpath: Annotated[
        list[Path] | None, typer.Option("--classpath", help="Add a JAR with a policy or plugin.")
    ] = None,
    keep_data: Annotated[
        bool, typer.Option("--keep-data", help="Keep the data after `down`, for the next `up`.")
    ] = False,
    timeout: Timeout = 60.0,
    kafka_version: KafkaVersion = None,
    zookeeper: Annotated[
        bool,
        typer.Option("--zookeeper", help="Keep the metadata in ZooKeeper (Kafka before 4.0)."),
    ] = False,
    authorizer: Annotated[
        bool, typer.Option(help="Check ACLs. With --no-authorizer, every user can do everything.")
    ] = True,
    schema_registry: Annotated[
        bool, typer.Option("--schema-registry", help="Run a schema registry beside the brokers.")
    ] = False,
    connect: Annotated[
        bool, typer.Option("--connect", help="Run Kafka Connect beside the brokers.")
    ] = False,
) -> None:
    """Start a sandbox and wait until all its brokers and servers answer.

    Servers can be added to a sandbox that runs. They belong to it until its data is removed.
    """
    options = sandbox.SandboxOptions(
        name,
        brokers,
        tls,
        tuple(map(sandbox.parse_override, config or ())),
        tuple(classpath or ()),
        keep_data,
        timeout,
        kafka_version,
        zookeeper,
        authorizer,
    )
    flags = {ServerKind.SCHEMA_REGISTRY: schema_registry, ServerKind.CONNECT: connect}
    # Brokers that are starting must not be left behind because a pipe was closed.
    outlive_output()
    _report_ready(_start(options, [kind for kind, is_asked in flags.items() if is_asked]))


def _start(options: sandbox.SandboxOptions, kinds: Sequence[ServerKind]) -> sandbox.Sandbox:
    if kinds:
        servers.start.check_servers(kinds, options.kafka_version)
    with _Screen() as screen:
        box = sandbox.up(options, count_brokers, screen.report)
        if not kinds and not box.servers:
            return box
        return servers.start.start_servers(
            box.name, kinds, options.ready_within * _SLOWER, screen.report
        )


def _report_ready(box: sandbox.Sandbox) -> None:
    typer.echo(f"sandbox {box.name} is ready: {box.bootstrap}")
    if box.bootstrap_tls is not None:
        typer.echo(f"with TLS: {box.bootstrap_tls} (authority: {box.ca_file})")
    for server in box.servers:
        typer.echo(f"{_TITLES[server.kind]}: {server.url}")
    flag = "" if box.name == sandbox.DEFAULT_NAME else f" --name {box.name}"
    typer.echo(f"Connect to it: kafkaform sandbox env{flag} > provider.kf.hcl")


@app.command()
def down(
    name: Name = sandbox.DEFAULT_NAME,
    keep_data: Annotated[
        bool | None,
        typer.Option("--keep-data/--no-keep-data", help="Default: as chosen with `up`."),
    ] = None,
) -> None:
    """Stop a sandbox and remove its data."""
    outlive_output()
    with _Screen() as screen:
        stopped = sandbox.down(name, keep_data, screen.report)
    if stopped is None:
        typer.echo(f"there is no sandbox named {name}; nothing to do")
    elif stopped.data_kept:
        typer.echo(f"sandbox {name} has ended; its data is kept: {stopped.sandbox.data}")
    else:
        typer.echo(f"sandbox {name} has ended; its data is removed")


@app.command()
def status(
    name: Annotated[
        str | None, typer.Option("--name", help="Show only this sandbox. Default: all.")
    ] = None,
) -> None:
    """Show all sandboxes and their status."""
    names = (name,) if name is not None else sandbox.list_sandboxes()
    if not names:
        typer.echo("there are no sandboxes; `kafkaform sandbox up` makes one")
    for sandbox_name in names:
        try:
            typer.echo(_render_status(sandbox.read_status(sandbox_name)))
        except KafkaformError as error:
            # One broken sandbox must not hide the others.
            if name is not None:
                raise
            typer.echo(f"{sandbox_name}: {error.message}\n  {error.advice}")


@app.command()
def env(
    name: Name = sandbox.DEFAULT_NAME,
    format: Annotated[
        sandbox.Format, typer.Option(help="What to print.")
    ] = sandbox.Format.PROVIDER,
) -> None:
    """Print connection settings.

    By default this is a file for a configuration folder: `kafkaform sandbox env > provider.kf.hcl`.
    """
    running = sandbox.read_status(name)
    # Standard output can be a file of the configuration, so everything else goes to stderr.
    if running.state is not sandbox.SandboxState.RUNNING:
        typer.echo(f"{name} is {running.state}: {running.explanation}", err=True)
    typer.echo(sandbox.render(running.sandbox, format), nl=False)


@app.command()
def logs(
    name: Name = sandbox.DEFAULT_NAME,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="Show this many lines of each log.")
    ] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines until Ctrl-C.")
    ] = False,
) -> None:
    """Show the logs of the brokers and servers."""
    box = sandbox.load_sandbox(name)
    if box is None:
        raise UsageError(
            f"there is no sandbox named {name}", "`kafkaform sandbox status` lists all"
        )
    for line in sandbox.follow_logs(box, lines) if follow else sandbox.read_last_lines(box, lines):
        typer.echo(line)


def _render_status(running: sandbox.SandboxStatus) -> str:
    box = running.sandbox
    rows = {
        "state": running.state.value,
        "kafka": box.kafka_version + (", with ZooKeeper" if box.zookeeper else ""),
        "brokers": f"{len(running.alive)} of {len(box.brokers)} alive",
        "bootstrap": box.bootstrap,
        "tls": box.bootstrap_tls or "",
        **{
            server.kind.value: f"{server.url} "
            f"({'alive' if server in running.alive_servers else 'ended'})"
            for server in box.servers
        },
        "data": f"{render_amount(running.data_bytes, 'bytes')} in {box.data}",
        "note": running.explanation,
    }
    width = max(10, *map(len, rows))
    lines = (f"  {key:<{width}} {text}" for key, text in rows.items() if text)
    return "\n".join((box.name, *lines))


class _Screen:
    """Draws progress on standard error while the block runs."""

    def __init__(self) -> None:
        is_coloured = terminal.Console.make_standard().errors_colour
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True, no_color=not is_coloured),
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> _Screen:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def report(self, event: Event) -> None:
        if isinstance(event, Message):
            self._bars.console.print(event.text, markup=False, highlight=False, soft_wrap=True)
            return
        if event.task not in self._tasks:
            self._tasks[event.task] = self._bars.add_task(event.label, figures="")
        total = event.total or 0
        in_bytes = event.unit == "bytes"
        figures = " / ".join(
            render_amount(n, "bytes") if in_bytes else str(n) for n in (event.done, total)
        )
        task = self._tasks[event.task]
        self._bars.update(task, completed=event.done, total=event.total, figures=figures)
