"""Every image that a power loss may leave of three runs, every operation of an apply failing in
every way, and every byte of a state cut off or flipped."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from kafkaform.core.errors import StorageError
from kafkaform.core.resource import Desired
from kafkaform.state.codec import decode

from ..kit.promises import STATE
from ..reliability.disk import failing
from ..reliability.disk.disk import Image, images
from ..reliability.disk.mounted import full_disk
from ..reliability.disk.scene import FIRST, SECOND, Scene, faults, lived, record, told
from ..reliability.disk.test_power_loss import bare, killed
from .figures import Figures

STORIES: tuple[tuple[tuple[Desired, ...], Desired], ...] = (((), FIRST), ((FIRST,), SECOND))
GRAIN = 1000
"""Bytes between two places where a write is cut."""


def run(scale: float) -> Figures:
    """scale: 1 is every image, point and byte; 0.1 every tenth."""
    begun = time.monotonic()
    step = max(1, round(1 / scale))
    counts: Counter[str] = Counter()
    violations: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kafkaform-power-") as name:
        folder = Path(name)
        for part in (_images, _after_kills, _errors, _bytes, _mounted):
            violations += part(folder, step, counts)
    return Figures("power", dict(counts), tuple(violations), time.monotonic() - begun)


def _images(folder: Path, step: int, counts: Counter[str]) -> Iterator[str]:
    for earlier, said in STORIES:
        with _fresh(folder / "run") as place:
            scene = record(place, earlier, said)
        every = images(scene.recorder.tape, GRAIN)
        yield from _judged(folder, scene, [i for n, i in enumerate(every) if n % step == 0], counts)


def _after_kills(folder: Path, step: int, counts: Counter[str]) -> Iterator[str]:
    """The process is killed at each operation, the next one goes on, then the power is lost."""
    for earlier, said in STORIES:
        number = 0
        while True:
            with _fresh(folder / "run") as place:
                scene = killed(place, earlier, said, number)
            if scene.ended[0].code != -1:
                break
            counts["kills before a power loss"] += 1
            yield from _judged(folder, scene, bare(scene), counts)
            number += step


def _judged(
    folder: Path, scene: Scene, chosen: Sequence[Image], counts: Counter[str]
) -> Iterator[str]:
    for image in chosen:
        counts["images"] += 1
        counts[f"images: {image.kind}"] += 1
        with _fresh(folder / "image") as place:
            found = faults(scene, image, place)
        if found:
            yield told(image, found)


def _errors(folder: Path, step: int, counts: Counter[str]) -> Iterator[str]:
    for earlier, said in STORIES:
        with _fresh(folder / "run") as place:
            ops, wanted = failing.points(place, earlier, said)
        counts["points that can fail"] += len(ops)
        every = [
            (op, failing.Fault(number, error, lasting, half))
            for number, op in enumerate(ops)
            for error in failing.ERRORS
            for lasting, half in ((False, False), (True, False), (False, True))
            if not half or op.what == "write"
        ]
        for op, fault in every[::step]:
            with _fresh(folder / "x") as place:
                ended, found = failing.broken(place, earlier, said, fault, wanted)
            counts["errors injected"] += 1
            counts[f"errors: {fault.error}"] += 1
            counts[f"errors: exit {ended.code}"] += 1
            if found:
                yield f"{fault} ({op.what} {op.path}): {'; '.join(found)}"


def _bytes(folder: Path, step: int, counts: Counter[str]) -> Iterator[str]:
    """Every prefix, every prefix with a tail of zeros, every bit of a state."""
    with _fresh(folder / "run") as place:
        lived(place, [FIRST, SECOND])
        whole = (place / STATE).read_bytes()
    for number in range(0, len(whole), step):
        head, tail = whole[:number], whole[number + 1 :]
        variants = [head, head.ljust(len(whole), b"\0")]
        variants += [head + bytes([whole[number] ^ (1 << bit)]) + tail for bit in range(8)]
        for data in variants:
            counts["damaged states"] += 1
            try:
                decode(data, "s")
            except StorageError:
                continue
            yield f"a state damaged at byte {number} was read"


def _mounted(folder: Path, step: int, counts: Counter[str]) -> Iterator[str]:
    """A small disk that is really full, where one can be mounted."""
    found = full_disk(folder / "mounted")
    if found is None:
        counts["mounts that are not allowed here"] += 1
        return
    counts["real full disks and read-only mounts"] += found[0]
    yield from found[1]


class _fresh:
    """A folder that is gone afterwards, with what was rescued from it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Path:
        self.path.mkdir()
        return self.path

    def __exit__(self, *error: object) -> None:
        for path in (self.path, self.path.with_name(f"{self.path.name}-elsewhere")):
            shutil.rmtree(path, ignore_errors=True)
