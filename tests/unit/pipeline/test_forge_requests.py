"""What the pipeline asks a forge, and what it makes of its answers."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import repository, rest
from pipeline.command import Ended
from pipeline.github import open_github
from pipeline.gitlab import open_gitlab
from pipeline.job import JobError, Mode, References, read_job
from pipeline.repository import choose_folders
from pipeline.rest import Api

from ...kit.pipelines import github
from ...kit.pipelines.server import TOKEN, Answer, Web, serving

SHA, HEAD = "a" * 40, "b" * 40
APPROVAL = "1" * 64 + "." + "2" * 64
FILES = ("approval", "plan.kfplan")


@pytest.fixture
def hub() -> Iterator[github.Api]:
    api = github.Api()
    with serving(api.web), serving(api.storage):
        yield api


def fail_once(web: Web, answer: Answer) -> None:
    """The next request of the server gets this answer, and the others what they always get."""
    routes = dict(web.routes)

    def refuse(*_: object) -> Answer:
        web.routes = routes
        return answer

    web.routes = {f"{method} .*": refuse for method in ("GET", "POST", "PATCH")}


def open_job(hub: github.Api, **variables: str) -> object:
    environ = {
        "GITHUB_API_URL": hub.web.address,
        "GITHUB_REPOSITORY": github.NAME,
        "GITHUB_SHA": SHA,
        "GITHUB_WORKFLOW_REF": f"{github.NAME}/.github/workflows/kafka.yml@refs/heads/main",
        **variables,
    }
    return open_github(environ, TOKEN, "plan")


def keep_plan(hub: github.Api, data: bytes) -> None:
    """A merged pull request whose plan's job left this archive."""
    merged = {"number": 7, "merged_at": "now", "merge_commit_sha": SHA, "head": {"sha": HEAD}}
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
    found = open_job(hub).find_reviewed_files(FILES)  # type: ignore[attr-defined]
    assert found.contents == {"approval": f"{APPROVAL}\n".encode(), "plan.kfplan": b"plan"}
    assert found.pull_request == 7, "the log of the apply names it"
    assert [one.has_token for one in hub.storage.asked] == [False]


