"""`kafkaform show [PLAN]`: a saved plan, or the state, for people or programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...provider.registry import Registry
from ...render.human import human
from ...render.jsonplan import to_json
from ...render.text import json_line
from ...workflow.plan_files import saved_plan, words_of
from ...workflow.planning import apply_command
from ...workflow.stores import open_store
from ..options.flags import NoColor, StateFile
from ..terminal.console import Console
from .state import row_lines, state_data

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
    console = Console.standard(no_color=no_color)
    if plan_file is None:
        _show_state(console, state, json=json)
        return
    plan = saved_plan(plan_file)
    if json:
        console.out(json_line(to_json(plan)))
        return
    words = words_of(plan, Registry())
    if comment:
        # The template engine is slow to load and only comments need it.
        from ...render.markdown import markdown

        console.out(markdown(plan, words=words, command=apply_command(plan)))
    else:
        console.out(human(plan, words=words, colour=console.colour, width=console.width))


def _show_state(console: Console, state_file: str | None, *, json: bool) -> None:
    state = open_store(state_file).backend.load().state
    if json:
        console.out(json_line(state_data(state)))
    elif state is None or not state.objects:
        console.out("The state is empty.")
    else:
        for _, row in sorted(state.objects.items()):
            console.lines(row_lines(row))
