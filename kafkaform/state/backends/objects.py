"""A state in an object store, which one conditional write replaces as a whole or not at all.

`state.json` is the state, `history/SERIAL.json` an earlier one, `lock.json` the lock (lease.py),
`log/` the audit log (audit/sinks/objects.py), `probe/` and `history/probe-` what a check writes and
removes.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterator
from typing import NoReturn

from msgspec import Struct

from ...core.clock import Clock
from ...core.errors import Locked, StorageError
from ...core.objects import ObjectChanged, ObjectExists, Objects
from ..backend import Loaded, LockInfo
from ..codec import decode, encode
from ..model import State
from . import lease
from .local import KEPT_VERSIONS, compute_age, save_somewhere

STATE, HISTORY, PROBE = "state.json", "history", "probe"
LEASE_SECONDS = 120.0


class ObjectBackend(Struct):
    """A state in an object store."""

    objects: Objects
    """The objects of one state; nothing else is below their prefix."""
    lease_seconds: float = LEASE_SECONDS
    """How long after its last renewal the lock of a run that died is free."""
    by_hand: str = lease.BY_HAND
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
    def lock(self, info: LockInfo, timeout: float, clock: Clock) -> Iterator[lease.Tenure]:
        tenure = lease.take_lock(
            self.objects, info, self.lease_seconds, timeout, clock, self.by_hand
        )
        with tenure.keep_alive():
            yield tenure
            self._forget_old(clock.now() - self.keep_seconds)

    def holder(self) -> LockInfo | None:
        return lease.find_holder(self.objects)

    def break_lock(self, run: str) -> LockInfo:
        return lease.break_lock(self.objects, run)

    # ── load and save ───────────────────────────────────────────────────────────────────

    def load(self) -> Loaded:
        stored = self.objects.read(STATE)
        if stored is None:
            self._current = None
            return Loaded(None, None)
        state = decode(stored.data, self.location, self._advise_repair)
        self._current = (stored.version, stored.data)
        return Loaded(state, _make_version(state.serial, stored.data, stored.version))

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
