"""A state in an object store, which one conditional write replaces as a whole or not at all.

`state.json` is the state, `history/SERIAL.json` an earlier one, `lock.json` the lock (`Lease`),
`log/` the audit log (audit/sinks/objects.py), `probe/` and `history/probe-` what a check writes and
removes.

The lock of a remote state is a lease, an object that its holder writes again and again.

The holder counts the end of the lease on its own steady clock, from before the write that made it.
A run that wants the lock either sees the same version for as long as the lease lasts, on its own
steady clock, or learns the age of the lease from the store, which stamps it and a probe. The clocks
of two computers are never compared. Each write is conditional on the version before it, and
contains an id of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import threading
from collections.abc import Iterator
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import asdict, replace

from ...core.canonical import Misfit, from_data, parse_json
from ...core.clock import Clock
from ...core.errors import Locked, StorageError
from ...core.objects import ObjectChanged, ObjectExists, Objects, StoredObject
from ..codec import decode, decode_outline, encode
from ..model import Loaded, LockInfo, State, StateOutline
from .local import KEPT_VERSIONS, compute_age, save_somewhere

KEY = "lock.json"
# A request that needs a long lease is rarely alone: with some spare time the next one needs no
# renewal of its own.
SPARE = 0.5
"""How much longer than needed a renewed lease is, as a part of the lease."""
# Five renewals can fail, because the store or the network is away, before the lease ends.
BEATS = 6
"""How often a lease is renewed before it could end."""
# Two computers of one store stamp the lease and the probe, and their clocks may differ.
SKEW = 0.25
"""How far the clocks of a store's own computers may differ, as a part of the lease."""
POLL_SECONDS, POLL = 2.0, 0.1
"""How often somebody else's lock is looked at: after so many seconds at most, and after this part
of the lease."""
BY_HAND = "kafkaform lock release"
"""The command that ends the lock of a state."""
UNKNOWN_HOLDER = LockInfo("unknown", "somebody", "unknown", 0, "unknown", "unknown")
RELEASED, BROKEN = "released", "broken"


class Note(Struct, frozen=True):
    """What the lock object says."""

    holder: LockInfo
    """The run that has the lock."""
    seconds: float
    """How long the lease lasts from when it was written."""
    ended: str = ""
    """Empty while the lock is taken, RELEASED, or BROKEN if a person ended it."""


class _Written(Struct, frozen=True):
    """The members of the lock object."""

    holder: LockInfo
    """The run that has the lock."""
    lease_seconds: float
    """How long the lease lasts."""
    ended: str
    """As in Note."""
    write: str
    """The id of this write."""


def encode_note(note: Note) -> bytes:
    """The bytes of a note. No two are equal."""
    # After a lost answer the object is read and compared, to find out whose write won. With equal
    # bytes two renewals of one run, or two runs with one name, could not be told apart.
    members = {
        "holder": asdict(note.holder),
        "lease_seconds": note.seconds,
        "ended": note.ended,
        "write": secrets.token_hex(16),
    }
    return json.dumps(members, indent=1).encode("ascii")


def decode_note(data: bytes, seconds: float) -> Note:
    """What a lock object says. An unreadable one counts as taken by somebody, for `seconds`."""
    try:
        document = from_data(_Written, parse_json(data))
    except Misfit:
        return Note(UNKNOWN_HOLDER, seconds)
    if document.lease_seconds <= 0 or document.ended not in ("", RELEASED, BROKEN):
        return Note(UNKNOWN_HOLDER, seconds)
    return Note(document.holder, document.lease_seconds, document.ended)


def read_store_clock(objects: Objects) -> float:
    """The store's own clock: the time that it gives to an object written now."""
    key = f"probe/{secrets.token_hex(8)}"
    objects.create(key, key.encode("ascii"))
    stored = objects.read(key)
    objects.delete(key)
    if stored is None:
        raise StorageError(
            f"{objects.location}: an object that was just written cannot be read",
            "Use a store that shows a write immediately.",
        )
    return stored.modified


