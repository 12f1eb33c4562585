"""`kafkaform plan`: what would an apply do? Reads only."""

from __future__ import annotations

import os
import shlex
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...apply.preflight import refuse
from ...apply.secrets import in_plan, refuse_exposed, resolve
from ...core.errors import UsageError
from ...core.redaction import clean
from ...core.words import Vocabulary
from ...plan.codec import encode
from ...plan.model import Mode, Options, Plan
from ...workflow.configuration.evaluation import Inputs
from ...workflow.plan_files import save
from ...workflow.planning import (
    apply_command,
    check_fail_on,
    read_only_plan,
    refuse_if_blocked,
    refuse_unmet,
    validated_plan,
)
from ...workflow.stores import STATE_VARIABLE
from ...workflow.workspace import open_workspace
from ..options.flags import (
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
    Untrusted,
    Var,
    VarFile,
    accepted,
)
from ..terminal.console import Console
from ..terminal.screen import screen

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
    """Show what apply would change, without changing the cluster or the state."""
    console = Console.standard(no_color=no_color, interactive=input)
    mode = Mode.DESTROY if destroy else Mode.NORMAL
    accept = accepted(open_access=accept_open_access, unproven_access=accept_unproven_access)
    options = Options(mode, tuple(target), tuple(exclude), tuple(adopt), max_deletes, accept)
    conditions = check_fail_on(fail_on)
    if untrusted:
        _check_untrusted(state, validate)
    with screen(console, json=json, quiet=quiet, detail=not concise) as shown:
        space = open_workspace(Inputs.of(var, var_file, untrusted=untrusted), state)
        shown.words = space.words
        if validate:
            made, verdicts = validated_plan(space, options, shown.progress)
        else:
            made, verdicts = read_only_plan(space, options, shown.progress), None
        shown.plan(made)
        if verdicts is not None:
            shown.validated(made, verdicts)
            resolve(in_plan(made), space.configuration.secret)
            refuse(verdicts, {s.id: s for change in made.effective for s in change.steps})
        _save(made, out, comment, space.words)
        if out is not None:
            command = shlex.join(["kafkaform", "apply", str(out)])
            shown.note(f"Saved to {out}. To apply exactly this plan: {command}")
        elif not made.idle and not any(made.blocked(stopping=True)):
            shown.note(NEXT)
        refuse_if_blocked(made, conditions)
        refuse_unmet(made)
    if detailed_exitcode and (made.outputs or not made.idle):
        raise typer.Exit(2)


def _check_untrusted(state: str | None, validate: bool) -> None:
    """Raises UsageError for flags without which, or with which, a plan of files that anybody
    may have written could not be trusted."""
    if not (state or os.environ.get(STATE_VARIABLE)):
        raise UsageError(
            "--untrusted needs --state: what the configuration names, or has beside it, may be "
            "forged",
            "Name the state that the last apply wrote, outside of what was checked out; "
            f"{STATE_VARIABLE} says the same.",
        )
    if validate:
        raise UsageError(
            "--untrusted and --validate exclude each other: a dry run needs rights to write",
            "Leave --validate to the run that applies; it does the same dry run first.",
        )


def _save(made: Plan, out: Path | None, comment: Path | None, words: Vocabulary) -> None:
    """Write the plan file and the review comment. Raises StorageError, ConfigurationError."""
    refuse_exposed(made)
    comment_of = partial(_comment, words=words)
    for path, content, private in ((out, encode, True), (comment, comment_of, False)):
        if path is not None:
            save(path, content(made), private=private)


def _comment(made: Plan, words: Vocabulary) -> bytes:
    # The template engine is slow to load and only comments need it.
    from ...render.markdown import markdown

    return clean(markdown(made, words=words, command=apply_command(made))).encode()
