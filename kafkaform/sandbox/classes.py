"""Keep Java's classes when a sandbox is formatted first, so that later ones start faster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..jvm import Archive, make_archive
from . import places

_PART = "kafka"
_OPTIONS = "JAVA_TOOL_OPTIONS"


def find_archive(java: Path, jars: Sequence[Path]) -> Archive | None:
    """The archive of this Java for these jars, None if it cannot be used."""
    # Options of the user can contradict those of the archive, and then Java ends at once.
    if os.environ.get(_OPTIONS):
        return None
    return make_archive(
        places.get_cache_folder(), java, _PART, (_read_release(java), *map(str, jars)), jars
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
