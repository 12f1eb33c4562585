"""What every backend promises, asked of each: a file, a store in memory, an S3-like store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import Locked, StorageError
from kafkaform.state.backends.local import KEPT_VERSIONS, LocalBackend
from kafkaform.state.backends.objects import ObjectBackend
from kafkaform.state.backends.obstores import open_objects
from kafkaform.state.codec import decode
from kafkaform.state.model import Backend, LockInfo, State

from ...kit.states import SMALL, large
from ...kit.stores import s3
from ...kit.stores.clocks import Hasty

INFO = LockInfo("run-1", "ada", "host", 42, "2026-01-01T00:00:00Z", "apply")
OTHER = replace(INFO, run="run-2", who="bob")
CLOCK = Hasty()

Open = Callable[[], Backend]
"""Another run's backend of the same place."""


def _in_memory(path: Path, _: str) -> Backend:
    return ObjectBackend(open_objects(f"memory://{path}".replace("///", "//"), {}, CLOCK))


def _in_s3(path: Path, address: str) -> Backend:
    return ObjectBackend(open_objects(f"s3://bucket/{path.name}", s3.options(address), CLOCK))


KINDS: dict[str, Callable[[Path, str], Backend]] = {
    "local": lambda path, _: LocalBackend(path / "kafkaform.state.json"),
    "memory": _in_memory,
    "s3": _in_s3,
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with s3.serving(s3.Bucket()) as found:
        yield found


@pytest.fixture(params=KINDS)
def opened(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Open:
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return lambda: KINDS[request.param](tmp_path, address)


@pytest.fixture
def backend(opened: Open) -> Backend:
    return opened()


def _earlier(backend: Backend) -> dict[int, State]:
    """Earlier versions that are kept, by serial."""
    if isinstance(backend, LocalBackend):
        folder = backend.path.parent / ".kafkaform" / "backups"
        found = [path.read_bytes() for path in folder.iterdir()]
    else:
        assert isinstance(backend, ObjectBackend)
        keys = [entry.key for entry in backend.objects.names("history")]
        found = [item.data for key in keys if (item := backend.objects.read(key))]
    states = [decode(data, "earlier") for data in found]
    return {state.serial: state for state in states}


# ── load and save ───────────────────────────────────────────────────────────────────────


def test_save_and_load(opened: Open) -> None:
    """What one run saved another one loads, with the version that its save must name."""
    backend = opened()
    assert backend.load().state is None
    assert backend.load().version is None
    version = backend.save(SMALL, None)
    loaded = opened().load()
    assert (loaded.state, loaded.version) == (SMALL, version)


def test_save_needs_the_version_that_is_there(opened: Open) -> None:
    """A save over another version, over a state that should not be there, is refused."""
    backend, other = opened(), opened()
    first = backend.save(SMALL, None)
    loaded = other.load()
    backend.save(replace(SMALL, serial=4), first)
    for stale in (first, None, loaded.version):
        for run in (backend, other):
            with pytest.raises(Locked, match="changed the state"):
                run.save(replace(SMALL, serial=5), stale)
    assert opened().load().state == replace(SMALL, serial=4)


def test_another_run_goes_on_from_what_it_loaded(opened: Open) -> None:
    """Runs that take turns save one over the other."""
    version = opened().save(SMALL, None)
    for serial in range(4, 8):
        run = opened()
        assert run.load().version == version
        version = run.save(replace(SMALL, serial=serial), version)
    assert set(_earlier(opened())) == {3, 4, 5, 6}


def test_saving_what_is_there_is_no_fault(backend: Backend) -> None:
    """The same state saved again stays, and can be saved over."""
    version = backend.save(SMALL, None)
    version = backend.save(SMALL, version)
    backend.save(replace(SMALL, serial=4), version)
    assert backend.load().state == replace(SMALL, serial=4)


def test_earlier_versions_are_kept(backend: Backend) -> None:
    """After a run the last ten serials before the state are there, each wholly."""
    version = None
    with backend.lock(INFO, 0, CLOCK):
        for serial in range(1, 15):
            version = backend.save(replace(SMALL, serial=serial), version)
    kept = _earlier(backend)
    assert set(kept) == set(range(14 - KEPT_VERSIONS, 14))
    assert all(state == replace(SMALL, serial=serial) for serial, state in kept.items())


class Later(Hasty):
    """Shows another time than the computer's."""

    def __init__(self, days: float) -> None:
        self.days = days

    def now(self) -> float:
        return super().now() + self.days * 86_400


def test_earlier_versions_are_kept_by_age(opened: Open) -> None:
    """With `keep`, all stay that were replaced in the last days; after that the last ten do."""
    backend: Any = opened()
    backend.keep_seconds = 30 * 86_400.0
    version = None
    with backend.lock(INFO, 0, CLOCK):
        for serial in range(1, 15):
            version = backend.save(replace(SMALL, serial=serial), version)
    assert set(_earlier(backend)) == set(range(1, 14))
    for days, first in ((29, 1), (31, 16 - KEPT_VERSIONS)):
        backend = opened()
        backend.keep_seconds = 30 * 86_400.0
        with backend.lock(INFO, 0, Later(days)):
            loaded = backend.load()
            serial = loaded.state.serial + 1
            backend.save(replace(SMALL, serial=serial), loaded.version)
        assert min(_earlier(backend)) == first, days


def test_one_serial_saved_twice_keeps_the_later_one(backend: Backend) -> None:
    """A new anchor under the same serial replaces that serial's earlier version."""
    version = backend.save(SMALL, None)
    version = backend.save(replace(SMALL, audit_head=None), version)
    backend.save(replace(SMALL, serial=4), version)
    assert _earlier(backend)[3].audit_head is None


def test_a_large_state(backend: Backend) -> None:
    """A state of many objects is saved and loaded."""
    backend.check_writable(1 << 20)
    version = backend.save(large(1_500), None)
    assert backend.load().state == large(1_500)
    backend.save(replace(large(1_500), serial=4), version)


def test_checks_leave_nothing_behind(backend: Backend) -> None:
    """The check before a run changes neither state nor lock."""
    backend.check_writable()
    assert backend.load().state is None
    assert backend.holder() is None


def test_rescue(backend: Backend) -> None:
    """What could not be saved in its place is saved in a file of this computer."""
    path = Path(backend.rescue(SMALL))
    assert decode(path.read_bytes(), "rescued") == SMALL
    path.unlink()


# ── lock ────────────────────────────────────────────────────────────────────────────────


def test_one_run_at_a_time(opened: Open) -> None:
    """A second run is refused with the holder's name, and may go once the first has ended."""
    backend, other = opened(), opened()
    with opened().lock(OTHER, 0, CLOCK):
        """The place has a lock from now on."""
    with backend.lock(INFO, 0, CLOCK) as lease:
        assert lease.taken_over is None
        lease.ensure(30)
        assert other.holder() == INFO
        with (
            pytest.raises(Locked, match=r"ada on host \(`apply`, run run-1, process 42") as caught,
            other.lock(OTHER, 0, CLOCK),
        ):
            pass
        assert "--lock-timeout" in caught.value.advice
    assert other.holder() is None
    with other.lock(OTHER, 0, CLOCK) as lease:
        assert lease.taken_over is None
        assert backend.holder() == OTHER


def test_waiting_for_the_lock(opened: Open) -> None:
    """With a time-out a run waits for the other one to end."""
    held, end = threading.Event(), threading.Event()

    def hold() -> None:
        with opened().lock(INFO, 0, CLOCK):
            held.set()
            end.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    threading.Timer(0.2, end.set).start()
    with opened().lock(OTHER, 20, CLOCK):
        assert end.is_set()
    holder.join()


def test_the_lock_is_freed_after_a_fault(opened: Open) -> None:
    """A run that fails leaves no lock behind."""
    with pytest.raises(ZeroDivisionError), opened().lock(INFO, 0, CLOCK):
        _ = 1 // 0
    with opened().lock(INFO, 0, CLOCK):
        pass


def test_reading_needs_no_lock(opened: Open) -> None:
    """A plan, which only loads, is never kept waiting by a run that writes."""
    opened().save(SMALL, None)
    with opened().lock(INFO, 0, CLOCK):
        assert opened().load().state == SMALL


def test_a_state_that_cannot_be_read_is_not_none(opened: Open) -> None:
    """A damaged state is refused: it is never taken for no state."""
    backend = opened()
    version = backend.save(SMALL, None)
    if isinstance(backend, LocalBackend):
        backend.path.write_bytes(backend.path.read_bytes()[:-20])
    else:
        assert isinstance(backend, ObjectBackend)
        found = backend.objects.read("state.json")
        assert found is not None
        backend.objects.replace("state.json", found.data[:-20], found.version)
    with pytest.raises(StorageError, match="cannot be used"):
        opened().load()
    with pytest.raises(Locked):
        opened().save(replace(SMALL, serial=4), version)
