"""`kafkaform undo RUN`: bring back what a run changed; without a run, list the last ones."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer
from msgspec.structs import replace

from ...core.errors import UsageError
from ...plan.model import Options
from ...provider.registry import Registry
from ...render.history import make_runs_page
from ...render.text import Detail, render_json, render_page
from ...workflow.alter import rehearse
from ...workflow.applying import run_apply
from ...workflow.history import list_recent_runs, list_words, make_run_document
from ...workflow.judgement import check_accepted
from ...workflow.model import ApplyRequest
from ...workflow.stores import open_store, parse_duration
from ...workflow.undo import choose_run, plan_undo
from ...workflow.workspace import open_workspace
from ..options.flags import (
    Accept,
    AutoApprove,
    Input,
    Json,
    LockTimeout,
    MaxDeletes,
    NoColor,
    Policy,
    Quiet,
    StateFile,
    Var,
    VarFile,
)
from ..options.plan_flags import chooses_detail
from ..options.provider_commands import get_terminal_width
from ..options.tab_names import complete_runs
from ..terminal.console import Console
from ..terminal.screen import accept as approve_all
from ..terminal.screen import advise, open_screen, show_run

IDLE = "There is nothing to undo."
VALIDATED = "Nothing was sent. Without --validate, the plan is applied after your approval."
NEXT = "Undo one with `kafkaform undo RUN`, or the newest with `kafkaform undo --last`."


@chooses_detail
def undo(
    detail: Detail,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            autocompletion=complete_runs,
            help="The id of a run, as `audit show` and `history` print it.",
        ),
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="Undo the newest run.")] = False,
    auto_approve: AutoApprove = False,
    validate: Annotated[
        bool, typer.Option("--validate", help="Show the plan and its dry run; send nothing.")
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Don't wait for all brokers to show it.")
    ] = False,
    max_deletes: MaxDeletes = None,
    accept: Accept = [],
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
    """Bring back what a run changed: plan, ask for approval, apply and verify.

    Without RUN, list the last ten runs and what they changed. What somebody changed since stays,
    and what cannot come back is named. Secrets and deleted data never come back.
    """
    console = Console.make_standard(no_color=no_color, interactive=input)
    if run is not None and last:
        raise UsageError("RUN and --last exclude each other", "Name the run, or use --last.")
    if run is None and not last:
        _list_runs(console, state, json=json)
        return
    with open_screen(
        console,
        json=json,
        quiet=quiet,
        detail=detail,
        command="undo",
        sends=not validate,
        approved=auto_approve,
    ) as screen:
        chosen = choose_run(open_store(state), run)
        space = open_workspace(variables=var, variable_files=var_file, state=state, policies=policy)
        ask = ApplyRequest(
            Options(
                accept=check_accepted(accept, space.configuration.registry),
                max_deletes=max_deletes,
            ),
            approve=approve_all if auto_approve else screen.ask_approval,
            approved_by="auto_approve" if auto_approve else "terminal",
            wait=not no_wait,
            lock_timeout=parse_duration(lock_timeout, "--lock-timeout"),
            command="undo",
            make=lambda scene: plan_undo(scene, chosen),
            undoes=chosen,
            rerun=replace(advise("undo"), command_text=f"`kafkaform undo {chosen}`"),
        )
        if validate:
            plan = rehearse(space, ask, screen.progress, validate=True)
            screen.note(VALIDATED if plan.effective else IDLE)
            return
        applied = show_run(screen, partial(run_apply, space, ask), outputs=False)
        if applied.report is None:
            screen.note(IDLE)


def _list_runs(console: Console, state: str | None, *, json: bool) -> None:
    """The last runs and what they changed."""
    store = open_store(state)
    runs = list_recent_runs(store)
    documents = [make_run_document(summary) for summary in runs]
    if json:
        console.write_lines(map(render_json, documents))
        return
    if not runs:
        console.note(f"No runs in {store.sink.location}.")
        return
    words = list_words(Registry(), (c.identity for s in runs for c in s.changes))
    page = make_runs_page(documents, words)
    console.write_lines(render_page(page, get_terminal_width(console)))
    console.note(NEXT)
