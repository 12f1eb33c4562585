"""Explain errors of files: one table for everything that keeps state or log on a disk."""

from __future__ import annotations

import errno

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
