"""Read configurations for requests and checks, and keep what was read until something changes."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from msgspec import Struct

from ..core.errors import KafkaformError
from .faults import FileFault, find_faults
from .library import Library, load_library
from .owners import OpenFiles
from .project import OutlineCache, ParseCache, Project, drop_evaluations, read_project
from .protocol import make_uri


class Snapshot(Struct, frozen=True):
    """What an editor has open at the moment of a request. Later keys do not change it."""

    files: OpenFiles
    uris: Mapping[Path, str]
    """The open files, as the editor calls them."""
    changes: int
    """Counts the changes before it."""
    encoding: str
    """What positions count."""

    def find_uri(self, path: Path) -> str:
        """The URI of a file: an editor may know it by another path, which leads through links."""
        return self.uris.get(path) or make_uri(path)


class ProjectReader:
    """Reads configurations. Several threads can use it."""

    def __init__(self) -> None:
        self._reading = Lock()
        self._library: Library | None = None
        self._outlines = OutlineCache({})
        self._parsed: dict[Path, ParseCache] = {}
        """Root folder -> what was parsed of it."""
        self._projects: dict[Path, tuple[int, Project]] = {}
        """Root folder -> the number of changes at which it was read, and the configuration."""

    def find_parsed(self, folder: Path) -> ParseCache:
        """What was parsed of the configuration in a folder."""
        return self._parsed.setdefault(folder, ParseCache())

    @property
    def outlines(self) -> OutlineCache:
        return self._outlines

    def open_project(self, path: Path, snapshot: Snapshot) -> Project | None:
        """The configuration of a file as it is now; None if it cannot be read."""
        # Of several requests after a key, one reads, and the others use what it has read.
        with self._reading:
            owner = snapshot.files.find_owner(path)
            changes, project = self._projects.get(owner, (-1, None))
            # A large configuration is read by the checks alone, so that no request waits for it.
            if changes == snapshot.changes or snapshot.files.is_large(owner):
                return project
            return self._read(owner, snapshot)

    def check(self, snapshot: Snapshot) -> Mapping[Path, Sequence[FileFault]]:
        """The faults of the open files and of their configurations, by file."""
        owners: dict[Path, list[Path]] = {}
        for path in sorted(snapshot.files.buffers):
            owners.setdefault(snapshot.files.find_owner(path), []).append(path)
        faults: dict[Path, Sequence[FileFault]] = {}
        for owner, opened in owners.items():
            buffers, parsed = snapshot.files.buffers, self.find_parsed(owner)
            faults |= find_faults(owner, opened, buffers, snapshot.encoding, parsed)
            if snapshot.files.is_large(owner):
                self._read(owner, snapshot)
        drop_evaluations()
        return faults

    def _read(self, owner: Path, snapshot: Snapshot) -> Project | None:
        if self._library is None:
            self._library = load_library()
        parsed, buffers = self.find_parsed(owner), snapshot.files.buffers
        with suppress(KafkaformError, OSError):
            project = read_project(
                owner, buffers, self._library, self._outlines, snapshot.encoding, parsed
            )
            if owner not in self._projects:
                # No thread works while Python looks for garbage, and of this there is never any.
                gc.freeze()
            self._projects[owner] = snapshot.changes, project
            return project
        return None
