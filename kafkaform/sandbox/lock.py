"""Let only one command at a time work on a sandbox. The lock ends with its process."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from ..core.errors import Locked
from . import places


@contextmanager
def hold_lock(name: str) -> Iterator[None]:
    """Lock the sandbox inside the block. Raises Locked at once if another process has locked it."""
    path = places.get_lock_file(name)
    places.make_private_folder(path.parent)
    with path.open("a") as file:
        if not _take_lock(file):
            raise Locked(
                f"another `kafkaform sandbox` command is working on {name}",
                "wait until it is done, then try again",
            )
        yield


def is_held(name: str) -> bool:
    """True while another command works on the sandbox."""
    path = places.get_lock_file(name)
    if not path.exists():
        return False
    with path.open("a") as file:
        return not _take_lock(file)


def _take_lock(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
