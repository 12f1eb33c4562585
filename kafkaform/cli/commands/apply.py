"""`kafkaform apply [PLAN]`: plan, ask for approval, apply and verify. `kafkaform destroy`: delete
everything that the state owns, after each cluster was named.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from ...core.errors import UsageError
from ...plan.model import Options, Plan
from ...render.text import Detail
from ...workflow.configuration.policies import VARIABLE, list_policy_ids
from ...workflow.configuration.untrusted import apply_error
from ...workflow.judgement import check_accepted, check_fail_on
from ...workflow.operations import apply_changes
from ...workflow.operations import destroy as destroy_objects
from ...workflow.plan_documents import load_plan, load_plan_document
from ...workflow.stores import parse_duration
from ...workflow.workspace import Workspace, open_workspace
from .. import folders
from ..options.flags import (
    AutoApprove,
    FailOn,
    FolderFlags,
    Input,
    Json,
    LockTimeout,
    NoColor,
    Quiet,
    StateFile,
    VerifyLog,
    chooses_folders,
)
from ..options.plan_flags import (
    PlanInputs,
    chooses_detail,
    chooses_objects,
    destroys_objects,
    takes_run_inputs,
)
from ..terminal.console import Console
from ..terminal.screen import accept, advise, open_screen, show_run

PlanFile = Annotated[
    Path | None, typer.Argument(metavar="PLAN", help="A plan saved with `plan --out FILE`.")
]
Expect = Annotated[
    str | None,
    typer.Option(
        "--expect",
        metavar="APPROVAL",
        help="Apply only if the plan matches this approval token; with several folders, this "
        "digest or file of `plan --approval-out`.",
    ),
]
Reviewed = Annotated[
    Path | None,
    typer.Option(
        "--reviewed",
        metavar="FILE",
        help="The plan that --expect approves, saved or as JSON: a refusal says what differs.",
    ),
]
Untrusted = Annotated[bool, typer.Option("--untrusted", hidden=True)]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Don't wait for all brokers to show it.")]

Confirm = Annotated[
    list[str],
    typer.Option(
        "--confirm", metavar="CLUSTER", help="Confirm this cluster ID; once per provider instance."
    ),
]


@chooses_folders
@takes_run_inputs
@chooses_objects
@chooses_detail
def apply_command(
    chosen: FolderFlags,
    inputs: PlanInputs,
    options: Options,
    detail: Detail,
    plan_file: PlanFile = None,
    expect: Expect = None,
    reviewed: Reviewed = None,
    auto_approve: AutoApprove = False,
    no_wait: NoWait = False,
    verify_log: VerifyLog = False,
    fail_on: FailOn = [],
    state: StateFile = None,
    untrusted: Untrusted = False,
    lock_timeout: LockTimeout = "0s",
    json: Json = False,
    no_color: NoColor = False,
    quiet: Quiet = False,
    input: Input = True,
) -> None:
    """Plan, ask for approval, apply and verify.

    With PLAN, apply that saved plan. With --expect, apply only the approved plan.
    """
    _refuse_flags_of_plan(untrusted, plan_file, options)
    console = Console.make_standard(no_color=no_color, interactive=input)
    seconds = parse_duration(lock_timeout, "--lock-timeout")
    if chosen.typed:
        folders.apply.refuse_single_flags(chosen, plan_file, reviewed, state)
        typed = (chosen, inputs, options, detail, expect, auto_approve, ())
        flags = folders.apply.ApplyFlags(*typed, not no_wait, verify_log, fail_on, seconds)
        raise typer.Exit(folders.apply.apply_folders(console, flags, json=json, quiet=quiet))
    options = replace(options, accept=check_accepted(options.accept))
    approved = auto_approve or plan_file is not None or expect is not None
    with open_screen(console, json=json, quiet=quiet, detail=detail, approved=approved) as screen:
        # Read before anything connects, so that a wrong path is reported at once.
        saved = None if plan_file is None else load_plan(plan_file)
        policies = _choose_policies(inputs.policies, saved)
        conditions = check_fail_on(fail_on, list_policies=partial(list_policy_ids, policies))
        # The log records which of the three it was, for whoever asks later who approved.
        by = "plan_file" if saved else "auto_approve" if auto_approve else "terminal"
        run = partial(
            apply_changes,
            _open_workspace(inputs, state, policies),
            saved,
            options=options,
            approve=screen.ask_approval if by == "terminal" else accept,
            approved_by=by,
            expect=expect,
            reviewed=None if reviewed is None else load_plan_document(reviewed),
            fail_on=conditions,
            wait=not no_wait,
            lock_timeout=seconds,
            verify_log=verify_log,
            rerun=advise("apply", plan_file, expect, options),
        )
        show_run(screen, run)


def _refuse_flags_of_plan(untrusted: bool, plan_file: Path | None, options: Options) -> None:
    """Raises UsageError for flags that belong to `plan`."""
    # A hidden flag, so that a pipeline which swaps `plan` for `apply` gets the reason.
    if untrusted:
        raise apply_error()
    if plan_file is not None and options != Options():
        raise UsageError(
            "a saved plan takes no planning flags", "Give them to `kafkaform plan -out=FILE`."
        )


def _open_workspace(
    inputs: PlanInputs, state: str | None, policies: Sequence[Path | str]
) -> Workspace:
    return open_workspace(
        variables=inputs.variables,
        variable_files=inputs.variable_files,
        state=state,
        policies=policies,
    )


def _choose_policies(named: Sequence[Path], saved: Plan | None) -> Sequence[Path | str]:
    """The folders of policies: of a saved plan, which is judged again, if nobody names others."""
    if saved is None or named or os.environ.get(VARIABLE):
        return named
    return saved.policies.folders


@chooses_folders
@takes_run_inputs
@destroys_objects
@chooses_detail
def destroy(
    chosen: FolderFlags,
    inputs: PlanInputs,
    options: Options,
    detail: Detail,
    confirm: Confirm = [],
    expect: Expect = None,
    no_wait: NoWait = False,
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
    json: Json = False,
    no_color: NoColor = False,
    quiet: Quiet = False,
    input: Input = True,
) -> None:
    """Delete everything that the state owns.

    Objects that prevent_destroy protects stay.
    """
    seconds = parse_duration(lock_timeout, "--lock-timeout")
    console = Console.make_standard(no_color=no_color, interactive=input)
    if chosen.typed:
        folders.apply.refuse_single_flags(chosen, state=state)
        flags = folders.apply.ApplyFlags(
            *(chosen, inputs, options, detail, expect, False, confirm, not no_wait),
            lock_timeout=seconds,
        )
        raise typer.Exit(folders.apply.apply_folders(console, flags, json=json, quiet=quiet))
    options = replace(options, accept=check_accepted(options.accept))
    approved = bool(confirm) or expect is not None
    with open_screen(console, json=json, quiet=quiet, detail=detail, approved=approved) as screen:
        run = partial(
            destroy_objects,
            _open_workspace(inputs, state, inputs.policies),
            confirm=confirm,
            options=options,
            # No --auto-approve: whoever destroys without a terminal names the clusters.
            approve=screen.ask_approval,
            approved_by="terminal",
            expect=expect,
            wait=not no_wait,
            lock_timeout=seconds,
            rerun=advise("destroy", None, expect),
        )
        show_run(screen, run)
