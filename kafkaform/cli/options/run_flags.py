"""Flags of the commands that carry out a plan of their own, and not that of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from ...render.text import Detail
from ...workflow.judgement import check_accepted
from ...workflow.stores import parse_duration
from .flags import (
    Accept,
    AutoApprove,
    Input,
    Json,
    LockTimeout,
    Policy,
    Quiet,
    StateFile,
)
from .plan_flags import Concise, Single, make_detail

VALIDATED = "Nothing was sent. Without --validate, the plan is applied after your approval."
IDLE = "There is nothing to change."

Validate = Annotated[
    bool, typer.Option("--validate", help="Show the plan and its dry run; send nothing.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Don't wait for all brokers to show it.")]


class RunOptions(Struct, frozen=True):
    """How to carry out a plan that is not that of the configuration."""

    auto_approve: bool
    validate: bool
    wait: bool
    state: str | None
    lock_timeout: float
    json: bool
    quiet: bool
    input: bool
    detail: Detail
    accept: tuple[str, ...]
    """The rules whose blocks are lifted."""
    policies: tuple[Path, ...]
    """Folders of policies."""


def read_run_options(
    auto_approve: AutoApprove = False,
    validate: Validate = False,
    no_wait: NoWait = False,
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
    json: Json = False,
    quiet: Quiet = False,
    input: Input = True,
    concise: Concise = False,
    single: Single = False,
    accept: Accept = [],
    policy: Policy = [],
) -> RunOptions:
    """The options that the flags mean. Raises UsageError."""
    seconds = parse_duration(lock_timeout, "--lock-timeout")
    detail = make_detail(concise, single)
    return RunOptions(
        auto_approve=auto_approve,
        validate=validate,
        wait=not no_wait,
        state=state,
        lock_timeout=seconds,
        json=json,
        quiet=quiet,
        input=input,
        detail=detail,
        accept=check_accepted(accept),
        policies=tuple(policy),
    )
