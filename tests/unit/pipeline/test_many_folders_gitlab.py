"""The pipeline of a repository of many folders on GitLab, from a branch to drift."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from ...kit.pipelines.gitlab import Ended, Runner
from .conftest import Texts, begin_repository, write_team
from .test_gitlab import PUSH, SCHEDULE, WEB, approval_of, merge, request, run

pytestmark = pytest.mark.slow("each job is a process with an installation of its own")
TEAMS = ("billing", "search", "shop")


def begin(lab: Runner) -> str:
    return begin_repository(lab.repository, lab.folder / "states", TEAMS)


def plan(lab: Runner, name: str, files: Mapping[str, str], number: int) -> tuple[str, Ended]:
    """A branch of `main` with these files, and its plan."""
    head = lab.repository.write(name, files)
    target = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
    ended = lab.run("kafka-plan", head, **request(number), **target)
    assert ended is not None and ended.environment == "kafka-read"
    return head, ended


def apply(lab: Runner, name: str, head: str, number: int) -> Ended:
    before = lab.repository.git("rev-parse", "main")
    commit = merge(lab, name, head, number, squash=True)
    return run(lab, "kafka-apply", commit, **PUSH, CI_COMMIT_BEFORE_SHA=before)


def test_from_a_branch_to_drift(teams_lab: Runner, texts: Texts) -> None:
    """Merge requests of two teams are planned at the same time, each in its folder alone; both are
    applied; then somebody changes a text by hand, and back."""
    begin(teams_lab)
    shop, planned = plan(teams_lab, "one", write_team("shop"), 1)
    search, _ = plan(teams_lab, "two", write_team("search"), 2)
    assert planned.code == 0, planned.log
    approval = (planned.folder / "kafkaform-out/approval").read_text().split()
    assert approval[2::2] == ["teams/shop"]
    body = teams_lab.api.notes[1]["body"]
    assert approval[0] in body and "teams/shop" in body and "teams/search" not in body
    for name, head, number in (("one", shop, 1), ("two", search, 2)):
        done = apply(teams_lab, name, head, number)
        assert done.code == 0, done.log
    assert texts.read() == {"motd-search": "hello", "motd-shop": "hello"}

    commit = teams_lab.repository.head
    texts.put("motd-shop", "changed")
    assert run(teams_lab, "kafka-drift", commit, **SCHEDULE).code == 8
    (issue,) = teams_lab.api.issues.values()
    assert "teams/shop" in issue["description"] and "teams/search" not in issue["description"]
    texts.put("motd-shop", "hello")
    assert run(teams_lab, "kafka-drift", commit, **SCHEDULE).code == 0
    assert issue["state"] == "closed"


def enqueue(lab: Runner, name: str, number: int, start: str) -> tuple[str, Ended]:
    """The commit that a merge train makes of a branch on top of another commit, and its plan."""
    git = lab.repository.git
    git("switch", "--quiet", "--detach", start)
    git("merge", "--quiet", "--no-ff", "--message", "Train", name)
    commit = lab.repository.head
    git("switch", "--quiet", "main")
    train = {
        "CI_MERGE_REQUEST_EVENT_TYPE": "merge_train",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_COMMIT_REF_PATH": f"refs/merge-requests/{number}/train",
    }
    ended = lab.run("kafka-plan", commit, **request(number), **train)
    assert ended is not None and ended.environment == "kafka-read"
    return commit, ended


@pytest.mark.parametrize("backwards", [False, True], ids=["in order", "the second one first"])
def test_a_merge_train_of_two_teams(teams_lab: Runner, texts: Texts, *, backwards: bool) -> None:
    """The second car is planned with the first one below it, and replaces the note of its merge
    request. Each merge has a pipeline, and the one that comes first applies what both have in
    common."""
    begin(teams_lab)
    heads = [
        plan(teams_lab, name, write_team(name), n)[0] for n, name in ((1, "shop"), (2, "search"))
    ]
    main = teams_lab.repository.git("rev-parse", "main")
    first, planned = enqueue(teams_lab, "shop", 1, main)
    assert planned.code == 0 and "search" not in planned.log, planned.log
    second, planned = enqueue(teams_lab, "search", 2, first)
    assert planned.code == 0 and "billing" not in planned.log, planned.log
    bodies = {note["request"]: note["body"] for note in teams_lab.api.notes.values()}
    assert len(teams_lab.api.notes) == 2
    assert "teams/shop" in bodies[2] and "teams/search" in bodies[2]
    merges = [(main, first, heads[0], 1), (first, second, heads[1], 2)]
    for _, commit, head, number in merges:
        teams_lab.repository.git("merge", "--quiet", "--ff-only", commit)
        merged = {"iid": number, "state": "merged", "sha": head, "merge_commit_sha": commit}
        teams_lab.api.merged.append({**merged, "squash_commit_sha": None})
    for before, commit, _, _ in reversed(merges) if backwards else merges:
        done = run(teams_lab, "kafka-apply", commit, **PUSH, CI_COMMIT_BEFORE_SHA=before)
        assert done.code == 0, done.log
    assert texts.read() == {"motd-search": "hello", "motd-shop": "hello"}
    assert run(teams_lab, "kafka-drift", second, **SCHEDULE).code == 0


def test_a_stale_folder_is_planned_by_hand(teams_lab: Runner, texts: Texts) -> None:
    """The folder that somebody changed meanwhile is refused alone; a pipeline by hand is about the
    folders that its variable names."""
    begin(teams_lab)
    files = write_team("shop") | write_team("search")
    head, _ = plan(teams_lab, "one", files, 1)
    assert apply(teams_lab, "one", head, 1).code == 0
    files = write_team("shop", "bye") | write_team("search", "bye")
    head, _ = plan(teams_lab, "two", files, 2)
    texts.put("motd-shop", "changed")
    assert apply(teams_lab, "two", head, 2).code == 4
    assert texts.read() == {"motd-search": "bye", "motd-shop": "changed"}

    commit, chosen = teams_lab.repository.head, {"KAFKAFORM_FOLDERS": "teams/shop"}
    planned = run(teams_lab, "kafka-plan", commit, **WEB, **chosen)
    expect = {"KAFKAFORM_EXPECT": approval_of(planned).partition("\n")[0]}
    assert run(teams_lab, "kafka-apply", commit, **WEB, **chosen, **expect).code == 0
    assert texts.read()["motd-shop"] == "bye"


def test_faults_have_the_path_of_their_folder(teams_lab: Runner, texts: Texts) -> None:
    """In the code quality report, as the changes of the merge request have it."""
    begin(teams_lab)
    (path, text), *_ = write_team("shop").items()
    _, failed = plan(teams_lab, "one", {path: text.replace("content", "contents")}, 1)
    assert failed.code == 1 and path in teams_lab.api.notes[1]["body"]
    report = json.loads((failed.folder / "kafkaform-out/code-quality.json").read_text())
    assert {one["location"]["path"] for one in report} == {path}
