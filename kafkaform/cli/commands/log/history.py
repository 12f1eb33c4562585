"""`kafkaform history NAME`: who changed what of an object, when, and what was there before, in a
folder or in all folders of a repository.
`kafkaform undo RUN`: bring back what a run changed.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from ....core.clock import SystemClock
from ....core.errors import UsageError, exit_code
from ....plan.model import Options
from ....provider.registry import Registry
from ....render.history import make_folders_page, make_history_page, make_runs_page
from ....render.text import inline, render_count, render_json, render_page
from ....workflow.alter import make_workspace, rehearse
from ....workflow.applying import run_apply
from ....workflow.configuration.repository_choice import choose_folders
from ....workflow.configuration.repository_place import find_top_file
from ....workflow.connection import ConnectionInputs
from ....workflow.history import (
    NAMES,
    list_recent_runs,
    list_words,
    make_history_document,
    make_period,
    make_run_document,
    read_history,
)
from ....workflow.model import ApplyRequest, Approve
from ....workflow.repository.history import (
    RepositoryHistory,
    make_repository_document,
    read_repository_history,
)
from ....workflow.stores import STATE_VARIABLE, Store, open_store
from ....workflow.undo import ChosenRun, choose_run, plan_undo
from ....workflow.workspace import Workspace, open_workspace
from ...options.flags import (
    AllFolders,
    ChangedSince,
    Folders,
    NoColor,
    Since,
    StateFile,
    Until,
    Var,
    VarFile,
    complete_objects,
    complete_runs,
    take_flags,
)
from ...options.plan_flags import IDLE, VALIDATED, RunOptions, read_run_options
from ...options.provider_commands import Opener, get_terminal_width, read_direct_flags
from ...terminal.console import Console
from ...terminal.screen import accept, advise, open_screen, show_run

NEXT = "Undo one with `kafkaform undo RUN`, or the newest with `kafkaform undo --last`."
Last = Annotated[
    int,
    typer.Option(
        "--last", metavar="N", min=1, help="With --all and without a name: the newest N changes."
    ),
]


def history(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="ADDRESS|KIND/NAME",
            autocompletion=complete_objects,
            help="Such as kafka_topic.orders, topic/orders or principal/ci.",
        ),
    ] = None,
    path: Annotated[
        str,
        typer.Option("--path", metavar="PATH", help="Show only this value: retention.ms."),
    ] = "",
    since: Since = None,
    until: Until = None,
    all: AllFolders = False,
    folder: Folders = [],
    changed_since: ChangedSince = None,
    last: Last = 50,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    state: StateFile = None,
    no_color: NoColor = False,
) -> int:
    """Show who changed what of an object, and when.

    Each change has its run, its commit and what was there before.

    KIND is topic, acl, quota, user, config, schema, connector or principal, or the name of a type.
    Reads only the state and the audit log, so it also answers for objects that are gone. In a
    repository, --all and --folder show the changes of many folders by time, also without a name.
    """
    console = Console.make_standard(no_color=no_color)
    period = make_period(since, until, SystemClock().now())
    if all or folder or changed_since:
        if state is not None:
            raise UsageError("--state is the state of one folder", "Leave it out.")
        if path and name is None:
            raise UsageError("--path is a value of an object", NAMES)
        choice = choose_folders(Path(), all, folder, changed_since)
        repository_history = read_repository_history(
            choice.repository, choice.folders, name or "", period, path, last
        )
        return _show_folders(console, repository_history, len(choice.folders), json=json)
    _refuse_top(state)
    if name is None:
        raise UsageError("history needs the name of an object", NAMES)
    answer = read_history(open_store(state), name, period, path)
    document = make_history_document(answer)
    if json:
        console.write(render_json(document))
        return 0
    words = list_words(Registry(), [item.identity for item in answer.objects])
    page = make_history_page(document, words)
    console.write_lines(render_page(page, get_terminal_width(console)))
    if answer.unread.place:
        console.note(inline(answer.unread.sentence))
    return 0


def _refuse_top(state: str | None) -> None:
    """Raises UsageError at the top of a repository, which has no log itself."""
    file = None if state or os.environ.get(STATE_VARIABLE) else find_top_file(Path.cwd())
    if file is not None:
        raise UsageError(
            f"this is the top of a repository ({file.name}), and each of its folders has a log",
            "Add --all, or choose folders with --folder GLOB.",
        )


def _show_folders(console: Console, history: RepositoryHistory, count: int, *, json: bool) -> int:
    """Show the changes of many folders, first what failed; return the gravest exit code."""
    document = make_repository_document(history)
    errors = {item.folder.path: item.error for item in history.failed if item.error is not None}
    if json:
        console.write(render_json(document))
    else:
        for path, error in errors.items():
            faults = (replace(f, summary=f"{path}: {f.summary}") for f in error.diagnostics)
            console.show_diagnostics(tuple(faults))
        if history.changes:
            words = list_words(Registry(), [item.change.identity for item in history.changes])
            page = make_folders_page(document, words)
            console.write_lines(render_page(page, get_terminal_width(console)))
        else:
            console.note(f"No changes in the audit logs of {render_count(count, 'folder')}.")
    return max(map(exit_code, errors.values()), default=0)


@take_flags("doing", read_run_options)
@take_flags("direct", read_direct_flags)
def undo(
    doing: RunOptions,
    direct: ConnectionInputs,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            autocompletion=complete_runs,
            help="The id of a run, as `audit show` and `history` print it.",
        ),
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="Undo the newest run.")] = False,
    var: Var = [],
    var_file: VarFile = [],
    no_color: NoColor = False,
) -> None:
    """Bring back what a run changed, with a plan of its own.

    Without RUN, list the last ten runs and what they changed. What somebody changed since stays,
    and what cannot come back is named. Secrets and deleted data never come back.

    With --bootstrap-server or its like, undo a run of `alter` without a configuration.
    """
    console = Console.make_standard(no_color=no_color, interactive=doing.input)
    if run is not None and last:
        raise UsageError("RUN and --last exclude each other", "Name the run, or use --last.")
    opener = Opener(direct, console)
    if run is None and not last:
        _list_runs(console, doing, _open_log(opener, doing))
        return
    with open_screen(
        console,
        json=doing.json,
        quiet=doing.quiet,
        detail=doing.detail,
        command="undo",
        sends=not doing.validate,
        approved=doing.auto_approve,
    ) as screen:
        chosen = choose_run(_open_log(opener, doing), run)
        if direct.direct:
            space = _open_system(opener, doing)
        else:
            space = open_workspace(
                variables=var, variable_files=var_file, state=doing.state, policies=doing.policies
            )
        ask = _make_request(doing, chosen, screen.ask_approval)
        if doing.validate:
            plan = rehearse(space, ask, screen.progress, validate=True)
            screen.note(VALIDATED if plan.effective else IDLE)
            return
        applied = show_run(screen, partial(run_apply, space, ask), outputs=False)
        if applied.report is None:
            screen.note(IDLE)


def _make_request(doing: RunOptions, chosen: ChosenRun, approve: Approve) -> ApplyRequest:
    return ApplyRequest(
        Options(accept=doing.accept),
        approve=accept if doing.auto_approve else approve,
        approved_by="auto_approve" if doing.auto_approve else "terminal",
        wait=doing.wait,
        lock_timeout=doing.lock_timeout,
        command="undo",
        make=lambda scene: plan_undo(scene, chosen.run),
        undoes=chosen.run,
        further=chosen.instances,
        rerun=replace(advise("undo"), command_text=f"`kafkaform undo {chosen.run}`"),
    )


def _open_log(opener: Opener, doing: RunOptions) -> Store:
    """The log of the folder, or that of the system that flags name."""
    if not opener.flags.direct:
        return open_store(doing.state)
    space = _open_system(opener, doing, keep=False)
    return Store(space.configuration.folder, space.backend, space.sink)


def _open_system(opener: Opener, doing: RunOptions, *, keep: bool = True) -> Workspace:
    """The workspace of the system that flags name. keep: something will be written."""
    with opener.open_session() as session:
        scope_id = session.facts.scope_id
    keep = keep and not doing.validate
    return make_workspace(
        opener.resolve_connection(), scope_id, doing.state, doing.policies, keep=keep
    )


def _list_runs(console: Console, doing: RunOptions, store: Store) -> None:
    """The last runs and what they changed."""
    runs, unread = list_recent_runs(store)
    documents = [make_run_document(summary) for summary in runs]
    if doing.json:
        console.write_lines(map(render_json, documents))
        return
    if not runs:
        console.note(f"No runs in {store.sink.location}.")
        return
    words = list_words(Registry(), (c.identity for s in runs for c in s.changes))
    page = make_runs_page(documents, words)
    console.write_lines(render_page(page, get_terminal_width(console)))
    if unread.place:
        console.note(inline(unread.sentence))
    console.note(NEXT)