@pytest.mark.parametrize(
    "data",
    [
        b"no archive",
        pack(approval=APPROVAL),
    ],
    ids=["no archive", "no plan"],
)
def test_a_damaged_artifact_is_refused(hub: github.Api, data: bytes) -> None:
    """Without one of the files, the apply ends with 4: nothing is applied."""
    keep_plan(hub, data)
    with pytest.raises(JobError) as refused:
        open_job(hub).find_reviewed_files(FILES)  # type: ignore[attr-defined]
    assert refused.value.code == 4


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://127.0.0.1/x", ""])
def test_an_artifact_is_at_a_web_address(hub: github.Api, place: str) -> None:
    """No other kind of address is followed."""
    keep_plan(hub, b"")
    moved = Answer(302, headers={"Location": place})
    path = f"GET /repos/{github.NAME}/actions/artifacts/1/zip"
    hub.web.routes = {path: lambda *_: moved, **hub.web.routes}
    with pytest.raises(JobError, match="302"):
        open_job(hub).find_reviewed_files(FILES)  # type: ignore[attr-defined]


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


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the pipeline waits, which pass at once."""
    seconds: list[float] = []
    monkeypatch.setattr(rest.time, "sleep", seconds.append)
    return seconds


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_forge_that_is_down_for_a_moment_is_asked_again(
    hub: github.Api, pauses: list[float], status: int
) -> None:
    """A bad gateway in front of the forge costs a pause, for every request of the reviewed plan."""
    keep_plan(hub, pack(approval=APPROVAL, plan_kfplan="plan"))
    for web in (hub.web, hub.storage):
        fail_once(web, Answer(status, headers={"Retry-After": "5"}))
    found = open_job(hub).find_reviewed_files(FILES)  # type: ignore[attr-defined]
    assert found.contents["approval"].decode() == APPROVAL and pauses == [5.0, 8.0]


def test_a_comment_is_not_written_twice(hub: github.Api, pauses: list[float]) -> None:
    """The forge wrote the comment and its answer was lost: the second attempt edits it."""
    path = f"POST /repos/{github.NAME}/issues/(\\d+)/comments"
    write = hub.web.routes[path]
    lost = [Answer(502)]
    hub.web.routes[path] = lambda asked, found: (write(asked, found), lost.pop())[1]
    job = open_job(hub, GITHUB_REF="refs/pull/7/merge")
    job.comment("<!-- m -->", "<!-- m -->\nplan")  # type: ignore[attr-defined]
    (comment,) = hub.comments.values()
    assert comment["body"].endswith("plan") and pauses == [2.0]


def test_a_forge_that_stays_down_is_an_error(hub: github.Api, pauses: list[float]) -> None:
    """After four attempts the job fails, and says which request had which answer."""
    hub.web.routes = {f"GET /repos/{github.NAME}/issues": lambda *_: Answer(503)}
    with pytest.raises(JobError, match="issues was answered with 503"):
        open_job(hub).close_issue("<!-- m -->")  # type: ignore[attr-defined]
    assert pauses == [2.0, 8.0, 30.0] and len(hub.web.asked) == 4


def test_the_plan_of_a_merge_queue_counts_first(hub: github.Api) -> None:
    """The queue has planned the commit that became the branch's; the plan of the pull request was
    made of other files."""
    keep_plan(hub, pack(approval="old.old", plan_kfplan="old"))
    hub.runs[2] = {**hub.runs[1], "id": 2, "event": "merge_group", "head_sha": SHA}
    hub.artifacts[2] = {"run": 2, "name": "plan", "zip": pack(approval=APPROVAL, plan_kfplan="new")}

    def read() -> bytes:
        found = open_job(hub).find_reviewed_files(FILES)  # type: ignore[attr-defined]
        return found.contents["plan.kfplan"]

    assert read() == b"new"
    hub.runs[2]["head_sha"] = HEAD
    assert read() == b"old"


def test_the_plan_of_a_merge_queue_is_shown_in_the_pull_request(hub: github.Api) -> None:
    """The comment of the pull request becomes the plan that will be applied."""
    ref = f"refs/heads/gh-readonly-queue/release/1.x/pr-12-{SHA}"
    job = open_job(hub, GITHUB_REF=ref, GITHUB_EVENT_NAME="merge_group")
    job.comment("<!-- m -->", "<!-- m -->\nplan")  # type: ignore[attr-defined]
    assert [comment["pull"] for comment in hub.comments.values()] == [12]
    assert job.choose_mode() is Mode.PLAN  # type: ignore[attr-defined]


def test_a_trusted_plan_is_tried_out(tmp_path: Path) -> None:
    """Brokers, registries and workers check the plan of a trusted branch before the merge; one of
    files that nobody has reviewed gets neither secrets nor rights to write."""
    variables = {"PIPELINE_OUT": str(tmp_path)}
    trusted = {**variables, "PIPELINE_UNTRUSTED": "false"}
    assert read_job(variables, Mode.PLAN).branch_flags == ("--untrusted",)
    assert read_job(trusted, Mode.PLAN).branch_flags == ("--validate",)
    assert read_job({**trusted, "PIPELINE_VALIDATE": "false"}, Mode.PLAN).branch_flags == ()


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
        {"PIPELINE_VALIDATE": "maybe"},
        {"PIPELINE_ARGS": "'open"},
        {"PIPELINE_APPROVAL": "x"},
    ],
    ids=str,
)
def test_a_wrong_input_is_an_error(wrong: dict[str, str]) -> None:
    """It is named, before anything runs."""
    with pytest.raises(JobError):
        read_job({"PIPELINE_OUT": "out", **wrong}, Mode.PLAN)


@pytest.mark.parametrize(
    ("event", "base", "expected"),
    [
        ("pull_request", "main", "refs/remotes/origin/main"),
        ("merge_group", "refs/heads/release/1.x", "refs/remotes/origin/release/1.x"),
        ("push", HEAD, HEAD),
        ("push", "0" * 40, ""),
        ("workflow_dispatch", "", ""),
        ("schedule", "", ""),
    ],
)
def test_what_a_job_of_github_compares_with(
    hub: github.Api, event: str, base: str, expected: str
) -> None:
    """The branch that a pull request is for, by a name that no tag can take, or the commit before a
    push. The repository file is that of the default branch, whatever a pull request is for."""
    given = {"GITHUB_EVENT_NAME": event, "PIPELINE_BASE": base, "PIPELINE_DEFAULT": "main"}
    references = open_job(hub, **given).find_references()  # type: ignore[attr-defined]
    assert references == References(expected, "refs/remotes/origin/main")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "next"}, "refs/remotes/origin/next"),
        ({"CI_COMMIT_BEFORE_SHA": HEAD}, HEAD),
        ({"CI_COMMIT_BEFORE_SHA": "0" * 40}, ""),
    ],
)
def test_what_a_job_of_gitlab_compares_with(given: dict[str, str], expected: str) -> None:
    """As on GitHub."""
    environ = {"CI_API_V4_URL": "x", "PIPELINE_OUT": "out", "CI_DEFAULT_BRANCH": "main", **given}
    references = open_gitlab(environ, TOKEN).find_references()
    assert references == References(expected, "refs/remotes/origin/main")


@pytest.mark.parametrize(
    ("mode", "globs", "base", "expected"),
    [
        (Mode.PLAN, "", "main", ("--all", "--changed-since", "main")),
        (Mode.APPLY, "", HEAD, ("--all", "--changed-since", HEAD)),
        (Mode.PLAN, "", "", ("--all",)),
        (Mode.PLAN, "teams/a* -x", "", ("--folder=teams/a*", "--folder=-x")),
        (Mode.DRIFT, "teams/a*", "", ("--all",)),
    ],
)
def test_a_job_of_a_repository_chooses_folders(
    tmp_path: Path, mode: Mode, globs: str, base: str, expected: tuple[str, ...]
) -> None:
    """What changed, or what somebody typed in; the drift of all. A folder without a repository file
    has no such flags."""
    given = {"PIPELINE_OUT": "out", "PIPELINE_FOLDER": str(tmp_path), "PIPELINE_FOLDERS": globs}
    assert choose_folders(read_job(given, mode, References(base))) == ()
    (tmp_path / "kafkaform.json").symlink_to("nowhere")
    assert choose_folders(read_job(given, mode, References(base))) == expected
    with pytest.raises(JobError, match="each folder of a repository has its own"):
        choose_folders(read_job({**given, "PIPELINE_STATE": "s3://b/k"}, mode))


def test_what_is_blocked_is_shown_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan says why something is blocked, and `validate` where it is. It is asked only if
    something is blocked, and what it says about other folders is left out."""
    (tmp_path / "kafkaform.hcl").touch()
    job = read_job({"PIPELINE_OUT": "out", "PIPELINE_FOLDER": str(tmp_path)}, Mode.PLAN)
    place = {"filename": "teams/shop/main.kf.hcl", "start": {"line": 2}}
    fault = {"severity": "error", "summary": "outside of the boundary", "range": place}
    warning = {"severity": "warning", "summary": "old"}
    records = [
        {"folder": "teams/shop", "diagnostics": [fault, warning]},
        {"folder": "teams/web", "diagnostics": [fault]},
    ]
    answers = [Ended(1, json.dumps({"folders": records})), Ended(1, "no JSON")]
    calls: list[tuple[str, ...]] = []

    def answer(_: object, *words: str, **__: object) -> Ended:
        calls.append(words)
        return answers[len(calls) - 1]

    monkeypatch.setattr(repository, "run_kafkaform", answer)
    rows = [{"folder": "teams/shop", "blocked": 1}, {"folder": "teams/web", "blocked": 0}]
    (event,) = repository.locate_blocks(job, (), rows, "--untrusted")
    assert (event["folder"], event["diagnostic"]) == ("teams/shop", fault)
    assert calls == [("validate", "--all", "--json", "--untrusted")]
    assert repository.locate_blocks(job, (), rows) == [], "the comment has it all the same"
    assert repository.locate_blocks(job, (), rows[1:]) == [] and len(calls) == 2
