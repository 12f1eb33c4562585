"""Apply or destroy the folders of a repository, each with its own lock, state, log and approval.

A folder comes after those whose outputs it reads, and uses their new values; a destroy goes the
other way round. A folder that is blocked or fails keeps those from being tried that need it, and no
others. An interrupted run is continued by running it again: what is applied already has nothing to
do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import chdir
from functools import partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ...apply.report import Rerun
from ...apply.stop import Stop
from ...core.errors import (
    Ended,
    Interrupted,
    KafkaformError,
    PlanRefused,
    UsageError,
    exit_code,
)
from ...plan.model import Mode, Options, Plan
from ...plan.observe import LookBudget
from ..configuration.instances import open_session
from ..configuration.repository import RepositoryFolder
from ..configuration.untrusted import apply_error
from ..model import Applied, RunEvent
from ..operations import REPEATED, apply_changes, destroy
from ..workspace import Workspace
from .checking import FolderClaim
from .documents import FoldersApproval, make_approval
from .folders import OpenFolder, OpenRepository, open_again
from .planning import (
    FolderOutcome,
    RepositoryPlan,
    list_folder_claims,
    make_conflict_error,
    plan_repository,
    select_options,
)

NOT_BEGUN = "interrupted before it was begun"
_CONTINUE = "Run the same command again: it goes on where this one ended."


class FolderResult(Struct, frozen=True):
    """What became of one folder."""

    folder: RepositoryFolder
    applied: Applied | None = None
    """What its run did. None if there was none, or if it sent nothing before its error."""
    error: KafkaformError | None = None
    """Why the run failed, or why there was none."""
    skipped: str = ""
    """Why nothing was tried, although something may be to be done; empty otherwise. After a signal,
    there is an error, too."""

    @property
    def code(self) -> int:
        """The exit code of this folder alone."""
        return 0 if self.error is None else exit_code(self.error)

    @property
    def done(self) -> bool:
        """Nothing is left to be done."""
        return self.error is None and not self.skipped


class RepositoryApplied(Struct, frozen=True):
    """What became of the chosen folders, in the order in which they were tried."""

    plan: RepositoryPlan
    """The plans that were approved."""
    folders: tuple[FolderResult, ...]

    @property
    def code(self) -> int:
        """The gravest exit code of a folder."""
        return max((item.code for item in self.folders), default=0)


ApplyListener = Callable[[str, RunEvent | FolderOutcome | FolderResult], None]
"""Called with the path of a folder and an event of its plan or run; at the end of its plan with the
outcome, and at its own end with the result. Events about all folders have an empty path."""


def ignore_apply_event(path: str, event: object) -> None:
    """A listener that tells nobody."""


def apply_repository(
    repository: OpenRepository,
    options: Options = Options(),
    *,
    approve: Callable[[RepositoryPlan], bool] | None = None,
    approve_changed: Callable[[str, Plan], bool] | None = None,
    approved_by: str = "callback",
    expect: str | FoldersApproval | None = None,
    fail_on: Sequence[str] = (),
    wait: bool = True,
    lock_timeout: float = 0.0,
    verify_log: bool = False,
    progress: ApplyListener = ignore_apply_event,
    stop: Stop | None = None,
    rerun: Rerun | None = None,
) -> RepositoryApplied:
    """Plan the folders, have the plans approved, and apply them; with `Mode.DESTROY`, destroy.

    approve: called with all plans before anything is sent; only True approves. approve_changed:
    called with the path of a folder whose plan became another one since, because it uses new
    outputs of other folders; without it, such a plan is refused. approved_by: what the logs call
    the approval. expect: what was reviewed, and nothing is asked. With the digest of all plans
    (`FoldersApproval.digest`), nothing is applied if one of them differs. With an approval, a
    folder whose plan differs is refused alone. The other arguments are as in `apply_changes`, for
    each folder.

    A folder that fails has its error in the result. Raises UsageError; PlanRefused for another
    digest, and for an approval of other folders; KafkaformError if nobody approves. Nothing was
    sent then.
    """
    if repository.inputs.untrusted:
        raise apply_error()
    if expect is None and approve is None:
        raise UsageError(
            "no approval was given or can be asked for, so nothing was applied",
            "Give a callback that approves the plans, or the approval of reviewed plans.",
        )
    _refuse_unchosen(repository, expect)
    plan = plan_repository(
        repository, options, fail_on=fail_on, verify_log=verify_log, progress=progress
    )
    approval = _choose_approval(plan, expect)
    job = _Job(
        repository,
        options,
        plan,
        approval,
        expect is not None,
        approve_changed,
        progress,
        stop or Stop(),
        rerun or Rerun("destroy" if options.mode is Mode.DESTROY else "apply", REPEATED),
        {"approved_by": approved_by, "wait": wait, "lock_timeout": lock_timeout},
        {"fail_on": fail_on, "verify_log": verify_log},
    )
    job.claims.extend(plan.claims)
    asked = approve if expect is None and approval.tokens else None
    if asked is not None and asked(plan) is not True:
        raise KafkaformError("not approved; nothing was sent")
    return _run(job)


def _choose_approval(plan: RepositoryPlan, expect: str | FoldersApproval | None) -> FoldersApproval:
    """What was approved, or is to be. Raises PlanRefused if the digest is that of other plans."""
    if isinstance(expect, FoldersApproval):
        return expect
    approval = make_approval(plan.folders)
    if expect in (None, approval.digest):
        return approval
    raise PlanRefused(
        f"these are not the plans that were approved: the approval of all is {approval.digest} "
        f"now, and {expect} was approved",
        "Nothing was sent. Plan again, and have the plans reviewed. The file of --approval-out in "
        "place of the digest refuses only the folders whose plans differ, and continues an "
        "interrupted run.",
    )


def _refuse_unchosen(repository: OpenRepository, expect: str | FoldersApproval | None) -> None:
    """Raises PlanRefused for an approval of a folder that was not chosen: part of what was reviewed
    would not be applied."""
    chosen = {item.folder.path for item in repository.folders}
    for path in expect.tokens if isinstance(expect, FoldersApproval) else ():
        if path not in chosen:
            raise PlanRefused(
                f"the approval has a plan of {path}, and the command is not about that folder",
                "Nothing was sent. Choose all folders that it names, such as with --all.",
            )


# ── one folder after the other ──────────────────────────────────────────────────────────


class _Job(Struct, frozen=True):
    """Everything that the folders are applied with."""

    repository: OpenRepository
    options: Options
    plan: RepositoryPlan
    approval: FoldersApproval
    reviewed: bool
    """The approval was made before, and nobody is asked."""
    approve_changed: Callable[[str, Plan], bool] | None
    progress: ApplyListener
    stop: Stop
    rerun: Rerun
    wishes: Mapping[str, Any]
    """Arguments that apply and destroy have in common."""
    apply_wishes: Mapping[str, Any]
    """Those that only an apply has."""
    results: dict[str, FolderResult] = field(default_factory=dict)
    """Path -> what became of each folder so far."""
    claims: list[FolderClaim] = field(default_factory=list)
    """The objects of all folders, as they were evaluated last."""
    look_budget: LookBudget = field(default_factory=LookBudget)
    """What the plans that are made again may ask, all together, about those whom they hit."""

    def has_new_outputs(self, path: str) -> bool:
        """Whether a folder that was applied has other outputs than when the plans were made."""
        result = self.results.get(path)
        opened = next(item for item in self.repository.folders if item.folder.path == path)
        before = None if opened.state is None else opened.state.outputs
        return (
            result is not None
            and result.applied is not None
            and result.applied.state.outputs != before
        )

    @property
    def destroys(self) -> bool:
        return self.options.mode is Mode.DESTROY

    def list_earlier(self, path: str) -> Collection[str]:
        """The folders that must be done before this one."""
        # A destroy goes the other way round: what reads the outputs of a folder goes first.
        return self.plan.order.list_users(path) if self.destroys else self.plan.order.needs[path]


def _run(job: _Job) -> RepositoryApplied:
    opened = {item.folder.path: item for item in job.repository.folders}
    outcomes = {item.folder.path: item for item in job.plan.folders}
    for path in job.plan.order.list_paths(backwards=job.destroys):
        try:
            result = _try_folder(job, opened[path], outcomes[path])
        except Ended as ended:
            # Nothing of this folder was sent yet, so it only counts as not begun.
            ended.handled = True
            result = _make_unbegun(opened[path].folder, ended.number)
        job.results[path] = result
        job.progress(path, result)
    return RepositoryApplied(job.plan, tuple(job.results.values()))


def _try_folder(job: _Job, opened: OpenFolder, outcome: FolderOutcome) -> FolderResult:
    """Apply a folder, unless something keeps it from that, or nothing is to be done."""
    folder = opened.folder
    if folder.path in job.plan.order.circles:
        return FolderResult(folder, error=job.plan.order.circles[folder.path])
    needs = job.plan.order.needs[folder.path]
    approved = folder.path in job.approval.tokens
    if (number := _find_interrupt(job)) is not None:
        to_do = outcome.changed or outcome.unfinished or outcome.skipped or outcome.error
        # What a folder reads may be new, so only one that reads nothing is known to be done.
        if not (to_do or approved or needs):
            return FolderResult(folder)
        return _make_unbegun(folder, number)
    if reason := _find_obstacle(job, folder.path):
        return FolderResult(folder, skipped=reason)
    renewed = not job.destroys and (bool(outcome.skipped) or any(map(job.has_new_outputs, needs)))
    if outcome.conflicting and not renewed:
        # Also if it was approved: another folder has got the object since.
        return FolderResult(folder, error=outcome.error)
    if not (renewed or approved) and outcome.error is not None:
        return FolderResult(folder, error=outcome.error)
    try:
        if not (renewed or approved or outcome.changed or outcome.unfinished):
            return FolderResult(folder)
        space = _open_to_apply(job, opened, renewed=renewed)
        return FolderResult(folder, _apply_folder(job, opened, space))
    except KafkaformError as error:
        return FolderResult(folder, error.applied, error)


def _find_interrupt(job: _Job) -> int | None:
    """The signal that ends the command before the next folder; None if there was none."""
    errors = (item.error for item in job.results.values())
    numbers = (error.signal_number for error in errors if isinstance(error, Interrupted))
    return next(numbers, job.stop.requested)


def _make_unbegun(folder: RepositoryFolder, number: int) -> FolderResult:
    """The result of a folder that a signal kept from being tried."""
    return FolderResult(folder, error=Interrupted(NOT_BEGUN, _CONTINUE, number), skipped=NOT_BEGUN)


def _find_obstacle(job: _Job, path: str) -> str:
    """Why a folder is not tried; empty if it is."""
    for other in job.list_earlier(path):
        if not job.results[other].done:
            fate = "was skipped" if job.results[other].skipped else "failed"
            relation = "which reads its outputs" if job.destroys else "whose outputs it reads"
            return f"{other}, {relation}, {fate}"
    return ""


def _open_to_apply(job: _Job, opened: OpenFolder, *, renewed: bool) -> Workspace:
    """The folder with sessions of its own; evaluated again if it uses new outputs. Raises
    KafkaformError."""
    if renewed:
        opened = open_again(job.repository, opened.folder, sends=True)
    if opened.workspace is None:
        assert opened.error is not None, "a folder that cannot be opened has its error"
        raise opened.error
    if renewed:
        _refuse_conflicts(job, opened)
    # As in the plan that was approved.
    opened = job.plan.remainder.add_objects(opened, job.plan.scopes[opened.folder.path])
    assert opened.workspace is not None, "it was open before"
    # Shared logins only serve plans. A run that sends has a login of its own.
    return replace(opened.workspace, opener=open_session, look_budget=job.look_budget)


def _refuse_conflicts(job: _Job, opened: OpenFolder) -> None:
    """Raises ConfigurationError if the folder declares with new outputs what another one has."""
    path = opened.folder.path
    others = [claim for claim in job.claims if claim.folder != path]
    job.claims[:] = [*others, *list_folder_claims(opened)]
    if faults := job.plan.remainder.find_conflicts(job.claims).get(path):
        raise make_conflict_error(faults)


def _apply_folder(job: _Job, opened: OpenFolder, space: Workspace) -> Applied:
    """One run, from lock to unlock. Raises as `apply_changes` does."""
    path = opened.folder.path
    token = job.approval.tokens.get(path)
    common: dict[str, Any] = {
        **job.wishes,
        "options": select_options(replace(opened, workspace=space), job.options),
        "approve": partial(_approve, job, path),
        "expect": token if job.reviewed else None,
        "progress": partial(job.progress, path),
        "stop": job.stop,
        "rerun": replace(job.rerun, folder=os.path.relpath(space.configuration.folder)),
    }
    # Providers read files such as certificates from the current folder.
    with chdir(space.configuration.folder):
        if job.destroys:
            return destroy(space, **common)
        return apply_changes(space, **job.apply_wishes, **common)


def _approve(job: _Job, path: str, plan: Plan) -> bool:
    """Whether the plan of a folder is the approved one, or is approved now. Raises PlanRefused."""
    token = job.approval.tokens.get(path)
    if plan.token == token:
        return True
    if job.approve_changed is None or job.reviewed:
        raise PlanRefused(
            "this plan was not approved: the folder had no changes then"
            if token is None
            else "this is not the plan that was approved: what would be done differs",
            "Nothing was sent. Plan the folder again, and have its plan reviewed.",
        )
    return job.approve_changed(path, plan)
