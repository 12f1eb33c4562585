"""`kafkaform show [PLAN]`: show a saved plan, or the state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec import to_builtins

from ...render.plan_comparison import compare_plans, render_comparison
from ...render.text import Detail, render_json
from ...workflow.plan_files import load_plan, load_plan_document, read_words_of
from ...workflow.plan_rendering import render_plan
from ...workflow.stores import open_store
from ..options.flags import NoColor, StateFile
from ..terminal.console import Console
from ..terminal.pager import write_paged
from .state import make_state_document, render_row

PLAN_HELP = "A plan saved with `plan --out FILE`."


def show(
    plan_file: Annotated[Path | None, typer.Argument(metavar="PLAN", help=PLAN_HELP)] = None,
    other: Annotated[
        Path | None, typer.Argument(metavar="OTHER", help="Compare PLAN with this plan.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print Terraform's plan JSON, or the state.")
    ] = False,
    comment: Annotated[
        bool, typer.Option("--markdown", help="Print a review comment in Markdown.")
    ] = False,
    html: Annotated[bool, typer.Option("--html", help="Print an HTML page for a review.")] = False,
    detail: Annotated[
        bool, typer.Option("--detail", help="Show each change by itself, also equal ones.")
    ] = False,
    no_color: NoColor = False,
    state: StateFile = None,
) -> None:
    """Show a saved plan, or the state; or how two plans differ.

    To compare, name two plans, saved ones or the JSON of `show --json`. Differences that need no
    new approval, such as times and notes, are left out.
    """
    console = Console.make_standard(no_color=no_color)
    if plan_file is None:
        _show_state(console, state, json=json, detail=detail)
        return
    if other is not None:
        _show_comparison(console, plan_file, other, json=json)
        return
    # Its checksum is checked, so what is shown is what an apply of the file would do.
    plan = load_plan(plan_file)
    if json:
        console.write(render_plan(plan, "json"))
    elif comment:
        console.write(render_plan(plan, "markdown", whole=plan_file))
    elif html:
        console.write(render_plan(plan, "html"))
    else:
        form: Detail = "full" if detail else "grouped"
        text = render_plan(plan, colour=console.colour, width=console.width, detail=form)
        write_paged(console, text)


def _show_state(console: Console, state_file: str | None, *, json: bool, detail: bool) -> None:
    state = open_store(state_file).backend.load().state
    if json:
        console.write(render_json(make_state_document(state)))
    elif state is None or not state.objects:
        console.write("The state is empty.")
    else:
        instances = {identity.instance for identity in state.objects}
        words = read_words_of(sorted(instances))
        rows = (render_row(row, words, detail=detail) for _, row in sorted(state.objects.items()))
        write_paged(console, "\n".join(line for lines in rows for line in lines))


def _show_comparison(console: Console, first: Path, second: Path, *, json: bool) -> None:
    differences = compare_plans(load_plan_document(first), load_plan_document(second))
    if json:
        console.write(render_json(to_builtins(differences)))
    elif not differences:
        console.write("Both plans do the same.")
    else:
        title = f"What differs between {first}, the first plan, and {second}, the second:"
        write_paged(console, "\n".join((title, *render_comparison(differences))))
