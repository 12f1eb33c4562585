"""The local backend: old or new and nothing between, one writer, clear refusals."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import Locked, StorageError
from kafkaform.state.backends.local import KEPT_VERSIONS, LocalBackend, save_emergency
from kafkaform.state.codec import decode, encode
from kafkaform.state.model import LockInfo, State

from ...kit.states import SMALL, large, state_of, topic

INFO = LockInfo("run-1", "ada", "host", 42, "2026-01-01T00:00:00Z", "apply")
CLOCK = SystemClock()


@pytest.fixture
def backend(tmp_path: Path) -> LocalBackend:
    return LocalBackend(tmp_path / "kafkaform.state.json")


def spawn(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Another Python process that runs `code` and may use `backend`."""
    start = (
        "import sys, resource, time, signal\nfrom pathlib import Path\n"
        "from kafkaform.state.backends.local import LocalBackend\n"
        "from tests.unit.state.test_local import *\n"
        "backend = LocalBackend(Path(sys.argv[1]))\n"
    )
    command = [sys.executable, "-c", start + code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


# ── load and save ───────────────────────────────────────────────────────────────────────


def test_save_and_load(backend: LocalBackend) -> None:
    """What was saved is loaded, with the version that the next save must name."""
    assert backend.load().state is None
    version = backend.save(SMALL, None)
    assert backend.load() == type(backend.load())(SMALL, version)
    assert backend.path.stat().st_mode & 0o777 == 0o600


def test_save_needs_the_version_that_is_there(backend: LocalBackend) -> None:
    """A save over another version, over an unexpected file or over nothing is refused."""
    first = backend.save(SMALL, None)
    second = backend.save(replace(SMALL, serial=4), first)
    for stale in (first, None, "4-" + "0" * 64):
        with pytest.raises(Locked, match="changed the state"):
            backend.save(replace(SMALL, serial=5), stale)
    backend.path.unlink()
    with pytest.raises(Locked, match="changed the state"):
        backend.save(replace(SMALL, serial=5), second)


def test_earlier_versions_are_kept(backend: LocalBackend) -> None:
    """The last ten serials stay readable, the one before each save among them."""
    version = None
    for serial in range(1, 15):
        version = backend.save(replace(SMALL, serial=serial), version)
    folder = backend.path.parent / ".kafkaform" / "backups"
    kept = {decode(path.read_bytes(), "b").serial for path in folder.iterdir()}
    assert kept == set(range(14 - KEPT_VERSIONS, 14))
    assert (folder / "kafkaform.state.json.13").exists()


def test_one_serial_saved_twice_keeps_the_later_one(backend: LocalBackend) -> None:
    """A new anchor under the same serial replaces that serial's backup, and never fails."""
    version = backend.save(SMALL, None)
    version = backend.save(replace(SMALL, audit_head=None), version)
    backend.save(replace(SMALL, serial=4), version)
    backup = backend.path.parent / ".kafkaform" / "backups" / "kafkaform.state.json.3"
    assert decode(backup.read_bytes(), "b").audit_head is None


def test_torn_state_file_is_refused_and_stays(backend: LocalBackend) -> None:
    """A file that ends early or in zeros is refused by load, and load changes nothing."""
    backend.save(SMALL, None)
    whole = backend.path.read_bytes()
    for length in range(0, len(whole), 37):
        for torn in (whole[:length], whole[:length].ljust(len(whole), b"\0")):
            backend.path.write_bytes(torn)
            with pytest.raises(StorageError, match="cannot be used"):
                backend.load()
            assert backend.path.read_bytes() == torn


def test_crash_before_the_rename_leaves_the_old_state(backend: LocalBackend) -> None:
    """A half-written temporary file is never the state, and the next lock removes it."""
    backend.save(SMALL, None)
    half = backend.path.with_name(".kafkaform.state.json.0123456789ab.tmp")
    half.write_bytes(encode(SMALL)[:100])
    assert backend.load().state == SMALL
    with backend.lock(INFO, 0, CLOCK):
        assert not half.exists()
    assert backend.load().state == SMALL


@pytest.mark.slow("starts and kills five processes")
def test_kill_at_any_moment_leaves_a_whole_state(backend: LocalBackend) -> None:
    """A process that saves in a loop is killed again and again; the state always loads."""
    backend.save(large(300), None)
    loop = (
        "version, serial = backend.load().version, backend.load().state.serial\n"
        "state = large(300)\nprint('go', flush=True)\n"
        "while True:\n    serial += 1\n"
        "    version = backend.save(replace(state, serial=serial), version)\n"
    )
    for milliseconds in (0, 3, 7, 12, 18):
        process = spawn(loop, backend.path)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(milliseconds / 1000)
        process.kill()
        process.wait()
        process.stdout.close()
        state = backend.load().state
        assert state is not None
        assert state.objects == large(300).objects


# ── refusals of the disk ────────────────────────────────────────────────────────────────


def test_symbolic_links_are_refused(backend: LocalBackend, tmp_path: Path) -> None:
    """A link in the place of state, lock or folder is neither read nor written through."""
    target = tmp_path / "elsewhere"
    target.write_bytes(b"precious")
    backend.path.symlink_to(target)
    for action in (backend.load, lambda: backend.save(SMALL, None), backend.check_writable):
        with pytest.raises(StorageError, match="symbolic link"):
            action()
    backend.path.unlink()
    hidden = tmp_path / ".kafkaform"
    hidden.mkdir(exist_ok=True)
    (hidden / "lock").symlink_to(target)
    with pytest.raises(StorageError, match="symbolic link"), backend.lock(INFO, 0, CLOCK):
        pass
    shutil.rmtree(hidden)
    hidden.symlink_to(tmp_path)
    with pytest.raises(StorageError, match="symbolic link"), backend.lock(INFO, 0, CLOCK):
        pass
    assert target.read_bytes() == b"precious"


def test_a_pipe_in_place_of_the_state_does_not_hang(backend: LocalBackend) -> None:
    """Anything but a regular file is refused at once."""
    os.mkfifo(backend.path)
    with pytest.raises(StorageError, match="not a regular file"):
        backend.load()


def test_full_disk_keeps_the_old_state(backend: LocalBackend) -> None:
    """A save that runs out of room is refused with file and reason; the old state is intact."""
    backend.save(SMALL, None)
    code = (
        "version = backend.load().version\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "for action in (lambda: backend.save(large(2000), version), backend.check_writable):\n"
        "    try:\n        action()\n"
        "    except StorageError as error:\n        print(error.message, '|', error.advice)\n"
    )
    process = spawn(code, backend.path)
    lines = process.communicate(timeout=60)[0].splitlines()
    assert len(lines) == 2
    assert all("size limit" in line and str(backend.path) in line for line in lines)
    assert backend.load().state == SMALL
    assert {path.name for path in backend.path.parent.iterdir()} <= {
        "kafkaform.state.json",
        ".kafkaform",
    }


@pytest.mark.parametrize("place", ["/proc/kafkaform.state.json", "file/kafkaform.state.json"])
def test_unwritable_folder_is_refused_before_anything(tmp_path: Path, place: str) -> None:
    """A folder that takes no files is refused by the check, by lock and by save alike."""
    (tmp_path / "file").write_text("not a folder")
    backend = LocalBackend(tmp_path / place)
    with pytest.raises(StorageError) as caught:
        backend.check_writable()
    assert caught.value.advice
    with pytest.raises(StorageError), backend.lock(INFO, 0, CLOCK):
        pass
    with pytest.raises(StorageError):
        backend.save(State("l"), None)


def test_check_leaves_nothing_behind(backend: LocalBackend) -> None:
    """The check for room takes the room and gives it back."""
    backend.check_writable(50_000)
    assert [path.name for path in backend.path.parent.iterdir()] == [".kafkaform"]


def test_check_asks_for_three_times_the_state(backend: LocalBackend, tmp_path: Path) -> None:
    """A state that fits once but not three times is refused before anything is sent."""
    code = (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5 << 20, 5 << 20))\n"
        "backend.check_writable(1 << 20)\nprint('fits')\n"
        "try:\n    backend.check_writable(2 << 20)\n"
        "except StorageError as error:\n    print('refused')\n"
    )
    out = spawn(code, backend.path).communicate(timeout=60)[0]
    assert out.split() == ["fits", "refused"]


