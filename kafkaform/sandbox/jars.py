"""The pinned class path: each jar must have the SHA-256 of the list, or it is refused.

Missing jars are downloaded from the Maven repository. Java's classes are kept when a sandbox is
formatted first, so that later ones start faster.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from msgspec import Struct

from ..core.errors import ConnectError, KafkaformError, make_detailed_error
from ..core.installation import render_extra_command
from ..core.progress import Progress, Reporter
from ..jvm import Archive, make_archive
from . import record
from .versions import DEFAULT_VERSION, read_class_path, read_home_version

_WORKERS = 4
PARTIAL = ".partial-"
"""How the name of the folder of an unfinished download begins."""
_ABANDONED = 3600.0  # seconds after which no process can still work on a partial download
OTHERWISE = (
    "Kafka's by KAFKA_HOME (the folder of an unpacked Kafka of this version), Delta Lake's by "
    "--jars; only the schema registry has to be downloaded"
)
"""How a user names existing jars."""


class Jar(Struct, frozen=True):
    """A jar of the Maven repository."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str
    """64 hexadecimal digits."""
    size: int
    """Bytes."""
    packaging: str = "jar"
    """What the file name ends with."""

    @property
    def coordinate(self) -> str:
        fields = (self.group, self.artifact, self.version, self.classifier)
        return ":".join(field for field in fields if field)

    @property
    def file_name(self) -> str:
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{suffix}.{self.packaging}"


Fetch = Callable[[Jar, Path], Path]
"""Downloads one jar into a folder and returns its path."""
Source = Callable[[], AbstractContextManager[Fetch]]
"""Opened only if a jar is missing, and closed after the last one."""


def read_pinned_jars(version: str = DEFAULT_VERSION) -> tuple[Jar, ...]:
    """The jars of a version of Kafka. Raises UsageError for a version without a list."""
    return tuple(map(parse_jar, split_list(read_class_path(version))))


def split_list(text: str) -> list[str]:
    """The lines of a list without its comments."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def parse_jar(line: str) -> Jar:
    """One line of the list: `group:artifact:version[:classifier] SHA-256 bytes`."""
    coordinate, sha256, size = line.split()
    group, artifact, version, *classifier = coordinate.split(":")
    return Jar(group, artifact, version, "".join(classifier), sha256, int(size))


def find_class_path(
    report: Reporter, source: Source, version: str = DEFAULT_VERSION
) -> tuple[Path, ...]:
    """The jars of KAFKA_HOME if that is set, otherwise the pinned ones of this version; missing
    ones are downloaded."""
    return list_distribution() or ensure_jars(
        read_pinned_jars(version), report, source, f"Kafka {version}"
    )


def list_distribution() -> tuple[Path, ...]:
    """The jars of KAFKA_HOME, none if it is not set. Raises UsageError if they are not Kafka's."""
    home = os.environ.get("KAFKA_HOME")
    if not home:
        return ()
    folder = Path(home).absolute()
    read_home_version(folder)
    return tuple(sorted((folder / "libs").glob("*.jar")))


def ensure_jars(
    jars: tuple[Jar, ...], report: Reporter, source: Source, product: str = "Java"
) -> tuple[Path, ...]:
    """The paths of these jars in the user's cache; missing ones are downloaded from `source`.
    product: what the screen calls them.

    Raises KafkaformError for a file with other content, after removing it.
    """
    # Each file is checked each time, not only after the download: the cache belongs to the user,
    # and any program of that user can write into it.
    folder = record.get_cache_folder() / "jars"
    folder.mkdir(parents=True, exist_ok=True)
    missing = tuple(jar for jar in jars if not (folder / jar.file_name).is_file())
    for jar in jars:
        if jar not in missing:
            verify_jar(jar, folder / jar.file_name)
    if missing:
        _download(missing, folder, report, source, product)
    return tuple(folder / jar.file_name for jar in jars)


def verify_jar(jar: Jar, path: Path) -> None:
    """Compare a file with its SHA-256. Another one is removed, and KafkaformError names it."""
    verify_file(jar.coordinate, jar.sha256, jar.size, path)


