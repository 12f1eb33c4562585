"""How functions read files: the two questions that they ask, and a record of the answers."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ...core.canonical import digest, digest_bytes
from ...syntax.limits import ALL_FILES_BYTES
from ..values.faults import LimitFault


class Read(Struct, frozen=True):
    """Answers from a file system. Both raise FileNotFoundError, or another OSError that says why
    a path is refused."""

    content: Callable[[str], bytes]
    """Path -> the bytes of a file."""
    names: Callable[[str, str], tuple[str, ...]]
    """Folder, pattern -> the regular files below that match, relative to the folder, sorted."""


def record_reads(read: Read, reads: dict[str, str]) -> Read:
    """The same, but each path, or path and pattern, is looked at once; `reads` gets a digest of
    what is found there."""
    contents: dict[str, bytes] = {}
    total = 0
    listed: dict[tuple[str, str], tuple[str, ...]] = {}

    # A file that changes during the run must not be seen in two versions: the digest that goes
    # into the plan would then stand for only one of them.

    def content(path: str) -> bytes:
        nonlocal total
        if path not in contents:
            data = read.content(path)
            if total + len(data) > ALL_FILES_BYTES:
                raise LimitFault(f"files together have more than {ALL_FILES_BYTES:,} bytes", 0)
            total += len(data)
            contents[path] = data
            reads[path] = digest_bytes(data)
        return contents[path]

    def names(folder: str, pattern: str) -> tuple[str, ...]:
        if (folder, pattern) not in listed:
            matches = listed[folder, pattern] = read.names(folder, pattern)
            reads[f"{folder}: {pattern}"] = digest(matches)
        return listed[folder, pattern]

    return Read(content, names)
