"""Choose folders of the repository that a command is typed in: all, by globs, or those that
changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ...core.errors import UsageError
from ...core.value import EMPTY
from .repository import FILES, Repository, RepositoryFolder
from .repository_file import RepositoryText, find_base_repository, find_repository, read_repository
from .repository_folders import list_folders, match_folders


class FolderChoice(Struct, frozen=True):
    """The folders that a command is about."""

    repository: Repository
    folders: tuple[RepositoryFolder, ...]
    count: int
    """How many folders the repository has."""
    reasons: Mapping[str, str] = EMPTY
    """With --changed-since: path -> why the folder counts as changed."""


def choose_folders(
    start: Path,
    all: bool,
    globs: Sequence[str],
    since: str | None,
    environment: Mapping[str, str] | None = None,
) -> FolderChoice:
    """The folders that --all, --folder and --changed-since choose together; --changed-since alone
    looks at all folders.

    start: a folder of the repository; environment: for untrusted files, whose repository file is
    that of the branch that it names. Raises UsageError, and ConfigurationError with all faults of
    the repository file.
    """
    if all and globs:
        raise UsageError("--all and --folder exclude each other", "Leave one of them out.")
    if environment is not None:
        text = find_base_repository(start.absolute(), environment)
    else:
        file = find_repository(start)
        text = None if file is None else RepositoryText(file)
    if text is None:
        raise UsageError(
            f"there is no {FILES[0]} here or in a folder above",
            "--all, --folder and --changed-since choose folders of a repository. `kafkaform init "
            f"--repository` writes {FILES[0]} for the folders that are there.",
        )
    repository = read_repository(text.path, content=text.content, base=text.base)
    every = list_folders(repository)
    folders = match_folders(repository, every, globs) if globs else every
    if since is None:
        return FolderChoice(repository, folders, len(every))
    from .repository_changes import find_changes  # noqa: PLC0415  # only this flag asks git

    reasons = find_changes(repository, folders, since).folders
    changed = tuple(folder for folder in folders if folder.path in reasons)
    return FolderChoice(repository, changed, len(every), reasons)
