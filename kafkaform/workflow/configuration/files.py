"""Read the configuration files or policies of a folder, and none from outside of the root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from ...language.declare.folder import is_read
from ...language.functions.file_reader import make_confined_reader
from ...language.values.limits import LIMITS


def find_root(folder: Path) -> Path:
    """The folder that files and functions cannot leave: the nearest one upwards that contains .git,
    or the folder itself if there is none."""
    return next((p for p in (folder, *folder.parents) if (p / ".git").exists()), folder)


def list_checkout_files(root: Path) -> frozenset[str] | None:
    """The files that git tracks below the root; None if it is no checkout of git. Raises OSError if
    git cannot list them."""
    if not (root / ".git").exists():
        return None
    words = ("git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "ls-files", "-z")
    # Variables such as GIT_DIR and GIT_INDEX_FILE would lead to another list.
    environment = {n: text for n, text in os.environ.items() if not n.startswith("GIT_")}
    try:
        process = subprocess.run(  # noqa: S603  # no shell, and no word comes from the files
            words, cwd=root, env=environment, capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(getattr(error, "strerror", None) or "it took more than 60 s").lower()
        raise PermissionError(f"git cannot list the files of the checkout: {reason}") from None
    if process.returncode:
        reason = process.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise PermissionError(f"git cannot list the files of the checkout: {reason[:200]}")
    return frozenset(process.stdout.decode(errors="surrogateescape").split("\0")[:-1])


class Buffers(dict[Path, bytes]):
    """Files that are open in an editor, by absolute path without links: their texts count instead
    of what is on the disk."""

    @cached_property
    def folders(self) -> Mapping[Path, Mapping[str, bytes]]:
        """Folder -> the texts of its open files, by name."""
        folders: dict[Path, dict[str, bytes]] = {}
        for path, content in self.items():
            folders.setdefault(path.parent, {})[path.name] = content
        return folders


def read_folder(
    root: Path,
    folder: Path,
    *,
    links: bool = True,
    is_wanted: Callable[[str], bool] = is_read,
    buffers: Buffers | None = None,
) -> dict[str, bytes]:
    """Read the files of a folder, by name; without `is_wanted`, those of a configuration.

    links: follow links to files inside the root. Raises OSError that says which file cannot be
    read, and why.
    """
    read = make_confined_reader(root, folder)
    files: dict[str, bytes] = {}
    typed: dict[str, bytes] = {}
    if buffers:
        opened = buffers.folders.get(folder, {})
        typed = {name: content for name, content in opened.items() if is_wanted(name)}
    # An editor can have files of a folder that does not exist yet.
    entries = () if typed and not folder.exists() else folder.iterdir()
    for name in sorted(path.name for path in entries if is_wanted(path.name)):
        if (folder / name).is_dir():
            continue
        if not links and (folder / name).is_symlink():
            raise PermissionError(f'"{name}" is a link, and --untrusted follows none')
        # A folder that anybody can write to must not use up the memory of a review.
        if len(files) >= LIMITS.files:
            raise PermissionError(
                f"a folder can contain at most {LIMITS.files:,} configuration files"
            )
        try:
            files[name] = read.content(name)
        except FileNotFoundError:
            raise PermissionError(f'"{name}" is a link that leads nowhere') from None
    return {**files, **typed}
