"""Files on a disk: read those that users name, write those that must survive a crash, and explain
why one cannot be used.

A file that users name is read without waiting for ever. A file that we write exists as a whole or
not at all; links are never followed, and the functions for that raise OSError, which their callers
explain. One table explains the errors of everything that keeps state or log on a disk.
"""

from __future__ import annotations

import errno
import os
import secrets
import select
import stat
from pathlib import Path

from .errors import StorageError

CAUSES: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full", "Free some space, then run the command again."),
    errno.EDQUOT: ("the disk quota is used up", "Free some space, then run the command again."),
    errno.EFBIG: (
        "the file would exceed the size limit of this process or file system",
        "Raise the limit (`ulimit -f`), then run the command again.",
    ),
    errno.EROFS: ("the file system is read-only", "Mount it writable, or use another folder."),
    errno.EACCES: ("permission denied", "Give this user the right to write the folder."),
    errno.EPERM: ("the operation is not permitted", "Check owner, flags and mount options."),
    errno.EIO: (
        "the device reports an input/output error",
        "Check the disk before anything else; do not repeat the command on it.",
    ),
    errno.ELOOP: (
        "it is a symbolic link, and links are not followed here",
        "Put the file itself in its place.",
    ),
    errno.ENOTDIR: ("a part of the path is not a folder", "Check the path."),
    errno.EISDIR: ("it is a folder", "Move the folder away."),
    errno.ENOENT: ("it does not exist", "Check the path."),
    errno.ENAMETOOLONG: ("the name is too long", "Use a shorter path."),
}


def make_storage_error(task: str, path: object, error: OSError) -> StorageError:
    """The error to show for this one. task: what failed, such as "cannot save the state"; path: the
    file that it failed on."""
    number = error.errno or 0
    cause, advice = CAUSES.get(
        number, (error.strerror or type(error).__name__, "Check the file and its folder.")
    )
    return StorageError(f"{task}: {path}: {cause}", advice)


STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""Where a shell offers what it pipes in: `<(command)` and standard input."""
PIPE_SECONDS = 10
"""How long the other end of a named pipe may write nothing."""
_OTHER_KINDS = (
    (stat.S_ISDIR, errno.EISDIR, "it is a folder"),
    (stat.S_ISFIFO, errno.EINVAL, "it is a named pipe, not a regular file"),
    (stat.S_ISSOCK, errno.EINVAL, "it is a socket, not a regular file"),
    (stat.S_ISCHR, errno.EINVAL, "it is a device, not a regular file"),
    (stat.S_ISBLK, errno.EINVAL, "it is a device, not a regular file"),
)
"""Whether a mode is of this kind -> the error of such a file."""


def read_named_file(path: Path | str, largest: int, *, pipes: bool = False) -> bytes:
    """The content of a file that a user names; links are followed, and a stream of a shell is read.

    pipes: also read a named pipe, if somebody writes to it. Raises OSError for what cannot be read,
    has more than `largest` bytes, or is no regular file: a pipe can block for ever, and a device
    such as /dev/zero has no end.
    """
    # A pipe that is opened without O_NONBLOCK waits until somebody opens its other end.
    descriptor = os.open(_check_name(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about, stream = os.fstat(descriptor), str(path).startswith(STREAMS)
        if stat.S_ISFIFO(about.st_mode) and (pipes or stream):
            wait = None if stream else PIPE_SECONDS * 1000
            content = _read_pipe(descriptor, largest + 1, wait)
        else:
            _require_regular(about)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(largest + 1)
    finally:
        os.close(descriptor)
    if len(content) > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest:,} bytes")
    return content


def _read_pipe(descriptor: int, most: int, wait: float | None) -> bytes:
    """At most so many bytes of a pipe. wait: milliseconds for each part, None for no limit."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    content = bytearray()
    while len(content) < most:
        if not poll.poll(wait):
            raise OSError(errno.EINVAL, "it is a named pipe, and nothing is written to it")
        chunk = os.read(descriptor, most - len(content))
        if not chunk:
            break
        content += chunk
    return bytes(content)


def require_regular_file(path: Path | str) -> None:
    """Raises OSError as `read_named_file` does, for a file that a library opens."""
    about = Path(_check_name(path)).stat()
    if not str(path).startswith(STREAMS):
        _require_regular(about)


def _check_name(path: Path | str) -> str:
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "its name contains a NUL character")
    return str(path)


def _require_regular(about: os.stat_result) -> None:
    # An empty file is often given as /dev/null.
    if stat.S_ISCHR(about.st_mode) and about.st_rdev == Path(os.devnull).stat().st_rdev:
        return
    for is_kind, number, reason in _OTHER_KINDS:
        if is_kind(about.st_mode):
            raise OSError(number, reason)


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
