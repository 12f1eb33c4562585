"""Find the folders of a repository: which folders match which `folders` block."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics
from ...core.errors import ConfigurationError, KafkaformError, UsageError
from ...language.declare.blocks import Header
from ...language.declare.folder import FAMILIES
from ...language.values.faults import make_error
from .repository import FILES, FolderGroup, Repository, RepositoryFolder, find_name_fault
from .repository_file import Scope, evaluate_folder, make_scope, read_repository

_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors of a path that leads to no folder."""
ANY = "**"
"""The part of a pattern that stands for any number of folders, also none."""


def list_folders(repository: Repository) -> tuple[RepositoryFolder, ...]:
    """The folders that match a `folders` block and have configuration files, sorted by their paths.

    A folder that cannot be used has the reasons as `faults`, so that the others go on. Folders
    whose names begin with a dot belong to tools and match no wildcard. Raises UsageError for a
    folder between the file and those folders that cannot be read.
    """
    scope = make_scope(repository.path, repository.clusters, repository.owner)
    paths = {path for group in repository.groups for path in expand_pattern(repository, group)}
    folders = (
        _make_folder(repository, path, scope)
        for path in sorted(paths)
        if _has_configuration(repository.path / path)
    )
    return tuple(_refuse_shared_states(folders))


def _refuse_shared_states(folders: Iterable[RepositoryFolder]) -> Iterator[RepositoryFolder]:
    """The folders, with a fault for each one whose state another one has already."""
    users: dict[str, str] = {}
    for folder in folders:
        user = users.setdefault(folder.state or folder.path, folder.path)
        if user == folder.path:
            yield folder
            continue
        fault = make_error(
            Header(folder.group.block),
            f"the folder {folder.path} has the same state as {user}: {folder.state}",
            advice="Write ${folder.path} into it.",
        )
        yield replace(folder, faults=(*folder.faults, fault))


def find_repository_faults(path: Path, content: bytes) -> Diagnostics:
    """The faults of the file with this text, and of the folders that its blocks match."""
    try:
        folders = list_folders(read_repository(path, content=content))
    except KafkaformError as error:
        return error.diagnostics
    return tuple(fault for folder in folders for fault in folder.faults)


def find_folder(repository: Repository, folder: Path) -> RepositoryFolder | None:
    """What the repository says about one folder; None if no `folders` block matches it. Raises
    ConfigurationError if it cannot be used.

    folder: absolute, as it was named. What a block matches by that name counts, so that a link is
    refused; otherwise the place without links.
    """
    for top, named in ((repository.path, folder), (repository.path.resolve(), folder.resolve())):
        if not named.is_relative_to(top) or named == top:
            continue
        path = named.relative_to(top).as_posix()
        if not _select_groups(repository, path):
            continue
        item = _make_folder(
            repository, path, make_scope(repository.path, repository.clusters, repository.owner)
        )
        if item.faults:
            raise ConfigurationError(f"{path} cannot be used", diagnostics=item.faults)
        return item
    return None


def match_folders(
    repository: Repository, folders: Sequence[RepositoryFolder], patterns: Sequence[str]
) -> tuple[RepositoryFolder, ...]:
    """The folders that some of these patterns match. Raises UsageError for a pattern that matches
    none."""
    selected = {
        folder.path
        for pattern in patterns
        for folder in folders
        if compile_pattern(pattern.strip("/")).fullmatch(folder.path)
    }
    for pattern in patterns:
        if not any(compile_pattern(pattern.strip("/")).fullmatch(f.path) for f in folders):
            paths = ", ".join(folder.path for folder in folders[:5])
            suffix = f" and {len(folders) - 5} more" if len(folders) > 5 else ""
            raise UsageError(
                f"no folder of the repository {repository.name} matches {pattern}",
                f"The folders are {paths}{suffix}."
                if folders
                else "The repository has no folders.",
            )
    return tuple(folder for folder in folders if folder.path in selected)


def _make_folder(repository: Repository, path: str, scope: Scope) -> RepositoryFolder:
    groups = _select_groups(repository, path)
    # The narrowest block counts, and only if there is one: its folders match all others as well.
    group = next(
        (
            group
            for group in groups
            if all(_is_within(group.pattern, wider.pattern) for wider in groups)
        ),
        None,
    )
    faults = [*_find_path_faults(repository.path, path, group or groups[0])]
    if group is None:
        faults.append(_make_overlap_fault(path, groups))
    if faults or group is None:
        return RepositoryFolder(
            path, path.rpartition("/")[2], group or groups[0], faults=tuple(faults)
        )
    own_scope = replace(scope, faults=[])
    folder = evaluate_folder(group, path, repository.path, own_scope)
    if folder is None:
        name = path.rpartition("/")[2]
        return RepositoryFolder(path, name, group, faults=tuple(own_scope.faults))
    return folder if repository.base is None else replace(folder, base=repository.base)


