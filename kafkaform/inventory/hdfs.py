"""A root in HDFS, such as `hdfs://namenode:8020/fleet`, without Java.

A file gets its name by a rename that never replaces another file. HDFS has no conditional writes.
So whoever replaces or deletes a file holds `.turn` open for appending meanwhile, which the NameNode
allows one client at a time; it takes the right away from a dead client after a minute. Only a
program that is suspended that long between its look and its rename could undo another one's write.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache, partial
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from ..core.clock import Clock, SystemClock
from ..core.errors import StorageError, UsageError
from ..core.installation import render_extra_command
from ..core.objects import Entry, ObjectChanged, ObjectExists, StoredObject

if TYPE_CHECKING:
    from hdfs_native import Client, FileStatus, FileWriter

SCHEME = "hdfs"
TURN = ".turn"
TURN_SECONDS, POLL_SECONDS = 120.0, 0.1
"""How long to wait for a turn: twice as long as the NameNode keeps it for a dead client.
POLL_SECONDS: how often to ask."""
ANSWER_SECONDS, MANY_SECONDS = 120.0, 3600.0
"""The library waits forever for a NameNode that does not answer. MANY_SECONDS is for requests with
many answers: a file or a listing."""
SETTINGS = {"dfs.client.failover.max.attempts": "3"}
"""By default the library tries 15 times, which takes three minutes."""
READS = 5
"""How often to read a file that is replaced meanwhile."""
_FAULTS = (OSError, RuntimeError)
"""What the library raises: RuntimeError for refusals that Python has no class for."""
_REFUSED = re.compile(r'RPCError\("[\w$.]+", "(.*)"\)', re.DOTALL)
_BUSY = ("AlreadyBeingCreatedException", "RecoveryInProgressException")
"""The NameNode's refusals while another client has the turn."""
_ADVICE = "Check that the NameNode can be reached and that you may write there."

T = TypeVar("T")


class Hdfs(Struct, frozen=True):
    """`core.objects.Objects` in HDFS."""

    address: str
    """Of the NameNode or name service."""
    folder: str
    """An absolute path."""
    opened: Callable[[], Client]
    """Returns the client."""
    clock: Clock

    @property
    def location(self) -> str:
        return f"{self.address}{self.folder}"

    def read(self, key: str) -> StoredObject | None:
        """Return a file, all of it from one version: it may be replaced while it is read."""
        with self._explain_errors("cannot read", key):
            for _ in range(READS):
                try:
                    return self._ask(partial(_read_whole, path=self._make_path(key)), MANY_SECONDS)
                except FileNotFoundError:
                    return None
                except _Replaced:
                    continue
            raise OSError("it is replaced again and again")

    def create(self, key: str, data: bytes) -> str:
        with self._explain_errors("cannot write", key):
            return self._put(key, data, overwrite=False)

    def replace(self, key: str, data: bytes, version: str) -> str:
        with self._explain_errors("cannot write", key), self._take_turn():
            stored = self.read(key)
            if stored is None or stored.version != version:
                raise ObjectChanged(stored)
            return self._put(key, data, overwrite=True)

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        with self._explain_errors("cannot list", prefix):
            try:
                path = self._make_path(prefix)
                statuses = self._ask(lambda hdfs: list(hdfs.list_status(path, True)), MANY_SECONDS)
            except FileNotFoundError:
                return ()
        entries = (self._make_entry(status) for status in statuses if _is_ours(status))
        listed = sorted(entries, key=lambda entry: entry.key)
        return tuple(entry for entry in listed if after is None or entry.key > after)

    def delete(self, key: str) -> None:
        with self._explain_errors("cannot delete", key), self._take_turn():
            self._remove(self._make_path(key))

    # ── single steps ────────────────────────────────────────────────────────────────────

    def _put(self, key: str, data: bytes, *, overwrite: bool) -> str:
        """Write a file. Raises ObjectExists."""
        path = self._make_path(key)
        folder, _, name = path.rpartition("/")
        # Hidden by its dot: `_is_ours` and Spark skip it, so a half-written file is never listed.
        fresh = f"{folder}/.{name}.{secrets.token_hex(6)}.tmp"
        try:
            self._ask(partial(_write_file, path=fresh, data=data), MANY_SECONDS)
            self._ask(lambda client: client.rename(fresh, path, overwrite))
        except _FAULTS:
            # The answer may be lost while the rename happened. Once the temporary file is removed,
            # it cannot be renamed later. If it was gone already, the rename has happened.
            removed, stored = self._remove(fresh), self.read(key)
            if not removed and stored is not None and stored.data == data:
                return stored.version
            if stored is not None and not overwrite:
                raise ObjectExists(stored) from None
            raise
        return _compute_version(data)

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        """Keep others from replacing or deleting files meanwhile."""
        path = self._make_path(TURN)
        until = self.clock.monotonic() + TURN_SECONDS
        while (right := self._ask(partial(_start_append, path=path))) is None:
            if self.clock.monotonic() > until:
                raise OSError(f"somebody else has had {TURN} open for {TURN_SECONDS:g} s")
            self.clock.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            try:
                self._ask(lambda _: right.close())
            except _FAULTS:  # the work is done, but others must not wait for the lease to expire
                with suppress(*_FAULTS):
                    self._ask(lambda client: client.recover_lease(path))

    def _remove(self, path: str) -> bool:
        """Delete a file; True: it existed."""
        return self._ask(lambda client: client.delete(path, False))

    def _ask(self, request: Callable[[Client], T], seconds: float = ANSWER_SECONDS) -> T:
        """Return HDFS's answer. The request runs in a thread, so that Ctrl-C and the timeout
        work."""
        answer: Future[T] = Future()

        def ask() -> None:
            try:
                answer.set_result(request(self.opened()))
            except BaseException as error:  # noqa: BLE001  # raised again where the answer is awaited
                answer.set_exception(error)

        # daemon: a request that never ends must not keep the process alive.
        threading.Thread(target=ask, daemon=True).start()
        return answer.result(seconds)

    # ── names and messages ──────────────────────────────────────────────────────────────

    def _make_path(self, key: str) -> str:
        return f"{self.folder}/{key}".rstrip("/") or "/"

    def _make_entry(self, status: FileStatus) -> Entry:
        key = status.path.removeprefix(f"{self.folder}/")
        return Entry(key, status.length, _get_seconds(status))

    @contextmanager
    def _explain_errors(self, task: str, key: str) -> Iterator[None]:
        """Raises StorageError."""
        try:
            yield
        except _FAULTS as error:
            raise StorageError(
                f"{task} {self.location}/{key}: {_render_error(error)}", _ADVICE
            ) from None


