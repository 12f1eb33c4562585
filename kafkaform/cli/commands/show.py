"""`kafkaform show [PLAN]`: a saved plan, or the state, for people or programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...render.text import render_json
from ...workflow.plan_files import load_plan
from ...workflow.plan_rendering import render_plan
from ...workflow.stores import open_store
from ..options.flags import NoColor, StateFile
from ..terminal.console import Console
from .state import make_state_document, render_row

PLAN_HELP = "A plan saved with `plan --out FILE`."


def show(
    plan_file: Annotated[Path | None, typer.Argument(metavar="PLAN", help=PLAN_HELP)] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print Terraform's plan JSON, or the state.")
    ] = False,
    comment: Annotated[
        bool, typer.Option("--markdown", help="Print a review comment in Markdown.")
    ] = False,
    no_color: NoColor = False,
    state: StateFile = None,
) -> None:
    """Show a saved plan, or the state."""
    console = Console.make_standard(no_color=no_color)
    if plan_file is None:
        _show_state(console, state, json=json)
        return
    plan = load_plan(plan_file)
    if json:
        console.write(render_plan(plan, "json"))
    elif comment:
        console.write(render_plan(plan, "markdown"))
    else:
        console.write(render_plan(plan, colour=console.colour, width=console.width))


def _show_state(console: Console, state_file: str | None, *, json: bool) -> None:
    state = open_store(state_file).backend.load().state
    if json:
        console.write(render_json(make_state_document(state)))
    elif state is None or not state.objects:
        console.write("The state is empty.")
    else:
        for _, row in sorted(state.objects.items()):
            console.write_lines(render_row(row))
