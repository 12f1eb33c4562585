"""The one-file pipeline on GitHub, from a branch to drift, without a cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ...kit.pipelines.github import BOT, Ended, Runner
from ...kit.pipelines.repository import list_installs
from .conftest import CONFIGURATION, MAIN, Texts

pytestmark = pytest.mark.slow("each job is a process with an installation of its own")
MARK = "<!-- kafkaform:plan:"


def plan(hub: Runner, name: str, text: str, pull: int = 1) -> tuple[str, Ended]:
    """The plan of a branch with this configuration, and its commit."""
    head = hub.repository.branch(name, MAIN, text)
    ended = hub.run("pull_request", head, pull=pull, head=head)
    assert ended is not None and ended.environment == "kafka-read"
    return head, ended


def merge(hub: Runner, name: str, head: str, *, squash: bool = False) -> str:
    """The branch is merged; the commit on the default branch."""
    commit = hub.repository.merge(name, squash=squash)
    merged = {"number": 7, "merged_at": "now", "merge_commit_sha": commit, "head": {"sha": head}}
    hub.api.pulls.append(merged)
    return commit


def apply(hub: Runner, commit: str, approval: str = "") -> Ended:
    event = "workflow_dispatch" if approval else "push"
    ended = hub.run(event, commit, approval=approval)
    assert ended is not None and ended.environment == "kafka-production"
    return ended


def look(hub: Runner) -> Ended:
    """The scheduled run."""
    ended = hub.run("schedule", hub.repository.git("rev-parse", "main"))
    assert ended is not None and ended.environment == "kafka-read"
    return ended


def test_from_a_branch_to_drift(hub: Runner, texts: Texts) -> None:
    """Plan, comment, squash, apply; somebody changes the store: an issue opens, is updated, and is
    closed when the change is undone. All commands of the action run."""
    head, planned = plan(hub, "one", CONFIGURATION)
    assert planned.code == 0, planned.log
    assert planned.outputs["exitcode"] == "2" and planned.outputs["has-changes"] == "true"
    approval = planned.outputs["approval"]
    (comment,) = hub.api.comments.values()
    assert comment["body"].startswith(MARK) and approval in comment["body"]
    assert f"Commit {head[:12]}, [run 1](" in comment["body"]
    assert planned.summary.strip() == comment["body"].strip()
    assert "textstore_file.motd will be created" in planned.log and not planned.commands
    assert texts.read() == {}

    done = apply(hub, merge(hub, "one", head, squash=True))
    assert done.code == 0, done.log
    assert done.outputs["approval"] == approval and "Audit head" in done.summary
    assert texts.read() == {"motd": "hello"}
    assert look(hub).code == 0 and not hub.api.issues

    texts.put("motd", "changed")
    assert look(hub).code == 8
    (issue,) = hub.api.issues.values()
    assert "textstore_file.motd" in issue["body"] and issue["state"] == "open"
    before = issue["body"]
    assert look(hub).code == 8
    assert len(hub.api.issues) == 1 and issue["body"] != before, "the run is another one"
    texts.put("motd", "hello")
    assert look(hub).code == 0
    assert issue["state"] == "closed"

    action = {'sh "$GITHUB_ACTION_PATH/ci/install.sh" "$RUNNER_TEMP/kafkaform"',
              'exec "$RUNNER_TEMP/kafkaform/bin/python" -I "$GITHUB_ACTION_PATH/ci"'}  # fmt: skip
    assert set(hub.ran) == action
    installs = list_installs(Path(hub.path))
    assert installs and all("--require-hashes" in line for line in installs)


def test_a_new_commit_edits_the_comment(hub: Runner, texts: Texts) -> None:
    """The second plan replaces the first comment, on whatever page it is; one that a person wrote
    with the same mark is left alone."""
    for _ in range(120):
        hub.api.add_comment(1, "words", {"login": "somebody", "type": "User"})
    _, first = plan(hub, "one", CONFIGURATION)
    own = len(hub.api.comments)
    copy = hub.api.comments[own]["body"]
    hub.api.add_comment(1, copy, {"login": "somebody", "type": "User"})
    hub.api.add_comment(1, copy, {"login": BOT["login"], "type": "User"})
    _, second = plan(hub, "two", CONFIGURATION.replace("hello", "bye"))
    assert first.outputs["approval"] != second.outputs["approval"]
    assert second.outputs["approval"] in hub.api.comments[own]["body"]
    assert hub.api.comments[own + 1]["body"] == hub.api.comments[own + 2]["body"] == copy
    assert len(hub.api.comments) == own + 2


def test_a_plan_that_fails_replaces_the_comment(hub: Runner, texts: Texts) -> None:
    """A configuration with a fault is annotated at its line, and the comment no longer shows an
    earlier plan; there is no approval and no artifact."""
    plan(hub, "one", CONFIGURATION)
    _, failed = plan(hub, "two", CONFIGURATION.replace("content", "contents"))
    assert failed.code == 1 and failed.outputs["approval"] == ""
    errors = [found for found in failed.commands if found[0] == "error"]
    assert errors[0][1]["file"] == MAIN and errors[0][1]["line"].isdigit()
    (comment,) = hub.api.comments.values()
    assert "no plan" in comment["body"] and f"{MAIN}:" in comment["body"]
    assert len(hub.api.artifacts) == 1


def test_a_changed_store_is_not_applied_to(hub: Runner, texts: Texts) -> None:
    """If the store moved after the review, the apply refuses the plan, says what differs, and
    sends nothing; a plan by hand and its approval help."""
    head, _ = plan(hub, "one", CONFIGURATION)
    assert apply(hub, merge(hub, "one", head)).code == 0
    head, _ = plan(hub, "two", CONFIGURATION.replace("hello", "bye"), pull=2)
    texts.put("motd", "changed")
    commit = merge(hub, "two", head)
    refused = apply(hub, commit)
    assert refused.code == 4 and texts.read() == {"motd": "changed"}
    assert "hello" in refused.log and "changed" in refused.log, refused.log
    assert "Run the pipeline by hand" in refused.summary

    by_hand = hub.run("workflow_dispatch", commit)
    assert by_hand is not None and by_hand.environment == "kafka-read"
    assert len(hub.api.comments) == 2, "a run by hand has no pull request"
    assert apply(hub, commit, by_hand.outputs["approval"]).code == 0
    assert texts.read() == {"motd": "bye"}


def test_what_nobody_planned_is_not_applied(hub: Runner, texts: Texts) -> None:
    """A push without a pull request, a last commit without a plan, the plan of a fork or of another
    workflow: each ends with 4 before a command runs."""
    commit = hub.repository.branch("one", MAIN, CONFIGURATION)
    assert apply(hub, commit).code == 4
    head, _ = plan(hub, "two", CONFIGURATION.replace("hello", "bye"))
    commit = merge(hub, "two", head)
    run = next(one for one in hub.api.runs.values() if one["event"] == "pull_request")
    for name, other in (
        ("head_repository", {"full_name": "stranger/kafka"}),
        ("path", ".github/workflows/other.yml"),
        ("conclusion", "failure"),
        ("head_sha", "0" * 40),
    ):
        kept, run[name] = run[name], other
        ended = apply(hub, commit)
        assert ended.code == 4 and ended.commands[0][0] == "error", name
        assert "No plan of what was merged" in ended.commands[0][2]
        run[name] = kept
    assert texts.read() == {}
    assert apply(hub, commit).code == 0


def test_forks_get_no_plan(hub: Runner) -> None:
    """The job of a pull request from another repository does not start."""
    head = hub.repository.branch("one", MAIN, CONFIGURATION)
    assert hub.run("pull_request", head, pull=1, head=head, source="stranger/kafka") is None


@pytest.mark.parametrize("approval", ["x", "a.b\nexitcode=0", "$(touch pwned).b", "`id`.b"])
def test_a_text_that_is_no_approval_is_refused(hub: Runner, approval: str) -> None:
    """What somebody types in by hand is an approval or an error, and never a part of a command."""
    ended = apply(hub, hub.repository.head, approval)
    assert ended.code == 4 and "not an approval" in ended.log
    assert not [*hub.folder.rglob("pwned")] and not hub.api.web.asked


HOSTILE = "::error file=x::pwned %0A::set-output name=approval::x $(touch pwned) `touch pwned`"


def test_foreign_texts_are_only_texts(hub: Runner, texts: Texts) -> None:
    """Contents, names of files, faults and folders that look like commands of a shell or of the
    runner appear in the log, the comment and the issue, and do nothing."""
    lines = f"##[error]pwned\\n{HOSTILE}\\n<!-- kafkaform:plan:0 -->\\n::stop-commands::x"
    lines = lines.replace("`", "").replace("$(", "$$(")
    text = CONFIGURATION.replace("hello", lines)
    head, planned = plan(hub, "one", text)
    assert planned.code == 0, planned.log
    assert not planned.commands and "pwned" in planned.log
    assert apply(hub, merge(hub, "one", head)).code == 0
    texts.put("motd", f"{HOSTILE}\n{HOSTILE}\n##[error]pwned")
    drift = look(hub)
    assert drift.code == 8 and not drift.commands and len(hub.api.issues) == 1, drift.log

    name = f"kafka/{HOSTILE.replace('/', '')}\n::error::pwned.kf.hcl"
    head = hub.repository.branch("two", name, 'resource "textstore_file" "::error::pwned" {}')
    failed = hub.run("pull_request", head, pull=2, head=head)
    assert failed is not None and failed.code == 1
    assert failed.commands and {found[0] for found in failed.commands} == {"error"}
    for _, properties, data in failed.commands:
        assert properties.keys() <= {"title", "file", "line"}
        assert properties["title"] == "kafkaform: kafka" and not data.startswith("pwned")
    assert failed.outputs["approval"] == "" and not [*hub.folder.rglob("pwned")]


def test_the_token_goes_to_the_forge_only(hub: Runner, texts: Texts) -> None:
    """Each request to the API has it, the storage of artifacts never sees it, and no log shows
    it."""
    head, planned = plan(hub, "one", CONFIGURATION)
    done = apply(hub, merge(hub, "one", head))
    assert hub.api.storage.asked and all(one.has_token for one in hub.api.web.asked)
    said = planned.log + planned.summary + done.log + done.summary
    assert not re.search("pw-of|writer-pw|reader-pw", said)
