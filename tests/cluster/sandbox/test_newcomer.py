"""A newcomer types what the README says, from the first broker to the last deletion."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)
README = Path(__file__).resolve().parents[3] / "README.md"
KAFKAFORM = f"{sys.executable} -m kafkaform"


def read_block(after: str, language: str) -> str:
    """The first code block of this language behind a text of the README."""
    rest = README.read_text(encoding="utf-8").partition(after)[2]
    found = re.search(rf"^```{language}\n(.*?)^```$", rest, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_readmes_commands_lead_to_an_empty_cluster(
    home: Path, own_brokers: None, tmp_path: Path
) -> None:
    """Sandbox, provider block, plan, apply, destroy: each command succeeds, and each file that they
    write is valid. Answers to questions are flags here."""
    topic = read_block("## Install and write a configuration", "hcl").partition("\n\n")[2]
    (tmp_path / "main.kf.hcl").write_text(f"{topic}{ACL}")
    commands = read_block("No Kafka at hand?", "sh")
    answers = {
        "kafkaform apply\n": "kafkaform apply --auto-approve\n",
        "kafkaform destroy ": 'kafkaform destroy --confirm "$ID" ',
        "kafkaform plan\n": f"kafkaform fmt --check\n{READ_ID}\nkafkaform plan --fail-on blocked\n",
    }
    for question, answer in answers.items():
        assert question in commands
        commands = commands.replace(question, answer)
    script = f'set -e\nkafkaform() {{ {KAFKAFORM} "$@"; }}\n{commands}'
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Apply complete: 2 added" in done.stdout
    assert "Apply complete: 0 added, 0 changed, 2 destroyed." in done.stdout
    assert json.loads((tmp_path / "kafkaform.state.json").read_text())["objects"] == []


READ_ID = (
    "ID=$(kafkaform describe cluster --json | "
    f"{sys.executable} -c 'import json, sys; print(json.load(sys.stdin)[\"cluster_id\"])')"
)
ACL = """
resource "kafka_acl" "reader" {
  resource_name       = "shop.orders"
  resource_type       = "Topic"
  acl_principal       = "User:ci"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
}
"""
"""The last ACL of its resource: without the authorizer's settings, nobody could delete it."""
