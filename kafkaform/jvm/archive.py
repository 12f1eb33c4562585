"""Java's classes in a file that later processes start from: class data sharing (JEP 310, JEP 350).

Else each process reads thousands of classes out of jars and verifies them anew. The file is for one
Java and one class path, which its name says, with the jars that were read: where one is newer, as
after an installation, Java does without and says nothing. A file that is not whole ends Java at
once (SIGBUS). So its name has a checksum, of the jars' ages and of its contents.
"""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

FOLDER = "classes"
"""In the user's cache."""
BASE = "base"
"""What every program needs, of a Java that brings no such file of its own."""
_PIECE_BYTES = 1 << 24
_PATIENCE_SECONDS = 120


class Archive(Struct, frozen=True):
    """program: the `java` whose classes; folder: where; name: begins the names of its files; jars:
    a checksum of what Java compares of those that it has read; part: whose classes."""

    program: Path
    folder: Path
    name: str
    jars: int
    part: str

    def find_start_file(self) -> Path | None:
        """The file to start from; None where nothing is kept, or something of it is damaged."""
        file = self.find_whole_file(self.part)
        # Java opens the base, too, where there is one.
        if file is None or (self.list_files(BASE) and not self.find_whole_file(BASE)):
            return None
        return file

    def make_keep_options(self, new: Path) -> dict[str, Path] | None:
        """Options that make Java write its classes into a new file of this folder when it ends;
        None: this Java cannot do that."""
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

    def list_files(self, part: str) -> list[Path]:
        return sorted(self.folder.glob(f"{self.name}-{part}-*.jsa"))

    def find_whole_file(self, part: str) -> Path | None:
        """This part's file if there is one, and nothing of it is missing or damaged."""
        for file in self.list_files(part):
            if file.name == self._name_file(part, file):
                return file
        return None

    def settle_file(self, part: str, new: Path) -> Path:
        """Keep a new file of this folder under the name of its contents, instead of older ones."""
        older = set(self.list_files(part))
        file = new.replace(self.folder / self._name_file(part, new))
        for each in older - {file}:
            each.unlink(missing_ok=True)
        return file

    def _name_file(self, part: str, file: Path) -> str:
        return f"{self.name}-{part}-{_checksum_file(file, self.jars):08x}.jsa"

    def _run_java(self, *words: str) -> bool:
        try:
            done = subprocess.run(
                [self.program, *words], capture_output=True, timeout=_PATIENCE_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0


def make_archive(
    cache: Path, program: Path, part: str, known: Sequence[object], jars: Iterable[Path]
) -> Archive:
    """What this Java has kept, or may keep. cache: a folder of the user's; known: what else the
    files' names are to depend on."""
    name = sha256(repr((str(program), *known)).encode()).hexdigest()[:16]
    return Archive(program, cache / FOLDER, name, _checksum_ages(jars), part)


def _checksum_ages(jars: Iterable[Path]) -> int:
    """Of these files, with their names and sizes; one that is not there is as if it never was."""
    seen = []
    for jar in jars:
        try:
            about = jar.stat()
        except OSError:
            continue
        seen.append((jar.name, about.st_size, about.st_mtime))
    return zlib.crc32(repr(sorted(seen)).encode())


def _checksum_file(file: Path, found: int) -> int:
    """Goes on from one. 0 where it cannot be read."""
    try:
        with file.open("rb") as data:
            while piece := data.read(_PIECE_BYTES):
                found = zlib.crc32(piece, found)
    except OSError:
        return 0
    return found
