"""The lock of a remote state: one holder, sure of it, and a successor when it has died."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import Locked, StorageError
from kafkaform.core.objects import Objects
from kafkaform.state.backends import objects as lease
from kafkaform.state.backends.objects import ObjectBackend
from kafkaform.state.backends.obstores import open_objects
from kafkaform.state.model import LockInfo

from ...kit.stores import s3
from ...kit.stores.clocks import Hasty, Set
from ...kit.stores.faults import PASSING, instead

INFO = LockInfo("run-1", "ada", "host", 42, "2026-01-01T00:00:00Z", "apply")
OTHER = replace(INFO, run="run-2", who="bob")
SECONDS = 120.0


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return open_objects(f"memory://lease{str(tmp_path).replace('/', '-')}", {}, Hasty())


def taken(
    objects: Objects, clock: Set, info: LockInfo = INFO, timeout: float = 0.0
) -> lease.Tenure:
    """The lock, without the thread that renews it: as of a process that stands still."""
    return lease.take_lock(objects, info, SECONDS, timeout, clock)


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; fails after half a minute."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never became true")


def seconds_of(objects: Objects) -> float:
    found = objects.read(lease.KEY)
    assert found is not None
    return float(json.loads(found.data)["lease_seconds"])


# ── a holder that died ──────────────────────────────────────────────────────────────────


def test_a_dead_holders_lock_is_taken_over(objects: Objects) -> None:
    """A lease that does not change for as long as it lasts is over, by the watcher's own clock;
    the successor knows when it ended."""
    clock = Set()
    taken(objects, clock)
    began = clock.monotonic()
    tenure = taken(objects, clock, OTHER, timeout=3600)
    assert SECONDS <= clock.monotonic() - began < SECONDS + 3
    assert tenure.taken_over == pytest.approx(began + SECONDS, abs=1)
    assert lease.find_holder(objects) == OTHER


def test_whoever_does_not_wait_is_told_how_long_it_takes(objects: Objects) -> None:
    """A lock that is not over yet is refused, with the holder and when it would be free."""
    taken(objects, Set())
    with pytest.raises(Locked, match="ada on host") as caught:
        taken(objects, Set(), OTHER)
    assert "free in 120 s" in caught.value.advice
    assert "lock release run-1" in caught.value.advice


def test_a_living_holder_keeps_its_lock(objects: Objects) -> None:
    """As long as the holder renews it, however slowly, nobody takes its lock."""
    clock = Set()
    holder = taken(objects, clock)

    class Renewing(Set):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            clock.time += seconds
            holder.ensure(SECONDS / 4)

    with pytest.raises(Locked, match="ada"):
        taken(objects, Renewing(), OTHER, timeout=10 * SECONDS)
    assert clock.time > 10 * SECONDS
    holder.ensure(1)


@pytest.mark.parametrize(("age", "free"), [(60, False), (149, False), (153, True), (3600, True)])
def test_the_stores_clock_tells_the_age(
    monkeypatch: pytest.MonkeyPatch, age: float, free: bool
) -> None:
    """A lease that ended long ago by the store's own clock is taken at once, and how long ago is
    known; this computer's date is never asked."""
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    class Dateless(Set):
        def now(self) -> float:
            raise AssertionError("dates of computers must not be compared")

    bucket, clock = s3.Bucket(), Dateless()
    bucket.clock = lambda: 2e9
    with s3.serving(bucket) as address:
        objects = open_objects("s3://bucket/p", s3.options(address), Hasty())
        taken(objects, clock)
        bucket.clock = lambda: 2e9 + age
        if not free:
            with pytest.raises(Locked):
                taken(objects, clock, OTHER)
            return
        tenure = taken(objects, clock, OTHER)
        assert clock.time == 1000.0
        assert tenure.taken_over == pytest.approx(1000 - (age - SECONDS * 1.25), abs=2)
    assert set(bucket.objects) == {"p/lock.json"}


def test_a_garbled_lock_is_somebodys(objects: Objects) -> None:
    """A lock object that nobody can read still holds, and is taken over like any other."""
    clock = Set()
    objects.create(lease.KEY, b"\x00garbage")
    with pytest.raises(Locked, match="somebody"):
        taken(objects, clock)
    assert taken(objects, clock, timeout=3600).taken_over is not None


# ── being sure ──────────────────────────────────────────────────────────────────────────


def test_enough_left_asks_nobody(objects: Objects) -> None:
    """While the lease lasts long enough, a send costs no request; else one renewal."""
    clock = Set()
    tenure = taken(objects, clock)
    before = objects.read(lease.KEY)
    clock.time += 60
    tenure.ensure(59)
    assert objects.read(lease.KEY) == before
    tenure.ensure(61)
    assert objects.read(lease.KEY) != before
    clock.time += 58
    tenure.ensure(61)


def test_a_long_request_gets_a_long_lease(objects: Objects) -> None:
    """Who needs longer than the lease gets a longer one, and later renewals do not cut it."""
    clock = Set()
    tenure = taken(objects, clock)
    tenure.ensure(600)
    assert seconds_of(objects) == 660
    clock.time += 599
    tenure.ensure(100)
    assert seconds_of(objects) == 660


def test_time_counts_from_before_the_renewal(objects: Objects) -> None:
    """A renewal that took long is worth only what is left of it."""
    clock = Set()

    class Slow:
        def __getattr__(self, name: str) -> object:
            return getattr(objects, name)

        def replace(self, key: str, data: bytes, version: str) -> str:
            clock.time += 100
            return objects.replace(key, data, version)

    tenure = lease.take_lock(Slow(), INFO, SECONDS, 0, clock)  # type: ignore[arg-type]
    clock.time += 110
    with pytest.raises(Locked, match="took so long"):
        tenure.ensure(60)


