"""`kafkaform destroy`: delete everything that the state owns, cluster by cluster named."""

from __future__ import annotations

from typing import Annotated

import typer

from ...plan.model import Mode, Options
from ...workflow.configuration.evaluation import Inputs
from ...workflow.run import Ask
from ...workflow.stores import seconds_of
from ..options.flags import (
    AcceptOpenAccess,
    AcceptUnprovenAccess,
    Exclude,
    Input,
    Json,
    LockTimeout,
    MaxDeletes,
    NoColor,
    Quiet,
    StateFile,
    Target,
    Var,
    VarFile,
    accepted,
)
from ..terminal.console import Console
from ..terminal.run_command import run_apply
from .apply import Expect, NoWait

Confirm = Annotated[
    list[str],
    typer.Option(
        "--confirm", metavar="CLUSTER", help="Confirm this cluster ID; once per provider instance."
    ),
]


def destroy(
    confirm: Confirm = [],
    expect: Expect = None,
    no_wait: NoWait = False,
    target: Target = [],
    exclude: Exclude = [],
    max_deletes: MaxDeletes = None,
    accept_open_access: AcceptOpenAccess = False,
    accept_unproven_access: AcceptUnprovenAccess = False,
    var: Var = [],
    var_file: VarFile = [],
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
    ask = Ask(
        Options(
            Mode.DESTROY,
            tuple(target),
            tuple(exclude),
            max_deletes=max_deletes,
            accept=accepted(open_access=accept_open_access, unproven_access=accept_unproven_access),
        ),
        None,
        expect,
        None,
        (),
        not no_wait,
        seconds_of(lock_timeout, "--lock-timeout"),
        "destroy",
        tuple(confirm),
    )
    console = Console.standard(no_color=no_color, interactive=input)
    run_apply(ask, Inputs.of(var, var_file), state, console, json=json, quiet=quiet, detail=True)
