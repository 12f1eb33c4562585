"""Where Spark runs, on this computer alone: a standalone cluster and a Connect server from the
classes in its package, and YARN from those that Hadoop has for tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from kafkaform.fleet.spark import session
from kafkaform.fleet.spark.session import SparkSetup, make_start_options
from kafkaform.sandbox.record import get_cache_folder
from kafkaform.workflow.fleet.runs import add_jars

from ..kit.stores import minidfs

BIN = Path(pyspark.__file__).parent / "bin"
PATIENCE = 300.0
"""Seconds that a machine that does much else may take."""
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
YARN: Mapping[str, str] = {
    "yarn.nodemanager.resource.memory-mb": "6144",
    "yarn.nodemanager.resource.cpu-vcores": "4",
    # Both count what a process has reserved, which for Java is more than it uses.
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    # A NodeManager takes no work where the disk is fuller than this.
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
    "yarn.scheduler.minimum-allocation-mb": "256",
    # The jar lacks the file with the scheduler's defaults.
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.capacity": "100",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.root.default.state": "RUNNING",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.8",
}
ON_YARN: Mapping[str, str] = {
    # Otherwise each job uploads all of Spark, 430 MB.
    "spark.yarn.jars": f"local:{BIN.parent}/jars/*",
    "spark.yarn.am.memory": "512m",
    "spark.executor.instances": "1",
    "spark.executor.cores": "2",
}
Running = tuple[Path, subprocess.Popen[bytes]]
"""Its log, and itself."""


def environment() -> Mapping[str, str]:
    """Of every process here."""
    return {
        **os.environ,
        "JAVA_HOME": str(session.find_java(get_cache_folder()).home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "768m",
        "SPARK_DAEMON_JAVA_OPTS": f"{SMALL} {make_start_options(get_cache_folder())}",
    }


def delta() -> list[str]:
    """What makes spark-submit find Delta Lake, as a cluster's own settings would."""
    place = add_jars(SparkSetup("spark://", get_cache_folder()))
    wanted = session.build_settings(place)
    ours = ("spark.jars", "spark.sql.extensions", "spark.sql.catalog", "spark.sql.warehouse")
    given = {name: value for name, value in wanted.items() if name.startswith(ours)}
    return [
        word
        for name, value in {**given, **small()}.items()
        for word in ("--conf", f"{name}={value}")
    ]


def small() -> Mapping[str, str]:
    """Settings for little memory and small inputs."""
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"{SMALL} -XX:NewSize=512m "
        f"{make_start_options(get_cache_folder())}",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": f"{SMALL} {make_start_options(get_cache_folder())}",
        "spark.ui.enabled": "false",
        **session._SIMPLE_PLANS,
    }


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A master and one worker; the master's URL."""
    here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with _running(folder / "master.log", "spark-class", MASTER, *here) as master:
        url = _told(master, r"Starting Spark master at (spark://\S+)")
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"))
        log = folder / "worker.log"
        with _running(log, "spark-class", WORKER, *here, *size, url) as worker:
            _told(worker, r"Successfully registered with (master)")
            yield url


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Connect server with a Spark of its own; its URL."""
    where = {"port": "0", "address": "127.0.0.1"}
    given = [f"--conf=spark.connect.grpc.binding.{name}={value}" for name, value in where.items()]
    words = ("--class", CONNECT, "--master", "local[2]", *delta(), *given)
    with _running(folder / "connect.log", "spark-submit", *words) as server:
        yield f"sc://{_told(server, r'Spark Connect server started at: (127.0.0.1:[0-9]+)')}"


@contextmanager
def yarn(folder: Path, store: str) -> Iterator[Mapping[str, str]]:
    """A ResourceManager and a NodeManager; the variables that lead Hadoop's and Spark's clients to
    them. folder: an empty one; store: the file system of the cluster."""
    spark = BIN.parent
    log = folder / "yarn.log"
    with log.open("w") as output:
        port, process = launch_gateway(
            jarpath=str(next(spark.glob("jars/py4j-*.jar"))),
            classpath=os.pathsep.join(map(str, minidfs.class_path("dfs", "yarn"))),
            javaopts=[*minidfs.SMALL, f"-Dtest.build.data={folder}", f"-Djava.io.tmpdir={folder}"],
            java_path=f"{environment()['JAVA_HOME']}/bin/java",
            die_on_exit=True,
            redirect_stdout=output,
            redirect_stderr=output,
            cwd=str(folder),
            return_proc=True,
        )
        try:
            gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
            hadoop = gateway.jvm.org.apache.hadoop
            conf = hadoop.yarn.conf.YarnConfiguration()
            for name, value in {**YARN, "fs.defaultFS": store}.items():
                conf.set(name, value)
            cluster = hadoop.yarn.server.MiniYARNCluster("tests", 1, 1, 1)
            cluster.init(conf)
            cluster.start()
            assert cluster.waitForNodeManagersToConnect(int(PATIENCE * 1000)), log.read_text()
            site = gateway.jvm.java.io.FileOutputStream(str(folder / "yarn-site.xml"))
            cluster.getConfig().writeXml(site)
            site.close()
            defaults = {**small(), **ON_YARN}
            lines = (f"{name} {value}\n" for name, value in defaults.items())
            (folder / "spark-defaults.conf").write_text("".join(lines))
            try:
                yield dict.fromkeys(("HADOOP_CONF_DIR", "SPARK_CONF_DIR"), str(folder))
            finally:
                # Containers outlive a NodeManager that dies.
                cluster.stop()
                gateway.shutdown()
        finally:
            # Java ends when its standard input does.
            process.stdin.close()
            process.wait(PATIENCE)


def submit(
    master: str,
    script: Path,
    *words: str,
    options: tuple[str, ...] = (),
    more: Mapping[str, str] = {},
) -> subprocess.CompletedProcess[str]:
    """Run a program by spark-submit. options: of spark-submit; more: variables."""
    command = [BIN / "spark-submit", "--master", master, *options, *delta(), script, *words]
    return subprocess.run(
        command,
        env={**environment(), **more},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@contextmanager
def _running(log: Path, program: str, *words: str) -> Iterator[Running]:
    """A program of Spark's, ended with all that it has started."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [BIN / program, *words],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield log, process
    finally:
        # The group: a worker's executors outlive it for a while.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _told(running: Running, pattern: str) -> str:
    """What a process says sooner or later."""
    found: list[str] = []

    def said() -> bool:
        found[:] = re.findall(pattern, running[0].read_text(errors="replace"))
        return bool(found)

    _until(running, said)
    return found[0]


def _until(running: Running, done: Callable[[], bool]) -> None:
    log, process = running
    deadline = time.monotonic() + PATIENCE
    while not done():
        gone = process.poll() is not None
        assert not gone and time.monotonic() < deadline, log.read_text(errors="replace")[-3000:]
        time.sleep(0.2)
