"""Files that are wholly there or not at all: the few calls that make a write survive a crash.

Every function raises OSError and leaves the words to its caller. Links are never followed.
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
    # Without O_NONBLOCK a named pipe in the place of the file would block for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read()


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, and make its bytes durable (not its name)."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(path, flags, PRIVATE_FILE)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest[:CHUNK]) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make names in this folder durable: a new file, a rename."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private_folder(path: Path) -> Path:
    """The folder, made if it is not there; a link in its place is refused."""
    path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return path


def make_temporary_name(path: Path) -> Path:
    """A new name beside `path`; `list_leftovers` finds it again."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")


def list_leftovers(path: Path) -> list[Path]:
    """Temporary files beside `path` that a crash left behind."""
    return sorted(path.parent.glob(f".{path.name}.*.tmp"))


def prove_room(path: Path, size: int) -> None:
    """Prove that `size` bytes can be written beside `path`: take the room, then give it back.

    This meets full disks, quotas, file size limits, rights and read-only mounts alike.
    """
    probe = make_temporary_name(path)
    descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        os.posix_fallocate(descriptor, 0, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        probe.unlink()
