"""The power is lost at any moment of an apply: whatever the disk kept, the next apply recovers."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from kafkaform.core.resource import Desired

from ...kit.promises import LOG, STATE
from .disk import Image, Op, Tape, at_moment, images
from .recorder import Recorder
from .scene import FIRST, SECOND, Scene, contents, faults, killed_at, record, told

SAMPLE = 35
"""Images of each run that `make test` looks at; `make soak` looks at all."""
STORIES = {"first": ((), FIRST), "second": ((FIRST,), SECOND)}


def new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def judged(scene: Scene, chosen: Sequence[Image], folder: Path) -> list[str]:
    """The violations of these images."""
    found = []
    for image in chosen:
        broken = faults(scene, image, new(folder))
        shutil.rmtree(folder)
        if broken:
            found.append(told(image, broken))
    return found


def test_a_tape_misses_nothing(tmp_path: Path) -> None:
    """Played to its end, what was recorded of an apply is what the folder holds."""
    folder = new(tmp_path / "run")
    scene = record(folder, [FIRST], SECOND)
    held = {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
    assert scene.recorder.tape.files(len(scene.recorder.ops)) == held
    assert held.keys() > {STATE, LOG}


def test_intents_are_durable_before_anything_is_sent(tmp_path: Path) -> None:
    """At each request, everything that was written to the log is certain to be on the disk, and
    so is the log's name."""
    scene = record(new(tmp_path / "run"), [], FIRST)
    sent = [number for number, op in enumerate(scene.recorder.ops) if op.path == "sent"]
    assert sent
    for number in sent:
        pending = [scene.recorder.ops[n].path for n in scene.recorder.tape.pending(number)]
        assert LOG not in pending


def test_the_log_is_only_ever_appended_to(tmp_path: Path) -> None:
    """Each write to the log begins where the log ended, and nothing but a torn end is cut off."""
    scene = record(new(tmp_path / "run"), [], FIRST, runs=(torn, lambda recorder: None))
    length = cuts = 0
    for op in scene.recorder.ops:
        if op.path == LOG and op.what == "truncate":
            cuts += 1
            assert 0 < op.length < length
            length = op.length
        elif op.path == LOG and op.what == "write":
            assert op.at == length
            length += len(op.data)
    assert cuts == 1


def torn(recorder: Recorder) -> None:
    """The process dies in the middle of the second append."""
    killed_at(17, half=True)(recorder)


@pytest.mark.parametrize(
    "story", ["first", pytest.param("second", marks=pytest.mark.slow("looks at many images"))]
)
def test_power_is_lost(tmp_path: Path, story: str) -> None:
    """A sample of the images of a whole run: nothing is lost (NL1-NL5), and a second apply has
    nothing to do."""
    earlier, said = STORIES[story]
    scene = record(new(tmp_path / "run"), earlier, said)
    every = list(images(scene.recorder.tape, grain=400))
    assert len(every) > 500
    assert judged(scene, Random(7).sample(every, SAMPLE), tmp_path / "image") == []


@pytest.mark.parametrize("number", [12, 13, 14, 16])
def test_power_is_lost_after_a_kill(tmp_path: Path, number: int) -> None:
    """A process is killed before what it wrote is durable, the next one goes on, and then the
    power is lost: what the second one built on is there."""
    scene = killed(new(tmp_path / "run"), (), FIRST, number)
    assert judged(scene, bare(scene), tmp_path / "image") == []


def killed(folder: Path, earlier: Sequence[Desired], said: Desired, number: int) -> Scene:
    return record(folder, earlier, said, runs=(killed_at(number), lambda recorder: None))


def bare(scene: Scene) -> list[Image]:
    """With nothing that is pending, at each moment of the second run."""
    tape = scene.recorder.tape
    start = next(n for n, op in enumerate(tape.ops) if op.path == "process ended")
    found = {
        image.digest: image
        for at in range(start, len(tape.ops) + 1)
        for image in at_moment(tape, at, 1 << 20)
        if image.kind == "nothing that is pending"
    }
    return list(found.values())


def test_what_was_torn_off_is_kept(tmp_path: Path) -> None:
    """Once the torn end is cut off the log, its bytes are certain to be kept aside."""
    scene = record(new(tmp_path / "run"), [], FIRST, runs=(torn, lambda recorder: None))
    tape = scene.recorder.tape
    cut = next(n for n, op in enumerate(tape.ops) if op.what == "truncate" and op.path == LOG)
    before = tape.files(cut)[LOG]
    piece = before[before.rfind(b"\n") + 1 :]
    assert piece
    for at in range(cut + 1, len(tape.ops) + 1):
        for image in at_moment(tape, at, 1 << 20):
            assert piece in image.files[LOG] or piece in image.files.values()


def test_the_model_of_a_disk() -> None:
    """What is durable is there, a name without its fsynced folder may be gone, and a file's end
    may be zeros."""
    ops = [
        Op("create", "f", 1, (("f", 1),)),
        Op("write", "f", 1, at=0, data=b"one\n"),
        Op("fsync", "f", 1),
        Op("sync_folder", "", folder=""),
        Op("write", "f", 1, at=4, data=b"two\n"),
        Op("create", "g", 2, (("g", 2),)),
    ]
    found = [dict(image.files) for image in at_moment(Tape({}, {}, ops), len(ops), 2)]
    assert {"f": b"one\n"} in found
    assert {"f": b"one\ntwo\n", "g": b""} in found
    assert {"f": b"one\n", "g": b""} in found
    assert {"f": b"one\nt\0\0\0", "g": b""} in found
    assert all(files["f"].startswith(b"one\n") for files in found)


def test_a_torn_end_is_mended_even_if_nothing_is_to_do(tmp_path: Path) -> None:
    """An apply without changes leaves a log that ends with a whole record."""
    folder = new(tmp_path / "run")
    scene = record(folder, [], FIRST)
    last = scene.recorder.tape.files(len(scene.recorder.ops))
    image = Image("torn", len(scene.recorder.ops), {**last, LOG: last[LOG] + b'{"actor":"x\n'})
    assert judged(scene, [image], tmp_path / "image") == []
    assert contents(folder)[LOG].endswith(b"\n")
