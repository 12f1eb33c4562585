"""The one-file pipeline on GitLab, from a branch to drift, without a cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ...kit.pipelines.gitlab import STRANGER, Ended, Runner
from ...kit.pipelines.repository import list_installs
from ...kit.pipelines.server import Answer, Web, serving
from .conftest import CONFIGURATION, MAIN, Path, Texts

pytestmark = pytest.mark.slow("each job is a process with an installation of its own")
PUSH = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main"}
WEB = {"CI_PIPELINE_SOURCE": "web", "CI_COMMIT_BRANCH": "main"}
SCHEDULE = {"CI_PIPELINE_SOURCE": "schedule", "CI_COMMIT_BRANCH": "main"}


def request(number: int, project: str = "1") -> dict[str, str]:
    """The variables of a merge request's pipeline."""
    return {
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": project,
        "CI_MERGE_REQUEST_IID": str(number),
    }


def plan(lab: Runner, name: str, text: str, number: int = 1) -> tuple[str, Ended]:
    """The plan of a branch with this configuration, and its commit."""
    head = lab.repository.branch(name, MAIN, text)
    ended = lab.run("kafka-plan", head, **request(number))
    assert ended is not None and ended.environment == "kafka-read"
    return head, ended


def merge(lab: Runner, name: str, head: str, number: int = 1, *, squash: bool = False) -> str:
    """The branch is merged; the commit on the default branch."""
    commit = lab.repository.merge(name, squash=squash)
    merged: dict[str, Any] = {"iid": number, "state": "merged", "sha": head}
    merged |= {"merge_commit_sha": None, "squash_commit_sha": None}
    merged["squash_commit_sha" if squash else "merge_commit_sha"] = commit
    lab.api.merged.append(merged)
    return commit


def run(lab: Runner, job: str, commit: str, **given: str) -> Ended:
    ended = lab.run(job, commit, **given)
    assert ended is not None
    return ended


def approval_of(ended: Ended) -> str:
    return (ended.folder / "kafkaform-out/approval").read_text().strip()


def test_from_a_branch_to_drift(lab: Runner, texts: Texts) -> None:
    """Plan, note, squash, apply; somebody changes the store: an issue opens and is closed when the
    change is undone. All commands of the component run."""
    head, planned = plan(lab, "one", CONFIGURATION)
    assert planned.code == 0, planned.log
    (note,) = lab.api.notes.values()
    assert approval_of(planned) in note["body"] and f"Commit {head[:12]}, [job 1](" in note["body"]
    assert texts.read() == {}
    commit = merge(lab, "one", head, squash=True)
    done = run(lab, "kafka-apply", commit, **PUSH)
    assert done.code == 0, done.log
    assert done.environment == "kafka-production" and texts.read() == {"motd": "hello"}

    texts.put("motd", "changed")
    assert run(lab, "kafka-drift", commit, **SCHEDULE).code == 8
    (issue,) = lab.api.issues.values()
    assert "textstore_file.motd" in issue["description"] and issue["state"] == "opened"
    assert run(lab, "kafka-drift", commit, **SCHEDULE).code == 8 and len(lab.api.issues) == 1
    texts.put("motd", "hello")
    assert run(lab, "kafka-drift", commit, **SCHEDULE).code == 0 and issue["state"] == "closed"

    jobs = lab.read_jobs().values()
    assert {text for job in jobs for text in (*job["before_script"], *job["script"])} == set(
        lab.ran
    )
    installs = list_installs(Path(lab.path))
    assert installs and all("--require-hashes" in line for line in installs)


def test_jobs_belong_to_events(lab: Runner) -> None:
    """Each event starts one job, and a fork's merge request starts none."""
    for given, started in (
        (request(1), ["kafka-plan"]),
        (request(1, project="2"), []),
        (PUSH, ["kafka-apply"]),
        ({**PUSH, "CI_COMMIT_BRANCH": "other"}, []),
        (WEB, ["kafka-plan"]),
        ({**WEB, "KAFKAFORM_EXPECT": "x"}, ["kafka-apply"]),
        (SCHEDULE, ["kafka-drift"]),
    ):
        jobs = lab.read_jobs()
        found = [name for name in jobs if lab.run(name, lab.repository.head, **given) is not None]
        assert found == started, given


