"""Read modules of Git repositories from the cache, at the commits that the lock file names.

Nothing here uses the network: that is for `kafkaform init` (`installation.py`).
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ...language.declare.folder import is_read
from ...language.declare.module_sources import (
    Package,
    UnreadableModule,
    is_git,
    split_git_folder,
)
from ...language.functions.file_reader import Glob, Read, make_confined_reader, parse_glob
from ...language.functions.string import Allowance
from ...language.values.limits import LIMITS
from .lock_file import LOCK_FILE, Lock, read_locks
from .snapshots import LINK, SUBMODULE, Snapshot, list_files, load_snapshot, open_store, read_file


def read_own_locks(root: Path, folder: Path, *, links: bool) -> Mapping[Package, Lock]:
    """The lock file of a configuration. links: it may be a link. Raises UsageError."""
    read = make_confined_reader(root, folder)

    def content(name: str) -> bytes:
        if not links and (folder / name).is_symlink():
            raise PermissionError("it is a link, and --untrusted follows none")
        return read.content(name)

    return read_locks(content)


def open_package(locks: Mapping[Package, Lock], package: Package, *, untrusted: bool) -> Snapshot:
    """The files of a repository at its locked commit. Raises UnreadableModule."""
    lock = locks.get(package)
    if lock is None and untrusted:
        raise UnreadableModule(
            f"{LOCK_FILE} has no entry for it, and --untrusted reads locked modules only.",
            f"Run `kafkaform init` where you trust the files, and commit {LOCK_FILE} with them.",
        )
    if lock is None:
        raise UnreadableModule(
            f"{LOCK_FILE} has no entry for it.",
            f"Run `kafkaform init`, which fetches it, and commit {LOCK_FILE}.",
        )
    return load_snapshot(open_store(), lock)


def read_package_folder(snapshot: Snapshot, folder: str) -> dict[str, bytes]:
    """The configuration files of a folder of a repository, by name. Raises OSError that says why it
    cannot be read."""
    names = [name for name in list_files(snapshot, folder) if "/" not in name and is_read(name)]
    if len(names) > LIMITS.files:
        raise PermissionError(f"a folder can contain at most {LIMITS.files:,} configuration files")
    return {name: read_file(snapshot, posixpath.join(folder, name)) for name in names}


def add_packages(read: Read, opened: Mapping[Package, Snapshot]) -> Read:
    """A reader for functions that reads these repositories too: `file("${path.module}/a.yaml")`."""
    allowance = Allowance()

    def content(path: str) -> bytes:
        return read_file(*_find_file(opened, path)) if is_git(path) else read.content(path)

    def names(folder: str, pattern: str) -> tuple[str, ...]:
        if not is_git(folder):
            return read.names(folder, pattern)
        snapshot, inside = _find_file(opened, folder)
        glob, paths = parse_glob(pattern), list[str]()
        for path in list_files(snapshot, inside):
            entry = snapshot.files[posixpath.normpath(posixpath.join(inside, path))]
            match = partial(_is_match, glob, path)
            if entry.mode not in (LINK, SUBMODULE) and allowance.spend_time(match):
                paths.append(path)
        return tuple(sorted(paths))

    return Read(content, names)


def _is_match(glob: Glob, path: str, seconds: float) -> bool:
    return glob.expression.fullmatch(path, timeout=seconds) is not None


def _find_file(opened: Mapping[Package, Snapshot], path: str) -> tuple[Snapshot, str]:
    package, inside = split_git_folder(path)
    if package not in opened:
        raise PermissionError("no module of this configuration comes from that repository")
    return opened[package], inside
