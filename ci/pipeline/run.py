"""Find out which forge and which mode this is, and do the work."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path

from kafkaform.core.text import inline

from .apply import apply_job
from .diagnostics import Diagnostic
from .drift import drift_job
from .forge import Forge
from .github import open_github
from .gitlab import open_gitlab
from .job import Job, JobError, Mode, read_job
from .plan import plan_job

DO: Mapping[Mode, Callable[[Job, Forge], int]] = {
    Mode.PLAN: plan_job,
    Mode.APPLY: apply_job,
    Mode.DRIFT: drift_job,
}
TOKENS = ("PIPELINE_TOKEN", "KAFKA_REVIEW_TOKEN")
"""Variables with the token for the forge: on GitHub, and on GitLab."""


def run_job() -> int:
    """Do the work of this job; its exit code."""
    forge: Forge | None = None
    title = "kafkaform"
    _clear_folder(Path(os.environ["PIPELINE_OUT"]))
    try:
        # The token is for the forge only: no command gets it.
        tokens = [os.environ.pop(name, "") for name in TOKENS]
        token = next(filter(None, tokens), "")
        if not token:
            raise JobError("There is no token for the forge.")
        forge = _open_forge(os.environ, token)
        job = read_job(os.environ, forge.choose_mode(), forge.find_references())
        title = job.title
        return DO[job.mode](job, forge)
    except JobError as error:
        if forge is None:
            print(f"Error: {inline(str(error))}", flush=True)
        else:
            forge.annotate([Diagnostic("error", str(error), "")], title)
            forge.set_outputs({"exitcode": str(error.code)})
        return error.code


def _open_forge(environ: MutableMapping[str, str], token: str) -> Forge:
    if environ.get("GITLAB_CI"):
        return open_gitlab(environ, token)
    return open_github(environ, token, read_job(environ, Mode.PLAN).artifact)


def _clear_folder(path: Path) -> None:
    """Make an empty folder. On GitLab a branch can have put files or links in its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.mkdir(parents=True)
