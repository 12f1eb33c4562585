"""The same build on this computer, by spark-submit on a standalone cluster, and behind Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkaform.fleet.datasets import DATASETS
from kafkaform.fleet.driver import Options, run
from kafkaform.fleet.folder import Folder
from kafkaform.fleet.gold import Gold, current

from .clusters import connect_server, standalone, submit
from .landings import Landing, log, row, step

pytestmark = pytest.mark.spark

TABLES = ("live", "effective_permissions")
"""What is compared: maps from landing files, and what an Arrow function makes of them."""
ACL = {
    "acl_principal": "User:ci",
    "acl_host": "*",
    "acl_operation": "Read",
    "acl_permission_type": "Allow",
    "resource_type": "Topic",
    "resource_name": "orders",
    "resource_pattern_type_filter": "Prefixed",
}
SCRIPT = """\
import sys

from kafkaform.cli.app import main

main(["fleet", *sys.argv[1:]])
"""


def landed(root: Path) -> Path:
    """Two clusters, a state and its log."""
    landing = Landing(root / "landing")
    landing.register(0, clusters=[{"name": "a"}, {"name": "b"}])
    topic = row("kafka_topic", "orders", {"partitions": "2"})
    acl = row("kafka_acl", "|".join(ACL.values()), ACL)
    for name in "ab":
        covered = {"kafka_topic": "complete", "kafka_acl": "complete"}
        landing.snapshot("live", name, 1, [topic, acl], scope_id=f"scope-{name}", coverage=covered)
    own = {**topic, "instance": "kafka", "scope_id": "scope-a", "address": "kafka_topic.orders"}
    landing.snapshot("state", "l", 1, [own], scopes={"kafka": "scope-a"})
    landing.audit("l", 1, log("l", [("intent", "r", step("orders"))]))
    return root


def rows(root: Path) -> dict[str, list[str]]:
    """All that the build says, in an order of its own."""
    gold = Gold(current(str(root)))
    return {name: sorted(map(_text, gold.rows(f"select * from {name}"))) for name in TABLES}


def _text(found: dict[str, Any]) -> str:
    return json.dumps(found, default=str, sort_keys=True)


@pytest.fixture(scope="module")
def local(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    root = landed(tmp_path_factory.mktemp("local"))
    run(lambda: spark, Folder(root), str(root), DATASETS, Options("1", only=TABLES))
    found = rows(root)
    assert all(found.values())
    return found


def test_a_cluster_makes_the_same_tables(local: dict[str, list[str]], tmp_path: Path) -> None:
    """spark-submit brings master, jars and sizes; executors are other processes."""
    root, script = landed(tmp_path / "fleet"), tmp_path / "job.py"
    script.write_text(SCRIPT)
    with standalone(tmp_path) as master:
        only = (word for name in TABLES for word in ("--only", name))
        done = submit(master, script, "run", "--root", str(root), *only, "--quiet")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Build " in done.stdout
    assert rows(root) == local


def test_a_connect_server_makes_the_same_tables(
    local: dict[str, list[str]], tmp_path: Path
) -> None:
    """This process has no Java then."""
    root = landed(tmp_path / "fleet")
    only = [word for name in TABLES for word in ("--only", name)]
    with connect_server(tmp_path) as master:
        done = subprocess.run(
            [sys.executable, "-m", "kafkaform", "fleet", "run", "--root", root, "--json", *only]
            + ["--master", master],
            env={**os.environ, "JAVA_HOME": str(tmp_path / "none"), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert set(TABLES) <= json.loads(done.stdout)["tables"].keys()
    assert rows(root) == local
