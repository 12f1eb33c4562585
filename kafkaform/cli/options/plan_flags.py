"""Flags of the commands that make a plan: what is planned, and the files that it is written to.
With them, the command that applies a plan, as it has to be typed after this command line.

Also the flags of the commands that carry out a plan of their own, and not that of the
configuration.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from typer import Context

from ...core.errors import UsageError
from ...plan.model import Extent, Mode, Options, Plan
from ...render.text import Detail
from ...workflow.judgement import check_accepted
from ...workflow.planning import list_apply_words
from ...workflow.stores import parse_duration
from .flags import (
    Accept,
    AcceptOpenAccess,
    AcceptUnprovenAccess,
    Adopt,
    AutoApprove,
    Exclude,
    FailOn,
    ImpactFlag,
    Input,
    Json,
    LockTimeout,
    MaxDataLoss,
    MaxDeletes,
    Policy,
    Quiet,
    SampleFlag,
    StateFile,
    Target,
    Untrusted,
    Var,
    VarFile,
    VerifyLog,
    list_accepted,
    take_flags,
)


def make_destroy_options(
    target: Target = [],
    exclude: Exclude = [],
    max_deletes: MaxDeletes = None,
    impact: ImpactFlag = Extent.FAST,
    accept: Accept = [],
    accept_open_access: AcceptOpenAccess = False,
    accept_unproven_access: AcceptUnprovenAccess = False,
) -> Options:
    """The options of a destroy, with the names of `--accept` as they were typed."""
    accepted = list_accepted(
        accept, open_access=accept_open_access, unproven_access=accept_unproven_access
    )
    return Options(
        Mode.DESTROY,
        tuple(target),
        tuple(exclude),
        max_deletes=max_deletes,
        accept=accepted,
        impact=impact,
    )


class PlanFiles(Struct, frozen=True):
    """The files that a plan is written to; None for those that nobody asked for."""

    out: Path | None = None
    """The saved plan."""
    comment: Path | None = None
    """The review comment in Markdown."""
    comment_name: str = ""
    """What the comment's heading calls the configuration."""
    page: Path | None = None
    """The page for a review, in HTML."""
    approval: Path | None = None
    """The approval token."""


NO_FILES = PlanFiles()


def make_options(
    target: Target = [],
    exclude: Exclude = [],
    adopt: Adopt = [],
    max_deletes: MaxDeletes = None,
    max_data_loss: MaxDataLoss = None,
    impact: ImpactFlag = Extent.FAST,
    sample: SampleFlag = False,
    accept: Accept = [],
    accept_open_access: AcceptOpenAccess = False,
    accept_unproven_access: AcceptUnprovenAccess = False,
    refresh_only: Annotated[
        bool,
        typer.Option(
            "--refresh-only", help="Only record in the state what was changed outside kafkaform."
        ),
    ] = False,
) -> Options:
    """What is planned. Raises UsageError for a sample without a look."""
    if sample and impact is Extent.OFF:
        raise UsageError("--sample cannot be combined with --impact off", "Leave one of them out.")
    return Options(
        Mode.REFRESH if refresh_only else Mode.NORMAL,
        target=tuple(target),
        exclude=tuple(exclude),
        adopt=tuple(adopt),
        max_deletes=max_deletes,
        accept=list_accepted(
            accept, open_access=accept_open_access, unproven_access=accept_unproven_access
        ),
        max_data_loss=max_data_loss,
        impact=impact,
        sample=sample,
    )


def make_plan_files(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Save the plan to this file.")
    ] = None,
    comment: Annotated[
        Path | None,
        typer.Option(
            "--comment", metavar="FILE", help="Write a Markdown review comment to this file."
        ),
    ] = None,
    comment_name: Annotated[
        str,
        typer.Option(
            "--comment-name",
            metavar="NAME",
            help="Name the folder or environment in the heading of the comment.",
        ),
    ] = "",
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write the plan as an HTML page to this file."),
    ] = None,
    approval_out: Annotated[
        Path | None,
        typer.Option(
            "--approval-out",
            metavar="FILE",
            help="Write the approval token to this file, if the plan can be applied.",
        ),
    ] = None,
) -> PlanFiles:
    """The files that the plan is written to."""
    return PlanFiles(out, comment, comment_name, html, approval_out)


class PlanInputs(Struct, frozen=True):
    """What a configuration is evaluated with, and judged by."""

    variables: Sequence[str | Path] = ()
    """The values of --var and the files of --var-file, as `InOrder` puts them."""
    variable_files: Sequence[Path] = ()
    """The files of --var-file that are not among them."""
    policies: Sequence[Path] = ()
    """The folders of --policy."""
    untrusted: bool = False

    @property
    def values(self) -> tuple[str | Path, ...]:
        """All values and files, the weakest first."""
        return (*self.variable_files, *self.variables)


