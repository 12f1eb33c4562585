"""Where landing files are put: a folder, or a prefix of an object store. Nothing is changed there:
a file is made once, wholly or not at all.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from ..core.dataclass import dataclass
from ..core.errors import StorageError
from ..core.objects import Entry, Exists, Found
from ..core.storage import refusal
from ..state.backends import files
from ..state.backends.obstores import is_remote, open_objects

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What a file system without hard links answers."""


class Place(Protocol):
    """The part of `core.objects.Objects` that landing needs. Keys have `/` between their parts.
    Every method raises StorageError."""

    @property
    def location(self) -> str:
        """How messages name the place."""

    def read(self, key: str) -> Found | None:
        """The file, None if there is none."""

    def create(self, key: str, data: bytes) -> str:
        """Write a file where there is none, wholly or not at all. Raises Exists."""

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        """The files below a folder, sorted by key; only keys > `after`."""


def open_place(root: str) -> Place:
    """root: a folder, or a URL such as `s3://bucket/fleet`. Raises UsageError."""
    return open_objects(root, {}) if is_remote(root) else Folder(Path(root))


@dataclass(frozen=True, slots=True)
class Folder:
    """path: the folder, made with the first file, and maybe a link itself; below it no link is
    followed, by whoever it was put there."""

    path: Path

    @property
    def location(self) -> str:
        return str(self.path)

    def read(self, key: str) -> Found | None:
        with self._explained("cannot read", key):
            try:
                with self._folder(key) as (folder, name):
                    return _found(folder, name)
            except FileNotFoundError:
                return None

    def create(self, key: str, data: bytes) -> str:
        """The bytes get their name when they are on the disk, and no other file loses it."""
        with self._explained("cannot write", key), self._folder(key, make=True) as (folder, name):
            fresh = f".{name}.{secrets.token_hex(6)}.tmp"
            try:
                _write(folder, fresh, data)
                _named(folder, fresh, name, data)
            except FileExistsError:
                found = _found(folder, name)
                raise Exists(found) from None
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(fresh, dir_fd=folder)
            os.fsync(folder)
        return ""

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        with self._explained("cannot list", prefix):
            found = sorted(self._below(prefix), key=lambda entry: entry.key)
        return tuple(entry for entry in found if after is None or entry.key > after)

    def _below(self, prefix: str) -> Iterator[Entry]:
        for folder, _, names in os.walk(self.path / prefix):
            for name in names:
                path = Path(folder, name)
                known = path.lstat()
                if stat.S_ISREG(known.st_mode) and not name.startswith("."):
                    key = path.relative_to(self.path).as_posix()
                    yield Entry(key, known.st_size, known.st_mtime)

    @contextmanager
    def _folder(self, key: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder of a file, and the file's name in it. make: folders that are missing."""
        *parts, name = key.split("/")
        if make:
            self.path.mkdir(mode=files.PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in parts:
                outer, folder = folder, _inner(folder, part, make=make)
                os.close(outer)
            yield folder, name
        finally:
            os.close(folder)

    @contextmanager
    def _explained(self, task: str, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise refusal(task, self.path / key, error) from None


def _inner(folder: int, name: str, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, files.PRIVATE_FOLDER, dir_fd=folder)
            os.fsync(folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _write(folder: int, name: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(name, flags, files.PRIVATE_FILE, dir_fd=folder)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _named(folder: int, fresh: str, name: str, data: bytes) -> None:
    """Give the file its name. Raises FileExistsError. A rename would take the name from another
    file; where there are no hard links it is written once more, under its name."""
    try:
        os.link(fresh, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write(folder, name, data)


def _found(folder: int, name: str) -> Found:
    # Without O_NONBLOCK a named pipe in the place of the file would block for ever.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(name, flags, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        known = os.fstat(descriptor)
        if not stat.S_ISREG(known.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return Found(file.read(), "", known.st_mtime)


def overwritten(place: Place, key: str) -> StorageError:
    """The error for a file that is there already."""
    return StorageError(
        f"{place.location}/{key} is there already; it was not changed",
        "Landing files are written once. Take the snapshot again: it gets a name of its own.",
    )
