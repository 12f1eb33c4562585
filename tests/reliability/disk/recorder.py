"""Sits between a process and one folder: notes what is done to the disk, and lets it fail.

The functions of `os` are replaced while it records, so it works on every machine; that it misses
nothing is proven by playing the tape: it must end with the files that the folder holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from kafkaform.audit.sinks.local import LocalSink
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.codec import encode

from .disk import FOLDER, Op, Tape

ROOM = 1024
"""Bytes that room is noted with: how much it is makes no other image."""
REAL = {
    name: getattr(os, name)
    for name in (
        "open",
        "close",
        "fdopen",
        "write",
        "pwrite",
        "ftruncate",
        "fsync",
        "posix_fallocate",
        "unlink",
        "replace",
        "rename",
        "link",
        "mkdir",
    )
}


class Died(BaseException):
    """The process was killed; nothing that it still does has an effect."""


@dataclass(frozen=True)
class Opened:
    """A descriptor. inode: FOLDER for a folder."""

    path: str
    inode: int
    appends: bool


@dataclass
class Recorder:
    """before: asked before each operation; what it raises happens instead, and of a write the
    first half is done before that if `half` is set; saved, promised: what `save` and `append`
    returned from, with the number of operations until then; failed: the first operation that
    did, and how many were done before."""

    root: Path
    tape: Tape
    before: Callable[[Op], None] = lambda op: None
    half: bool = False
    names: dict[str, int] = field(default_factory=dict)
    opened: dict[int, Opened] = field(default_factory=dict)
    promised: list[tuple[int, bytes]] = field(default_factory=list)
    saved: list[tuple[int, bytes]] = field(default_factory=list)
    made: int = FOLDER
    failed: tuple[int, Op] | None = None

    @staticmethod
    def of(root: Path) -> Recorder:
        """What is in the folder now counts as durable."""
        base, numbers, made = {}, {}, FOLDER
        for file in sorted(root.rglob("*")):
            path = str(file.relative_to(root))
            if file.is_dir():
                numbers[path] = FOLDER
            else:
                made += 1
                numbers[path], base[path] = made, file.read_bytes()
        return Recorder(root, Tape(base, numbers), names=dict(numbers), made=made)

    @property
    def ops(self) -> list[Op]:
        assert isinstance(self.tape.ops, list)
        return self.tape.ops

    def mark(self, what: str) -> None:
        """Note that something else than an operation on the disk happened here."""
        self.ops.append(Op("mark", what))

    @contextmanager
    def recording(self) -> Iterator[Recorder]:
        """Everything inside goes through here; nothing is really fsynced."""
        with ExitStack() as stack:
            for name in REAL:
                stack.enter_context(mock.patch.object(os, name, getattr(self, f"_{name}")))
            for owner, name, note in (
                (LocalSink, "append", self._promised),
                (LocalBackend, "save", self._saved),
            ):
                stack.enter_context(mock.patch.object(owner, name, note(getattr(owner, name))))
            try:
                yield self
            finally:
                for descriptor in tuple(self.opened):  # the kernel does so when a process dies
                    self._close(descriptor)

    # ── what is promised ────────────────────────────────────────────────────────────────

    def _promised(self, append: Callable[..., Any]) -> Callable[..., Any]:
        def noted(sink: LocalSink, lines: list[bytes]) -> None:
            append(sink, lines)
            self.mark("promise")
            self.promised += [(len(self.ops), line) for line in lines]

        return noted

    def _saved(self, save: Callable[..., Any]) -> Callable[..., Any]:
        def noted(backend: LocalBackend, state: Any, version: str | None) -> str:
            made: str = save(backend, state, version)
            self.mark("saved")
            self.saved.append((len(self.ops), encode(state)))
            return made

        return noted

    # ── the functions of os ─────────────────────────────────────────────────────────────

    def _place(self, path: Any, folder: int | None = None) -> str | None:
        """The path below the folder, empty for itself; None if it is not below it. folder: the
        descriptor that the path begins at."""
        if folder is not None:
            opened = self.opened.get(folder)
            return None if opened is None else f"{opened.path}/{os.fspath(path)}".lstrip("/")
        try:
            text = str(Path(os.fspath(path)).relative_to(self.root))
        except ValueError:
            return None
        return "" if text == "." else text

    def _do(self, op: Op, act: Callable[[], Any]) -> Any:
        try:
            self.before(op)
        except (OSError, Died):
            self.failed = self.failed or (len(self.ops), op)
            if self.half and op.what == "write" and len(op.data) > 1:
                half = op.data[: len(op.data) // 2]
                self._half(op, half)
            raise
        done = act()
        self.ops.append(op)
        for path, inode in op.names:
            if inode is None:
                self.names.pop(path, None)
            else:
                self.names[path] = inode
        return done

    def _half(self, op: Op, half: bytes) -> None:
        descriptor = next(fd for fd, o in self.opened.items() if o.inode == op.inode)
        REAL["write"](descriptor, half)
        self.ops.append(Op("write", op.path, op.inode, at=op.at, data=half))
        self.failed = (len(self.ops), op)

    def _open(self, path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        place = self._place(path, more.get("dir_fd"))
        if place is None:
            return int(REAL["open"](path, flags, mode, **more))

        def act() -> int:
            return int(REAL["open"](path, flags, mode, **more))

        new = bool(flags & os.O_CREAT) and place not in self.names
        writes = flags & (os.O_WRONLY | os.O_RDWR)
        if new:
            self.made += 1
            op = Op("create", place, self.made, ((place, self.made),))
            descriptor: int = self._do(op, act)
        else:
            if writes:
                self.before(Op("open", place))
            descriptor = act()
        inode = self.names.get(place, FOLDER)
        self.opened[descriptor] = Opened(place, inode, bool(flags & os.O_APPEND))
        return descriptor

    def _close(self, descriptor: int) -> None:
        self.opened.pop(descriptor, None)
        REAL["close"](descriptor)

    def _fdopen(self, descriptor: int, mode: str = "r", *more: Any, **options: Any) -> Any:
        """From here on the file object closes it."""
        assert self.opened.pop(descriptor, None) is None or "r" in mode, "writes would be missed"
        return REAL["fdopen"](descriptor, mode, *more, **options)

    def _write(self, descriptor: int, data: Any) -> int:
        def act() -> int:
            return int(REAL["write"](descriptor, data))

        file = self.opened.get(descriptor)
        if file is None:
            return act()
        appends = file.appends
        at = os.fstat(descriptor).st_size if appends else os.lseek(descriptor, 0, os.SEEK_CUR)
        op = Op("write", file.path, file.inode, at=at, data=bytes(data))
        count: int = self._do(op, act)
        assert count == len(op.data)
        return count

    def _pwrite(self, descriptor: int, data: bytes, at: int) -> int:
        file = self.opened.get(descriptor)
        if file is None:
            return int(REAL["pwrite"](descriptor, data, at))
        op = Op("write", file.path, file.inode, at=at, data=bytes(data))
        return int(self._do(op, lambda: REAL["pwrite"](descriptor, data, at)))

    def _ftruncate(self, descriptor: int, length: int) -> None:
        self._change("truncate", descriptor, length, lambda: REAL["ftruncate"](descriptor, length))

    def _posix_fallocate(self, descriptor: int, at: int, length: int) -> None:
        # The room itself is of no interest here, and taking it for real takes time.
        self._change("fallocate", descriptor, min(at + length, ROOM), lambda: None)

    def _change(self, what: str, descriptor: int, length: int, act: Callable[[], None]) -> None:
        file = self.opened.get(descriptor)
        if file is None:
            act()
        else:
            self._do(Op(what, file.path, file.inode, length=length), act)

    def _fsync(self, descriptor: int) -> None:
        file = self.opened.get(descriptor)
        if file is None:
            return
        if file.inode == FOLDER:
            self._do(Op("sync_folder", file.path, folder=file.path), lambda: None)
        else:
            self._do(Op("fsync", file.path, file.inode), lambda: None)

    def _unlink(self, path: Any, **more: Any) -> None:
        place = self._place(path, more.get("dir_fd"))
        if place is None or place not in self.names:
            REAL["unlink"](path, **more)
            return
        self._do(Op("unlink", place, names=((place, None),)), lambda: REAL["unlink"](path, **more))

    def _replace(self, source: Any, target: Any, **more: Any) -> None:
        self._rename(source, target, **more)

    def _rename(self, source: Any, target: Any, **more: Any) -> None:
        before, after = self._places(source, target, more)
        assert before is not None and after is not None, "a rename out of the folder"
        names = ((before, None), (after, self.names[before]))
        op = Op("rename", after, self.names[before], names)
        self._do(op, lambda: REAL["replace"](source, target, **more))

    def _places(
        self, source: Any, target: Any, more: dict[str, Any]
    ) -> tuple[str | None, str | None]:
        before = self._place(source, more.get("src_dir_fd"))
        return before, self._place(target, more.get("dst_dir_fd"))

    def _link(self, source: Any, target: Any, **more: Any) -> None:
        before, after = self._places(source, target, more)
        assert before is not None and after is not None, "a link out of the folder"
        op = Op("link", after, self.names[before], ((after, self.names[before]),))
        self._do(op, lambda: REAL["link"](source, target, **more))

    def _mkdir(self, path: Any, mode: int = 0o777, **more: Any) -> None:
        place = self._place(path, more.get("dir_fd"))
        if place is None or place in self.names:
            REAL["mkdir"](path, mode, **more)
            return
        op = Op("mkdir", place, names=((place, FOLDER),))
        self._do(op, lambda: REAL["mkdir"](path, mode, **more))
