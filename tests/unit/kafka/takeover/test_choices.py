"""`import --from`: which tool, provider block and cluster, and what is declared already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkaform.core.errors import UsageError
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.generate.files import GeneratedConfiguration
from kafkaform.workflow.transfer.other_tools import ForeignSource, take_over

PROVIDERS = """
provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
}
provider "kafka" {
  alias             = "eu"
  bootstrap_servers = ["localhost:9093"]
}
"""


def write_state(folder: Path, **topics: str) -> Path:
    """A state with a topic for each name: topic=alias."""
    resources = [
        {
            "mode": "managed",
            "type": "kafka_topic",
            "name": name,
            "provider": f'provider["registry.terraform.io/mongey/kafka"]{alias}',
            "instances": [{"attributes": {"name": name, "partitions": 1, "replication_factor": 1}}],
        }
        for name, alias in topics.items()
    ]
    path = folder / "x.tfstate"
    path.write_text(json.dumps({"version": 4, "resources": resources}))
    return path


def run(
    folder: Path,
    path: Path,
    tool: str = "tfstate",
    instance: str | None = None,
    only: tuple[str, ...] = (),
) -> GeneratedConfiguration:
    configuration = read_configuration(folder, Inputs())
    return take_over(
        configuration, ForeignSource(tool, (path,), only), [instance] if instance else []
    )


def test_one_of_several_clusters(tmp_path: Path) -> None:
    """Objects of two clusters are never mixed: one has to be chosen, and the others are named."""
    (tmp_path / "main.kf.hcl").write_text(PROVIDERS)
    state = write_state(tmp_path, here="", there=".eu")
    with pytest.raises(UsageError, match="objects of 2 systems: kafka, kafka.eu"):
        run(tmp_path, state, instance="kafka")
    with pytest.raises(UsageError, match="nothing that the files name"):
        run(tmp_path, state, instance="kafka", only=("kafka.us",))
    made = run(tmp_path, state, instance="kafka.eu", only=("kafka.eu",))
    assert made.count == 1
    assert "provider = kafka.eu" in " ".join(made.text.split())
    assert '"there"' in made.text
    assert '"here"' not in made.text
    assert "it is in kafka, not in kafka.eu" in "".join(made.gaps)


def test_one_of_several_provider_blocks(tmp_path: Path) -> None:
    """With two blocks one has to be named; a wrong name lists them; without one there is no way."""
    state = write_state(tmp_path, here="")
    (tmp_path / "main.kf.hcl").write_text("locals {\n  a = 1\n}\n")
    with pytest.raises(UsageError, match='no provider "kafka" block'):
        run(tmp_path, state)
    (tmp_path / "main.kf.hcl").write_text(PROVIDERS)
    with pytest.raises(UsageError, match="--provider is needed: the folder has kafka, kafka.eu"):
        run(tmp_path, state)
    with pytest.raises(UsageError, match="not in this folder"):
        run(tmp_path, state, instance="kafka.us")


def test_a_tool_that_is_not_known(tmp_path: Path) -> None:
    """The message suggests the tool that was meant."""
    (tmp_path / "main.kf.hcl").write_text(PROVIDERS)
    with pytest.raises(UsageError) as caught:
        run(tmp_path, tmp_path, tool="strimzy")
    assert "strimzi" in caught.value.advice


def test_what_is_declared_already(tmp_path: Path) -> None:
    """Beside Terraform's own files only import blocks are written, for the objects of the state
    alone: what is declared and not in the state is left to the plan."""
    (tmp_path / "main.tf").write_text(
        'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
        'resource "kafka_topic" "all" {\n  for_each = toset(["mine", "others"])\n'
        "  name = each.key\n  partitions = 1\n  replication_factor = 1\n}\n"
    )
    made = run(tmp_path, write_state(tmp_path, mine=""))
    assert "resource" not in made.text
    assert made.text.count("import {") == 1
    assert 'to = kafka_topic.all["mine"]' in made.text
