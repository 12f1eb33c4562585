"""Outputs of attributes that a block leaves out, on a real broker."""

from __future__ import annotations

import json
from typing import Any

from ...kit.commands.folder import Folder

OUTPUTS = """
output "counts" {
  value = [kafka_topic.t.partitions, kafka_topic.t.replication_factor, kafka_topic.t.config]
}

output "assignment" {
  value = kafka_topic.t.replica_assignment
}
"""


def show_outputs(folder: Folder) -> dict[str, Any]:
    found = json.loads(folder.done("output", "-json").out)
    return {name: output["value"] for name, output in found.items()}


def test_outputs_have_what_the_cluster_has(folder: Folder) -> None:
    """Before the apply the cluster's defaults, afterwards the live values; a plan with nothing to
    do shows no other ones, and a change from outside is seen."""
    block = f'resource "kafka_topic" "t" {{\n  name = "{folder.prefix}t"\n  %s\n}}\n'
    folder.write("topics.kf.hcl", block % "" + OUTPUTS)
    text = folder.done("plan", "-out=p.kfplan").out
    assert "counts = [1, 1, {}]" in text
    assert "assignment = (known after apply)" in text
    shown = json.loads(folder.done("show", "-json", "p.kfplan").out)["output_changes"]
    assert shown["counts"]["after"] == [1, 1, {}]
    assert shown["assignment"]["after_unknown"] is True
    folder.done("apply", "-auto-approve")
    assert show_outputs(folder) == {"counts": [1, 1, {}], "assignment": [[1]]}
    assert "Outputs" not in folder.done("plan", "--detailed-exitcode").out
    # Somebody else sets a config, which the block ignores.
    folder.alter("t", "retention.ms", "1000")
    folder.write("topics.kf.hcl", block % "lifecycle { ignore_changes = [config] }" + OUTPUTS)
    folder.run("apply", "-auto-approve")
    assert show_outputs(folder)["counts"] == [1, 1, {"retention.ms": "1000"}]
    assert "Outputs" not in folder.done("plan", "--detailed-exitcode").out