def make_plan_inputs(
    var: Var = [], var_file: VarFile = [], policy: Policy = [], untrusted: Untrusted = False
) -> PlanInputs:
    """What a configuration is evaluated with."""
    return PlanInputs(var, var_file, policy, untrusted)


def make_run_inputs(var: Var = [], var_file: VarFile = [], policy: Policy = []) -> PlanInputs:
    """What a configuration is evaluated with by a command that changes something."""
    return PlanInputs(var, var_file, policy)


class PlanChecks(Struct, frozen=True):
    """What a plan is checked for beyond what every plan is."""

    detailed_exitcode: bool = False
    validate: bool = False
    verify_log: bool = False
    fail_on: Sequence[str] = ()
    """The conditions of --fail-on."""


def make_plan_checks(
    detailed_exitcode: Annotated[
        bool,
        typer.Option(
            "--detailed-exitcode", help="Exit with 0: no changes, 2: changes, 8: blocked."
        ),
    ] = False,
    validate: Annotated[
        bool, typer.Option("--validate", help="Also do the dry run that apply does first.")
    ] = False,
    verify_log: VerifyLog = False,
    fail_on: FailOn = [],
) -> PlanChecks:
    """What a plan is checked for."""
    return PlanChecks(detailed_exitcode, validate, verify_log, fail_on)


Concise = Annotated[bool, typer.Option("--concise", help="Print one line per change.")]
Single = Annotated[
    bool, typer.Option("--detail", help="Show each change by itself, also equal ones.")
]


def make_detail(concise: Concise = False, single: Single = False) -> Detail:
    """How much of each change is shown. Raises UsageError for flags that exclude each other."""
    if concise and single:
        raise UsageError(
            "--concise and --detail exclude each other.",
            "Use --concise for one line per change, or --detail for each change with all values.",
        )
    return "concise" if concise else "full" if single else "grouped"


chooses_objects = take_flags("options", make_options)
"""Gives a command the flags of `make_options`, and its `options` parameter."""
takes_inputs = take_flags("inputs", make_plan_inputs)
"""Gives a command the flags of `make_plan_inputs`, and its `inputs` parameter."""
takes_run_inputs = take_flags("inputs", make_run_inputs)
"""Gives a command the flags of `make_run_inputs`, and its `inputs` parameter."""
destroys_objects = take_flags("options", make_destroy_options)
"""Gives a command the flags of `make_destroy_options`, and its `options` parameter."""
checks_plans = take_flags("checks", make_plan_checks)
"""Gives a command the flags of `make_plan_checks`, and its `checks` parameter."""
chooses_detail = take_flags("detail", make_detail)
"""Gives a command the flags of `make_detail`, and its `detail` parameter."""
writes_files = take_flags("files", make_plan_files, first=True)
"""Gives a command the flags of `make_plan_files`, and its `files` parameter."""


class TypedFlags(Struct, frozen=True):
    """The flags of a command line that decide what is planned, and where."""

    context: Context
    """Of the command; its root has the folder of -chdir."""
    state: str | None
    """The place of --state."""
    assignments: Sequence[str | Path]
    """The values of --var and the files of --var-file, as `InOrder` puts them."""
    sensitive: Collection[str]
    """Variables whose values are not shown, so that the user has to type them again."""


def render_next_command(plan: Plan, saved: Path | None, typed: TypedFlags) -> str:
    """The whole command line, to be typed where this one was.

    saved: the file that the plan was saved to, if any.
    """
    command, *arguments = ["apply", str(saved)] if saved else list_apply_words(plan)
    words, chdir = ["kafkaform"], typed.context.find_root().params["chdir"]
    words += [] if chdir is None else [f"-chdir={chdir}"]
    words += [command, *arguments]
    words += [] if typed.state is None else [f"--state={typed.state}"]
    variables = (_render_variable(item, typed.sensitive) for item in typed.assignments)
    return " ".join((*map(shlex.quote, words), *variables))


def _render_variable(item: str | Path, sensitive: Collection[str]) -> str:
    if isinstance(item, Path):
        return shlex.quote(f"--var-file={item}")
    name = item.partition("=")[0]
    # The line is shown on screens and in logs of CI, where its value would stay.
    if name.strip() in sensitive:
        return f"--var {shlex.quote(name)}=…"
    return f"--var {shlex.quote(item)}"


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
