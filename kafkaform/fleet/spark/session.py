"""The Spark session: on this machine, on a cluster, or behind a Connect server."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct

from ...core.errors import KafkaformError
from . import java
from .class_archive import make_start_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
_EXCLUDED = (
    "io.delta:delta-kernel-*",
    "io.unitycatalog:*",
    "org.slf4j:slf4j-api",
    "org.apache.hadoop:*",
    "com.google.code.findbugs:*",
    "org.xerial.snappy:*",
    "org.scala-lang.modules:*",
)
"""Of what Delta's jars ask for: 2 of 33 are needed."""
_ALWAYS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""Can be set in a session that somebody else has started."""
_AT_START: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Else Java is told with each column where in Python it is named, for messages that we shorten.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_HERE: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""On one machine."""
_SERIAL = "-XX:+UseSerialGC"
_QUICK: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": f"{_SERIAL} -XX:TieredStopAtLevel=1 "
    "-XX:ReservedCodeCacheSize=256m -XX:NewSize=512m",
}
"""Java compiles quickly and not well, where planning takes longer than computing. It would give
what it compiles so 48 MB, and stop to compile when they are full, which is before a build ends; and
look for garbage, of which plans leave much, several times a second."""
_PLAIN: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Spark makes no code of its own and plans once, where that would take longer than it saves:
planning anew after each step makes twice as many jobs."""
_LARGE: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.extraJavaOptions": _SERIAL,
    "spark.driver.memory": "4g",
}
_MEMORY: Mapping[str, str] = {"spark.driver.memory": "2g"}
LARGE_BYTES = 64 * 2**20
"""So much new makes whatever is compiled be used often enough."""
_NAMED = (
    "functions",
    "PythonUtils",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
)
"""Java's classes that PySpark names for each column. It asks for them by name every time, and Java
then looks through all jars, of which PySpark alone has 277."""
WHOLE_SHARE = 6
"""What tables about the whole fleet cost for a byte of it, where all others cost so much."""
_TAIL_BYTES = 3000


class LandedBytes(Struct, frozen=True):
    """Bytes that have landed. new: of them, those that a build makes its tables of."""

    all: int = 0
    new: int = 0


class SparkPlace(Struct, frozen=True):
    """master: `local[N]`, `spark://…`, `yarn`, `k8s://…` or `sc://…` (Spark Connect); cache: a
    folder of the user's, for jars; jars: Delta's, by path or URL, where Maven cannot be reached;
    ivy: a settings file of Ivy that names a company's mirror; landed: what Java is tuned for on one
    machine; java: more words for it there, empty: to start from the classes that it has kept."""

    master: str
    cache: Path
    jars: tuple[str, ...] = ()
    ivy: Path | None = None
    landed: LandedBytes = LandedBytes()
    java: str = ""

    @property
    def connect(self) -> bool:
        return self.master.startswith("sc://")

    @property
    def local(self) -> bool:
        return self.master.startswith("local")


def build_session(place: SparkPlace) -> SparkSession:
    """A session that has Delta; under spark-submit the one that belongs to it.

    Raises KafkaformError with the end of Spark's log if it does not start, UsageError if there is
    no Java.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415  # the fleet extra has it, and it is slow to load

    builder: Any = SparkSession.builder.appName("kafkaform fleet")
    if place.connect:
        session: SparkSession = _start_session(builder.remote(place.master), place.master)
        for name, value in _ALWAYS.items():
            session.conf.set(name, value)
        return session
    for name, value in build_settings(place).items():
        builder = builder.config(name, value)
    if not is_submitted():
        builder = builder.master(place.master)
        _set_environment(place)
    started: SparkSession = _start_session(builder, place.master)
    _remember(started)
    return started


def _remember(session: Any) -> None:
    view = session._jvm
    for name in _NAMED:
        setattr(view, name, getattr(view, name))


def is_submitted() -> bool:
    """Whether spark-submit has started this process: its master, jars and memory then count."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def build_settings(place: SparkPlace) -> Mapping[str, str]:
    """What a session is started with."""
    if is_submitted():
        return {**_AT_START, **_ALWAYS}
    # Else every folder that somebody works in gets a folder for tables without a path.
    ours = {"spark.sql.warehouse.dir": str(place.cache / "warehouse"), **_choose_jars(place)}
    return {
        **_AT_START,
        **_ALWAYS,
        **(_choose_local_settings(place) if place.local else {}),
        **ours,
    }


def _choose_local_settings(place: SparkPlace) -> Mapping[str, str]:
    landed = place.landed
    chosen = {**_HERE, **_LARGE}
    if landed.new < LARGE_BYTES:
        chosen |= _QUICK
    if landed.new + landed.all / WHOLE_SHARE < LARGE_BYTES:
        chosen |= _PLAIN
    if landed.all < LARGE_BYTES:
        chosen |= _MEMORY
    if words := place.java or make_start_options(place.cache):
        chosen["spark.driver.extraJavaOptions"] += f" {words}"
    if "SPARK_DRIVER_MEMORY" in os.environ:
        del chosen["spark.driver.memory"]
    return chosen


def name_delta_package() -> str:
    """Delta for this Spark, as Maven names it."""
    minor = ".".join(version("pyspark").split(".")[:2])
    return f"io.delta:delta-spark_{minor}_2.13:{version('delta-spark')}"


def _choose_jars(place: SparkPlace) -> Mapping[str, str]:
    if place.jars:
        return {"spark.jars": ",".join(place.jars)}
    ivy = place.ivy or files(__package__).joinpath("ivysettings.xml")
    return {
        "spark.jars.packages": name_delta_package(),
        "spark.jars.excludes": ",".join(_EXCLUDED),
        "spark.jars.ivySettings": str(ivy),
        "spark.jars.ivy": str(place.cache / "ivy"),
    }


def _set_environment(place: SparkPlace) -> None:
    """What the Java process is to find when it starts."""
    os.environ["JAVA_HOME"] = str(java.find_java(place.cache).home)
    # Else workers for Arrow functions take the search path's Python.
    os.environ["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON") or sys.executable
    if place.local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


def _start_session(builder: Any, master: str) -> Any:
    """Raises KafkaformError."""
    with tempfile.TemporaryFile() as log:
        try:
            with _redirect_output(log), _keep_signals():
                return builder.getOrCreate()
        except Exception as error:
            # Spark raises whatever its parts raise: Java's, gRPC's, the system's.
            raise KafkaformError(
                f"Spark does not start on {master}: {_first_line(error)}{_read_tail(log)}",
                "`kafkaform fleet doctor` checks what Spark needs.",
            ) from error


@contextmanager
def _keep_signals() -> Iterator[None]:
    """PySpark would take Ctrl-C for itself, and whoever started it would not be told."""
    ours = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        here = threading.current_thread() is threading.main_thread()
        if here and ours is not None:  # else nobody's, or not Python's
            signal.signal(signal.SIGINT, ours)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _read_tail(log: IO[bytes]) -> str:
    end = log.seek(0, os.SEEK_END)
    log.seek(max(0, end - _TAIL_BYTES))
    text = log.read().decode("utf-8", "replace").strip()
    return f"\nThe end of its log:\n{text}" if text else ""


@contextmanager
def _redirect_output(log: IO[bytes]) -> Iterator[None]:
    """What this process and Java write meanwhile goes into the log; Java's does so for good."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    try:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, original in zip((1, 2), kept, strict=True):
            os.dup2(original, number)
            os.close(original)
