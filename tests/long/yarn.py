"""All tables of a build on YARN, in client mode with a root in HDFS, beside those of local mode."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from kafkaform.fleet.tables.definitions import TABLES
from kafkaform.fleet.tables.reader import Gold, read_current

from ..kit.fleet.tiny import in_order, land_in, landed
from ..kit.stores import minidfs
from ..spark.clusters import yarn
from .figures import Figures


def run(scale: float) -> Figures:
    """scale: of no meaning here, since there is one build."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        folder, dfs, cluster = (Path(home, name) for name in ("fleet", "dfs", "yarn"))
        dfs.mkdir()
        cluster.mkdir()
        landed(folder)
        with minidfs.serving(dfs) as store:
            root = f"{store}/fleet"
            land_in(root, folder)
            with yarn(cluster, store) as variables:
                make_build(root, "yarn", variables)
            made = read_tables(root)
        make_build(str(folder), "local[2]", {})
        wanted = read_tables(str(folder))
    rows = {"tables": len(made), "rows": sum(map(len, made.values()))}
    broken = [name for name in TABLES if made.get(name) != wanted[name]]
    return Figures("yarn", rows, tuple(broken), time.monotonic() - began)


def make_build(root: str, master: str, variables: Mapping[str, str]) -> None:
    words = ["fleet", "run", "--root", root, "--master", master, "--quiet"]
    environment = {**os.environ, **variables}
    subprocess.run([sys.executable, "-m", "kafkaform", *words], env=environment, check=True)


def read_tables(root: str) -> dict[str, list[str]]:
    """All rows of a build, without the columns that say which build made them from what."""
    gold = Gold(read_current(root))
    return {
        name: in_order(
            {column: value for column, value in row.items() if not column.startswith("_")}
            for row in gold.read_rows(f"select * from {name}")
        )
        for name in gold.build.tables
    }