def _find_path_faults(repository: Path, path: str, group: FolderGroup) -> Iterator[Diagnostic]:
    """Why a folder cannot be used because of its path, at the block that matches it."""
    location = Header(group.block)
    for name in path.split("/"):
        if reason := find_name_fault(name):
            yield make_error(
                location,
                f"the folder {path!r} is refused: {reason}",
                advice="Rename the folder, or write a narrower pattern.",
            )
            return
    link = _find_link(repository, path)
    if link is not None:
        yield make_error(
            location,
            f"the folder {path} is refused: {link} is a link",
            "A link could give the files of one folder the boundary and the state of another one.",
            "Put the folder itself there.",
        )
        return
    segments = path.split("/")
    for count in range(1, len(segments) + 1):
        for name in FILES:
            nested = "/".join((*segments[:count], name))
            if os.path.lexists(repository / nested):
                yield make_error(
                    location,
                    f"the folder {path} is refused: {nested} is below this file",
                    "A folder could change its own boundary with it.",
                    f"Remove {nested}. A repository has one such file, at its top.",
                )


def _find_link(repository: Path, path: str) -> str | None:
    segments = path.split("/")
    above = ("/".join(segments[:count]) for count in range(1, len(segments) + 1))
    return next((folder for folder in above if (repository / folder).is_symlink()), None)


def _has_configuration(folder: Path) -> bool:
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:  # whoever opens the folder says why it cannot be read
        return True
    return any(family.select_configuration(names) for family in FAMILIES)


# ── patterns ────────────────────────────────────────────────────────────────────────────


@cache
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The regular expression for the whole path of a folder. `*` is any text without a slash, `**`
    any number of folders."""
    expression = ""
    segments = pattern.split("/")
    for number, segment in enumerate(segments):
        last = number == len(segments) - 1
        if segment == ANY:
            expression += r"[^/]+(?:/[^/]+)*" if last else r"(?:[^/]+/)*"
        else:
            expression += "[^/]*".join(map(re.escape, segment.split("*"))) + ("" if last else "/")
    return re.compile(expression, re.DOTALL)


def _is_within(pattern: str, wider: str) -> bool:
    """Whether every folder that the pattern matches is matched by the wider one, too."""
    # A `*` of the pattern stays in the samples as a character that only a wildcard matches.
    segments = pattern.split("/")
    shallow = [segment for segment in segments[:-1] if segment != ANY]
    deep = ["*/*" if segment == ANY else segment for segment in segments]
    samples = ["/".join(path) for path in (segments, deep, [*shallow, segments[-1]])]
    expression = compile_pattern(wider)
    return all(map(expression.fullmatch, samples))


def _select_groups(repository: Repository, path: str) -> list[FolderGroup]:
    return [group for group in repository.groups if compile_pattern(group.pattern).fullmatch(path)]


def _make_overlap_fault(path: str, groups: Sequence[FolderGroup]) -> Diagnostic:
    first, *rivals = groups
    named = ", ".join(f'"{group.pattern}" ({group.location})' for group in rivals)
    return make_error(
        Header(first.block),
        f'two folders blocks match {path}, and none of them is more specific: "{first.pattern}" '
        f"and {named}",
        advice=f'Write folders "{path}" {{ … }}, or make one of the patterns narrower.',
    )


def expand_pattern(repository: Repository, group: FolderGroup) -> Iterator[str]:
    """The paths of all folders on the disk that a block matches, also links and odd names."""
    yield from _expand(repository.path, "", group.pattern.split("/"))


def _expand(repository: Path, path: str, segments: Sequence[str]) -> Iterator[str]:
    if not segments:
        if path:
            yield path
        return
    segment, further_segments = segments[0], segments[1:]
    prefix = f"{path}/" if path else ""
    if segment == ANY:
        # Any number of folders, also none; at the end, at least one.
        if further_segments:
            yield from _expand(repository, path, further_segments)
        for name in _list_folders(repository / path):
            if not further_segments:
                yield f"{prefix}{name}"
            yield from _expand(repository, f"{prefix}{name}", segments)
    elif "*" in segment:
        fits = compile_pattern(segment)
        for name in _list_folders(repository / path):
            if fits.fullmatch(name):
                yield from _expand(repository, f"{prefix}{name}", further_segments)
    elif _is_folder(repository / path / segment):
        yield from _expand(repository, f"{prefix}{segment}", further_segments)


def _list_folders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [e.name for e in entries if not e.name.startswith(".") and _is_folder(e)]
    except OSError as fault:
        if fault.errno in _NO_FOLDER:
            return []
        raise _make_unread_error(folder, fault) from None


def _is_folder(entry: os.DirEntry[str] | Path) -> bool:
    try:
        return entry.is_dir()
    except OSError as fault:
        # A link that leads to itself must not hide the folders beside it.
        if fault.errno in _NO_FOLDER:
            return False
        raise _make_unread_error(Path(entry), fault) from None


def _make_unread_error(folder: Path, fault: OSError) -> UsageError:
    # Its folders would be missing from every command without a word.
    return UsageError(
        f"{folder} cannot be read, and the folders in it would be left out: {fault.strerror}",
        "Let the user of this command read it, or write patterns that do not reach it.",
    )
