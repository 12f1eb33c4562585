"""Find the configuration that each open file belongs to, read it for requests and checks, and keep
what was read until something changes."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Lock

from msgspec import Struct

from ..core.errors import KafkaformError
from ..language.declare.modules import is_git
from ..language.tests.suites import ENDING as TESTS
from ..workflow.configuration.evaluation import Inputs, read_configuration
from ..workflow.configuration.files import Buffers, find_root
from .faults import FileFault, find_faults
from .project import (
    CONFIGURATIONS,
    MAX_BYTES,
    TEST_FOLDER,
    Library,
    OutlineCache,
    ParseCache,
    Project,
    Span,
    drop_evaluations,
    is_known,
    load_library,
    read_project,
)
from .protocol import make_uri

LEVELS = 5
"""How many folders above a file outside of any repository are looked at."""


class OpenFiles:
    """The open files of an editor at one moment.

    What was looked up is kept, so that each folder is read once, however many files are open.
    """

    def __init__(
        self, buffers: Buffers, find_parsed: Callable[[Path], ParseCache] | None = None
    ) -> None:
        """find_parsed: folder of a root module -> what was parsed of it."""
        self.buffers = buffers
        self._find_parsed = find_parsed or (lambda _: ParseCache())
        self._owners: dict[Path, Path] = {}
        self._called: dict[Path, frozenset[Path]] = {}

    @cached_property
    def _sizes(self) -> Mapping[Path, int]:
        """Folder -> the bytes of the open files in it and below."""
        sizes: dict[Path, int] = {}
        for path, content in self.buffers.items():
            for folder in path.parents:
                sizes[folder] = sizes.get(folder, 0) + len(content)
        return sizes

    @cached_property
    def _callers(self) -> Mapping[Path, Sequence[Path]]:
        """Folder -> the folders with open files that call it, in their order."""
        callers: dict[Path, list[Path]] = {}
        for candidate in sorted(self.buffers.folders):
            for folder in self._list_called(candidate):
                callers.setdefault(folder, []).append(candidate)
        return callers

    def is_large(self, folder: Path) -> bool:
        """Whether reading a configuration takes longer than a key press can wait."""
        size = self._sizes.get(folder, 0)
        # The folder of a new file may not exist before it is saved.
        with suppress(OSError), os.scandir(folder) as entries:
            size += sum(entry.stat().st_size for entry in entries if is_known(entry.name))
        return size > MAX_BYTES

    def find_owner(self, path: Path) -> Path:
        """The folder of the root module that a file belongs to.

        A folder that another one calls as a module is checked as a part of that one. Its callers
        are looked for in the folders above it, up to the root, and in those of other open files.
        """
        folder = path.parent
        if path.name.endswith(TESTS) and folder.name == TEST_FOLDER:
            folder = folder.parent
        if folder not in self._owners:
            self._owners[folder] = self._find_caller(folder)
        return self._owners[folder]

    def _find_caller(self, folder: Path) -> Path:
        root, above = find_root(folder), list(folder.parents)
        # Without a repository, the folder that calls this one is the root of both.
        above = above[:LEVELS] if root == folder else [p for p in above if p.is_relative_to(root)]
        for candidate in above:
            if folder in self._list_called(candidate):
                return candidate
        return next(
            (caller for caller in self._callers.get(folder, ()) if caller != folder), folder
        )

    def _list_called(self, candidate: Path) -> frozenset[Path]:
        """The folders of the modules of a configuration."""
        if candidate not in self._called:
            self._called[candidate] = frozenset(self._read_called(candidate))
        return self._called[candidate]

    def _read_called(self, candidate: Path) -> list[Path]:
        try:
            names = {entry.name for entry in os.scandir(candidate)}
            names.update(self.buffers.folders.get(candidate, ()))
            configuration = any(name.endswith(CONFIGURATIONS) for name in names)
            if not configuration or self.is_large(candidate):
                return []
            parse_file, inputs = self._find_parsed(candidate).parse, Inputs.read(())
            tree = read_configuration(
                candidate, inputs, buffers=self.buffers, parse_file=parse_file
            ).tree
        except (OSError, KafkaformError):
            return []
        return [
            Path(os.path.normpath(candidate / source))
            for source in tree.modules
            if not is_git(source)
        ]


class OpenFilesSnapshot(Struct, frozen=True):
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
        path = Path(os.path.normpath(path))
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

    def open_project(self, path: Path, snapshot: OpenFilesSnapshot) -> Project | None:
        """The configuration of a file as it is now; None if it cannot be read."""
        # Of several requests after a key, one reads, and the others use what it has read.
        with self._reading:
            owner = snapshot.files.find_owner(path)
            changes, project = self._projects.get(owner, (-1, None))
            # A large configuration is read by the checks alone, so that no request waits for it.
            if changes == snapshot.changes or snapshot.files.is_large(owner):
                return project
            return self._read(owner, snapshot)

    def check(self, snapshot: OpenFilesSnapshot) -> Mapping[Path, Sequence[FileFault]]:
        """The faults of the open files and of their configurations, by file."""
        owners: dict[Path, list[Path]] = {}
        for path in sorted(snapshot.files.buffers):
            owners.setdefault(snapshot.files.find_owner(path), []).append(path)
        faults: dict[Path, dict[tuple[Span, str], FileFault]] = {}
        for owner, opened in owners.items():
            buffers, parsed = snapshot.files.buffers, self.find_parsed(owner)
            owner_faults = find_faults(owner, opened, buffers, snapshot.encoding, parsed)
            # Several configurations can have a module, or the repository file. What they say of one
            # fault differs after its first line: how often it happens, for whom.
            for path, items in owner_faults.items():
                own = faults.setdefault(path, {})
                for item in items:
                    own.setdefault((item.span, item.message.partition("\n")[0]), item)
            if snapshot.files.is_large(owner):
                self._read(owner, snapshot)
        drop_evaluations()
        return {path: tuple(items.values()) for path, items in faults.items()}

    def _read(self, owner: Path, snapshot: OpenFilesSnapshot) -> Project | None:
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