class _Replaced(Exception):
    """A file was replaced while it was read."""


def open_hdfs(url: str, clock: Clock | None = None) -> Hdfs:
    """Return the files below a folder; nothing is sent yet. Raises UsageError."""
    if find_spec("hdfs_native") is None:
        raise UsageError(
            "HDFS needs a package that is not installed",
            f"Run `{render_extra_command('fleet')}`.",
        )
    address_parts = urlsplit(url)
    if not address_parts.netloc:
        raise UsageError(
            f"{url}: the NameNode is not named",
            "Write hdfs://HOST:PORT/folder, or hdfs://NAME/folder with a name service of "
            "hdfs-site.xml in the folder that HADOOP_CONF_DIR names.",
        )
    address = f"{SCHEME}://{address_parts.netloc}"
    return Hdfs(
        address, address_parts.path.rstrip("/"), _make_opener(address), clock or SystemClock()
    )


@cache
def _make_opener(address: str) -> Callable[[], Client]:
    @cache
    def open_client() -> Client:
        from hdfs_native import Client  # noqa: PLC0415  # the fleet extra has it

        return Client(address, SETTINGS)

    return open_client


def _read_whole(client: Client, path: str) -> StoredObject:
    """Raises FileNotFoundError, _Replaced."""
    before = client.get_file_info(path)
    if before.isdir:
        raise FileNotFoundError(path)
    try:
        data = bytes(client.read(path).read())
    except _FAULTS:
        if _get_stamp(client.get_file_info(path)) == _get_stamp(before):
            raise
        raise _Replaced from None
    # Size and time before and after: HDFS has no ETag, and a reader may get blocks of two versions.
    after = client.get_file_info(path)
    if _get_stamp(after) != _get_stamp(before) or len(data) != before.length:
        raise _Replaced
    return StoredObject(data, _compute_version(data), _get_seconds(after))


def _get_stamp(status: FileStatus) -> tuple[int, int]:
    return status.modification_time, status.length


def _write_file(client: Client, path: str, data: bytes) -> None:
    """Write a new file and wait until the DataNodes have it on their disks."""
    from hdfs_native import WriteOptions  # noqa: PLC0415  # the fleet extra has it

    writer = client.create(path, WriteOptions(create_parent=True))
    if data:
        writer.write(data)
        writer.hsync()
    writer.close()


def _start_append(client: Client, path: str) -> FileWriter | None:
    """Return the right to append; None: another client has it, or the file did not exist yet."""
    try:
        return client.append(path)
    except FileNotFoundError:
        with suppress(FileExistsError):
            _write_file(client, path, b"")
    except FileExistsError:
        pass
    except RuntimeError as error:
        if not any(name in str(error) for name in _BUSY):
            raise
    return None


def _is_ours(status: FileStatus) -> bool:
    return not status.isdir and not status.path.rpartition("/")[2].startswith(".")


def _get_seconds(status: FileStatus) -> float:
    return status.modification_time / 1000


def _compute_version(data: bytes) -> str:
    return sha256(data).hexdigest()


def _render_error(error: Exception) -> str:
    """Return one line, without the NameNode's stack trace."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    refused = _REFUSED.search(str(error))
    text = refused[1].replace('\\"', '"') if refused else str(error)
    return re.split(r"\n|\\n", text, maxsplit=1)[0]
