"""Where a user's sandboxes and downloaded jars live."""

from __future__ import annotations

import os
import sys
from pathlib import Path

CACHE_VARIABLE = "KAFKAFORM_CACHE_DIR"


def get_cache_folder() -> Path:
    """The folder of downloaded files, shared by all sandboxes of the user."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kafkaform"
    return _get_base_folder("XDG_CACHE_HOME", ".cache") / "kafkaform"


def get_sandboxes_folder() -> Path:
    """The folder that holds one run folder per sandbox."""
    return _get_base_folder("XDG_STATE_HOME", ".local/state") / "kafkaform" / "sandbox"


def get_run_folder(name: str) -> Path:
    return get_sandboxes_folder() / name


def get_lock_file(name: str) -> Path:
    """Beside the run folder, so that removing the folder does not remove a held lock. No
    sandbox has a name that begins with a dot."""
    return get_sandboxes_folder() / f".{name}.lock"


def make_private_folder(path: Path) -> Path:
    """This folder, made if needed, closed to other users: it will hold passwords."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def write_private(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Replaces a file in one step with one that only its owner can read."""
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
