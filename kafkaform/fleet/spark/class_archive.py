"""Spark's classes, kept for later sessions: until its first row it has Java read thousands."""

from __future__ import annotations

import os
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from ...core.errors import KafkaformError
from ...jvm import FOLDER, Archive, make_archive
from .java import Java, find_java

SPARK = "spark"


def find_archive(cache: Path, java: Java) -> Archive:
    """What this Java has kept, or may keep."""
    spark = _find_spark()
    known = (java.version, version("pyspark"), str(spark))
    jars = (spark / "jars").glob("*")
    return make_archive(cache, java.home / "bin" / "java", SPARK, known, jars)


def make_start_options(cache: Path) -> str:
    """Words for Java to start from what it has kept; none where it has kept nothing."""
    if not (cache / FOLDER).is_dir():
        return ""
    file = find_archive(cache, find_java(cache)).find_start_file()
    return f'-XX:SharedArchiveFile="{file}"' if file else ""


def make_keep_options(found: Archive, java: Java, new: Path) -> str:
    """Words for Java to write Spark's classes into a file when it ends.

    Raises KafkaformError: this Java cannot do that.
    """
    options = found.make_keep_options(new)
    if options is None:
        raise make_unable_error(java)
    return " ".join(f'{option}="{file}"' for option, file in options.items())


def make_unable_error(java: Java) -> KafkaformError:
    return KafkaformError(
        f"Java {java.version} ({java.found}) cannot keep its classes",
        "Set JAVA_HOME to another one; `kafkaform fleet run` works without, too.",
    )


def _find_spark() -> Path:
    """Where PySpark looks for the jars of Spark."""
    spec = find_spec("pyspark")
    own = Path(spec.origin).parent if spec and spec.origin else Path()
    return Path(os.environ.get("SPARK_HOME") or own)
