"""Stores of whole objects with conditional writes, such as S3, GCS and Azure, and a local folder as
one of them."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from .storage import make_storage_error

_INNER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""How file systems without hard links refuse one."""
_PRIVATE, _SHARED = (0o700, 0o600), (0o777, 0o666)
"""Modes of a folder and a file, before the umask."""


class StoredObject(Struct, frozen=True):
    """An object as the store has it now."""

    data: bytes
    """Its bytes."""
    version: str
    """Opaque text that a `replace` has to name."""
    modified: float
    """When it was written, in seconds since the epoch by the store's clock."""


class Entry(Struct, frozen=True):
    """An object as a listing shows it."""

    key: str
    """Its name below the prefix."""
    size: int
    """Bytes."""
    modified: float
    """When it was written, in seconds since the epoch by the store's clock."""


class ObjectExists(Exception):
    """A `create` was refused, because somebody else's object is there."""

    def __init__(self, stored: StoredObject) -> None:
        """found: that object."""
        super().__init__("the object exists")
        self.found = stored


class ObjectChanged(Exception):
    """A `replace` was refused, because another version is there."""

    def __init__(self, stored: StoredObject | None) -> None:
        """found: that version, None if the object is gone."""
        super().__init__("the object has changed")
        self.found = stored


class Objects(Protocol):
    """Objects under one prefix of one store; safe to use from several threads.

    An implementation must say for certain how a conditional write ended, even when the store's own
    answer was lost. To find out it reads the object and compares bytes, so callers must never mean
    two things by equal bytes under one key: they put a write id into them. Every method raises
    StorageError if the store cannot be reached or refuses the request.
    """

    @property
    def location(self) -> str:
        """The name of the place in messages, such as `s3://bucket/prefix`."""

    def read(self, key: str) -> StoredObject | None:
        """The object; None only if the store says that there is none."""

    def create(self, key: str, data: bytes) -> str:
        """Write an object where there is none, and return its version. Raises ObjectExists."""

    def replace(self, key: str, data: bytes, version: str) -> str:
        """Write an object over this version, and return the new one. Raises ObjectChanged."""

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        """What is below the folder `prefix`, sorted by key; only keys greater than `after`.

        A listing may lag behind. Only `read` can say that an object does not exist.
        """

    def delete(self, key: str) -> None:
        """Remove an object; nothing happens if there is none."""


class Subfolder(Struct, frozen=True):
    """`core.objects.Objects` below one folder of others."""

    objects: Objects
    """The objects that the folder is among."""
    folder: str
    """Its name, without a slash at the end."""

    @property
    def location(self) -> str:
        """The folder, for messages."""
        return f"{self.objects.location}/{self.folder}"

    def read(self, key: str) -> StoredObject | None:
        return self.objects.read(f"{self.folder}/{key}")

    def create(self, key: str, data: bytes) -> str:
        return self.objects.create(f"{self.folder}/{key}", data)

    def replace(self, key: str, data: bytes, version: str) -> str:
        return self.objects.replace(f"{self.folder}/{key}", data, version)

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        start = f"{self.folder}/"
        entries = self.objects.names(f"{start}{prefix}", None if after is None else start + after)
        return tuple(
            Entry(entry.key.removeprefix(start), entry.size, entry.modified) for entry in entries
        )

    def delete(self, key: str) -> None:
        self.objects.delete(f"{self.folder}/{key}")


