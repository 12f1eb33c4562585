"""A disk that fails at any operation of an apply: what cannot be recorded is not sent, what was
sent is not lost, and on a healthy disk the next apply puts everything right."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from ...kit.promises import LOG, STATE
from .failing import ERRORS, Fault, broken, points, rescuing
from .recorder import Recorder
from .scene import FIRST, applied, lived
from .test_power_loss import new


@pytest.mark.slow("applies once for each operation of the disk")
def test_every_operation_can_fail(tmp_path: Path) -> None:
    """Each operation fails once or from then on, with one of six errors: exit code 9, or the
    operation was not needed; nothing is appended to a log whose write or fsync failed; the next
    apply on a healthy disk keeps NL1-NL5."""
    ops, wanted = points(new(tmp_path / "count"), [], FIRST)
    assert {op.what for op in ops} >= {"create", "open", "write", "fsync", "rename", "link"}
    codes: Counter[int] = Counter()
    spared = set()
    for number, op in enumerate(ops):
        error = ERRORS[number % len(ERRORS)]
        fault = Fault(number, error, lasting=number % 2 == 1, half=number % 4 == 0)
        ended, found = broken(new(tmp_path / "x"), [], FIRST, fault, wanted)
        assert found == [], (str(fault), op.what, op.path, ended)
        codes[ended.code] += 1
        if ended.code == 0:
            spared.add((op.what, op.path))
        shutil.rmtree(tmp_path / "x")
        shutil.rmtree(tmp_path / "x-elsewhere")
    assert codes[9] == len(ops) - 1
    assert spared == {("truncate", ".kafkaform/lock")}


@pytest.mark.parametrize(
    ("what", "path", "count", "words"),
    [
        ("fallocate", "tmp", 0, "so nothing is sent"),
        ("write", LOG, 1, "2 steps were not sent"),
        ("fsync", LOG, 2, "What was known: kafka_topic.a applied, kafka_topic.c applied"),
        ("rename", STATE, 0, "What is known was saved to "),
    ],
)
def test_the_message_says_what_is_known(
    tmp_path: Path, what: str, path: str, count: int, words: str
) -> None:
    """Before anything is sent, between intent and request, after the answer, and at the state:
    each message says what was sent and where the rest of the truth is."""
    ops, wanted = points(new(tmp_path / "count"), [], FIRST)
    numbers = [n for n, op in enumerate(ops) if op.what == what and op.path.endswith(path)]
    fault = Fault(numbers[count], "EIO")
    ended, found = broken(new(tmp_path / "x"), [], FIRST, fault, wanted)
    assert found == []
    assert ended.code == 9
    assert words in ended.said
    assert "input/output error" in ended.said


def test_nowhere_to_save_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the state can be saved nowhere, the message says that the log has every outcome, and
    half a file is left nowhere."""
    ops, _ = points(new(tmp_path / "count"), [], FIRST)
    rename = next(n for n, op in enumerate(ops) if op.what == "rename")
    folder = new(tmp_path / "disk")
    where = lived(new(folder / "run"), [])
    # The places to save to are on the same disk, which is full from then on.
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    recorder = Recorder.of(folder)
    Fault(rename, "ENOSPC", lasting=True).arrange(recorder)
    with recorder.recording():
        ended = applied(where, FIRST)
    assert ended.code == 9
    assert (
        "could not be saved elsewhere either, but every outcome is in the audit log" in ended.said
    )
    assert [file.name for file in folder.iterdir()] == ["run"]
    with rescuing(folder):
        assert applied(where, FIRST).code == 0
