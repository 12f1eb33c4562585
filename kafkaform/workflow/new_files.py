"""Write new files, all of them or none, and never over one that exists. A module of its own because
commands of several folders write configuration for people to look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..core.errors import StorageError, UsageError


def refuse_existing(path: Path) -> None:
    """Raises UsageError for a file that exists, StorageError for a path that cannot be one."""
    try:
        exists = path.exists()
    except OSError as error:  # such as a name that is too long
        raise StorageError(
            f"{path} cannot be written: {error.strerror}", "Choose another place."
        ) from None
    if exists:
        raise UsageError(f"{path} exists, and is not overwritten", "Name a new file with --out.")


def write_new_files(texts: Mapping[Path, str]) -> None:
    """Write these files, and the folders that they are in. Raises UsageError, StorageError; then
    none of the files is there."""
    for path in texts:
        refuse_existing(path)
    written: list[Path] = []
    for path, text in texts.items():
        try:
            path.parent.mkdir(exist_ok=True)
            # "x": a file that somebody has written since then is not overwritten.
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
        except OSError as error:
            for written_file in written:
                written_file.unlink(missing_ok=True)
            raise StorageError(
                f"{path} cannot be written: {error.strerror}", "Choose another place."
            ) from None
