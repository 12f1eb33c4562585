"""What the apply job ends with, whichever of its commands ends how."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.workflow.repository.documents import FoldersApproval, render_approval
from pipeline import apply
from pipeline.command import Ended
from pipeline.forge import Forge, ReviewedFiles
from pipeline.github import open_github
from pipeline.job import Mode, References, read_job

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
    assert apply.apply_job(job, open_forge(tmp_path)) == code
    assert advice in (tmp_path / "summary").read_text()


def open_forge(folder: Path) -> Forge:
    environ = {
        "GITHUB_API_URL": "http://127.0.0.1:1",
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_REPOSITORY": github.NAME,
        "GITHUB_RUN_ID": "1",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_SHA": "a" * 40,
    }
    return open_github(environ, "token", "plan")


def test_the_folders_of_an_approval_are_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command applies them, with the file that the plan's job left and the commit before the
    merge; then the log of each is checked. The gravest code counts, and what is said about a stale
    folder is about that folder."""
    (tmp_path / "kafkaform.hcl").touch()
    calls: list[tuple[str, tuple[str, ...]]] = []

    def end(job: object, *words: str, folder: str = ".", **_: object) -> Ended:
        calls.append((folder, words))
        codes = {("teams/shop", "verify"): 9, (".", "apply"): 4}
        return Ended(next((codes[folder, word] for word in words if (folder, word) in codes), 0))

    monkeypatch.setattr(apply, "run_kafkaform", end)
    token = "1" * 64 + "." + "2" * 64
    approval = FoldersApproval({"platform": token, "teams/shop": token})
    text = render_approval(approval).encode()
    forge = open_forge(tmp_path)
    monkeypatch.setattr(
        type(forge), "find_reviewed_files", lambda *_: ReviewedFiles({"approval": text}, 7)
    )
    variables = {"PIPELINE_OUT": str(tmp_path), "PIPELINE_FOLDER": str(tmp_path)}
    job = read_job(variables, Mode.APPLY, References("b" * 40))
    assert apply.apply_job(job, forge) == 4
    (words,) = [words for folder, words in calls if words[0] == "apply"]
    assert words[2:5] == ("--all", "--changed-since", "b" * 40)
    assert Path(words[words.index("--expect") + 1]).read_bytes() == text
    audited = [folder for folder, words in calls if words == ("audit", "verify")]
    assert audited == ["platform", "teams/shop"]
    summary = (tmp_path / "summary").read_text()
    assert "nothing was sent for it" in summary and approval.digest in summary
