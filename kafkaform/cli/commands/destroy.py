"""`kafkaform destroy`: delete everything that the state owns, after each cluster was named."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from ...plan.model import Mode, Options
from ...render.text import Detail
from ...workflow.judgement.conditions import check_accepted
from ...workflow.operations import destroy as destroy_objects
from ...workflow.stores import parse_duration
from ...workflow.workspace import open_workspace
from ..options.flags import (
    Accept,
    AcceptOpenAccess,
    AcceptUnprovenAccess,
    Exclude,
    Input,
    Json,
    LockTimeout,
    MaxDeletes,
    NoColor,
    Policy,
    Quiet,
    StateFile,
    Target,
    Var,
    VarFile,
    list_accepted,
)
from ..options.plan_flags import chooses_detail
from ..terminal.console import Console
from ..terminal.run_command import advise, show_run
from ..terminal.screen import open_screen
from .apply import Expect, NoWait

Confirm = Annotated[
    list[str],
    typer.Option(
        "--confirm", metavar="CLUSTER", help="Confirm this cluster ID; once per provider instance."
    ),
]


@chooses_detail
def destroy(
    detail: Detail,
    confirm: Confirm = [],
    expect: Expect = None,
    no_wait: NoWait = False,
    target: Target = [],
    exclude: Exclude = [],
    max_deletes: MaxDeletes = None,
    accept: Accept = [],
    accept_open_access: AcceptOpenAccess = False,
    accept_unproven_access: AcceptUnprovenAccess = False,
    var: Var = [],
    var_file: VarFile = [],
    state: StateFile = None,
    policy: Policy = [],
    lock_timeout: LockTimeout = "0s",
    json: Json = False,
    no_color: NoColor = False,
    quiet: Quiet = False,
    input: Input = True,
) -> None:
    """Delete everything that the state owns.

    Objects that prevent_destroy protects stay.
    """
    options = Options(
        Mode.DESTROY,
        tuple(target),
        tuple(exclude),
        max_deletes=max_deletes,
        accept=check_accepted(
            list_accepted(
                accept, open_access=accept_open_access, unproven_access=accept_unproven_access
            )
        ),
    )
    seconds = parse_duration(lock_timeout, "--lock-timeout")
    console = Console.make_standard(no_color=no_color, interactive=input)
    approved = bool(confirm) or expect is not None
    with open_screen(console, json=json, quiet=quiet, detail=detail, approved=approved) as screen:
        run = partial(
            destroy_objects,
            open_workspace(variables=var, variable_files=var_file, state=state, policies=policy),
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
