"""`kafkaform plan` for many folders of a repository."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.clock import SystemClock
from ...core.diagnostics import Diagnostic, Diagnostics
from ...core.errors import UsageError
from ...core.progress import Message
from ...plan.model import Mode, Options
from ...render.folders import FoldersSummary, make_repository_summary, summarise_folders
from ...render.plan_text import render_last_line
from ...render.stream import Stream
from ...render.text import Detail, inline
from ...workflow.configuration.untrusted import dry_run_error
from ...workflow.model import Note, RunEvent
from ...workflow.plan_documents import remove_file, save_file
from ...workflow.planning import list_option_words
from ...workflow.repository.checking import place_fault
from ...workflow.repository.documents import (
    make_approval,
    make_review,
    render_folders_comment,
    render_folders_page,
    render_folders_text,
    save_folders_approval,
    summarise_outcomes,
)
from ...workflow.repository.folders import OpenRepository, open_repository
from ...workflow.repository.planning import FolderOutcome, RepositoryPlan, plan_repository
from ..options.flags import FolderFlags
from ..options.plan_flags import PlanChecks, PlanFiles, PlanInputs
from ..terminal.console import Console
from ..terminal.results import write_paged
from ..terminal.screen import JsonScreen, TextScreen, open_screen

if TYPE_CHECKING:
    from ...workflow.repository.applying import FolderResult

ONE_PLAN = "a saved plan is the plan of one folder"
APPROVE_ALL = (
    "To apply exactly the plans of all folders, save their approval with `plan --all "
    "--approval-out FILE`, and give it to `apply --all --expect FILE`."
)
OWN_STATES = "each folder of a repository has a state of its own"
_FEW = 5
"""How many folders with the same fault are named."""


class PlanRequest(Struct, frozen=True):
    """What was typed."""

    chosen: FolderFlags
    inputs: PlanInputs
    checks: PlanChecks
    options: Options
    files: PlanFiles
    detail: Detail = "grouped"
    state: str | None = None


class FolderScreens(Struct):
    """Shows what happens in each folder while it is planned."""

    screen: TextScreen | JsonScreen
    repository: OpenRepository
    screens: dict[str, JsonScreen] = field(default_factory=dict)

    def progress(self, path: str, event: RunEvent | FolderOutcome) -> None:
        """Show one event of a folder, or of all of them if the path is empty."""
        if isinstance(event, FolderOutcome):
            self._show_outcome(event)
        elif isinstance(self.screen, JsonScreen):
            self.choose_screen(path).progress(event)
        elif not path:
            self.screen.progress(event)
        elif isinstance(event, Note):
            self.screen.note(f"{inline(path)}: {inline(event.text)}")

    def choose_screen(self, path: str) -> TextScreen | JsonScreen:
        """The screen of a folder. Programs read from each line which folder it is about."""
        if not path or isinstance(self.screen, TextScreen):
            return self.screen
        console, stream = self.screen.console, Stream(SystemClock(), path)
        return self.screens.setdefault(path, JsonScreen(console, "plan", stream=stream))

    def _show_outcome(self, outcome: FolderOutcome) -> None:
        path = outcome.folder.path
        if isinstance(self.screen, JsonScreen):
            self.choose_screen(path).show_diagnostics(self.place_faults(outcome))
            return
        review = make_review(outcome)
        (row,) = summarise_folders("", 1, [review]).rows
        text = review.skipped or review.fault or "no changes"
        if row.view is not None and not row.view.empty:
            text = render_last_line(row.view).removeprefix("Plan: ").removesuffix(".")
        self.screen.progress(Message(f"{path}: {text}"))

    def place_faults(self, end: FolderOutcome | FolderResult) -> Diagnostics:
        """The faults of a folder, with paths that are seen from the top of the repository."""
        if end.error is None:
            return ()
        repository, folder = self.repository.repository, end.folder
        return tuple(place_fault(repository, folder, item) for item in end.error.diagnostics)


def plan_folders(console: Console, request: PlanRequest, *, json: bool, quiet: bool) -> int:
    """Plan the chosen folders, show and write the plans; return the gravest exit code."""
    _refuse_single_flags(request)
    with open_screen(
        console, json=json, quiet=quiet, detail=request.detail, sends=False, pages=True
    ) as screen:
        if request.files.approval is not None:
            # If this plan fails, the approval of an earlier one must not stay in its place.
            remove_file(request.files.approval)
        repository = open_chosen(request.chosen, request.inputs, screen)
        screens = FolderScreens(screen, repository)
        plan = plan_repository(
            repository,
            request.options,
            validate=request.checks.validate,
            verify_log=request.checks.verify_log,
            fail_on=request.checks.fail_on,
            progress=screens.progress,
        )
        summary = summarise_outcomes(repository.choice, plan.folders)
        command = shlex.join(["kafkaform", *list_apply_words(summary.digest, request)])
        _save_files(summary, command, request.files)
        _show_summary(screens, plan, summary, command)
        approval = make_approval(plan.folders)
        if request.files.approval is not None and approval.tokens:
            save_folders_approval(approval, request.files.approval)
    # Terraform's code for "there are changes", which is no error, and hides none.
    return plan.code or (2 if request.checks.detailed_exitcode and plan.changed else 0)


def open_chosen(
    chosen: FolderFlags,
    inputs: PlanInputs,
    screen: TextScreen | JsonScreen,
    reviewed: Collection[str] = (),
) -> OpenRepository:
    """Open the chosen folders. reviewed: paths that --changed-since does not leave out. Raises as
    `open_repository` does."""
    if chosen.all and chosen.globs:
        raise UsageError("--all and --folder exclude each other", "Leave one of them out.")
    return open_repository(
        folders=chosen.globs,
        changed_since=chosen.since,
        variables=inputs.variables,
        variable_files=inputs.variable_files,
        untrusted=inputs.untrusted,
        policies=inputs.policies,
        reviewed=reviewed,
        progress=screen.progress,
    )


def _refuse_single_flags(request: PlanRequest) -> None:
    """Raises UsageError for flags that are about one folder."""
    if request.inputs.untrusted and request.checks.validate:
        raise dry_run_error()
    refuse_flags(
        request.chosen,
        (
            ("--out", request.files.out, ONE_PLAN, APPROVE_ALL),
            ("--state", request.state, OWN_STATES, "Change to the folder, or leave it out."),
        ),
    )


def refuse_flags(
    chosen: FolderFlags, rows: Iterable[tuple[str, Path | str | None, str, str]]
) -> None:
    """Raises UsageError for what is about one folder. rows: the name, what was typed, why it is
    refused, and what to do."""
    for name, value, reason, advice in rows:
        if value is not None:
            words = " or ".join(word.partition("=")[0] for word in chosen.list_words())
            raise UsageError(f"{name} cannot be combined with {words}: {reason}", advice)


def _save_files(summary: FoldersSummary, command: str, files: PlanFiles) -> None:
    """Write the plans to the files that flags name."""
    if files.page is not None:
        save_file(files.page, render_folders_page(summary, command).encode(), private=False)
    if files.comment is not None:
        named = replace(summary, name=files.comment_name or summary.name)
        text = render_folders_comment(named, command=command, whole=files.page)
        save_file(files.comment, text.encode(), private=False)


def _show_summary(
    screens: FolderScreens, plan: RepositoryPlan, summary: FoldersSummary, command: str
) -> None:
    screen = screens.screen
    if isinstance(screen, JsonScreen):
        screen.show_event(make_repository_summary(summary))
        return
    show_plans(screen, summary)
    if summary.digest:
        screen.show_next(command)
    show_faults(screens, plan.folders)


def show_plans(screen: TextScreen, summary: FoldersSummary) -> None:
    """Show the plans of all folders, below their summary."""
    screen.clear()
    console = screen.console
    text = render_folders_text(
        summary,
        colour=console.colour,
        width=console.width,
        detail=screen.detail,
        approval=screen.needs_approval(),
    )
    if screen.pages:
        write_paged(console, text)
    else:
        console.write(text)


def show_faults(
    screens: FolderScreens, ends: Iterable[FolderOutcome] | Iterable[FolderResult]
) -> None:
    """Show the faults of all folders to people; one that several have is shown once."""
    faults: dict[Diagnostic, list[str]] = {}
    for end in ends:
        for fault in screens.place_faults(end):
            faults.setdefault(fault, []).append(end.folder.path)
    named = tuple(_name_folders(item, paths) for item, paths in faults.items())
    screens.screen.show_diagnostics(named)


def _name_folders(fault: Diagnostic, paths: Sequence[str]) -> Diagnostic:
    """The fault; without a place, it names the folders that have it."""
    if fault.range is not None:
        return fault
    suffix = f" and {len(paths) - _FEW:,} more" if len(paths) > _FEW else ""
    return replace(fault, summary=f"{', '.join(paths[:_FEW])}{suffix}: {fault.summary}")


def list_apply_words(digest: str, request: PlanRequest) -> list[str]:
    """The command and its flags, which apply exactly these plans after their review."""
    command = "destroy" if request.options.mode is Mode.DESTROY else "apply"
    policies = [f"--policy={folder}" for folder in request.inputs.policies]
    flags = list_option_words(request.options)
    return [command, *request.chosen.list_words(), "--expect", digest, *flags, *policies]