ENDS: dict[str, Callable[[Objects, Set], object]] = {
    "taken over by bob": lambda objects, clock: taken(objects, clock, OTHER, timeout=3600),
    "taken over and given back by bob": lambda objects, clock: taken(
        objects, clock, OTHER, timeout=3600
    )._release(),
    "released by hand": lambda objects, clock: lease.break_lock(objects, "run-1"),
    "was deleted": lambda objects, clock: objects.delete(lease.KEY),
}


@pytest.mark.parametrize("how", ENDS)
def test_who_lost_the_lock_is_told_and_sends_nothing(objects: Objects, how: str) -> None:
    """A holder that was paused past its lease is refused when it wants to send, is told who has
    the lock now, is refused ever after, and takes nothing from its successor."""
    clock = Set()
    tenure = taken(objects, clock)
    ENDS[how](objects, clock)
    after = objects.read(lease.KEY)
    clock.time += SECONDS
    for _ in range(2):
        with pytest.raises(Locked, match=how) as caught:
            tenure.ensure(1)
        assert "Run the command again" in caught.value.advice
    tenure._release()
    assert objects.read(lease.KEY) == after


def test_a_paused_holder_that_nobody_followed_goes_on(objects: Objects) -> None:
    """The lock that nobody took is still ours after a pause: renewing it proves that."""
    clock = Set()
    tenure = taken(objects, clock)
    clock.time += 100 * SECONDS
    tenure.ensure(60)
    with pytest.raises(Locked, match="ada"):
        taken(objects, clock, OTHER)


def test_no_answer_is_no_certainty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that does not answer the renewal stops the send."""
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    bucket, clock = s3.Bucket(), Set()
    with s3.serving(bucket) as address:
        objects = open_objects("s3://bucket/p", s3.options(address), Hasty())
        tenure = taken(objects, clock)
        clock.time += SECONDS
        bucket.always.append(instead(503, "SlowDown"))
        with pytest.raises(StorageError, match="overloaded"):
            tenure.ensure(1)
        bucket.always.clear()
        tenure.ensure(1)


@pytest.mark.parametrize("name", PASSING)
def test_a_faulty_answer_to_the_claim(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Whatever the store answers to the claim and to a renewal, the holder knows that it is it."""
    for variable, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    bucket, clock = s3.Bucket(), Set()
    with s3.serving(bucket) as address:
        objects = open_objects("s3://bucket/p", s3.options(address, timeout="0.25"), Hasty())
        bucket.next("PUT p/lock.json", PASSING[name])
        tenure = taken(objects, clock)
        clock.time += SECONDS
        bucket.next("PUT p/lock.json", PASSING[name])
        tenure.ensure(60)
        assert not bucket.faults
        with pytest.raises(Locked, match="ada"):
            taken(objects, clock, OTHER)


# ── the thread ──────────────────────────────────────────────────────────────────────────


def test_the_lease_is_renewed_while_it_is_held(objects: Objects) -> None:
    """A holder that does nothing keeps its lock; when it is done, nobody renews it."""
    versions: set[str] = set()

    def renewed() -> bool:
        found = objects.read(lease.KEY)
        assert found is not None
        versions.add(found.version)
        return len(versions) > 3

    with ObjectBackend(objects, 0.3).lock(INFO, 0, Hasty()):
        until(renewed)
    assert lease.find_holder(objects) is None
    found = objects.read(lease.KEY)
    time.sleep(0.2)
    assert objects.read(lease.KEY) == found


@pytest.mark.slow("waits for a store")
def test_the_thread_gets_over_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that does not answer for a while costs the lock only if somebody else took it."""
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    bucket = s3.Bucket()
    with s3.serving(bucket) as address:
        objects = open_objects("s3://bucket/p", s3.options(address), Hasty())
        with ObjectBackend(objects, 0.6).lock(INFO, 0, Hasty()) as tenure:
            bucket.always.append(instead(503, "SlowDown"))
            before = bucket.requests["PUT"]
            until(lambda: bucket.requests["PUT"] > before + 12)
            bucket.always.clear()
            tenure.ensure(0.5)


# ── by hand ─────────────────────────────────────────────────────────────────────────────


def test_a_lock_released_by_hand_is_free_but_its_run_may_live(objects: Objects) -> None:
    """The next run takes it at once, and knows that the holder may believe in it for as long as
    its lease lasts."""
    clock = Set()
    taken(objects, clock)
    assert lease.break_lock(objects, "run-1") == INFO
    assert lease.find_holder(objects) is None
    tenure = taken(objects, clock, OTHER)
    assert tenure.taken_over == pytest.approx(clock.time + SECONDS, abs=1)


def test_only_the_named_lock_is_released(objects: Objects) -> None:
    """Somebody else's lock, a free one, or one that is renewed meanwhile is not ended."""
    with pytest.raises(Locked, match="nobody holds"):
        lease.break_lock(objects, "run-1")
    tenure = taken(objects, Set())
    with pytest.raises(Locked, match="not by run run-2"):
        lease.break_lock(objects, "run-2")

    class Renewed:
        location = objects.location

        def read(self, key: str) -> object:
            found = objects.read(key)
            tenure.ensure(SECONDS + 1)
            return found

        def replace(self, key: str, data: bytes, version: str) -> str:
            return objects.replace(key, data, version)

    with pytest.raises(Locked, match="is alive"):
        lease.break_lock(Renewed(), "run-1")  # type: ignore[arg-type]
    tenure._release()
    with pytest.raises(Locked, match="nobody holds"):
        lease.break_lock(objects, "run-1")
