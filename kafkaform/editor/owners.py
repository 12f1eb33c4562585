"""The files that are open at one moment, and which configuration each of them belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from ..core.errors import KafkaformError
from ..language.declare.module_sources import is_git
from ..language.suites import ENDING as TESTS
from ..workflow.configuration.evaluation import Inputs, read_configuration
from ..workflow.configuration.files import Buffers, find_root
from .project import CONFIGURATIONS, MAX_BYTES, TEST_FOLDER, ParseCache, is_known

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
