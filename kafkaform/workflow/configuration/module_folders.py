"""Read the folders of modules, local ones and those of Git repositories."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from ...language.declare.module_sources import Package, is_git, split_git_folder
from .files import Buffers, read_folder

if TYPE_CHECKING:
    # Few configurations have modules from Git.
    from ..modules.lock_file import Lock
    from ..modules.snapshots import Snapshot

MAX_PATH = 4096

Opened: TypeAlias = "dict[Package, Snapshot]"
"""The repositories that a configuration's modules were read from."""
OpenPackage: TypeAlias = "Callable[[Package], Snapshot]"
"""Opens a repository at a ref. Raises UnreadableModule."""


class ModuleFolders(Struct, frozen=True):
    """Where the modules of a configuration are read."""

    root: Path
    """The folder that no local module can leave."""
    folder: Path
    """The configuration's."""
    links: bool
    """Follow links; otherwise the files are untrusted, too."""
    open_package: OpenPackage | None = None
    """None: at the locked commit, offline."""
    buffers: Buffers | None = None
    """What an editor shows instead of files on the disk."""
    opened: Opened = field(default_factory=dict)
    """What was opened already."""
    locks: dict[Package, Lock] = field(default_factory=dict)
    """The lock file, once it was needed."""

    def resolve_own_path(self, folder: str) -> str:
        """The path of a module's folder without links, so that a folder with two names is read
        once.

        "" is the configuration's folder. Without `links` they are left in, for `read_files` to
        refuse.
        """
        if is_git(folder):
            return folder
        try:
            if len(folder) > MAX_PATH:
                return folder
            start = self.folder.resolve()
            target = (start / folder).resolve() if self.links else start / folder
            relative_path = os.path.relpath(target, start)
        except (OSError, RuntimeError, ValueError):  # reading it raises the error, with its place
            return folder
        return "" if relative_path == os.curdir else relative_path

    def read_files(self, folder: str) -> dict[str, bytes]:
        """Read the files of a module's folder. Raises OSError that says why it cannot be read."""
        if is_git(folder):
            return self._read_from_git(folder)
        try:
            if len(folder) > MAX_PATH:
                raise ValueError
            target = (self.folder / folder).resolve()
        except (RuntimeError, ValueError):
            raise PermissionError("the path is invalid, or a link that leads to itself") from None
        # After resolving: "modules/../../.." and links out of the root are one and the same attack.
        if not target.is_relative_to(self.root.resolve()):
            raise PermissionError(f"{folder} leads out of the root of the configuration")
        if not self.links and Path(os.path.normpath(self.folder.resolve() / folder)) != target:
            raise PermissionError(f"{folder} is behind a link, and --untrusted follows none")
        return read_folder(self.root, target, links=self.links, buffers=self.buffers)

    def _read_from_git(self, folder: str) -> dict[str, bytes]:
        from ..modules.packages import (  # noqa: PLC0415  # few configurations have modules from Git
            open_package,
            read_own_locks,
            read_package_folder,
        )

        package, inside = split_git_folder(folder)
        if package not in self.opened:
            if self.open_package is not None:
                self.opened[package] = self.open_package(package)
            else:
                if not self.locks:
                    self.locks.update(read_own_locks(self.root, self.folder, links=self.links))
                self.opened[package] = open_package(self.locks, package, untrusted=not self.links)
        return read_package_folder(self.opened[package], inside)