# ── taking it ───────────────────────────────────────────────────────────────────────────


class Watch(Struct):
    """Watches somebody else's lease, and knows on our own clock when it has ended at the latest."""

    objects: Objects
    """The store."""
    clock: Clock
    """Our clock."""
    store_read: bool = False
    """The age of the lease was asked for already."""
    version: str = ""
    """The version of the lock object that was seen last."""
    end: float = 0.0
    """When that lease has ended at the latest, on our clock."""

    def measure_rest(self, stored: StoredObject, note: Note) -> float:
        """Seconds until the lease has certainly ended; 0 or less if it has."""
        if stored.version != self.version:
            self.version = stored.version
            self.end = self.clock.monotonic() + note.seconds
            if not self.store_read:
                # Once only: a lease that changes while we watch is alive, and its age says nothing.
                self.store_read = True
                self.end = min(self.end, self._compute_end_by_store(stored, note))
        return self.end - self.clock.monotonic()

    def _compute_end_by_store(self, stored: StoredObject, note: Note) -> float:
        store_time = read_store_clock(self.objects)
        remaining = stored.modified + note.seconds * (1 + SKEW) + 1 - store_time
        return self.clock.monotonic() + remaining


def take_lock(
    objects: Objects,
    info: LockInfo,
    seconds: float,
    timeout: float,
    clock: Clock,
    by_hand: str = BY_HAND,
) -> Tenure:
    """Take the lock. timeout: seconds to wait for it; by_hand: the command that frees it, for
    messages. Raises Locked, StorageError."""
    deadline, watch = clock.monotonic() + timeout, Watch(objects, clock)
    while True:
        stored = objects.read(KEY)
        note = decode_note(stored.data, seconds) if stored else None
        remaining = (
            watch.measure_rest(stored, note) if stored and note and note.ended != RELEASED else 0.0
        )
        if note is None or note.ended or remaining <= 0:
            taken_over = watch.end if note and note.ended != RELEASED else None
            # Another run was faster. It is waited for like any holder.
            with contextlib.suppress(ObjectExists, ObjectChanged):
                return _write_lock(objects, info, seconds, clock, stored, taken_over)
        elif clock.monotonic() >= deadline:
            raise Locked(
                f"{objects.location} is locked by {note.holder}",
                _advise_wait(note, remaining, by_hand),
            )
        time_left = max(0.0, deadline - clock.monotonic())
        clock.sleep(max(0.01, min(POLL_SECONDS, seconds * POLL, time_left, max(remaining, 0.0))))


def _advise_wait(note: Note, remaining: float, by_hand: str) -> str:
    at_once = f", or immediately after `{by_hand} {note.holder.run}`" if by_hand else ""
    return (
        "Wait until that run has ended, or wait longer for it with --lock-timeout. If its process "
        f"is gone, the lock is free in {remaining:.0f} s{at_once}."
    )


def _write_lock(
    objects: Objects,
    info: LockInfo,
    seconds: float,
    clock: Clock,
    stored: StoredObject | None,
    taken_over: float | None,
) -> Tenure:
    # Our lease counts from before the write; others count from when they see it, which is later.
    started, data = clock.monotonic(), encode_note(Note(info, seconds))
    version = (
        objects.create(KEY, data) if stored is None else objects.replace(KEY, data, stored.version)
    )
    return Tenure(objects, info, clock, seconds, version, started + seconds, taken_over)


# ── holding it ──────────────────────────────────────────────────────────────────────────


