"""The workflows for GitHub Actions, from a pull request to drift."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ...kit.kafka.sessions import eventually
from .conftest import World
from .forge import Forge
from .jobs import Ended, Runner, github, workflow

WORKFLOWS = ("kafka-plan", "kafka-apply", "kafka-drift")


def planned(
    world: World, runner: Runner, head: str, number: int, source: str = "team/kafka"
) -> Any:
    """The job of a pull request."""
    more = {
        "github.event.pull_request.head.repo.full_name": source,
        "github.event.pull_request.number": number,
    }
    runner.forge.write("runs", {**runner.forge.read("runs"), head: number})
    context = world.context("pull_request", **more)
    return github(runner, "kafka-plan", "plan", context, head, str(number))


def applied(world: World, runner: Runner, commit: str, expect: str = "") -> Ended:
    """Both jobs of an apply. expect: the approval, typed by hand."""
    event = "workflow_dispatch" if expect else "push"
    context = world.context(event, **{"inputs.expect": expect})
    found = github(runner, "kafka-apply", "approval", context, commit, "-")
    assert found is not None
    if found.code:
        return found
    inside = {f"needs.approval.outputs.{name}": text for name, text in found.outputs.items()}
    ended = github(runner, "kafka-apply", "apply", {**context, **inside}, commit, "-")
    assert ended is not None
    return ended


@pytest.mark.timeout(600)
def test_from_a_pull_request_to_drift(world: World) -> None:
    """Plan, comment, merge, apply; a stale approval; drift; a plan by hand; a plan that
    is blocked. Each command of the three workflows runs."""
    forge = world.forge("github")
    runner = world.runner(forge)
    first = forge.change("partitions = 1", "partitions = 2")

    assert planned(world, runner, first, 1, source="stranger/kafka") is None
    plan = planned(world, runner, first, 1)
    assert plan.code == 0, plan.said
    assert "Plan: 3 to add, 0 to change, 0 to destroy." in plan.said
    assert plan.approval and f"kafkaform apply --expect {plan.approval}" in forge.comment
    assert plan.summary == forge.comment
    assert (world.topics(), world.bucket.objects) == ({}, {})

    merged = forge.merge(1)
    done = applied(world, runner, merged)
    assert done.code == 0, done.said
    assert "Apply complete: 3 added, 0 changed, 0 destroyed." in done.said
    assert f"Audit head: {_head(world)}" in done.said and "audit log is sound" in done.said
    assert world.topics() == {"checkout.orders": 3, "checkout.refunds": 2}
    assert list_pull_requests(world) == ["1"]

    second = forge.change('retention("7d")', 'retention("9d")')
    assert planned(world, runner, second, 2).code == 0
    _by_hand(world, "retention.ms", "1000")
    drift = github(runner, "kafka-drift", "drift", world.context("schedule"), merged, "-")
    assert drift is not None and drift.code == 8, drift
    assert "kafka_topic.orders" in drift.summary and "Drift:" in drift.said
    assert drift.summary.startswith("### kafkaform plan of `kafka`: drift of 1 object\n")

    merged = forge.merge(2)
    before = len(world.records())
    stale = applied(world, runner, merged)
    assert stale.code == 4 and "Plan again" in stale.said, stale.said
    assert "What differs from the reviewed plan" in stale.said, stale.said
    assert len(world.records()) == before

    by_hand = github(
        runner, "kafka-plan", "plan", world.context("workflow_dispatch"), merged, "by-hand"
    )
    assert by_hand is not None and by_hand.code == 0, by_hand
    done = applied(world, runner, merged, by_hand.approval)
    assert done.code == 0 and "1 changed" in done.said, done.said
    assert list_pull_requests(world) == ["1", None], "what is approved by hand has none"

    forge.change("partitions = 2", "partitions = 1")
    blocked = planned(world, runner, _forged(forge), 3)
    assert blocked.code == 8 and "cannot be applied" in forge.comment, blocked.said
    assert not (blocked.folder / "out/approval.txt").exists()
    assert [*(forge.folder / "artifacts/3").rglob("plan.html")]
    assert not [*(forge.folder / "artifacts/3").rglob("approval*")]

    texts = [step["run"].strip() for n in WORKFLOWS for j in workflow(n)["jobs"].values()
             for step in j["steps"] if "run" in step]  # fmt: skip
    assert set(texts) == set(runner.ran)
    installed = [words for words in forge.calls if words[:2] == ["pip", "install"]]
    assert installed and all("--require-hashes" in words for words in installed)
    assert {words[-1] for words in installed} == {
        "reviewed/ci/requirements.lock",
        "ci/requirements.lock",
    }
    said = "".join(each.said + each.summary for each in (plan, done, drift, stale, by_hand))
    assert "pw-of" not in said


def list_pull_requests(world: World) -> list[Any]:
    """The pull request of each run, as the log names it."""
    return [r.body.get("pull_request") for r in world.records() if r.kind == "run_begin"]


def test_what_nobody_planned_is_not_applied(world: World) -> None:
    """A commit without a plan, and a text that is no approval, end before any credentials of the
    cluster are there."""
    forge = world.forge("github")
    runner = world.runner(forge)
    commit = forge.git("rev-parse", "HEAD")
    unplanned = applied(world, runner, commit)
    assert unplanned.code == 4 and "No plan of what was merged" in unplanned.said
    forged = applied(world, runner, commit, "x\nexpect=y")
    assert forged.code == 4 and "not an approval" in forged.said
    assert not world.bucket.requests


@pytest.mark.timeout(600)
def test_a_branch_does_not_choose_where_it_is_planned(world: World) -> None:
    """A provider block that names another broker is refused at its line, and that broker gets no
    connection, let alone the password."""
    forge = world.forge("github")
    runner = world.runner(forge)
    with socket.create_server(("127.0.0.1", 0)) as theirs:
        theirs.setblocking(False)
        where = f'bootstrap_servers = ["127.0.0.1:{theirs.getsockname()[1]}"]'
        head = forge.change('provider "kafka" {', f'provider "kafka" {{\n  {where}')
        plan = planned(world, runner, head, 1)
        assert plan.code == 1 and "main.kf.hcl:4" in plan.said, plan.said
        with pytest.raises(BlockingIOError):
            theirs.accept()
    assert not [*forge.folder.glob("artifacts/*/*/approval*"), *forge.folder.glob("comment.md")]


def _forged(forge: Forge) -> str:
    """The branch brings an approval of its own, where the plan leaves its one."""
    (forge.origin / "out").mkdir()
    (forge.origin / "out/approval.txt").write_text("abc.def")
    forge.git("add", "--force", "out")
    forge.git("commit", "--quiet", "--message", "Forge")
    return forge.git("rev-parse", "HEAD")


def _head(world: World) -> str:
    last = world.records()[-1]
    return f"{last.seq}:{last.hash}"


def _by_hand(world: World, key: str, value: str) -> None:
    """Somebody sets a config of a topic."""
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    where = ConfigResource(ResourceType.TOPIC, "checkout.orders", incremental_configs=[entry])
    for future in world.admin.incremental_alter_configs([where]).values():
        future.result(60)

    def seen() -> str | None:
        where = ConfigResource(ResourceType.TOPIC, "checkout.orders")
        (future,) = world.admin.describe_configs([where]).values()
        return str(future.result(60)[key].value)

    eventually(seen, lambda found: found == value)
