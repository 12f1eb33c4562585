"""A root in HDFS, `hdfs://namenode:8020/fleet`, without Java.

A file gets its name by a rename that takes it from no other file. HDFS has no write on condition
of what is there. So whoever replaces or removes a file holds `.turn` open for appending, which the
NameNode allows one client at a time; from one that died it takes that right after a minute. Only a
program that is stopped for so long between its look and its rename could undo another one's write.
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
from ..core.objects import Changed, Entry, Exists, Found

if TYPE_CHECKING:
    from hdfs_native import Client, FileStatus, FileWriter

SCHEME = "hdfs"
TURN = ".turn"
TURN_SECONDS, POLL_SECONDS = 120.0, 0.1
"""How long a turn is waited for: twice as long as the NameNode keeps it for a client that died."""
ANSWER_SECONDS, MANY_SECONDS = 120.0, 3600.0
"""The library would wait for ever for a NameNode that does not answer; the latter is for what may
take many answers: a file or a listing."""
SETTINGS = {"dfs.client.failover.max.attempts": "3"}
"""Else it tries 15 times, which takes three minutes."""
READS = 5
_FAULTS = (OSError, RuntimeError)
"""What the library raises: RuntimeError for a refusal that Python has no class for."""
_REFUSED = re.compile(r'RPCError\("[\w$.]+", "(.*)"\)', re.DOTALL)
_BUSY = ("AlreadyBeingCreatedException", "RecoveryInProgressException")
_ADVICE = "Check that the NameNode can be reached and that you may write there."

T = TypeVar("T")


class Hdfs(Struct, frozen=True):
    """`core.objects.Objects` in HDFS. address: of the NameNode or name service; folder: an
    absolute path; opened: the client."""

    address: str
    folder: str
    opened: Callable[[], Client]
    clock: Clock

    @property
    def location(self) -> str:
        return f"{self.address}{self.folder}"

    def read(self, key: str) -> Found | None:
        """What is read is all of one version: a file may be replaced meanwhile."""
        with self._explained("cannot read", key):
            for _ in range(READS):
                try:
                    return self._asked(partial(_whole, path=self._path(key)), MANY_SECONDS)
                except FileNotFoundError:
                    return None
                except _Replaced:
                    continue
            raise OSError("it is replaced again and again")

    def create(self, key: str, data: bytes) -> str:
        with self._explained("cannot write", key):
            return self._put(key, data, overwrite=False)

    def replace(self, key: str, data: bytes, version: str) -> str:
        with self._explained("cannot write", key), self._turn():
            found = self.read(key)
            if found is None or found.version != version:
                raise Changed(found)
            return self._put(key, data, overwrite=True)

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        with self._explained("cannot list", prefix):
            try:
                path = self._path(prefix)
                found = self._asked(lambda hdfs: list(hdfs.list_status(path, True)), MANY_SECONDS)
            except FileNotFoundError:
                return ()
        entries = (self._entry(status) for status in found if _is_ours(status))
        listed = sorted(entries, key=lambda entry: entry.key)
        return tuple(entry for entry in listed if after is None or entry.key > after)

    def delete(self, key: str) -> None:
        with self._explained("cannot delete", key), self._turn():
            self._removed(self._path(key))

    # ── single steps ────────────────────────────────────────────────────────────────────

    def _put(self, key: str, data: bytes, *, overwrite: bool) -> str:
        """Raises Exists."""
        path = self._path(key)
        folder, _, name = path.rpartition("/")
        fresh = f"{folder}/.{name}.{secrets.token_hex(6)}.tmp"
        try:
            self._asked(partial(_write, path=fresh, data=data), MANY_SECONDS)
            self._asked(lambda client: client.rename(fresh, path, overwrite))
        except _FAULTS:
            # An answer may have been lost. Once the new file is removed it cannot get its name any
            # more; if it was gone it has got it, unless others have seen to that since.
            removed, found = self._removed(fresh), self.read(key)
            if not removed and found is not None and found.data == data:
                return found.version
            if found is not None and not overwrite:
                raise Exists(found) from None
            raise
        return _version(data)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """While others neither replace nor remove a file."""
        path = self._path(TURN)
        until = self.clock.monotonic() + TURN_SECONDS
        while (right := self._asked(partial(_appending, path=path))) is None:
            if self.clock.monotonic() > until:
                raise OSError(f"somebody else has had {TURN} open for {TURN_SECONDS:g} s")
            self.clock.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            try:
                self._asked(lambda _: right.close())
            except _FAULTS:  # what was to be done is done; nobody shall wait for its end
                with suppress(*_FAULTS):
                    self._asked(lambda client: client.recover_lease(path))

    def _removed(self, path: str) -> bool:
        """Whether it was there."""
        return self._asked(lambda client: client.delete(path, False))

    def _asked(self, request: Callable[[Client], T], seconds: float = ANSWER_SECONDS) -> T:
        """What HDFS answers. In a thread, so that Ctrl-C and the time that it takes count."""
        answer: Future[T] = Future()

        def ask() -> None:
            try:
                answer.set_result(request(self.opened()))
            except BaseException as error:  # noqa: BLE001  # who has asked is told
                answer.set_exception(error)

        threading.Thread(target=ask, daemon=True).start()
        return answer.result(seconds)

    # ── names and messages ──────────────────────────────────────────────────────────────

    def _path(self, key: str) -> str:
        return f"{self.folder}/{key}".rstrip("/") or "/"

    def _entry(self, status: FileStatus) -> Entry:
        key = status.path.removeprefix(f"{self.folder}/")
        return Entry(key, status.length, _seconds(status))

    @contextmanager
    def _explained(self, task: str, key: str) -> Iterator[None]:
        """Raises StorageError."""
        try:
            yield
        except _FAULTS as error:
            raise StorageError(f"{task} {self.location}/{key}: {_told(error)}", _ADVICE) from None


class _Replaced(Exception):
    """A file was replaced while it was read."""


def open_hdfs(url: str, clock: Clock | None = None) -> Hdfs:
    """The files below a folder; nothing is sent yet. Raises UsageError."""
    if find_spec("hdfs_native") is None:
        raise UsageError(
            "HDFS needs a package that is not installed", "Run `pip install 'kafkaform[fleet]'`."
        )
    parts = urlsplit(url)
    if not parts.netloc:
        raise UsageError(
            f"{url}: the NameNode is not named",
            "Write hdfs://HOST:PORT/folder, or hdfs://NAME/folder with a name service of "
            "hdfs-site.xml in the folder that HADOOP_CONF_DIR names.",
        )
    address = f"{SCHEME}://{parts.netloc}"
    return Hdfs(address, parts.path.rstrip("/"), _opener(address), clock or SystemClock())


@cache
def _opener(address: str) -> Callable[[], Client]:
    @cache
    def opened() -> Client:
        from hdfs_native import Client  # noqa: PLC0415  # the fleet extra has it

        return Client(address, SETTINGS)

    return opened


def _whole(client: Client, path: str) -> Found:
    """Raises FileNotFoundError, _Replaced."""
    before = client.get_file_info(path)
    if before.isdir:
        raise FileNotFoundError(path)
    try:
        data = bytes(client.read(path).read())
    except _FAULTS:
        if _stamp(client.get_file_info(path)) == _stamp(before):
            raise
        raise _Replaced from None
    after = client.get_file_info(path)
    if _stamp(after) != _stamp(before) or len(data) != before.length:
        raise _Replaced
    return Found(data, _version(data), _seconds(after))


def _stamp(status: FileStatus) -> tuple[int, int]:
    return status.modification_time, status.length


def _write(client: Client, path: str, data: bytes) -> None:
    """A new file, on the disks of those who keep it."""
    from hdfs_native import WriteOptions  # noqa: PLC0415  # the fleet extra has it

    writer = client.create(path, WriteOptions(create_parent=True))
    if data:
        writer.write(data)
        writer.hsync()
    writer.close()


def _appending(client: Client, path: str) -> FileWriter | None:
    """The right to append; None: somebody else has it, or the file was not there yet."""
    try:
        return client.append(path)
    except FileNotFoundError:
        with suppress(FileExistsError):
            _write(client, path, b"")
    except FileExistsError:
        pass
    except RuntimeError as error:
        if not any(name in str(error) for name in _BUSY):
            raise
    return None


def _is_ours(status: FileStatus) -> bool:
    return not status.isdir and not status.path.rpartition("/")[2].startswith(".")


def _seconds(status: FileStatus) -> float:
    return status.modification_time / 1000


def _version(data: bytes) -> str:
    return sha256(data).hexdigest()


def _told(error: Exception) -> str:
    """One line, without the NameNode's stack."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    refused = _REFUSED.search(str(error))
    text = refused[1].replace('\\"', '"') if refused else str(error)
    return re.split(r"\n|\\n", text, maxsplit=1)[0]
