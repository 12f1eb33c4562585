"""Prepare this computer for Spark: download Delta Lake's jars and archive Java's classes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from msgspec.structs import replace

from ...core.errors import UsageError
from ...core.progress import Progress, Reporter
from . import java
from .class_archive import SPARK, find_archive, make_keep_options, make_unable_error
from .session import SparkSetup, build_session

_COMMITS = 3
_PATIENCE_SECONDS = 300


def prepare(setup: SparkSetup, report: Reporter) -> Path:
    """Write the archive, replacing an older one; return its file.

    Raises UsageError: Spark does not run on this computer, or there is no Java; KafkaformError:
    Java cannot write an archive, or Spark does not start.
    """
    if not setup.local:
        raise UsageError(
            f"{setup.master} is not this computer; only this computer can be prepared",
            "Leave out --master.",
        )
    java_used = java.find_java(setup.cache)
    archive = find_archive(setup.cache, java_used)
    archive.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # On the same disk as the archive, so that the finished file can be renamed into place.
    with tempfile.TemporaryDirectory(dir=archive.folder) as folder:
        new = Path(folder, SPARK)
        report(Progress("fleet", "starting Spark", 0, None))
        session = build_session(replace(setup, java=make_keep_options(archive, java_used, new)))
        report(Progress("fleet", "using Delta Lake", 0, None))
        _use_session(session, str(Path(folder, "table")))
        report(Progress("fleet", "keeping Java's classes", 0, None))
        if not _end_session(session) or not new.is_file():
            raise make_unable_error(java_used)
        return archive.settle_file(SPARK, new)


def _use_session(session: Any, path: str) -> None:
    """Make Java load the classes that a build uses. An archive of a whole build was not faster."""
    for _ in range(_COMMITS):
        # Several commits: from the second one on, Delta also reads its log, with classes of its
        # own.
        session.range(1).write.format("delta").mode("append").save(path)
    session.read.format("delta").load(path).count()


def _end_session(session: Any) -> bool:
    """True if Java exits well. It writes the archive last, when nobody can talk to it any more."""
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    # The JVM of PySpark ends when its standard input closes. `stop()` alone leaves it running.
    gateway.proc.stdin.close()
    try:
        return bool(gateway.proc.wait(_PATIENCE_SECONDS) == 0)
    except TimeoutExpired:
        gateway.proc.kill()
        return False
