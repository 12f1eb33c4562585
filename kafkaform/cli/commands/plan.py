"""`kafkaform plan`: what would an apply do? Reads only."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ...apply.preflight import refuse
from ...apply.secrets import in_plan, resolve
from ...core.errors import StorageError
from ...plan.codec import encode
from ...plan.model import Mode, Options, Plan
from ..configuration import Inputs
from ..console import Console
from ..flags import (
    AcceptOpenAccess,
    AcceptUnprovenAccess,
    Adopt,
    Exclude,
    FailOn,
    Input,
    Json,
    MaxDeletes,
    NoColor,
    Quiet,
    StateFile,
    Target,
    Var,
    VarFile,
    accepted,
)
from ..planning import (
    apply_command,
    check_fail_on,
    read_only_plan,
    refuse_if_blocked,
    validated_plan,
)
from ..screen import screen
from ..workspace import open_workspace

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
    destroy: Annotated[bool, typer.Option("--destroy", help="Plan to delete all.")] = False,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="0 no changes, 2 changes, 1 error.")
    ] = False,
    validate: Annotated[
        bool, typer.Option("--validate", help="Also do the dry run that an apply does first.")
    ] = False,
    concise: Annotated[bool, typer.Option("--concise", help="One line a change.")] = False,
    target: Target = [],
    exclude: Exclude = [],
    adopt: Adopt = [],
    max_deletes: MaxDeletes = None,
    accept_open_access: AcceptOpenAccess = False,
    accept_unproven_access: AcceptUnprovenAccess = False,
    fail_on: FailOn = [],
    var: Var = [],
    var_file: VarFile = [],
    state: StateFile = None,
    json: Json = False,
    no_color: NoColor = False,
    quiet: Quiet = False,
    input: Input = True,
) -> None:
    """Show what an apply would change. Reads only; sends and saves nothing."""
    console = Console.standard(no_color=no_color, interactive=input)
    mode = Mode.DESTROY if destroy else Mode.NORMAL
    accept = accepted(open_access=accept_open_access, unproven_access=accept_unproven_access)
    options = Options(mode, tuple(target), tuple(exclude), tuple(adopt), max_deletes, accept)
    conditions = check_fail_on(fail_on)
    with screen(console, json=json, quiet=quiet, detail=not concise) as shown:
        space = open_workspace(Inputs.of(var, var_file), state)
        if validate:
            made, verdicts = validated_plan(space, options, shown.progress)
        else:
            made, verdicts = read_only_plan(space, options, shown.progress), None
        shown.plan(made)
        if verdicts is not None:
            shown.validated(made, verdicts)
            resolve(in_plan(made), space.configuration.secret)
            refuse(verdicts, {s.id: s for change in made.effective for s in change.steps})
        _save(made, out, comment)
        if out is not None:
            command = shlex.join(["kafkaform", "apply", str(out)])
            shown.note(f"Saved to {out}. To apply exactly this plan: {command}")
        elif made.effective and not any(made.blocked(stopping=True)):
            shown.note(NEXT)
        refuse_if_blocked(made, conditions)
    if detailed_exitcode and (made.effective or made.outputs):
        raise typer.Exit(2)


def _save(made: Plan, out: Path | None, comment: Path | None) -> None:
    """Write the plan file and the review comment. Raises StorageError."""
    for path, content in ((out, encode), (comment, _comment)):
        if path is None:
            continue
        text = content(made)
        try:
            path.write_bytes(text)
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written: {error.strerror}", "Choose another place."
            ) from None


def _comment(made: Plan) -> bytes:
    # The template engine is slow to load and only comments need it.
    from ...render.markdown import markdown

    return markdown(made, command=apply_command(made)).encode()
