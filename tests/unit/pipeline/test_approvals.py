"""What counts as an approval: anybody who can push can leave another text in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.workflow.repository.documents import FoldersApproval, render_approval
from pipeline.approval import read_approval
from pipeline.job import JobError, Mode, read_job

TOKEN = "1" * 64 + "." + "2" * 64
DIGEST = "3" * 64


def write(*paths: str) -> bytes:
    """What `plan --all --approval-out` writes."""
    return render_approval(FoldersApproval(dict.fromkeys(paths, TOKEN))).encode()


def test_an_approval_of_one_folder_is_one_line() -> None:
    """It is the token of the plan."""
    approval = read_approval(f"{TOKEN}\n".encode(), is_repository=False)
    assert (approval.text, approval.folders) == (TOKEN, ())


def test_an_approval_of_many_folders_names_those_with_changes() -> None:
    """The first line is what somebody compares, the others say what it is about."""
    approval = read_approval(write("platform", "teams/shop"), is_repository=True)
    first = write("platform", "teams/shop").decode().split("\n")[0]
    assert (approval.text, approval.folders) == (first, ("platform", "teams/shop"))
    assert read_approval(write(), is_repository=True).folders == ()


@pytest.mark.parametrize(
    "text", ["", "x\nexitcode=0", "\u202ea.b", "a", write("a").decode(), f"{TOKEN}\n{TOKEN}"]
)
def test_another_text_approves_no_folder(text: str) -> None:
    """The job ends with 4, and nothing is applied."""
    with pytest.raises(JobError) as refused:
        read_approval(text.encode(), is_repository=False)
    assert refused.value.code == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        TOKEN,
        f"{TOKEN} teams/shop\n",
        f"{DIGEST}\nexitcode=0\n",
        f"{DIGEST}\n{TOKEN} teams/shop\n",
        write("a/../../other").decode(),
        write("/etc").decode(),
        write("`id`").decode(),
        write("a\x1b[31m").decode(),
        write("teams/\u202eshop").decode(),
        write("teams/shop").decode() + f"{TOKEN} platform\n",
    ],
)
def test_another_text_approves_no_repository(text: str) -> None:
    """A path in it leads to no other place, and no line of it is an output of the job."""
    with pytest.raises(JobError) as refused:
        read_approval(text.encode(), is_repository=True)
    assert refused.value.code == 4


def test_what_is_typed_in_fits_the_folder(tmp_path: Path) -> None:
    """The digest of many plans is no approval of one folder, and the other way round."""
    variables = {"PIPELINE_OUT": str(tmp_path), "PIPELINE_FOLDER": str(tmp_path)}
    single = {**variables, "PIPELINE_APPROVAL": TOKEN}
    repository = {**variables, "PIPELINE_APPROVAL": DIGEST}
    assert read_job(single, Mode.APPLY).approval == TOKEN
    with pytest.raises(JobError, match="not an approval"):
        read_job(repository, Mode.APPLY)
    (tmp_path / "kafkaform.hcl").touch()
    assert read_job(repository, Mode.APPLY).approval == DIGEST
    with pytest.raises(JobError, match="not an approval"):
        read_job(single, Mode.APPLY)
