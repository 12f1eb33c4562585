"""`kafkaform serve`: show a folder's state, log and plans in a browser on this computer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ....core.errors import Ended
from ....workflow.configuration.evaluation import Inputs
from ....workflow.stores import open_store
from ...bug_report import render_summary
from ...options.flags import StateFile, Var, VarFile
from ...terminal.console import Console

FLEET_FILE = Path("fleet.hcl")


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
    state: StateFile = None,
    var: Var = [],  # noqa: B006  # as typer wants lists
    var_file: VarFile = [],  # noqa: B006  # as typer wants lists
) -> None:
    """Show state, log, plans and fleet tables in a browser.

    Changes nothing and does not connect to a cluster. Only who has the printed address sees the
    pages.
    """
    from ....window.server import WindowServer  # noqa: PLC0415  # templates are slow to load
    from ....window.server import serve as answer  # noqa: PLC0415  # templates are slow to load
    from ....window.sources import Sources  # noqa: PLC0415  # templates are slow to load

    console = Console.make_standard()
    fleet_root, inputs = root or _find_fleet_root(), Inputs.read(var, var_file)
    sources = Sources(Path.cwd(), open_store(state), fleet_root, inputs)
    server = WindowServer(sources, port, lambda error: console.note(_render_fault(error)))
    console.write(server.gate.address)
    console.note("Open this address in a browser. Ctrl-C ends it.")
    try:
        answer(server)
    except Ended:
        # It is the usual end of this command, so it is no failure.
        console.note("\nEnded.")


def _find_fleet_root() -> str | None:
    """The root that the register of this folder names."""
    if not FLEET_FILE.exists():
        return None
    from ....workflow.fleet.register_file import read_fleet  # noqa: PLC0415  # the other folders do without

    return read_fleet(FLEET_FILE).root


def _render_fault(error: BaseException) -> str:
    return f"{render_summary(type(error), error.__traceback__)}. Please report it to the project."
