"""Where a user's files outside of any configuration are, and by which way a command came to the
folder that it works in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_named: list[Path] = []
"""Paths that a relative --chdir went through."""


def find_state_home() -> Path:
    """Our part of where programs keep what they know (XDG_STATE_HOME: absolute or unset)."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local/state") / "kafkaform"


def enter_folder(folder: Path) -> None:
    """Work in a folder; PWD then says by which way, as shells have it. Raises OSError."""
    before = _find_current_folder()
    os.chdir(folder)
    way = before / folder
    steps = [] if folder.is_absolute() else [p for p in (way, *way.parents) if p != before]
    _named[:] = [path for path in steps if not before.is_relative_to(path)]
    os.environ["PWD"] = str(way)


def find_links(to: Path) -> Iterator[Path]:
    """The links that lead to a path, or here, and that a checkout may hold: those below a folder
    that has .git, those that a relative --chdir went through, and the last step. Links above all
    of that are the computer's own."""
    way = _find_current_folder() / to
    for path in (way, *way.parents):
        if path.is_symlink() and (path == way or path in _named or _is_in_checkout(path)):
            yield path


def _find_current_folder() -> Path:
    """The current folder as it was named: the system knows it without links only."""
    here, told = Path.cwd(), Path(os.environ.get("PWD", ""))
    try:
        return told if told.is_absolute() and told.samefile(here) else here
    except OSError:
        return here


def _is_in_checkout(path: Path) -> bool:
    return any((parent / ".git").exists() for parent in path.parents)
