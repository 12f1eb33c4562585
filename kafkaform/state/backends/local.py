"""A state in a local file, which at every moment is either the old state or the new one.

Temporary file → fsync → keep the old version → rename → fsync of the folder. The lock is a file of
its own that is never renamed, locked with flock, so that the kernel frees it however a run ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from ...core import storage
from ...core.canonical import Misfit, from_data, parse_json
from ...core.clock import Clock
from ...core.errors import Locked, StorageError
from ...core.storage import make_storage_error
from ..codec import decode, decode_outline, encode
from ..model import Loaded, LockInfo, State, StateOutline

KEPT_VERSIONS = 10
ROOM = 3
"""How many whole states must fit on the disk before anything is sent."""
SMALLEST_ROOM = 1 << 20
RETRY_SECONDS = 0.05
# `holder` takes a shared lock for a moment. No run must be turned away because of that.
SHORTEST_WAIT_SECONDS = 0.2
UNKNOWN_HOLDER = LockInfo("unknown", "somebody", "unknown", 0, "unknown", "unknown")


class FileLease(Struct, frozen=True):
    """The lock file, while a run has it locked."""

    state: Path
    """The state file, for messages."""
    path: Path
    """The lock file."""
    descriptor: int
    """The open lock file, whose flock is ours."""
    taken_over: float | None = None
    """When the lock was taken, if its file had to be made: somebody may have removed it."""

    def ensure(self, seconds: float) -> None:
        # Somebody can remove the file (`git clean -xfd`). The next run then makes and locks another
        # file of that name, and this flock keeps nobody out any more.
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(self.descriptor), self.path.lstat()):
                return
        raise Locked(
            f"{self.state}: the lock file of this run was removed or replaced, so another run may "
            "have begun",
            "Do not change .kafkaform while a run uses it. Run the command again: it first finds "
            "out what became of this run's requests.",
        )


class LocalBackend(Struct):
    """A state in a local file. Lock and earlier versions are in `.kafkaform` beside it."""

    path: Path
    """The state file."""
    keep_seconds: float = 0.0
    """How long every earlier version is kept, even if there are more than ten."""
    _lease: FileLease | None = None
    """The lock, while this run has it."""
    _begin: float = 0.0
    """When the lock was taken, in seconds since the epoch."""

    @property
    def location(self) -> str:
        """The path, for messages."""
        return str(self.path)

    @property
    def earlier(self) -> str:
        """The folder of earlier versions, for messages."""
        return str(self._folder / "backups")

    @property
    def _folder(self) -> Path:
        return self.path.parent / ".kafkaform"

    @property
    def _lock_path(self) -> Path:
        return self._folder / "lock"

    # ── lock ────────────────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def lock(self, info: LockInfo, timeout: float, clock: Clock) -> Iterator[FileLease]:
        """Take the lock for the time of the context. Raises Locked after `timeout` seconds,
        StorageError."""
        with _explain_errors("cannot lock the state", self._lock_path):
            storage.make_private_folder(self._folder)
            descriptor, created = self._acquire(clock, clock.monotonic() + timeout)
        # A missing lock file may have been removed while a run had it locked. So whoever has to
        # make it waits like after a lease that was taken over (architecture §5).
        taken_over = clock.monotonic() if created else None
        lease = FileLease(self.path, self._lock_path, descriptor, taken_over)
        try:
            with _explain_errors("cannot lock the state", self._lock_path):
                _write_owner(descriptor, info)
                for path in (self.path, self._folder / "backups" / self.path.name):
                    for leftover in storage.list_leftovers(path):
                        leftover.unlink()
            self._lease, self._begin = lease, clock.now()
            yield lease
        finally:
            self._lease = None
            with contextlib.suppress(OSError):  # the text is for people; closing is what unlocks
                os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def _acquire(self, clock: Clock, deadline: float) -> tuple[int, bool]:
        """The locked file, and whether it had to be made."""
        deadline = max(deadline, clock.monotonic() + SHORTEST_WAIT_SECONDS)
        while True:
            attempt = self._try_lock()
            if attempt is not None:
                return attempt
            if clock.monotonic() >= deadline:
                holder = self.holder() or UNKNOWN_HOLDER
                raise Locked(
                    f"{self.path} is locked by {holder}",
                    "Wait until that run has ended, or wait longer for it with --lock-timeout. The "
                    "lock of a process that died is free immediately.",
                )
            clock.sleep(RETRY_SECONDS)

    def _try_lock(self) -> tuple[int, bool] | None:
        try:
            descriptor, created = self._open_lock()
        except FileExistsError:  # somebody made it a moment ago
            return None
        try:
            # Its text will be replaced. A file with a second name may be somebody else's.
            if os.fstat(descriptor).st_nlink > 1:
                raise OSError(errno.EMLINK, "the file has another name (a hard link)")
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # If somebody removed the file between open and flock, our lock keeps nobody out.
            if os.path.samestat(os.fstat(descriptor), self._lock_path.lstat()):
                return descriptor, created
        except (BlockingIOError, FileNotFoundError):
            # Another run has the lock, or has just given it back and removed the file.
            pass
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def _open_lock(self) -> tuple[int, bool]:
        # The lock file is truncated later: through a link, that could be any file of the user. A
        # pipe or a device of that name must not block.
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            return os.open(self._lock_path, flags), False
        except FileNotFoundError:
            new = flags | os.O_CREAT | os.O_EXCL
            return os.open(self._lock_path, new, storage.PRIVATE_FILE), True

    def holder(self) -> LockInfo | None:
        """The run that has the lock now. Raises StorageError if the lock file cannot be read."""
        with _explain_errors("cannot look at the lock", self._lock_path):
            try:
                descriptor = os.open(self._lock_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except FileNotFoundError:
                return None
            with os.fdopen(descriptor, "rb") as file:
                try:
                    # Who can share the lock knows that no process holds it; the text of a dead one
                    # may still be there.
                    fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return _read_owner(file.read())
        return None

    def break_lock(self, run: str) -> LockInfo:
        # The kernel frees the lock of a process that has ended, so there is nothing to release.
        holder = self.holder()
        if holder is None:
            raise Locked(f"{self.path}: nobody holds the lock")
        raise Locked(
            f"{self.path} is locked by {holder}: that process is alive",
            f"End process {holder.pid} on {holder.host}; its lock is free immediately.",
        )

    def probe(self) -> None:
        """Nothing to do: the kernel keeps these promises. `check_writable` looks at room and
        rights."""

    # ── load and save ───────────────────────────────────────────────────────────────────

    def load(self) -> Loaded:
        data = self._read()
        if data is None:
            return Loaded(None, None)
        state = decode(data, self.location, self._advise_repair)
        return Loaded(state, _make_version(state.serial, data))

    def outline(self) -> StateOutline | None:
        data = self._read()
        return None if data is None else decode_outline(data, self.location, self._advise_repair)

    def save(self, state: State, version: str | None) -> str:
        data = encode(state)
        if self._lease is not None:
            self._lease.ensure(0.0)
        # Read and compared under the lock. Without that a state that was put back from a backup in
        # the middle of a run would be overwritten.
        current = self._read()
        _refuse_other(self.location, current, version)
        with _explain_errors("cannot save the state", self.path):
            self._replace(data, current, version)
        return _make_version(state.serial, data)

    def check_writable(self, size: int = 0) -> None:
        current = self._read()
        room = max(ROOM * max(size, len(current or b"")), SMALLEST_ROOM)
        with _explain_errors("the state could not be saved, so nothing is sent", self.path):
            backups = storage.make_private_folder(
                storage.make_private_folder(self._folder) / "backups"
            )
            storage.prove_room(self.path, room)
        # A save that cannot keep the earlier version fails after its requests were sent.
        with _explain_errors("the state could not be saved, so nothing is sent", backups):
            os.scandir(backups).close()
            storage.prove_room(backups / self.path.name, 1)
        with _explain_errors("the state could not be saved, so nothing is sent", self.path):
            storage.sync_folder(self.path.parent)  # as a save does after its rename

    def rescue(self, state: State) -> str:
        return save_somewhere(state)

    def _read(self) -> bytes | None:
        with _explain_errors("cannot read the state", self.path):
            try:
                return storage.read(self.path)
            except FileNotFoundError:
                return None

    def _advise_repair(self) -> str:
        """What to do about a damaged state; names the newest version that is sound."""
        versions = list(_find_sound(self._backups))
        if not versions:
            return (
                "Do not repair it by hand. No earlier version was kept. Restore a backup, or move "
                "the file away: if the audit log exists, the next apply builds the state from it."
            )
        newest, (_, serial) = max(versions, key=lambda version: version[1])
        return (
            f"Do not repair it by hand. The newest sound version that was kept is serial "
            f"{serial}: `cp {newest} {self.path}`, then run apply, which takes what came after "
            "that from the audit log."
        )

    @property
    def _backups(self) -> list[Path]:
        backup_files = (self._folder / "backups").glob(f"{self.path.name}.*")
        return [path for path in backup_files if path.suffix[1:].isdecimal()]

    def _replace(self, data: bytes, current: bytes | None, version: str | None) -> None:
        fresh = storage.make_temporary_name(self.path)
        try:
            storage.write_new(fresh, data)
            if current is not None and version is not None:
                self._keep(current, version)
            # The old state has been kept by now, and the new one is durable under another name: a
            # crash before or after this line leaves a whole state.
            fresh.replace(self.path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        storage.sync_folder(self.path.parent)

    def _keep(self, current: bytes, version: str) -> None:
        """Keep the version that is about to be replaced, named by its serial. Ten are kept, and
        those that were replaced a short time ago."""
        storage.make_private_folder(self._folder)
        backups = storage.make_private_folder(self._folder / "backups")
        backup = backups / f"{self.path.name}.{version.partition('-')[0]}"
        # A link to a name that exists fails, and an older run may have kept the same serial.
        backup.unlink(missing_ok=True)
        try:
            os.link(self.path, backup, follow_symlinks=False)
        except OSError:  # file systems without hard links refuse in many ways
            storage.write_new(backup, current)
        oldest = self._begin - self.keep_seconds
        for old in sorted(self._backups, key=_parse_serial)[:-KEPT_VERSIONS]:
            # The time of the last change of the file's names, which is when it was replaced: a
            # state can have been in effect for long before that.
            if not self.keep_seconds or old.stat().st_ctime <= oldest:
                old.unlink()


def save_emergency(state: State, folder: Path) -> Path:
    """Save a state in this folder under a new name, and return it. Raises StorageError."""
    path = folder / f"kafkaform.state.{state.serial}.{secrets.token_hex(4)}.json"
    with _explain_errors("cannot save the state here either", path):
        try:
            storage.write_new(path, encode(state))
        except OSError:
            # A state that was cut off would be taken for one that can be restored.
            path.unlink(missing_ok=True)
            raise
        storage.sync_folder(folder)
    return path


def save_somewhere(state: State) -> str:
    """Write a state to the folder for temporary files, or to the home folder if that fails, and
    return where it is. Raises StorageError."""
    try:
        return str(save_emergency(state, Path(tempfile.gettempdir())))
    except (OSError, StorageError):
        # The usual cause is a full disk, and the home folder is often on another one.
        return str(save_emergency(state, Path.home()))


def _make_version(serial: int, data: bytes) -> str:
    return f"{serial}-{hashlib.sha256(data).hexdigest()}"


def _find_sound(backups: Iterable[Path]) -> Iterator[tuple[Path, tuple[int, int]]]:
    """The backups that can be used, each with its age."""
    for path in backups:
        # An unsound backup is passed over: the advice names only those that help.
        with contextlib.suppress(OSError, StorageError):
            yield path, compute_age(decode(storage.read(path), str(path)))


def compute_age(state: State) -> tuple[int, int]:
    """How new a state is, for comparing: the record that it follows from, and its serial."""
    # The record first: the serial begins anew where a lost state was built from its log.
    return (state.audit_head.seq if state.audit_head else 0, state.serial)


def _parse_serial(backup: Path) -> int:
    return int(backup.suffix[1:])


def _refuse_other(location: str, current: bytes | None, version: str | None) -> None:
    digest = None if current is None else hashlib.sha256(current).hexdigest()
    expected = None if version is None else version.partition("-")[2]
    if digest != expected:
        raise Locked(
            f"{location}: somebody else has changed the state since it was loaded",
            "Run the command again; it starts from the current state.",
        )


def _write_owner(descriptor: int, info: LockInfo) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(asdict(info)).encode("ascii"), 0)


def _read_owner(text: bytes) -> LockInfo:
    # A run writes its name a moment after it has taken the lock, so there may be none yet.
    try:
        return from_data(LockInfo, parse_json(text))
    except Misfit:
        return UNKNOWN_HOLDER


@contextlib.contextmanager
def _explain_errors(task: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise make_storage_error(task, path, error) from None
