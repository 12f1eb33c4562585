"""Keep the classes that Java loads for Spark in an archive (CDS), so that later sessions start
sooner."""

from __future__ import annotations

import os
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from ...core.errors import KafkaformError
from ...jvm import FOLDER, Archive, make_archive
from .java import Java, find_java

SPARK = "spark"
"""Name of the archive."""


def find_archive(cache: Path, java: Java) -> Archive:
    """Return the archive of this Java and this PySpark, whether or not it exists yet."""
    spark = _find_spark()
    # The JVM refuses an archive of another version or class path; a key of its own avoids the
    # attempt.
    versions = (java.version, version("pyspark"), str(spark))
    jars = (spark / "jars").glob("*")
    return make_archive(cache, java.home / "bin" / "java", SPARK, versions, jars)


def make_start_options(cache: Path) -> str:
    """Return the JVM options that use the archive; empty if there is none."""
    # Without this look, every start would read the names of 277 jars to find that nothing was
    # prepared.
    if not (cache / FOLDER).is_dir():
        return ""
    file = find_archive(cache, find_java(cache)).find_start_file()
    return f'-XX:SharedArchiveFile="{file}"' if file else ""


def make_keep_options(archive: Archive, java: Java, new: Path) -> str:
    """Return the JVM options that write the archive when Java exits.

    Raises KafkaformError: this Java cannot write one.
    """
    options = archive.make_keep_options(new)
    if options is None:
        raise make_unable_error(java)
    return " ".join(f'{option}="{file}"' for option, file in options.items())


def make_unable_error(java: Java) -> KafkaformError:
    """The error for a Java that cannot write an archive."""
    return KafkaformError(
        f"Java {java.version} ({java.origin}) cannot keep its classes",
        "Set JAVA_HOME to another Java. `kafkaform fleet run` also works without the archive.",
    )


def _find_spark() -> Path:
    """Return the folder in which PySpark finds Spark's jars."""
    # Not imported: `fleet doctor` asks for it, and importing pyspark takes a second.
    spec = find_spec("pyspark")
    own = Path(spec.origin).parent if spec and spec.origin else Path()
    return Path(os.environ.get("SPARK_HOME") or own)
