"""What the apply job ends with, whichever of its commands ends how."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import apply
from pipeline.command import Ended
from pipeline.github import open_github
from pipeline.job import Mode, read_job

from ...kit.pipelines import github

APPROVAL = "a.b"


@pytest.mark.parametrize(
    ("applied", "verified", "code", "advice"),
    [
        (0, 0, 0, "lists each change"),
        (0, 9, 9, "Do not delete anything"),
        (0, 130, 130, "Cancelled"),
        (0, 143, 143, "Cancelled"),
        (0, 137, 137, "See the log"),
        (8, 143, 8, "blocked"),
        (6, 9, 6, "Nobody knows yet"),
    ],
)
def test_a_cancelled_check_is_no_damage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    applied: int,
    verified: int,
    code: int,
    advice: str,
) -> None:
    """A job that is cancelled while it checks the log has applied everything: it does not say that
    the log is damaged. What the apply ended with comes first."""
    codes = {"apply": applied, "verify": verified}

    def end(job: object, *words: str, **_: object) -> Ended:
        return Ended(next((codes[word] for word in words if word in codes), 0))

    monkeypatch.setattr(apply, "run_kafkaform", end)
    job = read_job({"PIPELINE_OUT": str(tmp_path), "PIPELINE_APPROVAL": APPROVAL}, Mode.APPLY)
    summary = tmp_path / "summary"
    environ = {
        "GITHUB_API_URL": "http://127.0.0.1:1",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_REPOSITORY": github.NAME,
        "GITHUB_RUN_ID": "1",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_SHA": "a" * 40,
    }
    assert apply.apply_job(job, open_github(environ, "token", "plan")) == code
    assert advice in summary.read_text()
