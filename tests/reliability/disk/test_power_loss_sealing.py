"""The power is lost at any moment of a seal: whatever the disk kept, no line is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from kafkaform.audit.sinks.local import LocalSink
from kafkaform.state.backends.local import LocalBackend
from kafkaform.workflow.stores import Store

from ...kit.promises import LOG, STATE
from ...kit.sealing import check_as_documented, find_faults, run_seal, write_runs
from .disk import Image, images
from .recorder import Recorder
from .scene import without_fsync

LONG = "KAFKAFORM_LONG" in os.environ
SAMPLE = 60
SIZES = (1, 2, 3, 1, 2, 3, 2)


def open_store(folder: Path) -> Store:
    return Store(folder, LocalBackend(folder / STATE), LocalSink(folder / LOG))


def record(folder: Path, times: int) -> tuple[Recorder, list[bytes]]:
    """A recorded seal, after so many earlier ones, and the lines of the log."""
    folder.mkdir()
    with without_fsync():
        for _ in range(times):
            write_runs(open_store(folder), *SIZES)
            assert run_seal(open_store(folder)) == []
        lines = write_runs(open_store(folder), *SIZES)
    recorder = Recorder.of(folder)
    with recorder.recording():
        assert run_seal(open_store(folder)) == []
    return recorder, lines


def judge(chosen: Sequence[Image], folder: Path, lines: list[bytes]) -> list[str]:
    found = []
    for image in chosen:
        folder.mkdir()
        image.put(folder)
        about = f"{image.kind} after {image.at} operations: {image.about}"
        said = check_as_documented(folder / LOG) if image.at % 7 == 0 else ""
        faults = [said] if said else []
        with without_fsync():
            faults += find_faults(open_store(folder), lines)
            later = write_runs(open_store(folder), 2)
            faults += run_seal(open_store(folder))
        faults += find_faults(open_store(folder), later)
        if later[: len(lines)] != lines:
            faults.append("the next run did not go on after the last line")
        found += [f"{about}: {fault}" for fault in faults]
        shutil.rmtree(folder)
    return found


@pytest.mark.parametrize("times", [0, 1], ids=["first", "later"])
def test_power_is_lost_during_a_seal(tmp_path: Path, times: int) -> None:
    """A sample of the images of a whole seal: every line that was there is there."""
    recorder, lines = record(tmp_path / "run", times)
    every = list(images(recorder.tape, grain=400))
    assert len(every) > 100
    chosen = every if LONG else Random(7).sample(every, SAMPLE)
    assert judge(chosen, tmp_path / "image", lines) == []


def test_a_tape_of_a_seal_misses_nothing(tmp_path: Path) -> None:
    """Played to its end, what was recorded of a seal is what the folder holds."""
    folder = tmp_path / "run"
    recorder, _ = record(folder, 1)
    held = {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
    assert recorder.tape.files(len(recorder.ops)) == held
    assert len(held) > 4
