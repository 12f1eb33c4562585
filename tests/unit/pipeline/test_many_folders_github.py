"""The pipeline of a repository of many folders on GitHub, from a branch to drift."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ...kit.pipelines.github import Ended, Runner
from .conftest import Texts, begin_repository, write_team

pytestmark = pytest.mark.slow("each job is a process with an installation of its own")
TEAMS = ("billing", "search", "shop")


def begin(hub: Runner, *teams: str) -> str:
    return begin_repository(hub.repository, hub.folder / "states", teams)


def plan(hub: Runner, name: str, files: Mapping[str, str], pull: int) -> tuple[str, Ended]:
    """A branch of `main` with these files, and its plan."""
    head = hub.repository.write(name, files)
    return head, plan_branch(hub, name, head, pull)


def plan_branch(hub: Runner, name: str, head: str, pull: int) -> Ended:
    """The plan of what a merge of the branch would make now."""
    ended = hub.run("pull_request", hub.repository.preview(name), pull=pull, head=head)
    assert ended is not None and ended.environment == "kafka-read"
    return ended


def merge(hub: Runner, name: str, head: str, pull: int) -> tuple[str, str]:
    """The branch is merged; the commits on the default branch before that and now."""
    before = hub.repository.git("rev-parse", "main")
    commit = hub.repository.merge(name, squash=True)
    merged = {"number": pull, "merged_at": "now", "merge_commit_sha": commit, "head": {"sha": head}}
    hub.api.pulls.append(merged)
    return before, commit


def apply(hub: Runner, commits: tuple[str, str]) -> Ended:
    before, commit = commits
    ended = hub.run("push", commit, before=before)
    assert ended is not None and ended.environment == "kafka-production"
    return ended


def by_hand(hub: Runner, folders: str, approval: str = "") -> Ended:
    commit = hub.repository.git("rev-parse", "main")
    ended = hub.run("workflow_dispatch", commit, folders=folders, approval=approval)
    assert ended is not None
    return ended


def look(hub: Runner) -> Ended:
    """The scheduled run."""
    ended = hub.run("schedule", hub.repository.git("rev-parse", "main"))
    assert ended is not None
    return ended


def read_comment(hub: Runner, pull: int) -> str:
    (comment,) = (one for one in hub.api.comments.values() if one["pull"] == pull)
    return str(comment["body"])


def apply_first(hub: Runner, *teams: str) -> None:
    """The texts of these teams are planned, merged and applied."""
    files = {path: text for name in teams for path, text in write_team(name).items()}
    head, planned = plan(hub, "first", files, 1)
    assert planned.code == 0, planned.log
    done = apply(hub, merge(hub, "first", head, 1))
    assert done.code == 0, done.log


@pytest.mark.parametrize("teams", [("shop",), TEAMS], ids=["1 folder", "3 folders"])
def test_from_a_branch_to_drift(teams_hub: Runner, texts: Texts, teams: tuple[str, ...]) -> None:
    """A pull request of one team is planned, reviewed and applied in its folder alone; then
    somebody changes a text by hand, and back."""
    begin(teams_hub, *teams)
    head, planned = plan(teams_hub, "one", write_team("shop"), 1)
    assert planned.code == 0, planned.log
    assert planned.outputs["exitcode"] == "2" and planned.outputs["has-changes"] == "true"
    comment, approval = read_comment(teams_hub, 1), planned.outputs["approval"]
    assert approval in comment and "teams/shop" in comment and "teams/search" not in comment
    assert planned.summary.strip() == comment.strip()
    assert "teams/shop: textstore_file.motd" in planned.log and "billing" not in planned.log

    done = apply(teams_hub, merge(teams_hub, "one", head, 1))
    assert done.code == 0, done.log
    assert done.outputs["approval"] == approval and "Audit head of teams/shop: " in done.summary
    assert texts.read() == {"motd-shop": "hello"}
    assert look(teams_hub).code == 0 and not teams_hub.api.issues

    texts.put("motd-shop", "changed")
    assert look(teams_hub).code == 8
    (issue,) = teams_hub.api.issues.values()
    assert "teams/shop" in issue["body"] and issue["state"] == "open"
    texts.put("motd-shop", "hello")
    assert look(teams_hub).code == 0 and issue["state"] == "closed"


def test_pull_requests_of_different_folders_are_independent(
    teams_hub: Runner, texts: Texts
) -> None:
    """Two are planned, then both are merged: neither approval is stale, whichever is applied
    first."""
    begin(teams_hub, *TEAMS)
    shop, _ = plan(teams_hub, "one", write_team("shop"), 1)
    search, _ = plan(teams_hub, "two", write_team("search"), 2)
    first, second = merge(teams_hub, "one", shop, 1), merge(teams_hub, "two", search, 2)
    for commits in (second, first):
        done = apply(teams_hub, commits)
        assert done.code == 0, done.log
    assert texts.read() == {"motd-search": "hello", "motd-shop": "hello"}


def queue(hub: Runner, name: str, pull: int, start: str) -> tuple[str, Ended]:
    """The commit that a merge queue makes of a branch on top of another commit, and its plan."""
    git = hub.repository.git
    git("switch", "--quiet", "--detach", start)
    git("merge", "--quiet", "--no-ff", "--message", "Queued", name)
    commit = hub.repository.head
    git("switch", "--quiet", "main")
    ref = f"refs/heads/gh-readonly-queue/main/pr-{pull}-{start}"
    ended = hub.run("merge_group", commit, ref=ref)
    assert ended is not None and ended.environment == "kafka-read"
    return commit, ended


def push(hub: Runner, commit: str) -> Ended:
    """The queue moves the default branch to one of its commits, which is applied."""
    before = hub.repository.git("rev-parse", "main")
    hub.repository.git("merge", "--quiet", "--ff-only", commit)
    return apply(hub, (before, commit))


@pytest.mark.parametrize("together", [True, False], ids=["one push", "two pushes"])
def test_a_merge_queue_of_two_teams(teams_hub: Runner, texts: Texts, together: bool) -> None:
    """The second entry is planned with the first one below it, and before that is merged. Its plan
    counts for both if they are merged together, and for what is left of it otherwise."""
    begin(teams_hub, *TEAMS)
    for number, name in enumerate(("shop", "search"), 1):
        plan(teams_hub, name, write_team(name), number)
    main = teams_hub.repository.git("rev-parse", "main")
    first, planned = queue(teams_hub, "shop", 1, main)
    assert planned.code == 0 and "search" not in planned.log, planned.log
    second, planned = queue(teams_hub, "search", 2, first)
    assert planned.code == 0 and "billing" not in planned.log, planned.log
    comment = read_comment(teams_hub, 2)
    assert "teams/shop" in comment and "teams/search" in comment
    for commit in (second,) if together else (first, second):
        done = push(teams_hub, commit)
        assert done.code == 0, done.log
    assert texts.read() == {"motd-search": "hello", "motd-shop": "hello"}
    assert look(teams_hub).code == 0


def test_a_stale_folder_is_refused_alone(teams_hub: Runner, texts: Texts) -> None:
    """Of a pull request of two teams, the folder that somebody changed meanwhile is refused, and
    the other one is applied. A plan by hand of that folder and its approval help."""
    begin(teams_hub, *TEAMS)
    apply_first(teams_hub, "shop", "search")
    files = write_team("shop", "bye") | write_team("search", "bye")
    head, _ = plan(teams_hub, "two", files, 2)
    texts.put("motd-shop", "changed")
    refused = apply(teams_hub, merge(teams_hub, "two", head, 2))
    assert refused.code == 4, refused.log
    assert texts.read() == {"motd-search": "bye", "motd-shop": "changed"}
    assert "teams/shop" in refused.log and "for that folder" in refused.summary

    planned = by_hand(teams_hub, "teams/shop")
    assert planned.environment == "kafka-read" and len(teams_hub.api.comments) == 2
    assert "teams/search" not in planned.summary
    done = by_hand(teams_hub, "teams/shop", planned.outputs["approval"])
    assert done.environment == "kafka-production" and done.code == 0, done.log
    assert texts.read()["motd-shop"] == "bye" and "Audit head of teams/shop: " in done.summary


def test_drift_of_folders_is_one_issue(teams_hub: Runner, texts: Texts) -> None:
    """It has a section for each folder with drift, loses one that is repaired, and is closed in the
    end."""
    begin(teams_hub, *TEAMS)
    apply_first(teams_hub, *TEAMS)
    texts.put("motd-shop", "changed")
    texts.put("motd-search", "changed")
    assert look(teams_hub).code == 8
    (issue,) = teams_hub.api.issues.values()
    assert "teams/shop" in issue["body"] and "teams/search" in issue["body"]
    assert "teams/billing" not in issue["body"]
    assert issue["title"] == "Changed outside kafkaform: teams/search, teams/shop"
    assert "| Folder | Owner | Drift | Dangers | |" in issue["body"]
    texts.put("motd-search", "hello")
    assert look(teams_hub).code == 8
    assert "teams/shop" in issue["body"] and "teams/search" not in issue["body"]
    texts.put("motd-shop", "hello")
    assert look(teams_hub).code == 0
    assert issue["state"] == "closed" and len(teams_hub.api.issues) == 1


def test_what_depends_on_a_folder_is_planned_too(teams_hub: Runner, texts: Texts) -> None:
    """A pull request of one team changes a file that another team reads: both are planned, and the
    third one is not."""
    begin(teams_hub, *TEAMS)
    (path, text), *_ = write_team("search").items()
    reads = text.replace('"hello"', 'file("${path.module}/../shop/words.txt")')
    files = {path: reads, "teams/shop/words.txt": "hello"} | write_team("shop")
    head, planned = plan(teams_hub, "one", files, 1)
    assert planned.code == 0, planned.log
    assert apply(teams_hub, merge(teams_hub, "one", head, 1)).code == 0
    head, planned = plan(teams_hub, "two", {"teams/shop/words.txt": "bye"}, 2)
    assert "teams/search: textstore_file.motd" in planned.log and "billing" not in planned.log
    assert apply(teams_hub, merge(teams_hub, "two", head, 2)).code == 0
    assert texts.read() == {"motd-search": "bye", "motd-shop": "hello"}


def test_what_changes_no_folder_needs_no_comment(teams_hub: Runner, texts: Texts) -> None:
    """A pull request of other files is green and silent, as is its apply. If it had a plan before,
    the comment says that nothing is left of it."""
    begin(teams_hub, *TEAMS)
    head, planned = plan(teams_hub, "one", {"README.md": "words"}, 1)
    assert planned.code == 0, planned.log
    assert not teams_hub.api.comments and planned.outputs["has-changes"] == "false"
    done = apply(teams_hub, merge(teams_hub, "one", head, 1))
    assert done.code == 0, done.log

    plan(teams_hub, "two", write_team("shop"), 2)
    files = dict.fromkeys(write_team("shop"), "# nothing yet\n")
    head = teams_hub.repository.write("three", files, "two")
    assert plan_branch(teams_hub, "three", head, 2).code == 0
    assert "teams/shop" not in read_comment(teams_hub, 2) and texts.read() == {}


def test_a_fault_of_one_team_is_shown_at_its_line(teams_hub: Runner, texts: Texts) -> None:
    """The annotation has the path of the folder; the job fails, and the comment begins with that
    and has the plan of the other team."""
    begin(teams_hub, *TEAMS)
    files = write_team("search")
    files["teams/shop/main.kf.hcl"] = write_team("shop")["teams/shop/main.kf.hcl"].replace(
        "content", "contents"
    )
    head, failed = plan(teams_hub, "one", files, 1)
    assert failed.code == 1, failed.log
    errors = [found for found in failed.commands if found[0] == "error"]
    assert {found[1]["file"] for found in errors} == {"teams/shop/main.kf.hcl"}
    comment = read_comment(teams_hub, 1)
    assert comment.index("teams/shop") < comment.index("teams/search")
    refused = apply(teams_hub, merge(teams_hub, "one", head, 1))
    assert refused.code == 4 and texts.read() == {}, "the job of its plan failed"


def test_a_blocked_change_is_annotated_once(teams_hub: Runner, texts: Texts) -> None:
    """At its line, and not beside a count of what is blocked. The boundary of one team covers no
    text."""
    begin(teams_hub, *TEAMS)
    file = (teams_hub.repository.folder / "kafkaform.hcl").read_text()
    block = file[file.index('folders "teams/*"') :]
    fenced = block.replace("teams/*", "teams/shop").replace("\n}", "\n  boundary {}\n}")
    teams_hub.repository.write("fence", {"kafkaform.hcl": f"{file}\n{fenced}"})
    teams_hub.repository.merge("fence", squash=True)
    _, failed = plan(teams_hub, "one", write_team("shop") | write_team("search"), 1)
    assert failed.code == 8, failed.log
    ((_, place, text),) = (command for command in failed.commands if command[0] == "error")
    assert (place["file"], place["line"]) == ("teams/shop/main.kf.hcl", "1")
    assert "the boundary of teams/shop" in text and "cannot be made" not in text


def test_sixty_folders_are_one_plan(teams_hub: Runner, texts: Texts) -> None:
    """A pull request that changes a module of all teams has one comment, one approval and one
    apply. A fault in the module is shown once."""
    teams = [f"team-{number:02}" for number in range(60)]
    begin(teams_hub, *teams)
    module = 'variable "team" {}\n\nresource "textstore_file" "motd" {\n'
    module += '  name    = "motd-${var.team}"\n  content = "hello"\n}\n'
    files = {"modules/motd/main.kf.hcl": module}
    for team in teams:
        block = f'module "motd" {{\n  source = "../../modules/motd"\n  team   = "{team}"\n}}\n'
        files[f"teams/{team}/main.kf.hcl"] = block
    head, planned = plan(teams_hub, "one", files, 1)
    assert planned.code == 0, planned.log
    comment = read_comment(teams_hub, 1)
    assert len(comment) <= 65_536 and comment.count("| [`teams/team-") == 60
    done = apply(teams_hub, merge(teams_hub, "one", head, 1))
    assert done.code == 0, done.log
    assert done.outputs["approval"] == planned.outputs["approval"]
    assert done.summary.count("Audit head of teams/") == 60 == len(texts.read())

    files = {"modules/motd/main.kf.hcl": module.replace("content", "contents")}
    _, failed = plan(teams_hub, "two", files, 2)
    errors = [properties["line"] for name, properties, _ in failed.commands if name == "error"]
    assert sorted(errors) == ["3", "5"]


def test_a_pull_request_does_not_change_the_repository_file_of_its_plan(
    teams_hub: Runner, texts: Texts
) -> None:
    """Neither in its own file, nor with a tag that has the name of the branch: the plan of a
    stranger would be sent where that file says."""
    begin(teams_hub, *TEAMS)
    file = teams_hub.repository.folder / "kafkaform.hcl"
    forged = file.read_text().replace(texts.server.url, "http://127.0.0.1:1")
    files = {"kafkaform.hcl": forged, **write_team("shop")}
    head = teams_hub.repository.write("one", files)
    teams_hub.repository.git("tag", "origin/main", head)
    planned = plan_branch(teams_hub, "one", head, 1)
    assert planned.code == 0, planned.log
    assert "127.0.0.1:1" not in planned.log + read_comment(teams_hub, 1)


def test_the_states_are_those_of_the_repository_file(teams_hub: Runner) -> None:
    """A variable that names one state for all folders is refused before anything is read."""
    begin(teams_hub, *TEAMS)
    teams_hub.more = {name: {"KAFKAFORM_STATE": "s3://b/k"} for name in teams_hub.more}
    _, planned = plan(teams_hub, "one", write_team("shop"), 1)
    assert planned.code == 1 and "each folder of a repository has its own" in planned.log
