"""Folders of configuration on disk: which files are read, and none from outside of the root."""

from __future__ import annotations

from pathlib import Path

from ...language.declare.folder import is_read
from ...language.functions.confined_files import make_confined_reader
from ...language.values.limits import LIMITS


def find_root(folder: Path) -> Path:
    """How far the files and functions of a folder may reach: the nearest folder upwards that
    holds .git, else the folder itself."""
    return next((p for p in (folder, *folder.parents) if (p / ".git").exists()), folder)


def read_folder(root: Path, folder: Path, *, links: bool = True) -> dict[str, bytes]:
    """The configuration files of a folder by name. links: those to files inside the root too.
    Raises OSError that says which one cannot be read, and why."""
    read = make_confined_reader(root, folder)
    files: dict[str, bytes] = {}
    for path in sorted(folder.iterdir()):
        if not is_read(path.name) or path.is_dir():
            continue
        if not links and path.is_symlink():
            raise PermissionError(f'"{path.name}" is a link, and --untrusted follows none')
        if len(files) >= LIMITS.files:
            raise PermissionError(f"a folder may hold {LIMITS.files:,} configuration files")
        try:
            files[path.name] = read.content(path.name)
        except FileNotFoundError:
            raise PermissionError(f'"{path.name}" is a link that leads nowhere') from None
    return files
