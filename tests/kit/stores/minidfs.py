"""HDFS on this computer: a NameNode and a DataNode in one process, on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from kafkaform.core.errors import ConnectError
from kafkaform.core.progress import ignore_event
from kafkaform.fleet.spark import session
from kafkaform.sandbox import jars
from kafkaform.sandbox.record import get_cache_folder

LISTS = {name: Path(__file__).with_name(f"mini{name}.txt") for name in ("dfs", "yarn")}
MANAGER = "org.apache.hadoop.test.MiniDFSClusterManager"
SPARKS = ("hadoop-client-*.jar", "slf4j-api-*.jar", "jcl-over-slf4j-*.jar", "log4j-*.jar")
SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")
PATIENCE = 120.0


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Its address. folder: an empty one."""
    details, log = folder / "details.json", folder / "log"
    where = (f"-Dtest.build.data={folder}/data", f"-Djava.io.tmpdir={folder}")
    words = [str(session.find_java(get_cache_folder()).home / "bin/java"), *SMALL, *where]
    words += ["-cp", os.pathsep.join(map(str, class_path("dfs"))), MANAGER, "-format"]
    words += ["-datanodes", "1", "-D", "dfs.replication=1", "-writeDetails", str(details)]
    with (
        log.open("wb") as output,
        subprocess.Popen(words, cwd=folder, stdout=output, stderr=output) as process,
    ):
        try:
            until = time.monotonic() + PATIENCE
            while not (details.exists() and details.read_text().endswith("}")):
                assert process.poll() is None and time.monotonic() < until, log.read_text()[-3000:]
                time.sleep(0.1)
            yield f"hdfs://127.0.0.1:{json.loads(details.read_text())['namenode_port']}"
        finally:
            process.kill()


def class_path(*names: str) -> Iterator[Path]:
    """The jars of these lists, and what Spark has of Hadoop. names: keys of LISTS."""
    lines = (line for name in names for line in jars.split_list(LISTS[name].read_text()))
    pinned = tuple(map(jars.parse_jar, lines))
    try:
        yield from jars.ensure_jars(pinned, ignore_event, jars.open_repository)
    except ConnectError as error:
        pytest.skip(f"the jars of Hadoop ({', '.join(names)}) are not here: {error}")
    spark = find_spec("pyspark")
    assert spark is not None and spark.origin is not None
    for pattern in SPARKS:
        yield from (Path(spark.origin).parent / "jars").glob(pattern)
