"""What the pipeline asks a forge, and what it makes of its answers."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.github import open_github
from pipeline.job import JobError, Mode, read_job
from pipeline.rest import Api

from ...kit.pipelines import github
from ...kit.pipelines.server import TOKEN, Answer, Web, serving

SHA, HEAD = "a" * 40, "b" * 40
APPROVAL = "1" * 64 + "." + "2" * 64


@pytest.fixture
def hub() -> Iterator[github.Api]:
    api = github.Api()
    with serving(api.web), serving(api.storage):
        yield api


def open_job(hub: github.Api) -> object:
    environ = {
        "GITHUB_API_URL": hub.web.address,
        "GITHUB_REPOSITORY": github.NAME,
        "GITHUB_SHA": SHA,
        "GITHUB_WORKFLOW_REF": f"{github.NAME}/.github/workflows/kafka.yml@refs/heads/main",
    }
    return open_github(environ, TOKEN, "plan")


def keep_plan(hub: github.Api, data: bytes) -> None:
    """A merged pull request whose plan's job left this archive."""
    merged = {"merged_at": "now", "merge_commit_sha": SHA, "head": {"sha": HEAD}}
    hub.pulls.append(merged)
    hub.runs[1] = {
        "id": 1,
        "event": "pull_request",
        "head_sha": HEAD,
        "head_repository": {"full_name": github.NAME},
        "path": ".github/workflows/kafka.yml",
        "conclusion": "success",
    }
    hub.artifacts[1] = {"run": 1, "name": "plan", "zip": data}


def pack(**files: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("_", "."), text)
    return data.getvalue()


def test_the_artifact_is_fetched_without_the_token(hub: github.Api) -> None:
    """The API names a signed address elsewhere: the token stays here."""
    keep_plan(hub, pack(approval=APPROVAL + "\n", plan_kfplan="plan"))
    found = open_job(hub).find_reviewed_plan()  # type: ignore[attr-defined]
    assert (found.approval, found.plan) == (APPROVAL, b"plan")
    assert [one.has_token for one in hub.storage.asked] == [False]


@pytest.mark.parametrize(
    "data",
    [
        b"no archive",
        pack(approval=APPROVAL),
        pack(approval="x\nexitcode=0", plan_kfplan=""),
        pack(approval="", plan_kfplan=""),
        pack(approval="\u202ea.b", plan_kfplan=""),
    ],
    ids=["no archive", "no plan", "two lines", "empty", "not ASCII"],
)
def test_a_damaged_artifact_is_refused(hub: github.Api, data: bytes) -> None:
    """Everything but an approval and a plan ends with 4: nothing is applied."""
    keep_plan(hub, data)
    with pytest.raises(JobError) as refused:
        open_job(hub).find_reviewed_plan()  # type: ignore[attr-defined]
    assert refused.value.code == 4


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://127.0.0.1/x", ""])
def test_an_artifact_is_at_a_web_address(hub: github.Api, place: str) -> None:
    """No other kind of address is followed."""
    keep_plan(hub, b"")
    moved = Answer(302, headers={"Location": place})
    path = f"GET /repos/{github.NAME}/actions/artifacts/1/zip"
    hub.web.routes = {path: lambda *_: moved, **hub.web.routes}
    with pytest.raises(JobError, match="302"):
        open_job(hub).find_reviewed_plan()  # type: ignore[attr-defined]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_error(status: int) -> None:
    """urllib would take the token along to the host that the answer names."""
    web, elsewhere = Web(), Web()
    with serving(web), serving(elsewhere):
        there = {"Location": f"{elsewhere.address}/x"}
        web.routes["GET /x"] = lambda *_: Answer(status, headers=there)
        with pytest.raises(JobError, match=str(status)):
            Api(web.address, {"Authorization": TOKEN}).send("GET", "/x")
    assert not elsewhere.asked


@pytest.mark.parametrize(("status", "advice"), [(401, "token"), (403, "permissions"), (500, "500")])
def test_a_refusal_says_what_to_do(status: int, advice: str) -> None:
    """The error names the request and not the token."""
    web = Web({"POST /x": lambda *_: Answer(status)})
    with serving(web), pytest.raises(JobError, match=advice) as refused:
        Api(web.address, {"Authorization": TOKEN}).send("POST", "/x", {})
    assert "POST /x" in str(refused.value) and TOKEN not in str(refused.value)


def test_a_job_is_read_from_its_variables(tmp_path: Path) -> None:
    """Arguments are split into words once and never by a shell; the name is the folder's unless
    there is another; markers of different pipelines differ."""
    given = {
        "PIPELINE_OUT": str(tmp_path),
        "PIPELINE_FOLDER": "kafka",
        "PIPELINE_ARGS": "--var 'a=$(id) b' --target=`id`",
    }
    job = read_job(given, Mode.PLAN)
    assert job.args == ("--var", "a=$(id) b", "--target=`id`")
    assert (job.name, job.untrusted, job.mode) == ("kafka", True, Mode.PLAN)
    other = read_job({**given, "PIPELINE_NAME": "<!-- eu -->"}, Mode.PLAN)
    assert job.mark("plan") != other.mark("plan") and "eu" not in other.mark("plan")


@pytest.mark.parametrize(
    "wrong",
    [
        {"PIPELINE_MODE": "destroy"},
        {"PIPELINE_UNTRUSTED": "no"},
        {"PIPELINE_ARGS": "'open"},
        {"PIPELINE_APPROVAL": "x"},
    ],
    ids=str,
)
def test_a_wrong_input_is_an_error(wrong: dict[str, str]) -> None:
    """It is named, before anything runs."""
    with pytest.raises(JobError):
        read_job({"PIPELINE_OUT": "out", **wrong}, Mode.PLAN)
