"""A disk that says no: one operation of an apply fails, once or from then on."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from kafkaform.core.resource import Desired
from kafkaform.state.codec import decode

from ...kit.promises import LOG, Before, World
from .disk import Op
from .recorder import Recorder
from .scene import Ended, applied, lived, unrecovered, world

ERRORS = ("ENOSPC", "EDQUOT", "EIO", "EFBIG", "EROFS", "EACCES")


@dataclass(frozen=True)
class Fault:
    """number: of the operation that fails, from 0; lasting: so do all after it; half: a write is
    done by half before it fails."""

    number: int
    error: str
    lasting: bool = False
    half: bool = False

    def __str__(self) -> str:
        more = " from then on" * self.lasting + " half way" * self.half
        return f"operation {self.number}: {self.error}{more}"

    def arrange(self, recorder: Recorder) -> None:
        """Let it happen to what is recorded next."""
        count = 0
        code = getattr(errno, self.error)

        def fail(op: Op) -> None:
            nonlocal count
            count += 1
            if count == self.number + 1 or (self.lasting and count > self.number):
                raise OSError(code, os.strerror(code))

        recorder.before, recorder.half = fail, self.half


def points(folder: Path, earlier: Sequence[Desired], said: Desired) -> tuple[list[Op], World]:
    """The operations of an apply, in order, which can all fail; and what lives after it."""
    found: list[Op] = []
    where = lived(folder, earlier)
    recorder = Recorder.of(folder)
    recorder.before = found.append
    with recorder.recording():
        assert applied(where, said).code == 0
    return found, world(where.cluster)


@contextmanager
def rescuing(folder: Path) -> Iterator[None]:
    """What cannot be saved in its place is saved here, on another disk."""
    with mock.patch.object(tempfile, "tempdir", str(folder)):
        yield


def broken(
    folder: Path, earlier: Sequence[Desired], said: Desired, fault: Fault, wanted: World
) -> tuple[Ended, list[str]]:
    """How an apply on such a disk ended, and what does not hold of it, or of the next ones on a
    healthy disk."""
    where = lived(folder, earlier)
    before = Before.of(folder, world(where.cluster))
    elsewhere = folder.with_name(f"{folder.name}-elsewhere")
    elsewhere.mkdir()
    recorder = Recorder.of(folder)
    fault.arrange(recorder)
    with rescuing(elsewhere), recorder.recording():
        ended = applied(where, said)
    unsent = world(where.cluster) == before.world
    found = [*_answered(ended, elsewhere, unsent=unsent), *_repeated(recorder)]
    return ended, [*found, *unrecovered(where, folder, said, before, wanted)]


def _answered(ended: Ended, elsewhere: Path, *, unsent: bool) -> Iterator[str]:
    """It went well in spite of the fault, or ended with 9, and what was rescued is named."""
    if ended.code not in (0, 9):
        yield f"it ended with {ended}"
    if "nothing is sent" in ended.said and not unsent:
        yield "it said that nothing is sent"
    for path in elsewhere.iterdir():
        decode(path.read_bytes(), str(path))
        if str(path) not in ended.said:
            yield f"{path} was left and not named"


def _repeated(recorder: Recorder) -> Iterator[str]:
    """Nothing is written to the log once that, or its fsync, has failed."""
    if recorder.failed is None or recorder.failed[1].path != LOG:
        return
    number, op = recorder.failed
    if op.what in ("write", "fsync"):
        late = [o for o in recorder.ops[number:] if o.what == "write" and o.path == LOG]
        yield from (f"after a failed {op.what} the log got {len(o.data)} bytes" for o in late)
