"""A root in an object store: landing, lock, manifests and tables, by Spark and without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.errors import ConnectError
from kafkaform.core.progress import ignore_event
from kafkaform.sandbox import jars

from ..kit.fleet.hadoop_store import JARS, Wide, serving
from ..kit.fleet.lake import publish
from ..kit.fleet.tiny import ONLY, expected, landed
from ..kit.stores import s3

ROOT = "s3://bucket/fleet"
PATIENCE = 300.0
SHOW = (
    "import json, sys; from tests.kit.fleet.tiny import rows; print(json.dumps(rows(sys.argv[1])))"
)
DEFAULTS = """\
spark.jars                                {jars}
spark.hadoop.fs.s3a.endpoint              {endpoint}
spark.hadoop.fs.s3a.endpoint.region       us-east-1
spark.hadoop.fs.s3a.path.style.access     true
spark.hadoop.fs.s3a.connection.ssl.enabled false
"""


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wide]:
    """What is in `bucket` at the address of the environment."""
    made = Wide()
    with serving(made) as address:
        for name, text in {**s3.ENVIRONMENT, "AWS_ENDPOINT_URL": address}.items():
            monkeypatch.setenv(name, text)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        yield made


def put(folder: Path, bucket: Wide) -> None:
    """All files of a root."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            key = f"fleet/{path.relative_to(folder).as_posix()}"
            bucket.serve(s3.Request("PUT", key, {}, {}, path.read_bytes()))


def fleet(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kafkaform", "fleet", *words, "--root", ROOT],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def rows() -> Any:
    """What the current build says. Another process asks: delta-rs lets no other thread of its own
    run while it waits for a store, and the store is one."""
    words = [sys.executable, "-c", SHOW, ROOT]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def queried(sql: str) -> list[dict[str, Any]]:
    """By the command."""
    done = fleet("query", sql, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


@pytest.mark.slow("starts three processes")
def test_a_build_in_a_store_is_read_without_spark(tmp_path: Path, bucket: Wide) -> None:
    """The commands that read take its address; `doctor` writes there and leaves nothing."""
    registered = {"cluster": "a", "registered": True, "status": "read", "coverage": {"x": "y"}}
    publish(tmp_path, "b1", {"cluster": [registered]})
    put(tmp_path, bucket)
    before = dict(bucket.objects)
    sql = "select cluster, coverage from cluster"
    assert queried(sql) == [{"cluster": "a", "coverage": {"x": "y"}}]
    complete, promise = "Build b1: coverage complete", "refuses conflicting writes"
    for command, told in (("status", complete), ("doctor", promise)):
        done = fleet(command)
        assert done.returncode == 0 and told in done.stdout, done.stdout + done.stderr
    assert bucket.objects == before


@pytest.fixture
def hadoop(tmp_path: Path, bucket: Wide) -> Path:
    """A folder with `spark-defaults.conf` that leads Spark to the store."""
    pinned = tuple(jars.parse_jar(line) for line in JARS.read_text().splitlines() if line[0] != "#")
    try:
        found = jars.ensure_jars(pinned, ignore_event, jars.open_repository)
    except ConnectError as error:
        pytest.skip(f"Hadoop's jars for S3 are not here: {error}")
    given = DEFAULTS.format(jars=",".join(map(str, found)), endpoint=os.environ["AWS_ENDPOINT_URL"])
    (tmp_path / "spark-defaults.conf").write_text(given)
    return tmp_path


@pytest.mark.usefixtures("own_spark")
def test_a_build_is_made_in_a_store(bucket: Wide, hadoop: Path, tmp_path: Path) -> None:
    """Landing, lock, tables and manifest are in the bucket and nowhere else; the lock is no build.
    A second run finds nothing new."""
    put(landed(tmp_path / "first"), bucket)
    done = fleet("run", "--json", *ONLY, "--keep", "1", SPARK_CONF_DIR=str(hadoop))
    assert done.returncode == 0, done.stderr[-3000:]
    assert rows() == expected()
    again = fleet("run", "--json", *ONLY, PATH="", JAVA_HOME="")
    assert json.loads(again.stdout)["skipped"], again.stderr
    assert "Build " in fleet("status").stdout
