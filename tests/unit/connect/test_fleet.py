"""Connectors in a snapshot of the fleet: declared, recorded and live."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.errors import ConfigurationError
from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.fleet.register_file import read_fleet
from kafkaform.workflow.fleet.snapshot import take_snapshot

from ...kit.connect.folder import ConnectFolder, connector

FLEET = """
fleet {{
  root = "data"
}}
cluster "workers" {{
  provider = "kafka_connect"
  env      = "test"
  connection {{
    url = "{url}"
  }}
}}
state "here" {{
  folder = "."
}}
rule "paused" {{
  severity = "low"
  kind     = "kafka_connect_connector"
  where    = "attrs['state'] = 'paused'"
  message  = "it copies nothing"
}}
"""


def read_landed(folder: Path, source: str) -> dict[str, Any]:
    """Key -> row of the only subject of a source."""
    (rows,) = (folder / "data/landing" / source).glob("*/*.jsonl")
    found = map(json.loads, rows.read_text().splitlines())
    return {row["key"]: row for row in found}


def test_connectors_land_as_declared_recorded_and_live(folder: ConnectFolder) -> None:
    """Under the id of their Connect cluster, with equal attributes where nothing has drifted, and
    without a secret."""
    secret = 'secret_config = { "db.password" = secret_env("CONNECT_SECRET") }'
    folder.declare(connector("a"), connector("b", secret))
    folder.here.run("apply", "-auto-approve")
    folder.workers.connectors["a"].config["file"] = "/elsewhere"
    path = Path(folder.here.write("fleet.hcl", FLEET.format(url=folder.served.url)))
    summary = take_snapshot(read_fleet(path, Inputs()))
    assert not [error for state in summary.states for error in state.errors]
    root = path.parent
    live, recorded, declared = (read_landed(root, one) for one in ("live", "state", "desired"))
    assert live.keys() == recorded.keys() == declared.keys() == {"a", "b"}
    assert {row["scope_id"] for found in (live, recorded, declared) for row in found.values()} == {
        live["a"]["scope_id"]
    }
    assert live["b"]["attrs"]["config.file"] == declared["b"]["attrs"]["config.file"]
    assert live["a"]["attrs"]["config.file"] == "/elsewhere"
    assert declared["a"]["attrs"]["config.file"] == "/dev/null"
    landed = [one.read_text() for one in (root / "data").rglob("*") if one.is_file()]
    assert not [text for text in landed if "a-password-of-tests" in text]


def test_an_unknown_provider_is_a_fault_with_its_place(folder: ConnectFolder) -> None:
    """And so is a kind that no installed provider has."""
    text = FLEET.format(url=folder.served.url)
    path = Path(folder.here.write("fleet.hcl", text.replace('"kafka_connect"', '"kafka_conect"')))
    with pytest.raises(ConfigurationError) as found:
        read_fleet(path, Inputs())
    (fault,) = found.value.diagnostics
    assert "kafka_conect" in fault.summary and str(fault.range) == "fleet.hcl:6:3"
    path.write_text(text.replace("kafka_connect_connector", "kafka_connect_task"))
    with pytest.raises(ConfigurationError) as found:
        read_fleet(path, Inputs())
    (fault,) = found.value.diagnostics
    assert fault.summary == 'No object has the kind "kafka_connect_task"'
