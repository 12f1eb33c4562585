"""Makes ready what runs on this computer start with: Delta Lake's jars, and Java's classes."""

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
from .session import SparkPlace, build_session

_COMMITS = 3
_PATIENCE_SECONDS = 300


def prepare(place: SparkPlace, report: Reporter) -> Path:
    """The file that Java has kept its classes in, instead of one from before.

    Raises UsageError: Spark does not run on this computer, or there is no Java; KafkaformError:
    Java cannot keep classes, or Spark does not start.
    """
    if not place.local:
        raise UsageError(
            f"{place.master} is not this computer, and only that can be prepared",
            "Leave out --master.",
        )
    used = java.find_java(place.cache)
    kept = find_archive(place.cache, used)
    kept.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=kept.folder) as folder:
        new = Path(folder, SPARK)
        report(Progress("fleet", "starting Spark", 0, None))
        session = build_session(replace(place, java=make_keep_options(kept, used, new)))
        report(Progress("fleet", "using Delta Lake", 0, None))
        _use_session(session, str(Path(folder, "table")))
        report(Progress("fleet", "keeping Java's classes", 0, None))
        if not _end_session(session) or not new.is_file():
            raise make_unable_error(used)
        return kept.settle_file(SPARK, new)


def _use_session(session: Any, path: str) -> None:
    """With the classes of a whole build later ones were not faster than with those of a table."""
    for _ in range(_COMMITS):
        session.range(1).write.format("delta").mode("append").save(path)
    session.read.format("delta").load(path).count()


def _end_session(session: Any) -> bool:
    """Whether Java ends well: it writes the file last, when nobody can talk to it any more."""
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        return bool(gateway.proc.wait(_PATIENCE_SECONDS) == 0)
    except TimeoutExpired:
        gateway.proc.kill()
        return False
