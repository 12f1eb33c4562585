"""The job after a merge: apply the plan that was reviewed, and nothing else."""

from __future__ import annotations

from .command import run_kafkaform
from .diagnostics import render_heading
from .forge import Forge, ReviewedPlan
from .job import Job
from .plan import fetch_modules, render_body

LOCK_TIMEOUT = "10m"
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


def apply_job(job: Job, forge: Forge) -> int:
    """Apply the plan of the merged pull request, or the one whose approval was typed in."""
    reviewed = ReviewedPlan(job.approval, b"") if job.approval else forge.find_reviewed_plan()
    print(f"Approval: {reviewed.approval}", flush=True)
    flags = ["--expect", reviewed.approval, "--lock-timeout", LOCK_TIMEOUT]
    if reviewed.plan:
        saved = job.out / "reviewed.kfplan"
        saved.write_bytes(reviewed.plan)
        flags += ["--reviewed", str(saved)]
    with forge.mute_commands():
        fetch_modules(job)
        words = ("apply", "--no-color", *flags, *job.args)
        code = run_kafkaform(job, *words, pull_request=reviewed.pull_request).code
        # For the log of this job, which nobody who can write the store can change:
        # `kafkaform audit verify --anchor HEAD` proves later that no record before it was changed.
        head = run_kafkaform(job, "audit", "head", keep=True).out.strip()
        print(f"Audit head: {head}", flush=True)
        verified = run_kafkaform(job, "audit", "verify").code
    # A job that is cancelled during the check has applied everything, and found no fault.
    code = code or verified
    todo = NEXT.get(code, "" if code == 0 else "See the log of this job.")
    done = "applied" if code == 0 else f"apply ended with {code}"
    advice = todo or "The log of this job lists each change and what became of it."
    lines = [render_heading(job.label, done), "", f"Approval: `{reviewed.approval}`", "", advice]
    if head:
        lines += ["", f"Audit head: `{head}`"]
    forge.set_outputs({"exitcode": str(code), "approval": reviewed.approval})
    forge.summarize(render_body("", "\n".join(lines), forge.describe_run()).lstrip())
    if todo:
        print(todo, flush=True)
    return code
