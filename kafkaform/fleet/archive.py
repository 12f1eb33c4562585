"""Java's classes in a file that later sessions start from: class data sharing (JEP 310, JEP 350).

Until its first row Spark has Java read thousands of classes out of jars and verify them, each time
anew. The file is for one Java and one PySpark, which its name says, with the jars that were read:
where one is newer, as after an installation, Java does without and says nothing. A file that is not
whole ends Java at once (SIGBUS). So its name has a checksum, of the jars' ages and of its contents.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from ..core.dataclass import dataclass
from ..core.errors import KafkaformError
from .java import Java, find

FOLDER = "classes"
SPARK, BASE = "spark", "base"
"""What Spark needs; what every program needs, of a Java that brings no such file of its own."""
_PIECE_BYTES = 1 << 24
_PATIENCE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Archive:
    """java: whose classes; folder: where; name: begins the names of its files; jars: a checksum of
    what Java compares of those that it has read."""

    java: Java
    folder: Path
    name: str
    jars: int

    def files(self, part: str) -> list[Path]:
        return sorted(self.folder.glob(f"{self.name}-{part}-*.jsa"))

    def whole(self, part: str) -> Path | None:
        """This part's file if there is one, and nothing of it is missing or damaged."""
        for file in self.files(part):
            if file.name == self._named(part, file):
                return file
        return None

    def settle(self, part: str, new: Path) -> Path:
        """Keep a new file of this folder under the name of its contents, instead of older ones."""
        older = set(self.files(part))
        file = new.replace(self.folder / self._named(part, new))
        for each in older - {file}:
            each.unlink(missing_ok=True)
        return file

    def _named(self, part: str, file: Path) -> str:
        return f"{self.name}-{part}-{_checksum(file, self.jars):08x}.jsa"


def archive(cache: Path, java: Java) -> Archive:
    """What this Java has kept, or may keep."""
    spark = _spark()
    known = (java.home, java.version, version("pyspark"), spark)
    name = sha256(repr(known).encode()).hexdigest()[:16]
    return Archive(java, cache / FOLDER, name, _ages(spark / "jars"))


def starting(cache: Path) -> str:
    """Words for Java to start from what it has kept; none where it has kept nothing."""
    if not (cache / FOLDER).is_dir():
        return ""
    found = archive(cache, find(cache))
    file = found.whole(SPARK)
    # Java opens the base, too, where there is one.
    if file is None or (found.files(BASE) and not found.whole(BASE)):
        return ""
    return f'-XX:SharedArchiveFile="{file}"'


def keeping(found: Archive, file: Path) -> str:
    """Words for Java to write Spark's classes into a file when it ends.

    Raises KafkaformError: this Java cannot do that.
    """
    words = f'-XX:ArchiveClassesAtExit="{file}"'
    if _done(found.java, "-Xshare:on", "-version"):
        return words
    base = found.whole(BASE)
    if base is None:
        new = file.with_name(BASE)
        if not _done(found.java, "-Xshare:dump", f"-XX:SharedArchiveFile={new}"):
            raise unable(found.java)
        base = found.settle(BASE, new)
    return f'-XX:SharedArchiveFile="{base}" {words}'


def unable(java: Java) -> KafkaformError:
    return KafkaformError(
        f"Java {java.version} ({java.found}) cannot keep its classes",
        "Set JAVA_HOME to another one; `kafkaform fleet run` works without, too.",
    )


def _done(java: Java, *words: str) -> bool:
    program = java.home / "bin" / "java"
    try:
        done = subprocess.run(
            [program, *words], capture_output=True, timeout=_PATIENCE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _spark() -> Path:
    """Where PySpark looks for the jars of Spark."""
    spec = find_spec("pyspark")
    own = Path(spec.origin).parent if spec and spec.origin else Path()
    return Path(os.environ.get("SPARK_HOME") or own)


def _ages(folder: Path) -> int:
    """Of the files in it, with their names and sizes; 0 where there is no such folder."""
    try:
        with os.scandir(folder) as files:
            seen = sorted((each.name, each.stat().st_size, each.stat().st_mtime) for each in files)
    except OSError:
        return 0
    return zlib.crc32(repr(seen).encode())


def _checksum(file: Path, found: int) -> int:
    """Goes on from one. 0 where it cannot be read."""
    try:
        with file.open("rb") as data:
            while piece := data.read(_PIECE_BYTES):
                found = zlib.crc32(piece, found)
    except OSError:
        return 0
    return found
