"""`kafkaform apply` and `destroy` for many folders of a repository: all plans are shown, then one
question approves them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import fields

from ...apply.report import Rerun
from ...core.errors import KafkaformError, UsageError
from ...core.storage import read_named_file
from ...core.words import NEUTRAL
from ...plan.model import Mode, Options, Plan
from ...render.folders import FolderEnd, make_repository_result
from ...render.text import Detail, inline, render_count
from ...workflow.model import PlanChosen, RunEvent
from ...workflow.plan_documents import read_words
from ...workflow.planning import list_option_words
from ...workflow.repository.applying import FolderResult, apply_repository
from ...workflow.repository.documents import (
    FoldersApproval,
    parse_approval,
    render_ends_text,
    summarise_outcomes,
)
from ...workflow.repository.planning import FolderOutcome, RepositoryPlan
from ..options.flags import FolderFlags
from ..options.plan_flags import PlanInputs
from ..terminal.console import ELSEWHERE, Console, Unwritable, outlive_output
from ..terminal.screen import JsonScreen, TextScreen, make_report, open_screen, show_applied
from ..terminal.signals import stop_on_signals
from .plan import (
    APPROVE_ALL,
    ONE_PLAN,
    OWN_STATES,
    FolderScreens,
    open_chosen,
    refuse_flags,
    show_faults,
    show_plans,
)

FIELDS = tuple(item.name for item in fields(TextScreen))
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TOKEN = re.compile(r"[0-9a-f]{64}\.[0-9a-f]{64}")
_LIMIT = 10_000_000
"""The longest approval that is read, in bytes."""


class ApplyFlags(Struct, frozen=True):
    """What was typed."""

    chosen: FolderFlags
    inputs: PlanInputs
    options: Options
    detail: Detail = "grouped"
    expect: str | None = None
    auto_approve: bool = False
    confirm: Sequence[str] = ()
    """The ids of the systems that a destroy can delete from."""
    wait: bool = True
    verify_log: bool = False
    fail_on: Sequence[str] = ()
    lock_timeout: float = 0.0

    @property
    def destroys(self) -> bool:
        return self.options.mode is Mode.DESTROY


class FolderText(TextScreen):
    """The screen of one folder, whose notes begin with its path."""

    path: str = ""

    def note(self, text: str) -> None:
        super().note(f"{inline(self.path)}: {text}")


class ApplyScreens(FolderScreens):
    """Shows the plans of all folders, then what happens in each folder while it is applied."""

    tokens: dict[str, str] = field(default_factory=dict)
    """Path -> the token of the plan that was shown, "" for none; of all folders, once they are
    planned."""
    outcomes: dict[str, FolderOutcome] = field(default_factory=dict)
    """Path -> how its planning ended."""
    results: list[FolderResult] = field(default_factory=list)
    titled: str = ""
    """The folder that the last heading names."""

    def show(self, path: str, event: RunEvent | FolderOutcome | FolderResult) -> None:
        """Show one event of a folder, or of all of them if the path is empty."""
        if isinstance(event, FolderResult):
            self._show_result(event)
        elif isinstance(event, PlanChosen) and path in self.tokens:
            self._show_chosen(path, event)
        elif path in self.tokens and not isinstance(event, FolderOutcome):
            self.choose_screen(path).progress(event)
        else:
            if isinstance(event, FolderOutcome):
                self.outcomes[path] = event
                is_shown = isinstance(self.screen, JsonScreen) and event.plan is not None
                self.tokens[path] = event.plan.token if is_shown and event.plan else ""
            self.progress(path, event)

    def _show_chosen(self, path: str, event: PlanChosen) -> None:
        """Show the plan that a folder is applied with, unless that was done."""
        # As in an apply of one folder: what is sent has to be recorded, also without output.
        outlive_output()
        if event.plan.token == self.tokens[path] or event.run:
            return
        self._show_heading(path)
        if isinstance(self.screen, TextScreen):
            self.screen.console.write("\n")
        self.choose_screen(path).show_plan(event.plan)

    def choose_screen(self, path: str) -> TextScreen | JsonScreen:
        screen = self.screen
        if not path or isinstance(screen, JsonScreen):
            return super().choose_screen(path)
        return FolderText(**{name: getattr(screen, name) for name in FIELDS}, path=path)

    def _show_heading(self, path: str) -> None:
        if isinstance(self.screen, TextScreen) and path != self.titled:
            self.titled = path
            self.screen.clear()
            width = self.screen.console.width
            self.screen.console.write("\n" + f"── {inline(path)} ".ljust(width, "─") + "\n")

    def _show_result(self, result: FolderResult) -> None:
        self.results.append(result)
        path, applied = result.folder.path, result.applied
        screen, outcome = self.choose_screen(path), self.outcomes[path]
        is_kept = result.error is not None and result.error is outcome.error
        is_shown = isinstance(screen, JsonScreen) or bool(self.tokens[path])
        if is_kept and outcome.plan is not None and not is_shown:
            # Nobody was asked about it, and its error speaks of what is blocked in it.
            self._show_heading(path)
            screen.console.write("\n")
            screen.show_plan(outcome.plan)
        if applied is not None and applied.report is not None:
            self._show_heading(path)
            show_applied(screen, applied, True, complete=result.error is None)
        if isinstance(screen, JsonScreen):
            screen.show_diagnostics(self.place_faults(result))


def apply_folders(console: Console, flags: ApplyFlags, *, json: bool, quiet: bool) -> int:
    """Plan the chosen folders, ask once, apply them, and show what became of each; return the
    gravest exit code."""
    expect = None if flags.expect is None else _read_expected(flags.expect)
    command = "destroy" if flags.destroys else "apply"
    approved = flags.auto_approve or bool(flags.confirm) or expect is not None
    with open_screen(
        console, json=json, quiet=quiet, detail=flags.detail, command=command, approved=approved
    ) as screen:
        # A reviewed plan can contain what was applied meanwhile, as that of a merge queue does.
        reviewed = expect.tokens if isinstance(expect, FoldersApproval) else ()
        repository = open_chosen(flags.chosen, flags.inputs, screen, reviewed)
        screens = ApplyScreens(screen, repository)
        try:
            with stop_on_signals() as stop:
                applied = apply_repository(
                    repository,
                    flags.options,
                    approve=partial(_approve, screens, flags),
                    approve_changed=partial(_approve_changed, screens, flags),
                    approved_by="auto_approve" if flags.auto_approve else "terminal",
                    expect=expect,
                    fail_on=flags.fail_on,
                    wait=flags.wait,
                    lock_timeout=flags.lock_timeout,
                    verify_log=flags.verify_log,
                    progress=screens.show,
                    stop=stop,
                    rerun=_advise(flags, command),
                )
        # Only before the first send: after it, the rest of the output is dropped instead.
        except Unwritable as fault:
            raise KafkaformError(f"{fault}; nothing was sent", ELSEWHERE) from None
        _show_end(screens, repository.repository.name)
    return applied.code


def _advise(flags: ApplyFlags, command: str) -> Rerun:
    """How the errors of a folder name the way to continue."""
    expect = [] if flags.expect is None else ["--expect", flags.expect]
    words = [command, *flags.chosen.list_words(), *expect, *list_option_words(flags.options)]
    return Rerun(command, f"`{' '.join(('kafkaform', *words))}`", reviewed=bool(expect))


def refuse_single_flags(
    chosen: FolderFlags,
    plan: Path | None = None,
    reviewed: Path | None = None,
    state: str | None = None,
) -> None:
    """Raises UsageError for what is about one folder."""
    rows = (
        ("PLAN", plan, ONE_PLAN, APPROVE_ALL),
        ("--reviewed", reviewed, ONE_PLAN, APPROVE_ALL),
        ("--state", state, OWN_STATES, "Change to the folder, or leave it out."),
    )
    refuse_flags(chosen, rows)


def _read_expected(text: str) -> str | FoldersApproval:
    """The approval that was typed: a digest, or the name of a file. Raises UsageError."""
    if _DIGEST.fullmatch(text):
        return text
    if _TOKEN.fullmatch(text):
        raise UsageError(
            "--expect has the approval of one folder, and the command is about several",
            "Give the digest of all plans, or the file of `plan --all --approval-out FILE`. Or "
            "change to the folder.",
        )
    try:
        content = read_named_file(Path(text), _LIMIT)
    except OSError as error:
        raise UsageError(
            f"--expect: {text} is no digest, and cannot be read as a file: {error.strerror}",
            "Give the digest of all plans, or the file of `plan --all --approval-out FILE`.",
        ) from None
    return parse_approval(content.decode("utf-8", "replace"), text)


# ── questions ───────────────────────────────────────────────────────────────────────────


def _approve(screens: ApplyScreens, flags: ApplyFlags, plan: RepositoryPlan) -> bool:
    """Show all plans, and ask once."""
    assert screens.repository is not None, "the repository is opened first"
    screen = screens.screen
    if isinstance(screen, TextScreen):
        show_plans(screen, summarise_outcomes(screens.repository.choice, plan.folders))
        screens.tokens |= {item.folder.path: item.plan.token for item in plan.folders if item.plan}
    plans = [item.plan for item in plan.folders if item.plan is not None and item.applicable]
    if flags.auto_approve:
        return True
    if flags.confirm:
        return _is_confirmed(flags.confirm, plans)
    if not isinstance(screen, TextScreen) or not screen.console.interactive:
        raise UsageError(
            "No terminal to ask for approval, so nothing was applied.",
            "Name the clusters with --confirm CLUSTER."
            if flags.destroys
            else "Use --auto-approve, or review `plan --all --approval-out FILE` and give the "
            "file with --expect.",
        )
    if flags.destroys:
        return all(_type_system(screen, scope, plans) for scope in _list_scopes(plans))
    folders = render_count(len(plans), "folder")
    answer = screen.console.ask(f'\nApply these changes in {folders}? Only "yes" is accepted: ')
    return answer == "yes"


def _list_scopes(plans: Sequence[Plan]) -> list[str]:
    """The ids of the systems that lose something."""
    items = (item for plan in plans for item in plan.instances.values())
    return sorted({item.facts.scope_id for item in items if not item.unread})


def _is_confirmed(confirm: Sequence[str], plans: Sequence[Plan]) -> bool:
    """True if exactly the systems of the plans are named. Raises UsageError otherwise."""
    scopes = _list_scopes(plans)
    if sorted(set(confirm)) != scopes:
        raise UsageError(
            f"--confirm names {', '.join(sorted(set(confirm)))}, but this would destroy in "
            f"{', '.join(scopes)}",
            "Name exactly the systems that you mean. Nothing was sent.",
        )
    return True


def _type_system(screen: TextScreen, scope: str, plans: Sequence[Plan]) -> bool:
    """Ask for the id of a system before something is deleted from it."""
    names = [
        read_words(plan).get(name, NEUTRAL).system
        for plan in plans
        for name, item in plan.instances.items()
        if item.facts.scope_id == scope
    ]
    question = f"\nThis deletes in {render_count(len(plans), 'folder')}. "
    prompt = f"Type the {names[0]} ID to confirm ({inline(scope)}): "
    return screen.console.ask(question + prompt) == scope


def _approve_changed(screens: ApplyScreens, flags: ApplyFlags, path: str, plan: Plan) -> bool:
    """Ask about the plan of a folder that uses new outputs of other folders; it was just shown."""
    if flags.auto_approve or flags.confirm:
        return True
    return screens.screen.ask_approval(plan)


# ── the end ─────────────────────────────────────────────────────────────────────────────


def _show_end(screens: ApplyScreens, name: str) -> None:
    ends = [_make_end(result) for result in screens.results]
    screen = screens.screen
    if isinstance(screen, JsonScreen):
        screen.show_event(make_repository_result(name, ends))
        return
    screen.clear()
    console = screen.console
    console.write("\n" + render_ends_text(ends, colour=console.colour, width=console.width))
    show_faults(screens, screens.results)


def _make_end(result: FolderResult) -> FolderEnd:
    applied, error = result.applied, result.error
    report = None
    if applied is not None and applied.report is not None:
        report = make_report(applied.report, applied.run, applied.plan, complete=error is None)
    return FolderEnd(
        result.folder.path,
        result.folder.owner or "",
        report,
        "" if error is None or result.skipped else error.message,
        result.skipped,
        result.code,
    )
