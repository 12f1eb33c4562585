"""Connectors in a snapshot of the fleet: declared, recorded and live."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kafkaform.cli.app import run_command_line
from kafkaform.core.errors import ConfigurationError
from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.fleet.register_file import read_fleet
from kafkaform.workflow.fleet.snapshot import examine_register, take_snapshot

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


def test_what_no_worker_can_prove_is_no_failure(folder: ConnectFolder) -> None:
    """A daily job ends with 0, and its output says what may be missing; a worker that does not
    answer is a failure."""
    folder.declare(connector("a"))
    folder.here.run("apply", "-auto-approve")
    path = Path(folder.here.write("fleet.hcl", FLEET.format(url=folder.served.url)))
    summary = take_snapshot(read_fleet(path, Inputs()))
    assert summary.exit_code == 0, list(summary.render_lines())
    line = next(summary.render_lines())
    assert re.search(r"read .*nothing can prove that it is all: kafka_connect_connector", line)
    (cluster,) = summary.make_document()["clusters"]
    assert (cluster["status"], cluster["unseen"], cluster["provable"]) == (
        *("read", ["kafka_connect_connector"]),
        False,
    )
    (meta,) = (path.parent / "data/landing/live").glob("*/*.meta.json")
    landed = json.loads(meta.read_text())
    assert (landed["complete"], landed["coverage"]) == (
        True,
        {"kafka_connect_connector": "visible_only"},
    )
    path.write_text(FLEET.format(url="http://127.0.0.1:9"))
    summary = take_snapshot(read_fleet(path, Inputs()))
    assert (summary.exit_code, summary.clusters[0].status) == (5, "failed")


LOGIN = 'url      = "{url}"\n    username = "ci"\n    password = secret_env("WORKERS_PASSWORD")'


def test_missing_secrets_are_named_before_the_work(
    folder: ConnectFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If no cluster has its own, nothing is read; if one has, the others are named beforehand. The
    doctor says the same."""
    text = FLEET.replace('url = "{url}"', LOGIN).format(url=folder.served.url)
    path = Path(folder.here.write("fleet.hcl", text))
    monkeypatch.chdir(path.parent)
    monkeypatch.delenv("WORKERS_PASSWORD", raising=False)
    assert run_command_line(["fleet", "snapshot"]) == 1
    told = "The secret env:WORKERS_PASSWORD is missing or empty"
    assert told in " ".join(capsys.readouterr().err.split())
    assert not (path.parent / "data").exists()
    (check,) = examine_register(path)
    assert (check.good, told in check.finding) == (False, True)
    assert "Set the environment variable WORKERS_PASSWORD" in check.advice
    plain = FLEET[FLEET.index("cluster") : FLEET.index("state")].replace('"workers"', '"open"')
    path.write_text(text + plain.format(url=folder.served.url))
    assert run_command_line(["fleet", "snapshot"]) == 5
    streams = capsys.readouterr()
    words = " ".join(streams.err.replace("│", " ").split())
    assert told in words and "The other clusters are read." in words
    assert re.search(r"workers +failed", streams.out) and re.search("open +read", streams.out)
    monkeypatch.setenv("WORKERS_PASSWORD", "of-tests")
    (check,) = examine_register(path)
    assert (check.good, check.finding) == (True, "every cluster has its secrets")
    assert list(examine_register(path.parent / "none.hcl")) == []


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
