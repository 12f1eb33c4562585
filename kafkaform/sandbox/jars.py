"""The pinned class path: every jar is one of the list, byte for byte, or is refused."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path

from msgspec import Struct

from ..core.errors import KafkaformError, UsageError
from ..core.progress import Progress, Reporter
from . import places

VERSION = "4.3.1"
_WORKERS = 4
_PARTIAL = ".partial-"
_ABANDONED = 3600.0  # seconds after which a half-made download belongs to nobody
OTHERWISE = (
    f"Kafka's by KAFKA_HOME (the folder of an unpacked Kafka {VERSION}), Delta Lake's by --jars"
)
"""How jars are named that are here already."""


class Jar(Struct, frozen=True):
    """size: bytes; sha256: 64 hexadecimal digits."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str
    size: int

    @property
    def coordinate(self) -> str:
        parts = (self.group, self.artifact, self.version, self.classifier)
        return ":".join(part for part in parts if part)

    @property
    def file_name(self) -> str:
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{suffix}.jar"


# Gets one jar into a folder and says where it is.
Fetch = Callable[[Jar, Path], Path]
# Opened only if something is missing, and closed after the last jar.
Source = Callable[[], AbstractContextManager[Fetch]]


def read_pinned_jars() -> tuple[Jar, ...]:
    """The list that this package carries."""
    text = resources.files(__package__).joinpath("jars.txt").read_text("ascii")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return tuple(map(parse_jar, lines))


def parse_jar(line: str) -> Jar:
    """One line of the list: `group:artifact:version[:classifier] SHA-256 bytes`."""
    coordinate, sha256, size = line.split()
    group, artifact, version, *classifier = coordinate.split(":")
    return Jar(group, artifact, version, "".join(classifier), sha256, int(size))


def find_class_path(report: Reporter, source: Source) -> tuple[Path, ...]:
    """The jars of KAFKA_HOME if that is set, else the pinned ones, downloaded where missing."""
    home = os.environ.get("KAFKA_HOME")
    return (
        _list_distribution(Path(home).absolute())
        if home
        else ensure_jars(read_pinned_jars(), report, source)
    )


def ensure_jars(
    jars: tuple[Jar, ...], report: Reporter, source: Source, what: str = f"Kafka {VERSION}"
) -> tuple[Path, ...]:
    """These jars' paths in the user's cache; what is missing comes from `source`. what: their name
    on the screen.

    Each file is compared with its SHA-256 every time. Raises KafkaformError for a file with
    another content, after removing it."""
    folder = places.get_cache_folder() / "jars"
    folder.mkdir(parents=True, exist_ok=True)
    missing = tuple(jar for jar in jars if not (folder / jar.file_name).is_file())
    for jar in jars:
        if jar not in missing:
            verify_jar(jar, folder / jar.file_name)
    if missing:
        _download(missing, folder, report, source, what)
    return tuple(folder / jar.file_name for jar in jars)


def verify_jar(jar: Jar, path: Path) -> None:
    """Removes a file that is not this jar, and raises KafkaformError that names it."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found == jar.sha256:
        return
    size = path.stat().st_size
    path.unlink()
    raise KafkaformError(
        f"{jar.coordinate} is not the file that was pinned, so it was refused and removed: {path}\n"
        f"  expected SHA-256 {jar.sha256}, {jar.size} bytes\n"
        f"  found    SHA-256 {found}, {size} bytes",
        "run the command again to download it afresh; if it is refused again, something between "
        "you and the repository alters files: try another network, or name jars that you trust, "
        f"{OTHERWISE}",
    )


def _list_distribution(home: Path) -> tuple[Path, ...]:
    jars = tuple(sorted((home / "libs").glob("*.jar")))
    if not any(jar.name.startswith("kafka_") for jar in jars):
        raise UsageError(
            f"KAFKA_HOME={home} is not an unpacked Kafka: libs/ has no kafka_*.jar",
            f"correct it, or unset it to use the pinned Kafka {VERSION}",
        )
    return jars


def _download(
    missing: tuple[Jar, ...], folder: Path, report: Reporter, source: Source, what: str
) -> None:
    """Into a folder of this run, then into the cache by an atomic rename: readers see whole
    files only, and of two downloads at once the later simply replaces equal bytes."""
    _remove_abandoned(folder)
    total, done = sum(jar.size for jar in missing), 0
    label = f"downloading {what} ({len(missing)} jars)"
    report(Progress("jars", label, 0, total, "bytes"))
    with source() as fetch, tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=folder) as partial:
        pool = ThreadPoolExecutor(_WORKERS)
        try:
            work = {pool.submit(_download_one, j, folder, Path(partial), fetch): j for j in missing}
            for finished in as_completed(work):
                finished.result()
                done += work[finished].size
                report(Progress("jars", label, done, total, "bytes"))
        finally:
            pool.shutdown(cancel_futures=True)
    report(Progress("jars", label, total, total, "bytes", finished=True))


def _download_one(jar: Jar, folder: Path, partial: Path, fetch: Fetch) -> None:
    path = fetch(jar, partial)
    verify_jar(jar, path)
    path.replace(folder / jar.file_name)


def _remove_abandoned(folder: Path) -> None:
    """Removes what downloads that were killed have left behind."""
    for path in folder.glob(f"{_PARTIAL}*"):
        if time.time() - path.stat().st_mtime > _ABANDONED:
            shutil.rmtree(path, ignore_errors=True)
