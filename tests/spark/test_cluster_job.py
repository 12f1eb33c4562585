"""The same build by spark-submit on a standalone cluster, behind a Connect server, and on YARN."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaform.fleet.tables.reader import Gold, read_current

from ..kit.fleet.copied_log import SETTINGS, Copy
from ..kit.fleet.tiny import ONLY, expected, land_in, landed, rows
from ..kit.stores import minidfs
from .clusters import PATIENCE, connect_server, standalone, submit, yarn

GOLDEN, LINEAGE = Path(__file__).parents[1] / "cases/audit/golden.jsonl", "0d9c6f5e-lineage"
JOB = Path(__file__).parents[2] / "examples" / "fleet" / "spark" / "fleet_job.py"


@pytest.mark.usefixtures("own_spark")
def test_a_cluster_makes_the_same_tables(tmp_path: Path) -> None:
    """spark-submit brings master, jars and sizes; executors are other processes."""
    root = landed(tmp_path / "fleet")
    with standalone(tmp_path) as master:
        done = submit(master, JOB, "run", "--root", str(root), *ONLY, "--quiet")
        assert list(tmp_path.glob("work/app-*/0")), "no executor has run"
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Build " in done.stdout
    assert rows(str(root)) == expected()


@pytest.fixture
def copy(broker: Any) -> Iterator[Copy]:
    made = Copy(broker)
    yield made
    made.remove()


@pytest.mark.usefixtures("own_spark")
def test_a_connect_server_makes_the_same_tables(
    copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process has no Java then, what it writes others than Spark can read, and topics are
    read by the server's workers, which know themselves how to reach the brokers."""
    root, golden = landed(tmp_path / "fleet"), GOLDEN.read_bytes().splitlines()
    copy.publish(LINEAGE, golden)
    monkeypatch.setenv(SETTINGS, json.dumps(copy.native))
    words = ("fleet", "run", "--root", str(root), "--from-topic", copy.name, "--json", *ONLY)
    with connect_server(tmp_path) as master:
        done = subprocess.run(
            [sys.executable, "-m", "kafkaform", *words, "--master", master],
            env={**os.environ, "JAVA_HOME": str(tmp_path / "none"), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    said = (tmp_path / "connect.log").read_text()
    assert done.returncode == 0, f"{done.stderr[-3000:]}\n{said[-3000:]}"
    assert copy.broker.admin_password not in done.stdout + done.stderr + said
    logs = [path.read_text() for path in root.glob("tables/*/*/_delta_log/*.json")]
    # Text that a Connect client has typed has a collation by name, which only Spark can read.
    assert logs and not [text for text in logs if "collat" in text.lower()]
    assert rows(str(root)) == expected()
    sql = (
        f"select count(*) as n, count(distinct seq) as m from audit_raw where lineage = '{LINEAGE}'"
    )
    assert Gold(read_current(str(root))).read_rows(sql) == [{"n": len(golden), "m": len(golden)}]


@pytest.mark.usefixtures("own_spark")
def test_yarn_makes_the_same_tables(tmp_path: Path) -> None:
    """From here in client mode. In cluster mode the driver runs in a container, too, with a Python
    that came as an archive."""
    folder = landed(tmp_path / "fleet")
    for name in ("dfs", "yarn"):
        (tmp_path / name).mkdir()
    with (
        minidfs.serving(tmp_path / "dfs") as store,
        yarn(tmp_path / "yarn", store) as variables,
    ):
        client, cluster = f"{store}/client", f"{store}/cluster"
        for root in (client, cluster):
            land_in(root, folder)
        words = ("fleet", "run", "--root", client, "--master", "yarn", *ONLY, "--quiet")
        done = subprocess.run(
            [sys.executable, "-m", "kafkaform", *words],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert rows(client) == expected()
        options = ("--deploy-mode", "cluster", "--archives", f"{pack_python(tmp_path)}#fleet")
        python = {"PYSPARK_PYTHON": "./fleet/bin/python"}
        job = ("run", "--root", cluster, *ONLY, "--quiet")
        done = submit("yarn", JOB, *job, options=options, more={**variables, **python})
        assert done.returncode == 0, done.stderr[-3000:]
        assert rows(cluster) == expected()


def pack_python(folder: Path) -> Path:
    """A virtual environment as an archive. It reads the packages of this one, which has 1 GB."""
    venv.create(folder / "fleet-python", with_pip=False, symlinks=True)
    (packages,) = folder.glob("fleet-python/lib/python*/site-packages")
    here = sysconfig.get_path("purelib")
    (packages / "tests.pth").write_text(f"import site; site.addsitedir({here!r})")
    archive = folder / "fleet.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder / "fleet-python", ".")
    return archive
