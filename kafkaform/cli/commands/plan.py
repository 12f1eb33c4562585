"""`kafkaform plan`: show what an apply would do. It only reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from ...core.diagnostics import has_errors
from ...core.errors import UsageError
from ...plan.model import Mode, Options, Plan
from ...provider.registry import Registry
from ...render.text import Detail
from ...workflow.configuration.policies import list_policy_ids
from ...workflow.configuration.untrusted import dry_run_error, make_registry
from ...workflow.judgement import check_accepted, check_fail_on
from ...workflow.plan_documents import remove_file, render_plan, save_approval, save_file, save_plan
from ...workflow.planning import find_unmet, plan_changes, refuse_if_blocked
from ...workflow.workspace import open_workspace
from .. import folders
from ..options.flags import (
    FolderFlags,
    Input,
    Json,
    NoColor,
    Quiet,
    StateFile,
    chooses_folders,
)
from ..options.plan_flags import (
    NO_FILES,
    PlanChecks,
    PlanFiles,
    PlanInputs,
    TypedFlags,
    checks_plans,
    chooses_detail,
    chooses_objects,
    render_next_command,
    takes_inputs,
    writes_files,
)
from ..terminal.console import Console
from ..terminal.screen import Screen, open_screen

Destroy = Annotated[bool, typer.Option("--destroy", help="Plan to delete everything.")]


@chooses_folders
@takes_inputs
@checks_plans
@chooses_objects
@chooses_detail
@writes_files
def plan(
    context: typer.Context,
    files: PlanFiles,
    chosen: FolderFlags,
    inputs: PlanInputs,
    checks: PlanChecks,
    options: Options,
    detail: Detail,
    destroy: Destroy = False,
    state: StateFile = None,
    json: Json = False,
    no_color: NoColor = False,
    quiet: Quiet = False,
    input: Input = True,
) -> None:
    """Show what apply would change.

    Changes neither the cluster nor the state.
    """
    console = Console.make_standard(no_color=no_color, interactive=input)
    options = _choose_destroy(options) if destroy else options
    if chosen.typed:
        request = folders.plan.PlanRequest(chosen, inputs, checks, options, files, detail, state)
        raise typer.Exit(folders.plan.plan_folders(console, request, json=json, quiet=quiet))
    options, conditions = _check_conditions(options, checks.fail_on, inputs)
    if inputs.untrusted and checks.validate:
        raise dry_run_error()
    with open_screen(
        console, json=json, quiet=quiet, detail=detail, sends=False, pages=True
    ) as screen:
        if files.approval is not None:
            # If this plan fails, the approval of an earlier one must not stay in its place.
            remove_file(files.approval)
        workspace = open_workspace(
            variables=inputs.variables,
            variable_files=inputs.variable_files,
            state=state,
            untrusted=inputs.untrusted,
            policies=inputs.policies,
        )
        new_plan = plan_changes(
            workspace,
            options,
            validate=checks.validate,
            verify_log=checks.verify_log,
            progress=screen.progress,
        )
        # Errors come last: a blocked plan is shown, saved and commented on all the same.
        if files != NO_FILES:
            _save_plan(screen, new_plan, files)
        changed = bool(new_plan.outputs) or not new_plan.idle
        if changed and not any(new_plan.list_blocked(stopping=True)):
            hidden = workspace.configuration.list_sensitive_variables() if inputs.values else ()
            typed = TypedFlags(context, state, inputs.values, hidden)
            screen.show_next(render_next_command(new_plan, files.out, typed))
        _require_applicable(new_plan, conditions, files.approval)
    if checks.detailed_exitcode and changed:
        raise typer.Exit(2)  # Terraform's code for "there are changes", which is no error


def _require_applicable(new_plan: Plan, conditions: tuple[str, ...], approval: Path | None) -> None:
    """Raises Blocked for a plan that would not be applied as it was asked for. approval: the file
    for the approval of a plan that can be applied."""
    refuse_if_blocked(new_plan, conditions)
    if approval is not None and not has_errors(new_plan.diagnostics):
        save_approval(new_plan, approval)
    if (unmet := find_unmet(new_plan)) is not None:
        raise unmet


def _check_conditions(
    options: Options, fail_on: Sequence[str], inputs: PlanInputs
) -> tuple[Options, tuple[str, ...]]:
    """The options with the full names of `--accept`, and the conditions of `--fail-on`. Raises
    UsageError for a name that does not exist."""
    registry = make_registry(os.environ) if inputs.untrusted else Registry()
    list_policies = partial(list_policy_ids, inputs.policies, untrusted=inputs.untrusted)
    conditions = check_fail_on(fail_on, registry, list_policies=list_policies)
    return replace(options, accept=check_accepted(options.accept, registry)), conditions


def _choose_destroy(options: Options) -> Options:
    """The options of a plan of a destroy. Raises UsageError."""
    if options.mode is Mode.REFRESH:
        raise UsageError(
            "--destroy cannot be combined with --refresh-only", "Leave one of them out."
        )
    return replace(options, mode=Mode.DESTROY)


def _save_plan(screen: Screen, new_plan: Plan, files: PlanFiles) -> None:
    """Write the plan to the files that flags name."""
    out, comment, page = files.out, files.comment, files.page
    if out is not None:
        save_plan(new_plan, out)
    if page is not None:
        save_file(page, render_plan(new_plan, "html").encode(), private=False)
    if comment is not None:
        text = render_plan(new_plan, "markdown", whole=page or out, name=files.comment_name)
        save_file(comment, text.encode(), private=False)
    if out is not None:
        screen.note(f"Saved to {out}.")
