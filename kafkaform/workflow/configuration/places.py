"""Where a configuration has its state: the `backend` block, the user's own folder for state, and
the links that led to the current folder. Every command line loads this module, so it loads no
language."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.diagnostics import Diagnostic, Severity, suggest

if TYPE_CHECKING:
    from ...language.declare.settings import Settings


_named: list[Path] = []
"""Paths that a relative --chdir went through."""


LOCAL, IN_PROCESS = "local", "memory"
LEASE, KEEP = "lease", "keep"
"""The arguments that no store knows: how long a remote lock outlives a dead run, and how old
earlier versions of a state can become."""
_DAYS = re.compile(r"([1-9]\d{0,4})d", re.ASCII)
_DAY_SECONDS = 86_400.0


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
        if path.is_symlink() and (
            path == target
            or path in _named
            or any((parent / ".git").exists() for parent in path.parents)
        ):
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


def read_place(settings: Settings) -> tuple[str, Mapping[str, str]]:
    """The place that a block without faults names, and its options."""
    # Stores take their options as texts, and write booleans in lower case.
    texts = {
        n: str(v).lower() if isinstance(v, bool) else str(v) for n, v in settings.options.items()
    }
    if settings.backend == LOCAL:
        return texts.pop("path"), texts
    from ...state.backends.obstores import KINDS  # noqa: PLC0415  # only a state in a store needs its client

    return f"{KINDS[str(settings.backend)].start}://", texts


def find_backend_faults(settings: Settings) -> Iterator[Diagnostic]:
    """Why the backend block names no place; nothing if it names one."""
    kinds, name = _list_kinds(), str(settings.backend)
    if name not in kinds:
        yield _make_fault(
            settings, f'There is no backend "{name}"', f"There are: {', '.join(kinds)}."
        )
        return
    required, optional = kinds[name]
    names = (*required, *optional)
    for name, value in settings.options.items():
        # The file is committed, so a key or a password in it would be public.
        if name not in names:
            hint = suggest(name, names) or f"It takes: {', '.join(names)}."
            advice = f"{hint} Credentials come from the environment only."
            yield _make_fault(
                settings, f'The backend "{settings.backend}" has no argument "{name}"', advice
            )
        elif not isinstance(value, str | bool) or value == "":
            yield _make_fault(
                settings, f'"{name}" of a backend block must be a text', "Put it in quotes."
            )
        elif name == KEEP and parse_age(str(value)) is None:
            yield _make_fault(
                settings, f'"{KEEP}" of a backend block must be a number of days', KEEP_ADVICE
            )
    for name in required:
        if name not in settings.options:
            yield _make_fault(
                settings, f'The backend "{settings.backend}" needs "{name}"', f"Add {name}."
            )


def _list_kinds() -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Name -> the required and the optional arguments of each backend."""
    from ...state.backends.obstores import COMMON, KINDS  # noqa: PLC0415  # only a state in a store needs its client

    remote = {
        name: ((kind.bucket, kind.folder), (*kind.settings, *COMMON, LEASE, KEEP))
        for name, kind in KINDS.items()
        if name != IN_PROCESS
    }
    return {LOCAL: (("path",), (KEEP,)), **remote}


KEEP_ADVICE = 'Write it as "30d".'


def parse_age(text: str) -> float | None:
    """The seconds of a number of days such as `30d`, None for any other text."""
    match = _DAYS.fullmatch(text)
    return int(match[1]) * _DAY_SECONDS if match else None


def _make_fault(settings: Settings, summary: str, advice: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, summary, range=settings.range, advice=advice)
