"""The job after a merge: apply the plan that was reviewed, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from .approval import Approval, read_approval
from .command import run_kafkaform
from .diagnostics import render_heading
from .forge import Forge
from .job import Job
from .plan import fetch_modules, render_body
from .repository import choose_folders, list_folders

LOCK_TIMEOUT = "10m"
NEVER_APPLIED = "0:"
"""What the head of an empty log begins with."""
NEXT = {
    4: "This is not what was approved any more, and nothing was sent. Run the pipeline by hand on "
    "this branch, read its plan, then run it again with the approval of that plan.",
    5: "Some changes failed: see why above, then run this job again.",
    6: "Nobody knows yet whether some requests arrived, or whether every broker shows what was "
    "applied. Run this job again: it finds out first.",
    7: "Another run has the lock. Run this job again; `kafkaform lock show` says who has it.",
    8: "Some of what is declared is blocked: the plan says what to do for each.",
    9: "The state or the log cannot be written or fails its check. Do not delete anything.",
    130: "Cancelled, and everything is recorded. Run this job again: it continues from here.",
    143: "Cancelled, and everything is recorded. Run this job again: it continues from here.",
}
"""Exit code of an apply -> what to do next."""
NEXT_ALL = NEXT | {
    4: "The plan of a folder is not what was approved any more, and nothing was sent for it; the "
    "log of this job says which one, and what became of the others. Run the pipeline by hand on "
    "this branch for that folder, read its plan, then run it again with the approval of that plan.",
}
"""The same for a repository of many folders."""


def apply_job(job: Job, forge: Forge) -> int:
    """Apply the plan of the merged pull request, or the one whose approval was typed in."""
    chosen = choose_folders(job)
    approval, flags, pull_request = _find_approval(job, forge)
    print(f"Approval: {approval.text}", flush=True)
    with forge.mute_commands():
        fetch_modules(job)
        words = ("apply", "--no-color", *chosen, *flags, "--lock-timeout", LOCK_TIMEOUT, *job.args)
        code = run_kafkaform(job, *words, pull_request=pull_request).code
        heads, verified = _check_logs(job, approval.folders if job.is_repository else (".",))
    # A job that is cancelled during the check has applied everything, and found no fault.
    code = code or verified
    advices = NEXT_ALL if job.is_repository else NEXT
    todo = advices.get(code, "" if code == 0 else "See the log of this job.")
    done = "applied" if code == 0 else f"apply ended with {code}"
    advice = todo or "The log of this job lists each change and what became of it."
    lines = [render_heading(job.label, done), "", f"Approval: `{approval.text}`", "", advice]
    if heads:
        lines += ["", *heads]
    forge.set_outputs({"exitcode": str(code), "approval": approval.text})
    forge.summarize(render_body("", "\n".join(lines), forge.describe_run()).lstrip())
    if todo:
        print(todo, flush=True)
    return code


def _find_approval(job: Job, forge: Forge) -> tuple[Approval, tuple[str, ...], int | None]:
    """The approval, the flags with which an apply accepts nothing else, and the number of the pull
    request. Raises JobError."""
    if job.approval:
        folders = list_folders(job) if job.is_repository else ()
        return Approval(job.approval, folders), ("--expect", job.approval), None
    if job.is_repository:
        reviewed = forge.find_reviewed_files(["approval"])
        file = job.out / "reviewed-approval"
        file.write_bytes(reviewed.contents["approval"])
        approval = read_approval(file.read_bytes(), is_repository=True)
        return approval, ("--expect", str(file)), reviewed.pull_request
    reviewed = forge.find_reviewed_files(["approval", "plan.kfplan"])
    approval = read_approval(reviewed.contents["approval"], is_repository=False)
    saved = job.out / "reviewed.kfplan"
    saved.write_bytes(reviewed.contents["plan.kfplan"])
    flags = ("--expect", approval.text, "--reviewed", str(saved))
    return approval, flags, reviewed.pull_request


def _check_logs(job: Job, folders: Sequence[str]) -> tuple[list[str], int]:
    """A line with the head of each log, and the gravest exit code of their checks."""
    heads, codes = [], [0]
    for folder in folders:
        # For the log of this job, which nobody who can write the store can change:
        # `kafkaform audit verify --anchor HEAD` proves later that no record before it was changed.
        head = run_kafkaform(job, "audit", "head", folder=folder, keep=True).out.strip()
        if job.is_repository and head.startswith(NEVER_APPLIED):
            continue
        of = f" of {folder}" if job.is_repository else ""
        print(f"Audit head{of}: {head}", flush=True)
        codes.append(run_kafkaform(job, "audit", "verify", folder=folder).code)
        if head:
            heads.append(f"- Audit head{of}: `{head}`" if of else f"Audit head: `{head}`")
    return heads, max(codes)