def test_emergency_copy(backend: LocalBackend, tmp_path: Path) -> None:
    """What cannot be saved in its place is saved elsewhere, whole, and found by its name."""
    path = save_emergency(SMALL, tmp_path)
    assert decode(path.read_bytes(), str(path)) == SMALL
    assert save_emergency(SMALL, tmp_path) != path
    rescued = Path(backend.rescue(SMALL))
    assert decode(rescued.read_bytes(), "r") == SMALL
    rescued.unlink()


# ── lock ────────────────────────────────────────────────────────────────────────────────


def test_one_process_at_a_time(backend: LocalBackend) -> None:
    """A second run is refused with the holder's name, and may go once the first has ended."""
    code = "with backend.lock(INFO, 0, CLOCK):\n    print('held', flush=True)\n    time.sleep(60)\n"
    process = spawn(code, backend.path)
    assert process.stdout is not None
    process.stdout.readline()
    assert backend.holder() == INFO
    with pytest.raises(Locked, match=r"ada on host \(`apply`, run run-1, process 42"):
        backend.lock(INFO, 0, CLOCK).__enter__()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert backend.holder() is None
    with backend.lock(replace(INFO, run="run-2"), 0, CLOCK):
        assert backend.holder() == replace(INFO, run="run-2")
    assert backend.holder() is None


