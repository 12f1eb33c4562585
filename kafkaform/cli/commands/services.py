"""Commands that run until they are stopped: `kafkaform lsp`, the language server that editors
start, and `kafkaform serve`, which shows the state, log and plans of a folder, or of all folders of
a repository, in a browser on this computer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ... import editor, window, workflow
from ...core.errors import Ended, UsageError
from ...core.installation import render_extra_command
from ...workflow import fleet
from ...workflow.configuration.evaluation import Inputs
from ...workflow.configuration.repository_file import read_repository
from ...workflow.configuration.repository_place import find_top_file
from ...workflow.history import RecentChanges
from ...workflow.stores import STATE_VARIABLE, open_store
from ..options.flags import StateFile, Var, VarFile
from ..terminal.bug_report import render_summary
from ..terminal.console import Console

FLEET_FILE = Path("fleet.hcl")


def lsp(
    live: Annotated[
        bool,
        typer.Option("--live", help="Let a hover over a resource ask the cluster who uses it now."),
    ] = False,
) -> None:
    """Serve an editor with the Language Server Protocol.

    Editors start this command and talk to it over standard input and output. It checks what is
    typed, completes, explains, finds and renames. It needs no cluster, reads no secrets and runs no
    commands, except for a hover with --live.
    """
    try:
        run_server = editor.server.run_server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise UsageError(
            "the language server needs packages that are not installed",
            f"Run `{render_extra_command('lsp')}`.",
        ) from None
    # The library closes its streams at the end, and the command line still flushes its own then.
    with os.fdopen(os.dup(0), "rb") as incoming, os.fdopen(os.dup(1), "wb") as outgoing:
        look = workflow.live_looks.LiveLooks(Inputs.read(())).list_lines if live else None
        run_server(incoming, outgoing, RecentChanges().list_lines, look)


def serve(
    port: Annotated[
        int,
        typer.Option("--port", metavar="N", min=0, max=65_535, help="Default: any free port."),
    ] = 0,
    root: Annotated[
        str | None,
        typer.Option(
            "--fleet-root",
            metavar="PLACE",
            envvar="KAFKAFORM_FLEET_ROOT",
            help=f"Where the fleet's files are. Default: the root in {FLEET_FILE}.",
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Let pages ask the cluster who uses a topic now, and for its disks."
        ),
    ] = False,
    state: StateFile = None,
    var: Var = [],
    var_file: VarFile = [],
) -> None:
    """Show state, log, plans and fleet tables in a browser.

    At the top of a repository (kafkaform.hcl), shows all its folders. Changes nothing and does not
    connect to a cluster, except with --live when a button asks for it. Only who has the printed
    address sees the pages.
    """
    console = Console.make_standard()
    fleet_root, inputs = root or _find_fleet_root(), Inputs.read(var, var_file)
    folder, store = Path.cwd(), open_store(state)
    is_named = bool(state or os.environ.get(STATE_VARIABLE))
    repository = None if is_named else find_top_file(folder)
    if repository is not None:
        read_repository(repository)  # its faults are told before an address is
    looks = workflow.live_looks.LiveLooks(inputs) if live else None
    sources = window.sources.Sources(folder, store, fleet_root, inputs, repository, looks)
    server = window.server.WindowServer(
        sources,
        port,
        lambda error: console.note(
            f"{render_summary(type(error), error.__traceback__)}. Please report it to the project."
        ),
    )
    console.write(server.gate.address)
    console.note("Open this address in a browser. Ctrl-C ends it.")
    try:
        window.server.serve(server)
    except Ended as ended:
        ended.handled = True
        # It is the usual end of this command, so it is no failure.
        console.note("\nEnded.")


def _find_fleet_root() -> str | None:
    """The root that the register of this folder names."""
    if not FLEET_FILE.exists():
        return None
    return fleet.register_file.read_fleet(FLEET_FILE).root
