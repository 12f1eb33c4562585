"""Reading files for functions, never outside the root (architecture §8)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..syntax.limits import FILE_BYTES
from .functions.files import Read

_CLOSED = frozenset({".git", ".kafkaform"})
"""Folders that may hold credentials or state."""


def confined(root: Path, folder: Path) -> Read:
    """A reader of regular files below `root`; relative paths start from `folder`.

    Symbolic links are followed, and refused when they lead out. Raises FileNotFoundError, or
    PermissionError saying why a path is refused.
    """
    top = root.resolve()

    def read(path: str) -> bytes:
        if "\0" in path:
            raise PermissionError("a path cannot hold a zero byte")
        target = (folder / path).resolve()
        if not target.is_relative_to(top):
            raise PermissionError(f'"{path}" leads out of the root of the configuration')
        if _CLOSED.intersection(target.relative_to(top).parts):
            raise PermissionError(f'"{path}" is in a folder that configuration may not read')
        handle = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise PermissionError(f'"{path}" is not a regular file')
            content = file.read(FILE_BYTES + 1)
        if len(content) > FILE_BYTES:
            raise PermissionError(f'"{path}" is larger than {FILE_BYTES:,} bytes')
        return content

    return read
