"""Choose folders of the repository that a command is typed in: all, by globs, or those that changed
since a commit.

A folder changes by its own files, by what it reads elsewhere (modules, other files, outputs of
folders), and by what the repository file says. Nothing is evaluated. A folder counts as changed
rather once too often.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from os.path import normpath
from pathlib import Path

from msgspec import Struct

from ...core.canonical import digest
from ...core.errors import KafkaformError, UsageError
from ...core.value import EMPTY
from ...language.declare.folder import is_read
from .files import find_base, find_top, list_changed_files, read_at
from .repository import FILES, Repository, RepositoryFolder
from .repository_file import read_repository
from .repository_folders import list_folders, match_folders
from .repository_place import RepositoryText, find_base_repository, find_repository, outline_folder

_PATH = re.compile(rb"(?<![\w./-])(?:\.{1,2}/|\.\.(?=[\"'\s]))[^\"'\s$%{}()\[\]|<>,;]*")
"""A path that leads to another place, as files name modules, texts and folders."""
_BEHIND = re.compile(rb"\$\{path\.(?:module|root|cwd)\}/")
_ESCAPED = re.compile(rb"\\u00(?:2[eEfF])")
"""A dot or a slash that JSON hides."""
OWN = "its own files"


class Changes(Struct, frozen=True):
    """What changed since a commit."""

    commit: str
    folders: Mapping[str, str]
    """Path of a folder -> why it counts as changed, as the end of a sentence."""


def find_changes(repository: Repository, folders: Sequence[RepositoryFolder], ref: str) -> Changes:
    """The folders that changed since the checkout left a ref, in their order. Raises UsageError."""
    top = find_top(repository.path)
    commit = find_base(top, ref)
    files = list_changed_files(top, commit)
    own = _find_owners(repository, folders, files)
    is_different = _compare_file(repository, top, commit, files)
    read = _make_reader(frozenset(files))
    reasons = {
        folder.path: reason
        for folder in folders
        if (reason := _find_reason(repository, folder, own, is_different, files, read))
    }
    return Changes(commit, reasons)


def _find_reason(
    repository: Repository,
    folder: RepositoryFolder,
    own: Collection[str],
    is_different: Callable[[RepositoryFolder], bool],
    files: Collection[Path],
    read: Callable[[Path], str],
) -> str:
    if folder.path in own:
        return OWN
    if is_different(folder):
        return f"what {repository.file} says about it"
    for policies in folder.policies:
        if any(path.is_relative_to(policies) for path in files):
            return f"the policies of {policies.relative_to(repository.path)}"
    return read(repository.path / folder.path)


def _find_owners(
    repository: Repository, folders: Sequence[RepositoryFolder], files: Collection[Path]
) -> frozenset[str]:
    """The folders that have a changed file, or a folder below that has one. A file belongs to the
    nearest folder of the repository only."""
    paths = {repository.path / folder.path: folder.path for folder in folders}
    owners = (next((p for p in file.parents if p in paths), None) for file in files)
    return frozenset(paths[owner] for owner in owners if owner is not None)


# ── the repository file ─────────────────────────────────────────────────────────────────


def _compare_file(
    repository: Repository, top: Path, commit: str, files: Collection[Path]
) -> Callable[[RepositoryFolder], bool]:
    """Whether the file says something else about a folder than it said in the commit."""
    path = repository.path / repository.file.rpartition("/")[2]
    if path not in files:
        return lambda _: False
    content = read_at(top, commit, path.relative_to(top).as_posix())
    try:
        before = None if content is None else read_repository(path, content=content)
    except KafkaformError:
        before = None
    if before is None:  # the file is new, or could not be used before
        return lambda _: True
    outlines = {item.path: _outline(item) for item in list_folders(before)}
    return lambda folder: outlines.get(folder.path) != _outline(folder)


def _outline(folder: RepositoryFolder) -> tuple[str, str | None, tuple[Path, ...]]:
    return digest(outline_folder(folder)), folder.state, folder.policies


# ── what folders read ───────────────────────────────────────────────────────────────────


def _make_reader(files: frozenset[Path]) -> Callable[[Path], str]:
    """What finds the reason why something that a folder reads has changed; empty if nothing has.

    Paths are taken from the text, wherever they stand: of modules, of modules of those, of texts
    that `file` reads, and of folders whose outputs are read.
    """
    parents = frozenset(parent for file in files for parent in file.parents)

    @cache
    def list_targets(folder: Path) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(_list_targets(folder)))

    def find(folder: Path) -> str:
        pending, folders = [*list_targets(folder)], {folder}
        while pending:
            target = pending.pop()
            if target in folders:
                continue
            folders.add(target)
            if target in files or target in parents:
                return f"{target.name}, which it reads"
            pending.extend(list_targets(target))
        return ""

    return find


def _list_targets(folder: Path) -> Iterator[Path]:
    """The paths outside of a folder that its files name."""
    try:
        entries = [path for path in folder.iterdir() if is_read(path.name) and path.is_file()]
        texts = [path.read_bytes() for path in entries]
    except OSError:  # no folder, or one that cannot be read: whoever plans it says so
        return
    for text in texts:
        plain = _BEHIND.sub(b"./", text.replace(b"\\/", b"/"))
        if _ESCAPED.search(plain):
            yield folder.parent  # nobody writes paths so to be read
        for match in _PATH.finditer(plain):
            path = match[0].decode(errors="surrogateescape")
            target = Path(normpath(folder / path))
            if target != folder:
                yield target


class FolderChoice(Struct, frozen=True):
    """The folders that a command is about."""

    repository: Repository
    folders: tuple[RepositoryFolder, ...]
    remainder: tuple[RepositoryFolder, ...] = ()
    """The folders of the repository that were not chosen."""
    reasons: Mapping[str, str] = EMPTY
    """With --changed-since: path -> why the folder counts as changed."""

    @property
    def count(self) -> int:
        """How many folders the repository has."""
        return len(self.folders) + len(self.remainder)


def choose_folders(
    start: Path,
    all: bool,
    globs: Sequence[str],
    since: str | None,
    environment: Mapping[str, str] | None = None,
    reviewed: Collection[str] = (),
) -> FolderChoice:
    """The folders that --all, --folder and --changed-since choose together; --changed-since alone
    looks at all folders.

    start: a folder of the repository; environment: for untrusted files, whose repository file is
    that of the branch that it names; reviewed: paths of folders that --changed-since keeps although
    they did not change. Raises UsageError, and ConfigurationError with all faults of the repository
    file.
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
    reasons: Mapping[str, str] = EMPTY
    if since is not None:
        reasons = find_changes(repository, folders, since).folders
        paths = {*reasons, *reviewed}
        folders = tuple(folder for folder in folders if folder.path in paths)
    chosen = {folder.path for folder in folders}
    remainder = tuple(folder for folder in every if folder.path not in chosen)
    return FolderChoice(repository, folders, remainder, reasons)
