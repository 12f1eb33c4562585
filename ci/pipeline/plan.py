"""The job of a pull request: plan it, comment on it, and keep the approval for the apply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .command import Ended, run_kafkaform
from .diagnostics import read_diagnostics, render_failure
from .forge import Forge, check_approval
from .job import Job

PAGE = "plan.html"
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
    drifted: bool
    has_page: bool
    """Whether the folder of the job has the plan as a page."""


def plan_job(job: Job, forge: Forge) -> int:
    """Plan, comment, keep the approval. The exit code is 0 if the plan can be applied, also if some
    of its changes are blocked and the others are not."""
    planned = make_plan(job, forge, *job.branch_flags)
    after = (
        "The merge applies exactly this plan, or nothing."
        if planned.approval
        else "Nothing of this can be applied."
    )
    page = f"; its artifact `{job.artifact}` has `{PAGE}`" if planned.has_page else ""
    body = render_body(job.mark("plan"), planned.comment, f"{after} {forge.describe_run()}{page}")
    forge.set_outputs(
        {**list_outputs(planned), "artifact": job.artifact if planned.has_page else ""}
    )
    forge.summarize(body)
    forge.comment(job.mark("plan"), body)
    return 0 if planned.approval else planned.code


def fetch_modules(job: Job, *flags: str) -> None:
    """Fetch the modules from Git that are locked. One that cannot be fetched is a fault of the plan
    or of the apply, which names it."""
    if Path(job.folder, LOCK_FILE).exists():
        run_kafkaform(job, "init", "--no-color", "--modules-only", "--lockfile=readonly", *flags)


def make_plan(job: Job, forge: Forge, *flags: str) -> Planned:
    """Plan once, show the plan in the log and its faults at their lines."""
    saved, comment, approval = (job.out / name for name in ("plan.kfplan", "plan.md", "approval"))
    with forge.mute_commands():
        fetch_modules(job, *(flag for flag in flags if flag == "--untrusted"))
        ended = run_kafkaform(
            job,
            *("plan", "--json", "--detailed-exitcode"),
            *("--out", str(saved), "--html", str(job.out / PAGE)),
            *("--comment", str(comment), "--comment-name", job.label),
            *("--approval-out", str(approval)),
            *flags,
            *job.args,
            keep=True,
        )
        if saved.exists():
            run_kafkaform(job, "show", "--no-color", str(saved))
    events = ended.list_events()
    diagnostics = read_diagnostics(events, job.folder)
    forge.annotate(diagnostics, job.title)
    return Planned(
        ended.code,
        comment.read_text("utf-8") if comment.exists() else render_failure(diagnostics, job.label),
        check_approval(approval.read_text("ascii")) if approval.exists() else "",
        has_changes=_has_changes(ended),
        drifted=any(event.get("type") == "resource_drift" for event in events),
        has_page=(job.out / PAGE).exists(),
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