class Folder(Struct, frozen=True):
    """`core.objects.Objects` in files.

    Only one of several processes can create a file. Only a process that holds a lock can be sure
    that nobody else replaces a file at the same time.
    """

    # The folder itself may be a link if its owner named it. Whatever is below may have been
    # put there by somebody else, so no link is followed there.
    path: Path
    """The folder; it is made with the first file."""
    shared: bool = False
    """Others can read what is made, as far as the umask allows; otherwise only the owner can."""
    is_named: bool = True
    """Its owner named the folder, so it may be a link."""

    @property
    def location(self) -> str:
        """The path, for messages."""
        return str(self.path)

    def read(self, key: str) -> StoredObject | None:
        with self._explain_errors("cannot read", key):
            try:
                with self._open_folder(key) as (folder, name):
                    return _read_file(folder, name)
            except FileNotFoundError:
                return None

    def create(self, key: str, data: bytes) -> str:
        # The bytes are on the disk before they get their name: a crash leaves no file in part.
        with (
            self._explain_errors("cannot write", key),
            self._open_folder(key, make=True) as (folder, name),
        ):
            with self._write_beside(folder, name, data) as fresh:
                try:
                    self._give_name(folder, fresh, name, data)
                except FileExistsError:
                    content = _read_file(folder, name)
                    raise ObjectExists(content) from None
            os.fsync(folder)
        return _compute_version(data)

    def replace(self, key: str, data: bytes, version: str) -> str:
        stored = self.read(key)
        if stored is None or stored.version != version:
            raise ObjectChanged(stored)
        with self._explain_errors("cannot write", key), self._open_folder(key) as (folder, name):
            with self._write_beside(folder, name, data) as fresh:
                os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        return _compute_version(data)

    def delete(self, key: str) -> None:
        gone = suppress(FileNotFoundError)
        with (
            self._explain_errors("cannot delete", key),
            gone,
            self._open_folder(key) as (folder, name),
        ):
            os.unlink(name, dir_fd=folder)

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        with self._explain_errors("cannot list", prefix):
            entries = sorted(self._walk_entries(prefix), key=lambda entry: entry.key)
        return tuple(entry for entry in entries if after is None or entry.key > after)

    def _walk_entries(self, prefix: str) -> Iterator[Entry]:
        for folder, _, names in os.walk(self.path / prefix, onerror=_raise_unless_missing):
            for name in names:
                path = Path(folder, name)
                if not name.startswith(".") and stat.S_ISREG((status := path.lstat()).st_mode):
                    key = path.relative_to(self.path).as_posix()
                    yield Entry(key, status.st_size, status.st_mtime)

    @property
    def _modes(self) -> tuple[int, int]:
        return _SHARED if self.shared else _PRIVATE

    @contextmanager
    def _open_folder(self, key: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder of a file, and the file's name in it. make: also make missing folders."""
        # Each folder is opened from the one before, and not by its whole path, so that nobody can
        # put a link into the path between a check and its use.
        *folders, name = key.split("/")
        if make:
            self.path.mkdir(mode=self._modes[0], parents=True, exist_ok=True)
        follows = 0 if self.is_named else os.O_NOFOLLOW
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | follows)
        try:
            for step in folders:
                outer, folder = folder, self._open_inner(folder, step, make=make)
                os.close(outer)
            yield folder, name
        finally:
            os.close(folder)

    def _open_inner(self, folder: int, name: str, *, make: bool) -> int:
        if make:
            # Another run can make it at the same time.
            with suppress(FileExistsError):
                os.mkdir(name, self._modes[0], dir_fd=folder)
                os.fsync(folder)
        return os.open(name, _INNER, dir_fd=folder)

    @contextmanager
    def _write_beside(self, folder: int, name: str, data: bytes) -> Iterator[str]:
        """A new durable file with the data, which is removed afterwards unless it was renamed."""
        fresh = f".{name}.{secrets.token_hex(6)}.tmp"
        try:
            _write_file(folder, fresh, data, self._modes[1])
            yield fresh
        finally:
            # It is gone once it has its name.
            with suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=folder)

    def _give_name(self, folder: int, fresh: str, name: str, data: bytes) -> None:
        """Give the file its name. Raises FileExistsError."""
        try:
            # A rename would silently replace another file of that name; a link refuses to.
            os.link(fresh, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # Without hard links the file is written once more, under its name: O_EXCL still lets
            # one process win, but a crash can leave the file in part.
            _write_file(folder, name, data, self._modes[1])

    @contextmanager
    def _explain_errors(self, task: str, key: str) -> Iterator[None]:
        """Raises StorageError."""
        try:
            yield
        except OSError as error:
            raise make_storage_error(task, self.path / key, error) from None


def _write_file(folder: int, name: str, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(name, flags, mode, dir_fd=folder)
    try:
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_file(folder: int, name: str) -> StoredObject:
    # Without O_NONBLOCK a named pipe in place of the file would block for ever.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(name, flags, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        data = file.read()
        return StoredObject(data, _compute_version(data), status.st_mtime)


def _compute_version(data: bytes) -> str:
    return sha256(data).hexdigest()


def _raise_unless_missing(error: OSError) -> None:
    """A missing folder has no files; one that cannot be read is not an empty one."""
    if not isinstance(error, FileNotFoundError):
        raise error
