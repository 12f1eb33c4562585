"""The folders of a user's sandboxes and downloaded jars."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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


def make_private_folder(path: Path) -> Path:
    """Make this folder if it is missing, and close it to other users, because it contains
    passwords.
    """
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


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
