"""Locks, disks and damaged files: what is sent is recorded, what cannot be recorded is not sent."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import tempfile
from pathlib import Path

import pytest

from kafkaform.core import storage
from kafkaform.core.clock import SystemClock
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.model import LockInfo
from kafkaform_kafka.session import KafkaSession

from ...kit.commands.folder import LOG, STATE, Folder
from ...kit.commands.rights import nobody, place


def test_a_locked_state(folder: Folder) -> None:
    """Whoever holds the lock is named; a plan needs no lock."""
    folder.declare("a")
    info = LockInfo("run-7", "nightly", "build-3", 4711, "2026-01-01T00:00:00Z", "apply")
    with LocalBackend(folder.path / STATE).lock(info, 0.0, SystemClock()):
        said = folder.fails(7, "apply", "-auto-approve")
        assert "nightly" in said
        assert "build-3" in said
        assert "--lock-timeout" in said
        assert "nightly on build-3" in folder.done("lock", "show").text
        folder.done("plan")
    folder.done("apply", "-auto-approve")


def test_a_state_that_cannot_be_written(folder: Folder) -> None:
    """Whether the folder is no folder or of a file system that takes no files: nothing is sent."""
    folder.declare("a")
    for file in ("provider.kf.hcl", "/proc", "/nowhere"):
        said = folder.fails(9, "apply", "-auto-approve", "--state", f"{file}/{STATE}")
        assert f"{file}/" in said


def test_a_folder_without_the_right_to_write(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading is enough to plan; apply says what is missing before it sends anything."""
    folder.declare("a")
    folder.done("plan")  # what the commands import is imported before
    folder.fails(9, "apply", "-auto-approve", "--state", f"/nowhere/{STATE}")
    before = folder.topics()
    with place(monkeypatch) as closed:
        for file in folder.path.glob("*.kf.hcl"):
            shutil.copy(file, closed)
        closed.chmod(0o555)
        with nobody():
            assert folder.run("plan").code == 0
            said = folder.run("apply", "-auto-approve")
        assert said.code == 9
        assert "permission denied" in said.text
        assert str(closed) in said.text
        assert folder.topics() == before


def test_a_full_disk_before_anything_is_sent(folder: Folder) -> None:
    """The room for state and log is taken before the first request."""
    folder.declare("a")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, hard))
    try:
        with folder.untouched():
            said = folder.run("apply", "-auto-approve")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert said.code == 9
    assert "nothing is sent" in said.text
    assert "ulimit -f" in said.text


def test_a_disk_that_fills_up_while_sending(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker did it and the state cannot be saved: the log holds the outcome, the state is
    rescued elsewhere, and the next apply takes the outcome in without sending it again."""
    rescue = folder.path / "elsewhere"
    rescue.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(rescue))
    folder.declare("a")
    with pytest.MonkeyPatch.context() as patch:
        _fill_up_while_sending(patch, folder.path)
        said = folder.run("apply", "-auto-approve")
    assert said.code == 9
    assert "the disk is full" in said.text
    (saved,) = rescue.iterdir()
    assert str(saved) in said.text
    assert [record["body"]["outcome"] for record in folder.records("outcome")] == ["applied"]
    assert not (folder.path / STATE).exists()
    assert "kafka_topic.a" in folder.done("state", "list", "--state", str(saved)).out

    said = folder.done("apply", "-auto-approve")
    assert "Took 1 outcome of an earlier run into the state" in said.text
    assert "No changes" in said.text
    assert len(folder.records("intent")) == 1
    assert folder.done("state", "list").out == "kafka_topic.a\n"


def _fill_up_while_sending(patch: pytest.MonkeyPatch, folder: Path) -> None:
    send, write = KafkaSession.apply, storage.write_new
    full: list[bool] = []

    def filling(self: KafkaSession, *arguments: object) -> object:
        full.append(True)
        return send(self, *arguments)  # type: ignore[arg-type]

    def refusing(path: Path, data: bytes) -> None:
        if full and path.parent == folder:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, data)

    patch.setattr(KafkaSession, "apply", filling)
    patch.setattr(storage, "write_new", refusing)


def test_a_corrupted_state(planned: Folder) -> None:
    """One flipped bit, and no command trusts the file."""
    file = planned.path / STATE
    data = bytearray(file.read_bytes())
    data[data.index(b"kafka_topic.a")] ^= 1
    file.write_bytes(data)
    for command in (
        ["plan"],
        ["apply", "-auto-approve"],
        ["state", "list"],
        ["show"],
        ["output"],
        ["audit", "verify"],
    ):
        said = planned.fails(9, *command)
        assert STATE in said
        assert "checksum" in said


def test_a_corrupted_log(planned: Folder) -> None:
    """A log that somebody edited proves nothing, so nothing is sent on its word."""
    file = planned.path / LOG
    file.write_bytes(file.read_bytes().replace(b'"actor":"', b'"actor":"x', 1))
    for command in (["audit", "verify"], ["plan"], ["apply", "-auto-approve"], ["audit", "show"]):
        said = planned.fails(9, *command)
        assert LOG in said
        assert "record 1" in said


def test_a_log_whose_end_is_gone(planned: Folder) -> None:
    """The state is anchored at a record; a log that ends before it was cut."""
    file = planned.path / LOG
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))
    for command in (["audit", "verify"], ["apply", "-auto-approve"]):
        assert LOG in planned.fails(9, *command)
