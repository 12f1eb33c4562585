"""The one-file pipelines on a real broker, from a branch to drift: with the rights of the README,
and with nothing but the commands of `action.yml` and of the component."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ...kit.kafka.sessions import eventually
from ...kit.pipelines import github, gitlab
from ...kit.pipelines.repository import copy_tool, install_python, make_repository
from ...kit.pipelines.server import serving
from .conftest import World
from .forge import EXAMPLE
from .test_github import _by_hand

HOSTILE = "::error::pwned ##[error]pwned $$(touch pwned) `touch pwned` <!-- kafkaform:plan:0 -->"
BRANCH = "$(touch-pwned)`id`;error"
"""The name of a branch that a shell would execute."""


@pytest.fixture
def hub(world: World) -> Iterator[github.Runner]:
    """GitHub, with the two environments of the example: each has its own login and its own keys of
    the store."""
    api = github.Api()
    with serving(api.web), serving(api.storage):
        yield github.Runner(
            api,
            make_repository(world.folder / "repository"),
            world.folder,
            str(install_python(world.folder / "bin")),
            EXAMPLE / "one-file/github/.github/workflows/kafka.yml",
            {
                "kafka-read": _variables(world, "reader"),
                "kafka-production": _variables(world, "writer"),
            },
        )


def _variables(world: World, who: str) -> dict[str, str]:
    given = world.settings(who)
    return {
        "vars.KAFKAFORM_STATE": given["KAFKAFORM_STATE"],
        "secrets.STATE_KEY_ID": given["AWS_ACCESS_KEY_ID"],
        "secrets.STATE_KEY": given["AWS_SECRET_ACCESS_KEY"],
        "vars.KAFKA_BOOTSTRAP_SERVERS": given["KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS"],
        "vars.KAFKA_SECURITY_PROTOCOL": given["KAFKAFORM_KAFKA_SECURITY_PROTOCOL"],
        "vars.KAFKA_SASL_MECHANISM": given["KAFKAFORM_KAFKA_SASL_MECHANISM"],
        "vars.KAFKA_USERNAME": given["KAFKAFORM_KAFKA_SASL_USERNAME"],
        "secrets.KAFKA_PASSWORD": given["KAFKAFORM_KAFKA_SASL_PASSWORD"],
    }


def run(hub: github.Runner, event: str, commit: str, code: int, **given: object) -> github.Ended:
    """A job that must end with this code. No log shows a password, and no text in it is a command
    that the pipeline did not write itself."""
    ended = hub.run(event, commit, **given)
    assert ended is not None and ended.code == code, ended and ended.log
    assert "pw-of" not in ended.log + ended.summary
    assert not any(data.startswith("pwned") for _, _, data in ended.commands)
    assert not [*hub.folder.rglob("pwned")]
    return ended


@pytest.mark.timeout(600)
def test_from_a_branch_to_drift(world: World, hub: github.Runner) -> None:
    """Plan, comment, merge, apply; somebody changes a topic: an issue opens; the change is undone:
    the issue is closed. Texts that look like commands are only texts."""
    text = (EXAMPLE / "kafka/main.kf.hcl").read_text().replace("team-checkout", HOSTILE)
    head = hub.repository.branch(BRANCH, "kafka/main.kf.hcl", text)
    planned = run(hub, "pull_request", head, 0, pull=1, head=head, ref="refs/pull/1/merge")
    assert "Plan: 3 to add, 0 to change, 0 to destroy." in planned.log
    (comment,) = hub.api.comments.values()
    assert planned.outputs["approval"] in comment["body"] and world.topics() == {}
    assert not planned.commands and not world.bucket.objects

    commit = hub.repository.merge(BRANCH, squash=True)
    merged = {"number": 7, "merged_at": "now", "merge_commit_sha": commit, "head": {"sha": head}}
    hub.api.pulls.append(merged)
    done = run(hub, "push", commit, 0)
    assert done.environment == "kafka-production"
    assert "Apply complete: 3 added, 0 changed, 0 destroyed." in done.log
    assert done.outputs["approval"] == planned.outputs["approval"]
    assert world.topics() == {"checkout.orders": 3, "checkout.refunds": 1}
    world.records()
    assert run(hub, "schedule", commit, 0).environment == "kafka-read" and not hub.api.issues

    _by_hand(world, "retention.ms", "1000")
    eventually(lambda: hub.run("schedule", commit), lambda ended: ended and ended.code == 8)
    (issue,) = hub.api.issues.values()
    assert "retention.ms" in issue["body"] and issue["state"] == "open"
    _by_hand(world, "retention.ms", str(7 * 24 * 3600 * 1000))
    run(hub, "schedule", commit, 0)
    assert issue["state"] == "closed" and len(hub.api.issues) == 1


@pytest.fixture
def lab(world: World) -> Iterator[gitlab.Runner]:
    """GitLab, with the two environments of the example."""
    api = gitlab.Api()
    with serving(api.web):
        yield gitlab.Runner(
            api,
            make_repository(world.folder / "repository"),
            copy_tool(world.folder / "server/tools/kafkaform.git"),
            world.folder,
            str(install_python(world.folder / "bin")),
            EXAMPLE / "one-file/gitlab/.gitlab-ci.yml",
            {"kafka-read": world.settings("reader"), "kafka-production": world.settings("writer")},
        )


@pytest.mark.timeout(600)
def test_from_a_merge_request_to_drift(world: World, lab: gitlab.Runner) -> None:
    """The same on GitLab: plan, note, merge, apply, drift, an issue."""

    def run(job: str, commit: str, code: int, source: str, **given: str) -> gitlab.Ended:
        more = {"CI_PIPELINE_SOURCE": source, "CI_COMMIT_BRANCH": "main", **given}
        ended = lab.run(job, commit, **more)
        assert ended is not None and ended.code == code, ended and ended.log
        assert "pw-of" not in ended.log
        return ended

    text = (EXAMPLE / "kafka/main.kf.hcl").read_text()
    head = lab.repository.branch(BRANCH, "kafka/main.kf.hcl", text)
    request = {"CI_MERGE_REQUEST_IID": "1", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "1"}
    planned = run("kafka-plan", head, 0, "merge_request_event", **request)
    assert "Plan: 3 to add, 0 to change, 0 to destroy." in planned.log and len(lab.api.notes) == 1
    commit = lab.repository.merge(BRANCH, squash=False)
    merged = {"iid": 1, "state": "merged", "sha": head, "merge_commit_sha": commit}
    lab.api.merged.append({**merged, "squash_commit_sha": None})
    assert "Apply complete: 3 added" in run("kafka-apply", commit, 0, "push").log
    _by_hand(world, "retention.ms", "1000")
    run("kafka-drift", commit, 8, "schedule")
    (issue,) = lab.api.issues.values()
    assert "retention.ms" in issue["description"] and issue["state"] == "opened"
