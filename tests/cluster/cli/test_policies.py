"""Policies over changes of a real cluster: what it says about its topics decides."""

from __future__ import annotations

from pathlib import Path

from ...kit.commands.folder import Folder
from ...kit.kafka.sessions import produce

RULES = """
policy_set "kafka" {
  enable   = ["no_deletion_with_records", "min_in_sync_replicas"]
  settings = { min_in_sync_replicas = 1 }
}

policy "this_cluster" {
  condition = change.cluster == "CLUSTER"
  message   = "not here"
}
"""
GONE = "removed {\n  from = kafka_topic.NAME\n  lifecycle {\n    destroy = true\n  }\n}\n"


def test_policies_on_a_cluster(folder: Folder) -> None:
    """A topic with records is not deleted, an empty one is; the approval names the folder."""
    rules = folder.path / "rules"
    rules.mkdir()
    text = RULES.replace("CLUSTER", folder.broker.cluster_id)
    (rules / "a.kfpolicy.hcl").write_text(text, encoding="utf-8")
    folder.declare("full", "empty", "kept", more='config = { "min.insync.replicas" = "1" }')
    # With one replica, min.insync.replicas cannot be less than the replication factor.
    said = folder.fails(8, "plan", "--policy", "rules")
    assert "policy min_in_sync_replicas: min.insync.replicas of" in said
    assert "must be at least 1, and less than the number of replicas (1)" in said
    folder.done("apply", "--auto-approve")

    produce(folder.broker, f"{folder.prefix}full", 1)
    kept = folder.topic("kept", more='config = { "min.insync.replicas" = "1" }')
    folder.write("topics.kf.hcl", kept + GONE.replace("NAME", "full"))
    said = folder.fails(8, "plan", "--policy", str(rules))
    assert f"policy no_deletion_with_records: {folder.prefix}full has up to 1 records" in said
    assert "this_cluster" not in said

    gone = GONE.replace("NAME", "empty")
    full = folder.topic("full", more='config = { "min.insync.replicas" = "1" }')
    folder.write("topics.kf.hcl", kept + full + gone)
    approval = folder.approval("--policy", "rules")
    assert "what would be done differs" in folder.fails(4, "apply", "--expect", approval)
    folder.done("apply", "--expect", approval, "--policy", "rules")
    assert set(folder.topics()) == {"full", "kept"}
    assert Path("kafkaform.state.json").exists()
