"""What a workspace keeps of its configuration once everything is evaluated."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest

from kafkaform.core.secret import Secret
from kafkaform.core.value import SecretRef
from kafkaform.workflow.import_all import read_tree
from kafkaform.workflow.workspace import open_workspace

TEXT = """
provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
}

variable "password" {
  type      = string
  sensitive = true
}

locals {
  names = { a = 1, b = 2 }
}

resource "kafka_topic" "all" {
  for_each   = local.names
  name       = each.key
  partitions = each.value
}
"""


@pytest.mark.parametrize("more", ["", 'output "id" { value = kafka_topic.all["a"].topic_id }\n'])
def test_blocks_go_and_secrets_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    """Only the variables are kept, unless an output waits for what a server sets; the secret of
    a variable is found either way."""
    Path(tmp_path, "main.kf.hcl").write_text(TEXT + more, "utf-8")
    monkeypatch.setenv("KF_VAR_password", "hush")
    with chdir(tmp_path):
        space = open_workspace()
    assert len(space.desired.declared) == 2
    [file] = space.configuration.tree.configuration
    kinds = {block.type for block in file.body.blocks}
    assert kinds == (
        {"provider", "variable", "locals", "resource", "output"} if more else {"variable"}
    )
    ref = SecretRef("variable", "password")
    assert space.configuration.find_secrets([ref]) == {ref: Secret("hush")}
    [text] = read_tree(space).configuration
    assert {"resource", "variable"} <= {block.type for block in text.body.blocks}
