"""The job of a pull request: plan it, comment on it, and keep the approval for the apply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkaform.workflow.repository.documents import FoldersApproval, save_folders_approval

from .approval import NO_APPROVAL, Approval, read_approval
from .command import Ended, run_kafkaform
from .diagnostics import read_diagnostics, render_failure, render_faults
from .forge import Forge
from .job import UNTRUSTED, Job
from .repository import (
    choose_folders,
    list_folder_rows,
    list_locked_folders,
    list_log_lines,
    locate_blocks,
    render_notice,
)

PAGE = "plan.html"
FAULTS_LIMIT = 4_000
"""Characters of the faults below the plans of other folders."""
LOCK_FILE = "kafkaform.modules.json"
"""Names the commits of modules from Git."""


@dataclass(frozen=True)
class Planned:
    """What a plan has found."""

    code: int
    comment: str
    """The review comment, or why there is no plan."""
    approval: str
    """Empty if the plan cannot be applied."""
    has_changes: bool
    drifted: tuple[str, ...]
    """The folders with drift; `.` outside of a repository."""
    has_page: bool
    """Whether the folder of the job has the plan as a page."""
    result: int
    """What the job of a pull request ends with: 0 if the plan can be applied, also if some of its
    changes are blocked and the others are not."""
    is_empty: bool = False
    """Whether it is about no folder: none of a repository has changed."""

    @property
    def is_kept(self) -> bool:
        """Whether there is something that the apply or a reviewer needs."""
        return self.has_page or bool(self.approval)


def plan_job(job: Job, forge: Forge) -> int:
    """Plan, comment, keep the approval."""
    planned = make_plan(job, forge, *job.branch_flags)
    page = f"; its artifact `{job.artifact}` has `{PAGE}`" if planned.has_page else ""
    body = render_body(
        job.mark("plan"),
        render_notice(job) + planned.comment,
        f"{_render_next(job, planned)} {forge.describe_run()}{page}",
    )
    forge.set_outputs(
        {**list_outputs(planned), "artifact": job.artifact if planned.is_kept else ""}
    )
    forge.summarize(body)
    # Of a change of other files, nobody needs a comment, unless an earlier plan has one.
    forge.comment(job.mark("plan"), body, is_new=not planned.is_empty)
    return planned.result


def _render_next(job: Job, planned: Planned) -> str:
    """What happens next, as a sentence."""
    if not planned.approval:
        return "Nothing of this can be applied."
    if not job.is_repository:
        return "The merge applies exactly this plan, or nothing."
    if planned.result:
        return "Nothing of this is applied as long as a folder has no plan that can be applied."
    if not planned.has_changes:
        return "There is nothing to apply."
    return "The merge applies exactly these plans; of a folder with another plan by then, nothing."


def fetch_modules(job: Job, *flags: str) -> None:
    """Fetch the modules from Git that are locked. One that cannot be fetched is a fault of the plan
    or of the apply, which names it."""
    words = ("init", "--no-color", "--modules-only", "--lockfile=readonly", *flags)
    for folder in list_locked_folders(job, LOCK_FILE):
        run_kafkaform(job, *words, folder=folder)


def make_plan(job: Job, forge: Forge, *flags: str) -> Planned:
    """Plan once, show the plan in the log and its faults at their lines."""
    saved, comment, approval = (job.out / name for name in ("plan.kfplan", "plan.md", "approval"))
    chosen, out = choose_folders(job), () if job.is_repository else ("--out", str(saved))
    with forge.mute_commands():
        fetch_modules(job, *(flag for flag in flags if flag == UNTRUSTED))
        ended = run_kafkaform(
            job,
            *("plan", "--json", "--detailed-exitcode", *chosen),
            *(*out, "--html", str(job.out / PAGE)),
            *("--comment", str(comment), "--comment-name", job.label),
            *("--approval-out", str(approval)),
            *flags,
            *job.args,
            keep=True,
        )
        events = ended.list_events()
        if job.is_repository:
            print(*list_log_lines(events), sep="\n", flush=True)
        elif saved.exists():
            run_kafkaform(job, "show", "--no-color", str(saved))
    rows = list_folder_rows(events)
    own_flags = (flag for flag in flags if flag == UNTRUSTED)
    located = locate_blocks(job, events, rows or (), *own_flags)
    diagnostics = read_diagnostics(located, job.folder)
    forge.annotate(diagnostics, job.title)
    if rows is not None and not approval.exists() and not any(row["exit_code"] for row in rows):
        # Also that there is nothing to apply is approved: the apply checks it.
        save_folders_approval(FoldersApproval({}), approval)
    approved = (
        read_approval(approval.read_bytes(), is_repository=job.is_repository)
        if approval.exists()
        else NO_APPROVAL
    )
    text = render_failure(diagnostics, job.label)
    if comment.exists():
        text = comment.read_text("utf-8") + _render_unplanned(job, events, rows or [])
    return Planned(
        ended.code,
        text,
        approved.text,
        has_changes=_has_changes(ended),
        drifted=tuple(
            dict.fromkeys(
                event.get("folder", ".")
                for event in events
                if event.get("type") == "resource_drift"
            )
        ),
        has_page=(job.out / PAGE).exists(),
        result=_choose_result(ended.code, approved, rows),
        is_empty=rows == [],
    )


def _render_unplanned(
    job: Job, events: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
) -> str:
    """The faults of the folders that have no plan, which the comment only counts."""
    paths = {row["folder"] for row in rows if not row["planned"]}
    faults = read_diagnostics((one for one in events if one.get("folder") in paths), job.folder)
    return f"\n{render_faults(faults, FAULTS_LIMIT)}" if faults else ""


def _choose_result(code: int, approval: Approval, rows: list[Mapping[str, Any]] | None) -> int:
    """rows: of the folders of a repository, each of which can be applied, or has nothing to do."""
    if rows is None:
        return 0 if approval.text else code
    return max(
        (row["exit_code"] for row in rows if row["folder"] not in approval.folders), default=0
    )


def _has_changes(ended: Ended) -> bool:
    """Whether an apply would send or record something."""
    summaries: Iterable[Mapping[str, Any]] = (
        event["changes"] for event in ended.list_events() if event.get("type") == "change_summary"
    )
    return any(bool(summary["kafkaform"]["applicable"]) for summary in summaries)


def list_outputs(planned: Planned) -> dict[str, str]:
    """What other steps of the workflow can use."""
    return {
        "exitcode": str(planned.code),
        "approval": planned.approval,
        "has-changes": "true" if planned.has_changes else "false",
    }


def render_body(mark: str, text: str, foot: str) -> str:
    """A comment or an issue: the hidden mark, the text, and where it comes from."""
    return f"{mark}\n{text.rstrip()}\n\n---\n{foot}\n"