def verify_file(name: str, sha256: str, size: int, path: Path) -> None:
    """Compare a file with its SHA-256, as verify_jar does. name: what the message calls it."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest == sha256:
        return
    found_size = path.stat().st_size
    path.unlink(missing_ok=True)
    raise make_detailed_error(
        KafkaformError,
        f"{name} is not the file that was pinned, so it was refused and removed: {path}",
        (
            f"expected SHA-256 {sha256}, {size} bytes",
            f"found    SHA-256 {digest}, {found_size} bytes",
        ),
        "run the command again to download it again; if it is refused again, something between "
        "you and the repository changes files: try another network, or use jars that you trust: "
        f"{OTHERWISE}",
    )


def _download(
    missing: tuple[Jar, ...], folder: Path, report: Reporter, source: Source, product: str
) -> None:
    """Download these jars into the cache."""
    # First into a folder of this run, then by an atomic rename: readers only see whole files, and
    # of two downloads at the same time the second replaces a file by an equal one.
    remove_abandoned(folder)
    total, loaded = sum(jar.size for jar in missing), 0
    label = f"downloading {product} ({len(missing)} jars)"
    report(Progress("jars", label, 0, total, "bytes"))
    with source() as fetch, tempfile.TemporaryDirectory(prefix=PARTIAL, dir=folder) as partial:
        pool = ThreadPoolExecutor(_WORKERS)
        try:
            work = {pool.submit(_download_one, j, folder, Path(partial), fetch): j for j in missing}
            for finished in as_completed(work):
                finished.result()
                loaded += work[finished].size
                report(Progress("jars", label, loaded, total, "bytes"))
        finally:
            pool.shutdown(cancel_futures=True)
    report(Progress("jars", label, total, total, "bytes", finished=True))


def _download_one(jar: Jar, folder: Path, partial: Path, fetch: Fetch) -> None:
    path = fetch(jar, partial)
    verify_jar(jar, path)
    path.replace(folder / jar.file_name)


def remove_abandoned(folder: Path) -> None:
    """Remove what killed downloads have left."""
    for path in folder.glob(f"{PARTIAL}*"):
        if time.time() - path.stat().st_mtime > _ABANDONED:
            shutil.rmtree(path, ignore_errors=True)


_ATTEMPTS = 3
_TIMEOUT = 60  # seconds without an answer


@contextmanager
def open_repository() -> Iterator[Fetch]:
    """Inside the block, jars can be downloaded. Raises KafkaformError without the sandbox extra."""
    # Certificates are checked against the operating system's list, too. Behind a company's proxy
    # only that list has the proxy's authority; `requests` brings one of its own.
    try:
        import truststore  # noqa: PLC0415  # the sandbox extra has it
    except ImportError:
        raise make_missing_extra_error("truststore") from None
    truststore.inject_into_ssl()
    try:
        yield _fetch_jar
    finally:
        truststore.extract_from_ssl()


def _fetch_jar(jar: Jar, folder: Path) -> Path:
    """Download this jar into a folder below `folder`. Raises ConnectError."""
    # One jar by its coordinate. If jgo resolved dependencies, it would mix kafka-clients 3.9.1 into
    # Kafka 4.3.1.
    fault: Exception | None = None
    for attempt in range(_ATTEMPTS):
        try:
            return _resolve_jar(jar, folder / f"{jar.file_name}.{attempt}")
        except (OSError, RuntimeError) as error:  # every error of requests is an OSError
            fault = error
            time.sleep(attempt)
    raise ConnectError(
        f"{jar.coordinate} could not be downloaded: {fault}",
        "check the network and HTTPS_PROXY; behind a proxy with its own certificate set "
        "REQUESTS_CA_BUNDLE to its file; without a network use jars that you already have: "
        f"{OTHERWISE}",
    )


def make_missing_extra_error(package: str) -> KafkaformError:
    """The error for an installation without the sandbox's packages."""
    return KafkaformError(
        f"the sandbox needs the package {package}, which is not installed",
        f"Run `{render_extra_command('sandbox')}`.",
    )


def _resolve_jar(jar: Jar, folder: Path) -> Path:
    try:
        from jgo.maven import MavenContext  # noqa: PLC0415  # the sandbox extra has it
    except ImportError:
        raise make_missing_extra_error("jgo") from None
    context = MavenContext(repo_cache=folder, local_repos=[], timeout=_TIMEOUT)
    component = context.project(jar.group, jar.artifact).at_version(jar.version)
    return component.artifact(classifier=jar.classifier, packaging=jar.packaging).resolve()


_PART = "kafka"
_OPTIONS = "JAVA_TOOL_OPTIONS"


def find_archive(java: Path, jars: Sequence[Path]) -> Archive | None:
    """The archive of this Java for these jars, None if it cannot be used."""
    # Options of the user can contradict those of the archive, and then Java ends at once.
    if os.environ.get(_OPTIONS):
        return None
    return make_archive(
        record.get_cache_folder(), java, _PART, (_read_release(java), *map(str, jars)), jars
    )


def list_start_options(archive: Archive | None) -> tuple[str, ...]:
    """Options with which Java starts from the archive; none without one."""
    file = archive.find_start_file() if archive else None
    return (f"-XX:SharedArchiveFile={file}",) if file else ()


@contextmanager
def keep_classes(archive: Archive | None) -> Iterator[tuple[str, ...]]:
    """Options for one Java process, which must end normally inside the block. It starts from the
    archive, or makes one if there is none."""
    if (
        archive is None
        or archive.find_start_file()
        or not (folder := _make_temporary_folder(archive))
    ):
        yield list_start_options(archive)
        return
    with folder as path:
        new = Path(path, _PART)
        yield tuple(
            f"{option}={file}" for option, file in (archive.make_keep_options(new) or {}).items()
        )
        # Another sandbox may have made the same archive meanwhile, and a broker may be about to
        # start from it.
        if new.is_file() and not archive.find_start_file():
            archive.settle_file(_PART, new)


def _make_temporary_folder(archive: Archive) -> tempfile.TemporaryDirectory[str] | None:
    """A folder beside the archive, None if nothing can be written there."""
    # A sandbox works without an archive, so this is no error.
    try:
        archive.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return tempfile.TemporaryDirectory(dir=archive.folder, ignore_cleanup_errors=True)
    except OSError:
        return None


def _read_release(java: Path) -> str:
    """The text of the file `release` of this Java, empty without one."""
    # It has the exact version. Java refuses an archive that another build of it has made.
    try:
        return (java.resolve().parent.parent / "release").read_text("utf-8", "replace")
    except OSError:
        return ""
