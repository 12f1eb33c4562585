"""Java's classes that a sandbox keeps when it is first formatted: later ones start in less time."""

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
    """What this Java keeps of these jars; None: what the user tells it may not go together with
    that, and it would end."""
    if os.environ.get(_OPTIONS):
        return None
    return make_archive(
        places.get_cache_folder(), java, _PART, (_read_release(java), *map(str, jars)), jars
    )


def list_start_options(found: Archive | None) -> tuple[str, ...]:
    """Options for Java to start from what is kept; none where nothing is."""
    file = found.find_start_file() if found else None
    return (f"-XX:SharedArchiveFile={file}",) if file else ()


@contextmanager
def keep_classes(found: Archive | None) -> Iterator[tuple[str, ...]]:
    """Options for one Java process that ends, and well, before the block does: it starts from what
    is kept, or keeps its classes."""
    if found is None or found.find_start_file() or not (folder := _make_temporary_folder(found)):
        yield list_start_options(found)
        return
    with folder as path:
        new = Path(path, _PART)
        yield tuple(
            f"{option}={file}" for option, file in (found.make_keep_options(new) or {}).items()
        )
        # Another sandbox may have kept the same meanwhile, and a broker be about to start from it.
        if new.is_file() and not found.find_start_file():
            found.settle_file(_PART, new)


def _make_temporary_folder(found: Archive) -> tempfile.TemporaryDirectory[str] | None:
    """None where nothing can be written: a sandbox works without."""
    try:
        found.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return tempfile.TemporaryDirectory(dir=found.folder, ignore_cleanup_errors=True)
    except OSError:
        return None


def _read_release(java: Path) -> str:
    """What the file `release` beside this Java says, versions above all; empty without one."""
    try:
        return (java.resolve().parent.parent / "release").read_text("utf-8", "replace")
    except OSError:
        return ""