class Tenure:
    """The lock while a run has it (`Lease`): a thread renews it, `ensure` makes certain of it."""

    def __init__(
        self,
        objects: Objects,
        info: LockInfo,
        clock: Clock,
        seconds: float,
        version: str,
        end: float,
        taken_over: float | None,
    ) -> None:
        self.taken_over = taken_over
        self._objects, self._info, self._clock = objects, info, clock
        self._seconds, self._version, self._end = seconds, version, end
        self._beat, self._spare = seconds / BEATS, seconds * SPARE
        self._lost: Locked | None = None
        self._mutex, self._over = threading.Lock(), threading.Event()

    def ensure(self, seconds: float) -> None:
        """Raises Locked unless the lock is certain to stay ours for that long, StorageError if the
        store does not answer."""
        if self._lost is None and self._get_seconds_left() >= seconds:
            return
        with self._mutex:
            if self._lost is None and self._get_seconds_left() < seconds:
                self._seconds = max(self._seconds, seconds + self._spare)
                self._renew()
            if self._lost is not None:
                raise self._lost
        if self._get_seconds_left() < seconds:
            raise Locked(
                f"{self._objects.location}: renewing the lock took so long that another run may "
                "have it before the next request is done",
                "Run the command again when the store answers faster.",
            )

    def _get_seconds_left(self) -> float:
        return self._end - self._clock.monotonic()

    def _renew(self) -> None:
        """Write the lease once more; called under the mutex. Raises StorageError."""
        started = self._clock.monotonic()
        data = encode_note(Note(self._info, self._seconds))
        try:
            self._version = self._objects.replace(KEY, data, self._version)
        except ObjectChanged as change:
            self._lost = _make_lost_error(self._objects.location, change.found, self._seconds)
            return
        self._end = started + self._seconds

    @contextlib.contextmanager
    def keep_alive(self) -> Iterator[Tenure]:
        """Renew the lease within the context, and give the lock back at its end."""
        thread = threading.Thread(target=self._renew_until_over, name="lease", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()
            self._release()

    def _renew_until_over(self) -> None:
        while not self._over.wait(self._beat) and self._lost is None:
            # No error is raised here: `ensure` is asked before each request, and reports it.
            with self._mutex, contextlib.suppress(StorageError):
                self._renew()

    def _release(self) -> None:
        # Stores delete without a condition, and that might delete the lock of the next run. So the
        # object stays and says that the lock is free.
        if self._lost is not None:
            return
        note = Note(self._info, self._seconds, RELEASED)
        with contextlib.suppress(ObjectChanged, StorageError):  # then it ends by itself
            self._objects.replace(KEY, encode_note(note), self._version)


def _make_lost_error(location: str, stored: StoredObject | None, seconds: float) -> Locked:
    advice = "Run the command again: it first finds out what became of this run's requests."
    if stored is None:
        return Locked(f"{location}: the lock of this run was deleted", advice)
    note = decode_note(stored.data, seconds)
    cause = {
        BROKEN: "the lock of this run was released by hand",
        RELEASED: f"the lock of this run was taken over and given back by {note.holder}",
    }.get(note.ended, f"the lock of this run was taken over by {note.holder}")
    return Locked(f"{location}: {cause}", advice)


# ── from outside ────────────────────────────────────────────────────────────────────────


def find_holder(objects: Objects) -> LockInfo | None:
    """The run that has the lock, None if nobody has it."""
    stored = objects.read(KEY)
    note = decode_note(stored.data, 0) if stored else None
    return None if note is None or note.ended else note.holder


def break_lock(objects: Objects, run: str) -> LockInfo:
    """End the lock of this run, and return whose it was. Raises Locked if that run has it not.

    The next run takes it at once, but waits before it recovers.
    """
    stored = objects.read(KEY)
    note = decode_note(stored.data, 0) if stored else None
    if stored is None or note is None or note.ended:
        raise Locked(f"{objects.location}: nobody holds the lock")
    if note.holder.run != run:
        raise Locked(f"{objects.location} is locked by {note.holder}, not by run {run}")
    try:
        objects.replace(KEY, encode_note(replace(note, ended=BROKEN)), stored.version)
    except ObjectChanged:
        raise Locked(
            f"{objects.location}: run {run} is alive: it has just renewed its lock",
            "End that process, then release its lock.",
        ) from None
    return note.holder


STATE, HISTORY, PROBE = "state.json", "history", "probe"
LEASE_SECONDS = 120.0


class ObjectBackend(Struct):
    """A state in an object store."""

    objects: Objects
    """The objects of one state; nothing else is below their prefix."""
    lease_seconds: float = LEASE_SECONDS
    """How long after its last renewal the lock of a run that died is free."""
    by_hand: str = BY_HAND
    """The command that frees it at once, or an empty text."""
    keep_seconds: float = 0.0
    """How long every earlier version is kept, even if there are more than ten."""
    _current: tuple[str, bytes] | None = None
    """The version and the bytes that the store has, as far as this run knows."""

    @property
    def location(self) -> str:
        """The object, for messages."""
        return f"{self.objects.location}/{STATE}"

    @property
    def earlier(self) -> str:
        """The folder of earlier versions, for messages."""
        return f"{self.objects.location}/{HISTORY}/"

    # ── lock ────────────────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def lock(self, info: LockInfo, timeout: float, clock: Clock) -> Iterator[Tenure]:
        tenure = take_lock(self.objects, info, self.lease_seconds, timeout, clock, self.by_hand)
        with tenure.keep_alive():
            yield tenure
            self._forget_old(clock.now() - self.keep_seconds)

    def holder(self) -> LockInfo | None:
        return find_holder(self.objects)

    def break_lock(self, run: str) -> LockInfo:
        return break_lock(self.objects, run)

    # ── load and save ───────────────────────────────────────────────────────────────────

    def load(self) -> Loaded:
        stored = self.objects.read(STATE)
        if stored is None:
            self._current = None
            return Loaded(None, None)
        state = decode(stored.data, self.location, self._advise_repair)
        self._current = (stored.version, stored.data)
        return Loaded(state, _make_version(state.serial, stored.data, stored.version))

    def outline(self) -> StateOutline | None:
        stored = self.objects.read(STATE)
        if stored is None:
            return None
        return decode_outline(stored.data, self.location, self._advise_repair)

    def save(self, state: State, version: str | None) -> str:
        data = encode(state)
        try:
            if version is None:
                stored = self.objects.create(STATE, data)
            else:
                stored = self._replace(data, version)
        except (ObjectExists, ObjectChanged):
            self._refuse_overtaken()
        self._current = (stored, data)
        return _make_version(state.serial, data, stored)

    def _replace(self, data: bytes, version: str) -> str:
        serial, digest, stored = version.split(" ", 2)
        current = self._current
        if current is None or current[0] != stored:
            current_object = self.objects.read(STATE)
            if current_object is None or current_object.version != stored:
                raise ObjectChanged(current_object)
            current = (stored, current_object.data)
        if hashlib.sha256(current[1]).hexdigest() != digest:
            raise ObjectChanged(None)
        if current[1] == data:
            # `Objects` tells writes apart by their bytes, so equal bytes must not be written twice.
            return stored
        self._keep(serial, current[1])
        return self.objects.replace(STATE, data, stored)

    def _keep(self, serial: str, data: bytes) -> None:
        """Keep the version that is about to be replaced; the last one of each serial stays."""
        key = f"{HISTORY}/{serial}.json"
        try:
            self.objects.create(key, data)
        except ObjectExists as earlier:
            self.objects.replace(key, data, earlier.found.version)

    def _forget_old(self, oldest: float) -> None:
        """Remove all but the last ten earlier versions, and those that were replaced later than
        `oldest`. What fails now, the next run removes."""
        if self._current is None:
            return
        with contextlib.suppress(StorageError):
            entries = self.objects.names(HISTORY)
            numbered = [entry for entry in entries if _parse_serial(entry.key) >= 0]
            numbered.sort(key=lambda entry: _parse_serial(entry.key))
            for entry in numbered[:-KEPT_VERSIONS]:
                if not self.keep_seconds or entry.modified <= oldest:
                    self.objects.delete(entry.key)

    def _refuse_overtaken(self) -> NoReturn:
        raise Locked(
            f"{self.location}: somebody else has changed the state since it was loaded",
            "Run the command again; it starts from the current state.",
        ) from None

    def _advise_repair(self) -> str:
        """What to do about a damaged state; names the newest version that is sound."""
        versions = []
        for entry in self.objects.names(HISTORY):
            # Only versions that can be read and are sound help.
            with contextlib.suppress(StorageError):
                stored = self.objects.read(entry.key)
                if stored is not None:
                    versions.append((compute_age(decode(stored.data, entry.key)), entry.key))
        if not versions:
            return (
                f"Do not repair it by hand. {self.earlier} contains no sound version. Restore an "
                f"earlier version of the object from your bucket, or delete {STATE}: the next "
                "apply builds the state from the audit log."
            )
        (_, serial), key = max(versions)
        return (
            f"Do not repair it by hand. The newest sound version that was kept is serial {serial}: "
            f"copy {self.objects.location}/{key} over {self.location} with the tools of your store,"
            " then run apply, which takes what came after that from the audit log."
        )

    # ── checks ──────────────────────────────────────────────────────────────────────────

    def check_writable(self, size: int = 0) -> None:
        # A store has room. What can be missing are rights, and the condition of a write: a store
        # that ignores it would let two runs overwrite each other. The probe is among the earlier
        # versions, because a save that cannot keep one fails after its requests were sent.
        task = "the state could not be saved, so nothing is sent"
        with self._create_probe(task, f"{HISTORY}/probe-") as key:
            self._require_create_condition(key)
            self.objects.names(HISTORY)

    def probe(self) -> None:
        """Prove that the store honours conditions and shows a write at once. Raises StorageError
        naming what it does not do."""
        with self._create_probe("the store cannot keep a state", f"{PROBE}/") as key:
            first = self.objects.read(key)
            if first is None:
                raise self._make_unfit_error("an object that was just written cannot be read")
            self._require_create_condition(key)
            self._require_replace_condition(key, first.version)
            if key not in {entry.key for entry in self.objects.names(PROBE)}:
                raise self._make_unfit_error("a listing does not show what was just written")

    @contextlib.contextmanager
    def _create_probe(self, task: str, prefix: str) -> Iterator[str]:
        key = f"{prefix}{secrets.token_hex(8)}"
        try:
            self.objects.create(key, _make_random_bytes())
            yield key
            self.objects.delete(key)
        except StorageError as error:
            raise StorageError(f"{task}: {error.message}", error.advice) from None

    def _require_create_condition(self, key: str) -> None:
        with contextlib.suppress(ObjectExists):
            self.objects.create(key, _make_random_bytes())
            raise self._make_unfit_error(
                "it creates an object over an existing one (it ignores If-None-Match)"
            )

    def _require_replace_condition(self, key: str, first: str) -> None:
        latest = _make_random_bytes()
        self.objects.replace(key, latest, first)
        with contextlib.suppress(ObjectChanged):
            self.objects.replace(key, _make_random_bytes(), first)
            raise self._make_unfit_error(
                "it replaces an object that has another version (it ignores If-Match)"
            )
        stored = self.objects.read(key)
        if stored is None or stored.data != latest:
            raise self._make_unfit_error("a read shows an older version than the one just written")

    def _make_unfit_error(self, fault: str) -> StorageError:
        return StorageError(
            f"{self.objects.location}: {fault}",
            "Two runs could overwrite each other here. Use a store with conditional writes, such "
            "as Amazon S3, Google Cloud Storage, Azure Blob Storage or a recent MinIO.",
        )

    def rescue(self, state: State) -> str:
        return save_somewhere(state)


def _make_random_bytes() -> bytes:
    return secrets.token_hex(16).encode("ascii")


def _make_version(serial: int, data: bytes, stored: str) -> str:
    return f"{serial} {hashlib.sha256(data).hexdigest()} {stored}"


def _parse_serial(key: str) -> int:
    name = key.rpartition("/")[2].removesuffix(".json")
    return int(name) if name.isdecimal() else -1