def test_waiting_for_the_lock(backend: LocalBackend) -> None:
    """With a time-out a run waits for the other one to end."""
    code = (
        "with backend.lock(INFO, 0, CLOCK):\n    print('held', flush=True)\n    time.sleep(0.5)\n"
    )
    process = spawn(code, backend.path)
    assert process.stdout is not None
    process.stdout.readline()
    with backend.lock(INFO, 60, CLOCK):
        pass
    process.communicate(timeout=60)


def test_lock_is_freed_after_a_fault(backend: LocalBackend) -> None:
    """A run that fails leaves no lock behind."""
    with pytest.raises(ZeroDivisionError), backend.lock(INFO, 0, CLOCK):
        _ = 1 // 0
    with backend.lock(INFO, 0, CLOCK):
        pass


def test_deleted_lock_file_does_not_admit_two(backend: LocalBackend) -> None:
    """Whoever deletes the folder under a holder gets a new lock that is again exclusive."""
    with backend.lock(INFO, 0, CLOCK):
        shutil.rmtree(backend.path.parent / ".kafkaform")
        with backend.lock(INFO, 0, CLOCK), pytest.raises(Locked):
            backend.lock(INFO, 0, CLOCK).__enter__()


@pytest.mark.parametrize("again", [False, True])
def test_a_removed_lock_holds_nothing(backend: LocalBackend, again: bool) -> None:
    """Once its file is gone, or is another one, the holder may neither send nor save; whoever had
    to make the file knows that somebody may have been thrown out."""
    with backend.lock(INFO, 0, CLOCK):
        version = backend.save(State("l"), None)
    with backend.lock(INFO, 0, CLOCK) as lease:
        lease.ensure(0)
        shutil.rmtree(backend.path.parent / ".kafkaform")
        if again:
            other = LocalBackend(backend.path)
            with other.lock(replace(INFO, run="run-2"), 0, CLOCK) as second:
                assert second.taken_over is not None
                second.ensure(0)
        with pytest.raises(Locked, match="lock file of this run was removed or replaced"):
            lease.ensure(0)
        with pytest.raises(Locked, match="removed or replaced"):
            backend.save(replace(State("l"), serial=9), version)
    assert backend.load().version == version


@pytest.mark.parametrize(
    "number", ["EPERM", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EXDEV", "EACCES", "EINVAL"]
)
def test_a_file_system_without_hard_links(
    backend: LocalBackend, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    """However it says so, a save succeeds, and the earlier version is kept as a copy."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(getattr(errno, number), number)

    monkeypatch.setattr(os, "link", refuse)
    version = backend.save(State("l"), None)
    before = backend.path.read_bytes()
    backend.save(replace(State("l"), serial=1), version)
    (kept,) = (backend.path.parent / ".kafkaform" / "backups").iterdir()
    assert kept.read_bytes() == before and kept.stat().st_mode & 0o777 == 0o600


def test_lock_file_deleted_while_it_is_taken(
    backend: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock on a file that was deleted in that instant excludes nobody, so it is taken anew."""
    flock = fcntl.flock

    def delete_then_lock(descriptor: int, operation: int) -> None:
        monkeypatch.undo()
        (backend.path.parent / ".kafkaform" / "lock").unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", delete_then_lock)
    with backend.lock(INFO, 0, CLOCK), pytest.raises(Locked, match="ada"):
        backend.lock(INFO, 0, CLOCK).__enter__()


def test_garbled_owner_is_still_a_lock(backend: LocalBackend) -> None:
    """The owner's text is for people; the lock holds without it."""
    with backend.lock(INFO, 0, CLOCK):
        (backend.path.parent / ".kafkaform" / "lock").write_text(json.dumps({"run": 1}))
        with pytest.raises(Locked, match="somebody"):
            backend.lock(INFO, 0, CLOCK).__enter__()


def test_ten_thousand_rows_save_in_time(backend: LocalBackend) -> None:
    """A state of 10,000 objects can be saved once a batch."""
    version = backend.save(large(10_000), None)
    loaded = backend.load().state
    assert loaded == large(10_000)
    backend.save(state_of(topic("a"), serial=4), version)
