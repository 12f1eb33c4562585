"""Read the files of another tool from disk, within limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from kafkaform.core.errors import UsageError

MAX_FILE = 8_000_000
"""Bytes of one file."""
MAX_TOTAL = 64_000_000
"""Bytes of all files together."""
MAX_FILES = 20_000
"""Files in a folder."""
YAML = frozenset({".yaml", ".yml", ".json"})
"""Endings of files that a YAML parser reads; JSON is YAML."""


class UnreadableFile(UsageError):
    """A file that exists and cannot be read. reason: why, as the rest of a sentence about it."""

    def __init__(self, path: object, reason: str, advice: str = "") -> None:
        super().__init__(f"{path} {reason}", advice)
        self.path, self.reason = str(path), reason


Omit = Callable[[str, str], None]
"""Notes a file or folder that is not taken over, and why."""


def read_files(
    paths: Sequence[Path], endings: Collection[str], omit: Omit | None = None
) -> Iterator[tuple[str, bytes]]:
    """Path and content, each file once: of the files among the paths, and of all files below the
    folders that have one of these endings, sorted. Hidden files and folders are passed over.

    omit: gets each file and folder that cannot be read or is too large; without it, the first one
    raises UnreadableFile. Raises UsageError for what does not exist or is not a regular file.
    """
    names: dict[Path, Path] = {}
    for path in paths:
        listed = sorted(_list_files(path, endings, omit)) if path.is_dir() else [path]
        for name in listed:
            names.setdefault(name.resolve(), name)
    folders = ", ".join(map(str, paths))
    if len(names) > MAX_FILES:
        raise UsageError(f"{folders} has more than {MAX_FILES} files", "Name a smaller folder.")
    bytes_left = MAX_TOTAL
    for name in names.values():
        try:
            content = read_file(name)
        except UnreadableFile as fault:
            if omit is None:
                raise
            omit(fault.path, fault.reason)
            continue
        bytes_left -= len(content)
        if bytes_left < 0:
            raise UsageError(
                f"the files below {folders} have more than {MAX_TOTAL // 1_000_000} MB",
                "Name a smaller folder.",
            )
        yield str(name), content


def _list_files(path: Path, endings: Collection[str], omit: Omit | None) -> Iterator[Path]:
    def note_folder(error: OSError) -> None:
        fault = UnreadableFile(error.filename, f"cannot be read: {error.strerror}")
        if omit is None:
            raise fault
        omit(fault.path, fault.reason)

    # No link to a folder is followed, so a circle of links ends.
    for folder, folders, files in os.walk(path, onerror=note_folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for file in files:
            name = Path(folder, file)
            if not file.startswith(".") and name.suffix in endings and name.is_file():
                yield name


def read_file(path: Path) -> bytes:
    """The content of one file. Raises UsageError as `read_files` does."""
    try:
        # Before it is opened: a pipe would block, and a device could have no end.
        if not path.is_file():
            fault = "does not exist" if not path.exists() else "is not a regular file"
            raise UsageError(f"{path} {fault}", "Name a file or a folder.")
        with path.open("rb") as file:
            content = file.read(MAX_FILE + 1)
    except OSError as error:
        raise UnreadableFile(path, f"cannot be read: {error.strerror}") from None
    if len(content) > MAX_FILE:
        size = f"has more than {MAX_FILE // 1_000_000} MB"
        raise UnreadableFile(path, size, "Divide it into smaller files.")
    return content
