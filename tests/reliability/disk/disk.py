"""A disk as a list of operations, and what of it may be there after the power was lost.

The rules are POSIX's, read strictly. What a file holds is certain when the file was fsynced
after it was written, and a name when the folder was fsynced after it was made, moved or removed;
neither includes the other. Of everything else any part may be there, in any order: names without
what their files hold, a file's length without its bytes, a later block without an earlier one.
Source: Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

SECTOR = 512
FOLDER = 0
"""Stands for a folder where a name leads to a file's number."""
Names = tuple[tuple[str, int | None], ...]
Files = Mapping[str, bytes]
"""Path below the folder -> what the file holds."""


@dataclass(frozen=True)
class Op:
    """One operation. what: its name; path: of the file, for people; inode: of the file whose
    bytes it changes or makes durable; names: paths -> what they lead to afterwards; at, data: of
    a write; length: of a cut or of room that is taken; folder: that is made durable."""

    what: str
    path: str
    inode: int = -1
    names: Names = ()
    at: int = 0
    data: bytes = b""
    length: int = 0
    folder: str | None = None

    @property
    def changes(self) -> bool:
        """True if it changes what a file holds."""
        return self.what in ("write", "truncate", "fallocate")


@dataclass(frozen=True)
class Image:
    """What is on the disk. kind: which rule made it; at: how many operations came before;
    about: which of them it concerns."""

    kind: str
    at: int
    files: Files
    about: str = ""

    @property
    def digest(self) -> str:
        found = hashlib.sha256()
        for path, data in sorted(self.files.items()):
            found.update(f"{path}\0{len(data)}\0".encode() + data)
        return found.hexdigest()

    def put(self, folder: Path) -> None:
        """Make the folder hold exactly this; it is empty."""
        for path, data in self.files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


Change = Mapping[int, Op | None]
"""Number of a pending operation -> what became of it; those that are not named are whole."""


@dataclass(frozen=True)
class Tape:
    """base: what was durable before the first operation; numbers: inodes of those files."""

    base: Files
    numbers: Mapping[str, int]
    ops: Sequence[Op] = field(default_factory=list)

    def files(self, at: int, change: Change | None = None) -> Files:
        """What is there after so many operations, if the pending ones became this."""
        change = change or {}
        names: dict[str, int] = dict(self.numbers)
        held = {self.numbers[path]: data for path, data in self.base.items()}
        for number, op in enumerate(self.ops[:at]):
            done = change.get(number, op)
            if done is None:
                continue
            for path, inode in done.names:
                if inode is None:
                    names.pop(path, None)
                else:
                    names[path] = inode
            if done.changes:
                held[done.inode] = written(held.get(done.inode, b""), done)
        return {
            path: held.get(inode, b"")
            for path, inode in names.items()
            if inode != FOLDER and _reachable(path, names)
        }

    def pending(self, at: int) -> list[int]:
        """Numbers of the operations before `at` that are not certain to be on the disk."""
        files: set[int] = set()
        folders: set[str] = set()
        found = []
        for number in range(at - 1, -1, -1):
            op = self.ops[number]
            if op.what == "fsync":
                files.add(op.inode)
            elif op.folder is not None:
                folders.add(op.folder)
            elif _uncertain(op, files, folders):
                found.append(number)
        return found[::-1]


def _uncertain(op: Op, files: set[int], folders: set[str]) -> bool:
    """files, folders: those that are made durable later."""
    if op.changes:
        return op.inode not in files
    return bool(op.names) and _parent(op.names[-1][0]) not in folders


def written(before: bytes, op: Op) -> bytes:
    """A file's bytes after this operation."""
    if op.what == "truncate":
        return before[: op.length].ljust(op.length, b"\0")
    if op.what == "fallocate":
        return before.ljust(op.length, b"\0")
    return before[: op.at].ljust(op.at, b"\0") + op.data + before[op.at + len(op.data) :]


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _reachable(path: str, names: Mapping[str, int]) -> bool:
    parent = _parent(path)
    return not parent or (names.get(parent) == FOLDER and _reachable(parent, names))


# ── what may be left ────────────────────────────────────────────────────────────────────


def images(tape: Tape, grain: int) -> Iterator[Image]:
    """Every image that differs from all before it, at every moment. grain: about how many bytes
    lie between two places where a write is cut."""
    seen: set[tuple[str, int]] = set()
    moment = 0
    for at in range(len(tape.ops) + 1):
        if at and tape.ops[at - 1].what == "mark":
            moment = at  # the cluster, or what was promised, is another one since
        for image in at_moment(tape, at, grain):
            if (image.digest, moment) not in seen:
                seen.add((image.digest, moment))
                yield image


def at_moment(tape: Tape, at: int, grain: int) -> Iterator[Image]:
    """What may be there if the power is lost after so many operations."""
    pending = tape.pending(at)
    named = [number for number in pending if tape.ops[number].names]
    data = [number for number in pending if tape.ops[number].changes]

    def image(kind: str, change: Change, about: str = "") -> Image:
        return Image(kind, at, tape.files(at, change), about)

    yield image("everything is there", {})
    yield image("nothing that is pending", dict.fromkeys(pending))
    yield image("names without data", dict.fromkeys(data))
    yield image("data without names", dict.fromkeys(named))
    for number in named:
        about = f"{tape.ops[number].what} {tape.ops[number].path}"
        yield image("one name is lost", {number: None}, about)
        others = {other: None for other in named if other != number}
        yield image("only one name is there", others, about)
        yield image("one name before data", {**others, **dict.fromkeys(data)}, about)
    for number in data:
        op = tape.ops[number]
        for kind, damaged in damage(op, grain):
            yield image(kind, {number: damaged}, f"{op.what} {op.path}")


def damage(op: Op, grain: int) -> Iterator[tuple[str, Op]]:
    """What may be left of one write that was not made durable."""
    if op.what != "write":
        return
    size = len(op.data)
    random = Random(size)
    noise = random.randbytes(size)
    lines = [place + 1 for place in range(size) if op.data[place : place + 1] == b"\n"]
    for cut in sorted({*range(1, size, grain), *lines, *(line - 1 for line in lines)} - {0, size}):
        head = op.data[:cut]
        yield "a write cut short", replace(op, data=head)
        yield "a tail of zeros", replace(op, data=head.ljust(size, b"\0"))
    for first, last in sectors(op.at, size, grain):
        zeros, garbage = b"\0" * (last - first), noise[first:last]
        yield "a block of zeros", replace(op, data=_over(op.data, first, zeros))
        yield "a block of garbage", replace(op, data=_over(op.data, first, garbage))
        lines_of = garbage[:-1] + b"\n"
        yield "garbage that ends a line", replace(op, data=_over(op.data, first, lines_of))
    yield "garbage alone", replace(op, data=noise)


def sectors(at: int, size: int, grain: int) -> Iterator[tuple[int, int]]:
    """Where blocks of the disk begin and end in a write: the first, the last, some between."""
    edges = [0, *range(SECTOR - at % SECTOR, size, SECTOR), size]
    pairs = [pair for pair in zip(edges, edges[1:], strict=False) if pair[0] < pair[1]]
    step = max(1, grain // SECTOR)
    yield from dict.fromkeys((*pairs[:1], *pairs[::step], *pairs[-1:]))


def _over(data: bytes, first: int, piece: bytes) -> bytes:
    return data[:first] + piece + data[first + len(piece) :]
