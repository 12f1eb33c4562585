"""`kafkaform export`: write what this folder manages as configuration of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ....workflow.transfer.export import export
from ....workflow.workspace import open_workspace
from ...options.flags import NoColor, StateFile, Var, VarFile
from ...terminal.console import Console
from .new_files import STDOUT, show_generated


def export_command(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="What to write for: terraform.")],
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="Write to this new file; - is stdout.")
    ] = STDOUT,
    var: Var = [],
    var_file: VarFile = [],
    state: StateFile = None,
    no_color: NoColor = False,
) -> None:
    """Write what this folder manages for another tool.

    It writes a block for each object that is declared or recorded, with its live values, and import
    blocks, so that the other tool finds nothing to change. Secrets become variables. With --out,
    schemas are files beside it.
    """
    console = Console.make_standard(no_color=no_color)
    workspace = open_workspace(variables=var, variable_files=var_file, state=state)
    target = None if out == STDOUT else Path(out)
    made = export(workspace, tool, documents=target is not None)
    show_generated(made, target, console, "export")