def test_a_new_commit_edits_the_note(lab: Runner, texts: Texts) -> None:
    """The second plan replaces the first note; one that somebody else wrote with the same mark is
    left alone."""
    for _ in range(120):
        lab.api.add_note("words", STRANGER)
    plan(lab, "one", CONFIGURATION)
    own = len(lab.api.notes)
    lab.api.add_note(lab.api.notes[own]["body"], STRANGER)
    _, second = plan(lab, "two", CONFIGURATION.replace("hello", "bye"))
    assert approval_of(second) in lab.api.notes[own]["body"]
    assert approval_of(second) not in lab.api.notes[own + 1]["body"]
    assert len(lab.api.notes) == own + 1


def test_faults_are_in_the_code_quality_report(lab: Runner) -> None:
    """Each fault has its file, line and fingerprint; the note says that there is no plan."""
    _, failed = plan(lab, "one", CONFIGURATION.replace("content", "contents"))
    assert failed.code == 1 and "no plan" in lab.api.notes[1]["body"]
    report = json.loads((failed.folder / "kafkaform-out/code-quality.json").read_text())
    assert {one["location"]["path"] for one in report} == {MAIN}
    assert len({one["fingerprint"] for one in report}) == len(report) > 0
    assert all(one["severity"] == "major" for one in report)


def test_a_changed_store_is_not_applied_to(lab: Runner, texts: Texts) -> None:
    """If the store moved after the review, the apply refuses the plan, says what differs, and
    sends nothing; a plan by hand and its approval help."""
    head, _ = plan(lab, "one", CONFIGURATION)
    assert run(lab, "kafka-apply", merge(lab, "one", head), **PUSH).code == 0
    head, _ = plan(lab, "two", CONFIGURATION.replace("hello", "bye"), 2)
    texts.put("motd", "changed")
    commit = merge(lab, "two", head, 2)
    refused = run(lab, "kafka-apply", commit, **PUSH)
    assert refused.code == 4 and texts.read() == {"motd": "changed"}
    assert "hello" in refused.log and "changed" in refused.log, refused.log

    by_hand = run(lab, "kafka-plan", commit, **WEB)
    given = {**WEB, "KAFKAFORM_EXPECT": approval_of(by_hand)}
    assert run(lab, "kafka-apply", commit, **given).code == 0 and texts.read() == {"motd": "bye"}


def test_an_older_plan_is_not_applied(lab: Runner, texts: Texts) -> None:
    """If the plan of the last pipeline failed, the approval of the one before does not count."""
    plan(lab, "one", CONFIGURATION)
    head, failed = plan(lab, "two", CONFIGURATION.replace("content", "contents"))
    assert failed.code == 1
    unplanned = run(lab, "kafka-apply", merge(lab, "two", head), **PUSH)
    assert unplanned.code == 4 and "No plan of what was merged" in unplanned.log
    assert run(lab, "kafka-apply", lab.repository.head, **PUSH).code == 4


def test_a_branch_prepares_nothing(lab: Runner, texts: Texts) -> None:
    """Files and links that a branch puts where the job leaves its own are gone before the plan:
    the approval is that of the plan, and what a link names is not written."""
    other = lab.folder / "other"
    other.mkdir()
    lab.repository.branch("one", MAIN, CONFIGURATION)
    (lab.repository.folder / "kafkaform-out").symlink_to(other)
    lab.repository.git("add", "--all", "--force")
    lab.repository.git("commit", "--quiet", "--message", "Link")
    (lab.repository.folder / "pipeline").mkdir()
    head = lab.repository.branch("two", "pipeline/run.py", "raise SystemExit(99)")
    planned = run(lab, "kafka-plan", head, **request(1))
    assert planned.code == 0, planned.log
    assert not [*other.iterdir()] and approval_of(planned) in lab.api.notes[1]["body"]


@pytest.mark.parametrize("path", ["/user", "/projects/1/jobs/\\d+/artifacts/.+"])
def test_a_redirect_does_not_get_the_token(lab: Runner, texts: Texts, path: str) -> None:
    """What the API redirects to gets not one request, and the job fails."""
    elsewhere = Web()
    with serving(elsewhere):
        moved = Answer(302, headers={"Location": f"{elsewhere.address}/x"})
        head = lab.repository.branch("one", MAIN, CONFIGURATION)
        if path == "/user":
            lab.api.web.routes[f"GET {path}"] = lambda *_: moved
            ended = run(lab, "kafka-plan", head, **request(1))
        else:
            assert run(lab, "kafka-plan", head, **request(1)).code == 0
            lab.api.web.routes = {f"GET {path}": lambda *_: moved, **lab.api.web.routes}
            ended = run(lab, "kafka-apply", merge(lab, "one", head), **PUSH)
    assert ended.code == 1 and "302" in ended.log and not elsewhere.asked
    assert "pw-of" not in ended.log and texts.read() == {}
