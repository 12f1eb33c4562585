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
