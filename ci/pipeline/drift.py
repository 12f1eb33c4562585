"""The scheduled job: an issue is open as long as somebody's change is not undone or declared."""

from __future__ import annotations

from .diagnostics import name_folders
from .forge import Forge
from .job import UNTRUSTED, Job
from .plan import list_outputs, make_plan, render_body

PLANNED = (0, 2, 8)
"""Exit codes of a plan that could be made."""
DRIFT = 8
"""The exit code of a job that finds drift, as of `plan --fail-on drift`."""


def drift_job(job: Job, forge: Forge) -> int:
    """Compare the live objects with the last apply.

    Exit code: 8 for drift or blocked changes, 2 for a merged change that was never applied.
    """
    # The comment of a refresh-only plan is about drift alone. Without any, the report is about what
    # was merged and never applied; like the plan of a branch, this job has no secrets for that.
    planned = make_plan(job, forge, "--refresh-only", "--verify-log")
    if planned.code in PLANNED and not planned.drifted:
        planned = make_plan(job, forge, *([UNTRUSTED] if job.untrusted else []))
    code = DRIFT if planned.drifted else planned.code
    mark = job.mark("drift")
    body = render_body(mark, planned.comment, forge.describe_run())
    forge.set_outputs({**list_outputs(planned), "exitcode": str(code)})
    forge.summarize(body)
    if planned.drifted:
        subject = name_folders(planned.drifted) if job.is_repository else job.name
        forge.open_issue(mark, f"Changed outside kafkaform: {subject}", body)
        print("Drift: something is not as the last apply left it. The issue says what.", flush=True)
    elif planned.code in PLANNED:
        # A plan that failed does not say that the drift is gone.
        forge.close_issue(mark)
        print("No drift.", flush=True)
    return code
