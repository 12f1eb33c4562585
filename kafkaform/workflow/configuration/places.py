"""Find the user's own folder for state, and the links that led to the current folder. Every command
line loads this module, so it loads nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_named: list[Path] = []
"""Paths that a relative --chdir went through."""


def find_state_home() -> Path:
    """The folder of kafkaform below the user's folder for state (XDG Base Directory)."""
    # The specification says that a relative XDG_STATE_HOME is invalid and must be ignored.
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local/state") / "kafkaform"


def enter_folder(folder: Path) -> None:
    """Change to a folder, and set PWD to the path as it was named, like shells. Raises OSError."""
    before = _find_current_folder()
    os.chdir(folder)
    target = before / folder
    steps = [] if folder.is_absolute() else [p for p in (target, *target.parents) if p != before]
    _named[:] = [path for path in steps if not before.is_relative_to(path)]
    os.environ["PWD"] = str(target)


def find_links(to: Path) -> Iterator[Path]:
    """The links on the way to a path that a checkout can contain."""
    # Those are links below a folder that has .git, those that a relative --chdir went through, and
    # the last step. Links above belong to the computer, such as /tmp on macOS.
    target = _find_current_folder() / to
    for path in (target, *target.parents):
        if path.is_symlink() and (path == target or path in _named or _is_in_checkout(path)):
            yield path


def _find_current_folder() -> Path:
    """The current folder as it was named."""
    # The system knows its path without links only, and the links are what matters here.
    current, shell_folder = Path.cwd(), Path(os.environ.get("PWD", ""))
    try:
        return (
            shell_folder
            if shell_folder.is_absolute() and shell_folder.samefile(current)
            else current
        )
    except OSError:
        return current


def _is_in_checkout(path: Path) -> bool:
    return any((parent / ".git").exists() for parent in path.parents)
