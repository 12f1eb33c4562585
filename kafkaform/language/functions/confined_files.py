"""Read files for functions, never outside the root of the configuration (architecture §8)."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...syntax.limits import FILE_BYTES
from ..values.faults import LimitFault
from ..values.limits import LIMITS
from .file_reader import Read
from .patterns import Allowance

if TYPE_CHECKING:
    from .file_globs import Glob

_BLOCK = 64 * 1024
"""Bytes to ask for at least."""
_CHECKOUT_ONLY = "with --untrusted, functions read regular files of the checkout only"
_CLOSED = frozenset({".git", ".kafkaform"})
"""Folders that may contain credentials or state, which a plan would show."""


def make_confined_reader(root: Path, folder: Path) -> Read:
    """A reader of regular files below `root`; relative paths start from `folder`.

    It follows symbolic links to files, but refuses those that lead out of the root, and does not
    list folders behind links. It raises an OSError that says why a path is refused.
    """
    top, allowance, name_counts = _render_top(root), Allowance(), Counter[str]()
    resolve = partial(_resolve_inside, top, str(folder), {})
    return Read(
        lambda path: _read_content(resolve(path), path),
        lambda path, pattern: _find_names(
            top, resolve(path), path, pattern, allowance, name_counts
        ),
    )


def make_checkout_reader(
    root: Path, folder: Path, list_files: Callable[[], Collection[str] | None]
) -> Read:
    """A reader for files that anybody can have written: regular files of the checkout `root` by
    relative paths, and no links.

    list_files: the files that belong to the checkout, relative to the root; None if all of them do.
    It is asked once, when the first path is read, and can raise OSError.
    """
    top, start = _render_top(root), os.path.realpath(folder)
    confined, list_once = make_confined_reader(root, folder), cache(list_files)

    def check(path: str) -> str:
        """The file that the path names. Raises PermissionError if it must not be read."""
        if os.path.isabs(path):  # noqa: PTH117
            raise PermissionError(f'"{path}" is an absolute path; {_CHECKOUT_ONLY}')
        target = os.path.normpath(os.path.join(start, path))  # noqa: PTH118
        if "\0" not in path and f"{target}/".startswith(top) and os.path.realpath(target) != target:
            raise PermissionError(f'"{path}" is a link or behind one; {_CHECKOUT_ONLY}')
        return target

    def is_listed(target: str) -> bool:
        files = list_once()
        return files is None or target.removeprefix(top) in files

    def content(path: str) -> bytes:
        target = check(path)
        data = confined.content(path)
        # A job can have left credentials beside the files of the branch, which would show them.
        if not is_listed(target):
            raise PermissionError(f'"{path}" is not tracked by git; {_CHECKOUT_ONLY}')
        return data

    def names(path: str, pattern: str) -> tuple[str, ...]:
        target = check(path)
        matches = [name for name in confined.names(path, pattern) if is_listed(f"{target}/{name}")]
        for name in matches:
            check(f"{path}/{name}")
        return tuple(matches)

    return Read(content, names)


def _render_top(root: Path) -> str:
    """The root with its links resolved and a slash at its end."""
    return f"{root.resolve()}/".replace("//", "/")


def _resolve_inside(top: str, folder: str, resolved_folders: dict[str, str], path: str) -> str:
    """The file that the path leads to. Raises PermissionError if it must not be read.

    top: the root with its links resolved, and a slash at its end. resolved_folders: folders -> the
    same with their links resolved, as far as they were met."""
    if "\0" in path:
        raise PermissionError("a path cannot contain a zero byte")
    # Links are resolved before the check: a link inside the root can lead anywhere. There can be
    # thousands of files, so these are texts and no `Path`, and each folder is resolved once.
    parent, name = os.path.split(os.path.join(folder, path))  # noqa: PTH118
    if name in ("", ".", ".."):
        parent, name = f"{parent}/{name}", ""
    if parent not in resolved_folders:
        resolved_folders[parent] = os.path.realpath(parent)
    target = os.path.join(resolved_folders[parent], name) if name else resolved_folders[parent]  # noqa: PTH118
    if name and os.path.islink(target):  # noqa: PTH114
        target = os.path.realpath(target)
    if not f"{target}/".startswith(top):
        raise PermissionError(f'"{path}" leads out of the root of the configuration')
    if _CLOSED.intersection(f"{target}/".removeprefix(top).split("/")):
        raise PermissionError(f'"{path}" is in a folder that configuration must not read')
    return target


@contextmanager
def _hide_system_paths(path: str) -> Iterator[None]:
    """Keep the system's reasons, but not its paths, which reveal something about the machine."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as fault:
        if fault.errno == errno.ELOOP:
            raise PermissionError(f'"{path}" is a link that leads to itself') from None
        reason = str(fault.strerror or fault).lower()
        raise PermissionError(f'"{path}" cannot be read: {reason}') from None


def _read_content(target: str, path: str) -> bytes:
    # Opening a pipe would wait for a writer for ever, so NONBLOCK. NOFOLLOW, because the path was
    # resolved: a link here was put there after the check.
    with _hide_system_paths(path):
        handle = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(f'"{path}" is not a regular file')
        content, block_size = b"", min(max(status.st_size, _BLOCK), FILE_BYTES) + 1
        # A file can grow, or have another size than it says: it ends where nothing more comes.
        while len(content) <= FILE_BYTES and (piece := os.read(handle, block_size)):
            content += piece
    finally:
        os.close(handle)
    if len(content) > FILE_BYTES:
        raise PermissionError(f'"{path}" is larger than {FILE_BYTES:,} bytes')
    return content


def _find_names(
    top: str, start: str, path: str, pattern: str, allowance: Allowance, name_counts: Counter[str]
) -> tuple[str, ...]:
    from .file_globs import parse_glob  # noqa: PLC0415  # only `fileset` needs it

    glob = parse_glob(pattern)
    names: list[str] = []
    with _hide_system_paths(path):
        for name, entry in _walk_files(Path(start), glob.depth, path, name_counts):
            if allowance.spend_time(partial(_is_match, glob, name)):
                names.append(name)
                if entry.is_symlink():
                    _resolve_inside(top, start, {}, name)
    return tuple(sorted(names))


def _is_match(glob: Glob, name: str, seconds: float) -> bool:
    return glob.expression.fullmatch(name, timeout=seconds) is not None


def _walk_files(
    start: Path, depth: int | None, path: str, name_counts: Counter[str]
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every file at most `depth` folders below, also links to files, by relative name. name_counts:
    counts the names in all folders that were listed in this run."""
    pending = [(start, "", 0)]
    while pending:
        folder, prefix, level = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name_counts["names"] += 1
                if name_counts["names"] > LIMITS.elements:
                    detail = f"the listed folders contain more than {LIMITS.elements:,} names"
                    raise LimitFault(f'{detail}; the last one is "{path}"', 0)
                name = prefix + entry.name
                if entry.is_file():
                    yield name, entry
                elif entry.name in _CLOSED or (depth is not None and level >= depth):
                    continue
                elif entry.is_dir(follow_symlinks=False):
                    pending.append((folder / entry.name, f"{name}/", level + 1))
