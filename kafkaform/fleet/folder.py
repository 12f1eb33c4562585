"""A folder of this machine as a store of whole objects. One process at a time writes: who writes
holds the lock of the root."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from ..core.dataclass import dataclass
from ..core.errors import StorageError
from ..core.objects import Changed, Entry, Exists, Found
from ..core.storage import refusal


@dataclass(frozen=True, slots=True)
class Folder:
    """See `core.objects.Objects`. Keys are paths below `path`; links are not followed."""

    path: Path

    @property
    def location(self) -> str:
        return str(self.path)

    def read(self, key: str) -> Found | None:
        path = self.path / key
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                return _found(file.read(), os.fstat(file.fileno()).st_mtime)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refusal("cannot read", path, error) from error

    def create(self, key: str, data: bytes) -> str:
        path = self.path / key
        with _explained(path), _beside(path, data) as fresh:
            try:
                path.hardlink_to(fresh)
            except FileExistsError:
                found = self.read(key)
                assert found is not None  # nobody else deletes
                raise Exists(found) from None
            _sync(path.parent)
        return _version(data)

    def replace(self, key: str, data: bytes, version: str) -> str:
        path, found = self.path / key, self.read(key)
        if found is None or found.version != version:
            raise Changed(found)
        with _explained(path), _beside(path, data) as fresh:
            fresh.replace(path)
            _sync(path.parent)
        return _version(data)

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        found: list[Entry] = []
        with _explained(self.path / prefix):
            for folder, _, files in os.walk(self.path / prefix, onerror=_listed):
                for name in files:
                    entry = self._entry(Path(folder) / name)
                    if not name.startswith(".") and (after is None or entry.key > after):
                        found.append(entry)
        return tuple(sorted(found, key=lambda entry: entry.key))

    def _entry(self, path: Path) -> Entry:
        about = path.lstat()
        return Entry(path.relative_to(self.path).as_posix(), about.st_size, about.st_mtime)

    def delete(self, key: str) -> None:
        with _explained(self.path / key):
            (self.path / key).unlink(missing_ok=True)


def _found(data: bytes, modified: float) -> Found:
    return Found(data, _version(data), modified)


def _version(data: bytes) -> str:
    return sha256(data).hexdigest()


@contextlib.contextmanager
def _beside(path: Path, data: bytes) -> Iterator[Path]:
    """A durable new file with the data, gone afterwards unless it was renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with fresh.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield fresh
    finally:
        fresh.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _listed(error: OSError) -> None:
    """A folder that is not there has no files; one that cannot be read is no empty one."""
    if not isinstance(error, FileNotFoundError):
        raise error


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raises StorageError."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise refusal("cannot use", path, error) from error
