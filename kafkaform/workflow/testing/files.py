"""Find and read test files. Apart from the runs, so that `init` does not load them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from ...core.errors import UsageError
from ...core.storage import read_named_file
from ...language.tests.suites import ENDING
from ...syntax.nodes import FILE_BYTES

FOLDER = "tests"
"""The folder beside the configuration in which test files are looked for, too."""


class SuiteFile(Struct, frozen=True):
    """The text of a test file."""

    name: str
    """Its path, as messages name it."""
    content: bytes


def read_suite_files(named: Sequence[Path] = (), folder: Path = Path()) -> tuple[SuiteFile, ...]:
    """Read the named files and the test files of the named folders; by default those of the folder
    of the configuration and of its `tests` folder. Raises UsageError."""
    paths = list(dict.fromkeys(_list_named(named))) if named else list_default_files(folder)
    if not paths:
        folders = ", ".join(map(str, named)) or f"this folder or in {FOLDER}"
        raise UsageError(
            f"there is no test file in {folders}",
            f"Write one whose name ends in {ENDING}, such as {FOLDER}/main{ENDING}.",
        )
    return tuple(
        SuiteFile(str(path if named else path.relative_to(folder)), _read_file(path))
        for path in paths
    )


def list_default_files(folder: Path = Path()) -> list[Path]:
    """The test files of a folder and of its `tests` folder."""
    return [*_list_folder(folder), *_list_folder(folder / FOLDER)]


def _list_named(named: Sequence[Path]) -> Iterator[Path]:
    for path in named:
        if path.is_dir():
            yield from _list_folder(path)
        elif path.name.endswith(ENDING):
            yield path
        else:
            raise UsageError(
                f"{path} is not a test file", f"The names of test files end in {ENDING}."
            )


def _list_folder(folder: Path) -> Iterator[Path]:
    # Editors keep copies of a file beside it under a name with a leading dot.
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.endswith(ENDING) and path.name[0] != "." and path.is_file():
            yield path


def _read_file(path: Path) -> bytes:
    try:
        return read_named_file(path, FILE_BYTES)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
