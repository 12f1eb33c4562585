"""Drift that another client made on a real broker: shown, accepted into the state, repaired."""

from __future__ import annotations

import json

from ...kit.commands.folder import Folder

CONFIG = 'config = { "retention.ms" = "1000000" }'


def delete(folder: Folder, name: str) -> None:
    """Delete a topic with another client."""
    (done,) = folder.admin.delete_topics([f"{folder.prefix}{name}"]).values()
    done.result(timeout=60)
    folder.until(lambda: name not in folder.topics())


def test_what_another_client_changed_is_taken_in(folder: Folder) -> None:
    """A value that somebody changed and a topic that somebody deleted: the plan names who set them
    last, the apply records both and sends nothing, and the next plan compares with what is live."""
    folder.declare("a", "b", more=CONFIG)
    folder.done("apply", "-auto-approve")
    run = folder.records("run_begin")[-1]["run"]
    folder.alter("a", "retention.ms", "7000000")
    delete(folder, "b")

    with folder.untouched():
        said = folder.done("plan", "-refresh-only", "-comment=drift.md")
        assert "(1000000 → 7000000)" in " ".join(said.out.split())
        assert f"kafka_topic.b ({folder.prefix}b): deleted" in said.out
        assert said.out.count(f"(run {run})") == 2
        assert "Plan: 0 to add, 0 to change, 0 to destroy, 1 to forget, 1 to refresh." in said.out
        assert folder.run("plan", "-refresh-only", "-detailed-exitcode").code == 2
        folder.fails(8, "plan", "-refresh-only", "--fail-on=drift")
    comment = (folder.path / "drift.md").read_text("utf-8")
    assert comment.startswith("### kafkaform plan: drift of 2 objects\n")
    assert comment.index("last set here") < comment.index("kafkaform apply")

    said = folder.done("apply", "-refresh-only", "-auto-approve")
    assert "1 forgotten, 1 refreshed" in said.out
    assert folder.config("a")["retention.ms"] == "7000000"
    assert [r["body"]["action"] for r in folder.records("outcome")[-2:]] == ["refresh", "forget"]
    state = json.loads((folder.path / "kafkaform.state.json").read_bytes())
    assert [row["attributes"]["config"] for row in state["objects"]] == [
        {"retention.ms": "7000000"}
    ]
    folder.done("audit", "verify")

    said = folder.run("plan", "-detailed-exitcode")
    assert said.code == 2 and "Changed outside" not in said.out
    folder.done("apply", "-auto-approve")
    assert folder.config("a")["retention.ms"] == "1000000"
    assert set(folder.topics()) == {"a", "b"}


def test_a_reviewed_refresh_is_applied_or_refused(folder: Folder) -> None:
    """The token of the plan applies exactly it; after one more change, the plan is stale."""
    folder.declare("a", more=CONFIG)
    folder.done("apply", "-auto-approve")
    folder.alter("a", "retention.ms", "7000000")
    token = folder.approval("-refresh-only")
    folder.done("plan", "-refresh-only", "-out=drift.kfplan")
    folder.alter("a", "retention.ms", "8000000")
    folder.fails(4, "apply", "-refresh-only", "--expect", token)
    folder.fails(4, "apply", "drift.kfplan")
    folder.alter("a", "retention.ms", "7000000")
    folder.done("apply", "drift.kfplan")
    assert "Already applied" in folder.done("apply", "-refresh-only", "--expect", token).text
