"""The folders of a user's sandboxes and downloaded jars, and the lock that lets one command at a
time work on a sandbox. The lock ends with its process."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ..core.errors import Locked

CACHE_VARIABLE = "KAFKAFORM_CACHE_DIR"


def get_cache_folder() -> Path:
    """The folder of downloaded files, which all sandboxes of the user share."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kafkaform"
    return _get_base_folder("XDG_CACHE_HOME", ".cache") / "kafkaform"


def get_sandboxes_folder() -> Path:
    """The folder with one run folder for each sandbox."""
    return _get_base_folder("XDG_STATE_HOME", ".local/state") / "kafkaform" / "sandbox"


def get_run_folder(name: str) -> Path:
    return get_sandboxes_folder() / name


def get_lock_file(name: str) -> Path:
    """The lock file of a sandbox."""
    # Beside the run folder: `down` removes that folder while it has the lock, and another command
    # would lock a new file. No sandbox has a name that begins with a dot.
    return get_sandboxes_folder() / f".{name}.lock"


def write_private(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Replace a file in one step by one that only its owner can read."""
    # O_EXCL with the mode: a file that is made first and closed to others afterwards can be opened
    # in between.
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding=encoding) as file:
        file.write(text)
    fresh.replace(path)


def _get_base_folder(variable: str, default: str) -> Path:
    # The XDG specification: a relative path in these variables is to be ignored.
    chosen = os.environ.get(variable, "")
    return Path(chosen) if chosen.startswith("/") else Path.home() / default


@contextmanager
def hold_lock(name: str) -> Iterator[None]:
    """Lock the sandbox inside the block. Raises Locked at once if another process has locked it."""
    path = get_lock_file(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if not _take_lock(file):
            raise Locked(
                f"another `kafkaform sandbox` command is working on {name}",
                "wait until it is done, then try again",
            )
        yield


def is_held(name: str) -> bool:
    """True while another command works on the sandbox."""
    path = get_lock_file(name)
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
