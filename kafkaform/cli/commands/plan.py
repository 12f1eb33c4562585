"""`kafkaform plan`: what would an apply do? Reads only."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ...plan.model import Mode, Options, Plan
from ...workflow.configuration.untrusted import dry_run_error
from ...workflow.plan_files import save_file, save_plan
from ...workflow.plan_rendering import render_plan
from ...workflow.planning import check_fail_on, find_unmet, plan_changes, refuse_if_blocked
from ...workflow.workspace import open_workspace
from ..options.flags import (
    AcceptOpenAccess,
    AcceptUnprovenAccess,
    Adopt,
    Exclude,
    FailOn,
    Input,
    Json,
    MaxDataLoss,
    MaxDeletes,
    NoColor,
    Quiet,
    StateFile,
    Target,
    Untrusted,
    Var,
    VarFile,
    list_waivers,
)
from ..terminal.console import Console
from ..terminal.screen import Screen, open_screen

Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Save the plan to this file.")
]
Comment = Annotated[
    Path | None,
    typer.Option("--comment", metavar="FILE", help="Write a Markdown review comment to this file."),
]

NEXT = "Next: `kafkaform apply` plans again and asks; with --expect APPROVAL it applies only this."


def plan(
    out: Out = None,
    comment: Comment = None,
    destroy: Annotated[bool, typer.Option("--destroy", help="Plan to delete everything.")] = False,
    detailed_exitcode: Annotated[
        bool,
        typer.Option(
            "--detailed-exitcode", help="Exit with 0: no changes, 2: changes, 8: blocked."
        ),
    ] = False,
    validate: Annotated[
        bool, typer.Option("--validate", help="Also do the dry run that apply does first.")
    ] = False,
    concise: Annotated[bool, typer.Option("--concise", help="Print one line per change.")] = False,
    target: Target = [],
    exclude: Exclude = [],
    adopt: Adopt = [],
    max_deletes: MaxDeletes = None,
    max_data_loss: MaxDataLoss = None,
    accept_open_access: AcceptOpenAccess = False,
    accept_unproven_access: AcceptUnprovenAccess = False,
    fail_on: FailOn = [],
    var: Var = [],
    var_file: VarFile = [],
    state: StateFile = None,
    untrusted: Untrusted = False,
    json: Json = False,
    no_color: NoColor = False,
    quiet: Quiet = False,
    input: Input = True,
) -> None:
    """Show what apply would change.

    Changes neither the cluster nor the state.
    """
    console = Console.make_standard(no_color=no_color, interactive=input)
    mode = Mode.DESTROY if destroy else Mode.NORMAL
    accept = list_waivers(open_access=accept_open_access, unproven_access=accept_unproven_access)
    options = Options(
        mode, tuple(target), tuple(exclude), tuple(adopt), max_deletes, accept, max_data_loss
    )
    conditions = check_fail_on(fail_on)
    if untrusted and validate:
        raise dry_run_error()
    with open_screen(console, json=json, quiet=quiet, detail=not concise, sends=False) as shown:
        workspace = open_workspace(
            variables=var, variable_files=var_file, state=state, untrusted=untrusted
        )
        made = plan_changes(workspace, options, validate=validate, progress=shown.progress)
        if out is not None:
            save_plan(made, out)
        if comment is not None:
            save_file(comment, render_plan(made, "markdown").encode(), private=False)
        _note_next_command(shown, made, out)
        refuse_if_blocked(made, conditions)
        unmet = find_unmet(made)
        if unmet is not None:
            raise unmet
    if detailed_exitcode and (made.outputs or not made.idle):
        raise typer.Exit(2)


def _note_next_command(shown: Screen, made: Plan, out: Path | None) -> None:
    if out is not None:
        command = shlex.join(["kafkaform", "apply", str(out)])
        shown.note(f"Saved to {out}. To apply exactly this plan: {command}")
    elif not made.idle and not any(made.list_blocked(stopping=True)):
        shown.note(NEXT)
