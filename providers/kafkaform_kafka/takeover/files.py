"""Read the files of another tool from disk, within limits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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


def read_files(paths: Sequence[Path], endings: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Path and content, each file once: of the files among the paths, and of all files below the
    folders that have one of these endings, sorted. Hidden files and folders are passed over.

    Raises UsageError for what cannot be read, is not a regular file or is too large.
    """
    names: dict[Path, Path] = {}
    for path in paths:
        listed = sorted(_list_files(path, endings)) if path.is_dir() else [path]
        for name in listed:
            names.setdefault(name.resolve(), name)
    where = ", ".join(map(str, paths))
    if len(names) > MAX_FILES:
        raise UsageError(f"{where} has more than {MAX_FILES} files", "Name a smaller folder.")
    left = MAX_TOTAL
    for name in names.values():
        content = read_file(name)
        left -= len(content)
        if left < 0:
            raise UsageError(
                f"the files below {where} have more than {MAX_TOTAL // 1_000_000} MB",
                "Name a smaller folder.",
            )
        yield str(name), content


def _list_files(path: Path, endings: Collection[str]) -> Iterator[Path]:
    # `rglob` follows no link to a folder, so a circle of links ends.
    for name in path.rglob("*"):
        hidden = any(part.startswith(".") for part in name.relative_to(path).parts)
        if not hidden and name.suffix in endings and name.is_file():
            yield name


def read_file(path: Path) -> bytes:
    """The content of one file. Raises UsageError as `read_files` does."""
    try:
        # Before it is opened: a pipe would block, and a device could have no end.
        if not path.is_file():
            what = "does not exist" if not path.exists() else "is not a regular file"
            raise UsageError(f"{path} {what}", "Name a file or a folder.")
        with path.open("rb") as file:
            content = file.read(MAX_FILE + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > MAX_FILE:
        raise UsageError(
            f"{path} has more than {MAX_FILE // 1_000_000} MB", "Divide it into smaller files."
        )
    return content
