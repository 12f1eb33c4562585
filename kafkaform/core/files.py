"""Files that exist as a whole or not at all, and private folders: the calls that let a write
survive a crash.

Every function raises OSError, and its caller explains it. Links are never followed.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
CHUNK = 1 << 20


def read(path: Path) -> bytes:
    """All bytes of a regular file."""
    # Without O_NONBLOCK a named pipe in place of the file would block for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read()


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, and make its bytes durable, though not its name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(path, flags, PRIVATE_FILE)
    try:
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(descriptor, remaining[:CHUNK]) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a new file, a rename."""
    # fsync of a file covers its bytes only. Without this a power loss can bring back the old name,
    # after a request was sent that the new file knows about.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private_folder(path: Path, *, parents: bool = False) -> Path:
    """The folder, which is made for its owner alone if it is missing. The mode of a folder that
    exists is never changed. Raises OSError if a link is in its place.

    parents: make the folders above it, too, with the usual mode.
    """
    path.mkdir(mode=PRIVATE_FOLDER, parents=parents, exist_ok=True)
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return path


def make_temporary_name(path: Path) -> Path:
    """A new name beside `path`, which `list_leftovers` finds again."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")


def list_leftovers(path: Path) -> list[Path]:
    """Temporary files beside `path` that a crash left behind."""
    return sorted(path.parent.glob(f".{path.name}.*.tmp"))


def prove_room(path: Path, size: int) -> None:
    """Prove that `size` bytes can be written beside `path`: take the room, then give it back."""
    # Asking how much is free would not see quotas, file size limits, rights and read-only mounts.
    probe = make_temporary_name(path)
    descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        os.posix_fallocate(descriptor, 0, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        probe.unlink()
