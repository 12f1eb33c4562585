"""Write landing files (`core.landing`): snapshots, the register, and pieces of audit logs, in a
folder, a store or HDFS.

Rows are written first and the `.meta.json` last, so that half a snapshot is none. A log is copied
byte for byte in pieces named by first and last record. It lands as far as it is proven, or not at
all: neither an altered log nor another log in place of the one that landed before is copied.

HDFS, such as `hdfs://namenode:8020/fleet`, is used without Java. A file gets its name by a rename
that never replaces another file. HDFS has no conditional writes. So whoever replaces or deletes a
file holds `.turn` open for appending meanwhile, which the NameNode allows one client at a time; it
takes the right away from a dead client after a minute. Only a program that is suspended that long
between its look and its rename could undo another one's write.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ..audit.records import Glance, parse_line_head, read_glances, read_line, render_time
from ..audit.sink import Sink, find_start
from ..core.canonical import dumps
from ..core.clock import Clock, SystemClock
from ..core.errors import StorageError, UsageError
from ..core.head import GENESIS, Head
from ..core.installation import render_extra_command
from ..core.landing import AUDIT, META, REGISTER, ROOT, ROWS, LandedRow, Meta
from ..core.lazy import load
from ..core.objects import Entry, Folder, ObjectChanged, ObjectExists, Objects, StoredObject
from ..core.secret import mask_secrets
from ..state.backends.obstores import is_remote, open_objects

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
_HDFS_ADVICE = "Check that the NameNode can be reached and that you may write there."

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
                    # Somebody replaced the file while it was read.
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
        entries = (
            self._make_entry(status)
            for status in statuses
            if not status.isdir and not status.path.rpartition("/")[2].startswith(".")
        )
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
                f"{task} {self.location}/{key}: {_render_error(error)}", _HDFS_ADVICE
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
    writer = client.create(path, load("hdfs_native:WriteOptions")(create_parent=True))
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
        # HDFS says so while another client has the file open for appending.
        pass
    except RuntimeError as error:
        if not any(name in str(error) for name in _BUSY):
            raise
    return None


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


class LandingPlace(Protocol):
    """The part of `core.objects.Objects` that landing needs. Keys have `/` between their parts.
    Every method raises StorageError."""

    @property
    def location(self) -> str:
        """The name of the place in messages."""

    def read(self, key: str) -> StoredObject | None:
        """Return the file; None: there is none."""

    def create(self, key: str, data: bytes) -> str:
        """Write a new file, completely or not at all. Raises ObjectExists."""

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        """List the files below a folder, sorted by key; only keys > `after`."""


def open_place(root: str) -> LandingPlace:
    """Open a root. root: a folder, or a URL such as `s3://bucket/fleet`. Raises UsageError."""
    return open_remote(root) if is_remote(root) else Folder(Path(root))


def open_remote(url: str) -> Objects:
    """Open a root in a store or in HDFS. Raises UsageError."""
    return open_hdfs(url) if urlsplit(url).scheme == SCHEME else open_objects(url, {})


def make_exists_error(store: LandingPlace, key: str) -> StorageError:
    """The error for a file that exists already."""
    return StorageError(
        f"{store.location}/{key} already exists; it was not changed",
        "Landing files are written once. Take the snapshot again: it will get another name.",
    )


_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", re.ASCII)
_ROW = (
    *("kind", "key", "attrs", "instance", "scope_id", "address", "owner", "incarnation"),
    "park",
)
_META = (
    *("source", "subject", "snapshot", "started", "ended", "complete", "rows", "sha256"),
    *("scope_id", "coverage", "error", "scopes", "format"),
)


class Landed(Struct, frozen=True):
    """A snapshot that was written."""

    key: str
    """Of its `.meta.json`."""
    meta: Meta


def make_snapshot_name(seconds: float) -> str:
    """`20261122T051530.123456Z`: sorts by time, and is valid in every path."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S.%f}Z"


def land_rows(store: LandingPlace, meta: Meta, rows: Iterable[LandedRow] | None) -> Landed:
    """Write a snapshot. rows: None if nothing could be read; then there is no file of rows.

    Raises StorageError, also if the file exists already.
    """
    base = "/".join(
        (ROOT, check_part(meta.source), check_part(meta.subject), check_part(meta.snapshot))
    )
    if rows is not None:
        lines = [render_row(row) for row in rows]
        # The checksum is of exactly these bytes; readers compute it again before they use a row.
        data = b"".join(lines)
        meta = replace(meta, rows=len(lines), sha256=hashlib.sha256(data).hexdigest())
        # Also without rows: "read, and nothing is there" must differ from "not read".
        write_new(store, base + ROWS, data)
    # The error is in the words of a broker or a client, which may repeat a password.
    meta = replace(meta, error=None if meta.error is None else mask_secrets(meta.error))
    write_new(store, base + META, _render_line(_list_members(meta, _META)))
    return Landed(base + META, meta)


def land_register(store: LandingPlace, snapshot_time: float, register: Mapping[str, Any]) -> str:
    """Write fleet.hcl as data; return its key. taken: seconds since the epoch."""
    key = f"{ROOT}/{REGISTER}/{make_snapshot_name(snapshot_time)}.json"
    write_new(store, key, _render_line({**register, "taken": render_time(snapshot_time)}))
    return key


def write_new(store: LandingPlace, key: str, data: bytes) -> None:
    """Write a file that must not exist. Raises StorageError."""
    try:
        store.create(key, data)
    except ObjectExists:
        raise make_exists_error(store, key) from None


def render_row(row: LandedRow) -> bytes:
    """Return the row as canonical JSON, with a newline."""
    return _render_line(_list_members(row, _ROW))


def check_part(segment: str) -> str:
    """Check a part of a path. Raises StorageError if it could lead elsewhere."""
    if not _PART.fullmatch(segment):
        raise StorageError(
            f"{segment!r} cannot be the name of a file or folder",
            "A name has at most 128 letters, digits, `.`, `_` and `-`, and begins with a letter, a "
            "digit or `_`.",
        )
    return segment


def _list_members(record: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the members that have a value."""
    members = {name: getattr(record, name) for name in names}
    return {name: value for name, value in members.items() if value is not None}


def _render_line(value: Mapping[str, Any]) -> bytes:
    return dumps(value).encode("ascii") + b"\n"


MAX_RECORDS, MAX_BYTES = 10_000, 8 << 20
"""Limits of one file. A single record may have more bytes."""
_NAME = re.compile(r"(\d{12})-(\d{12})" + re.escape(ROWS))


def land_log(store: LandingPlace, lineage: str, sink: Sink, anchor: Head | None) -> tuple[str, ...]:
    """Write the records that have not landed yet; return the keys of the new files.

    anchor: the head that the state keeps. Raises StorageError for a log that was altered.
    """
    folder = f"{ROOT}/{AUDIT}/{check_part(lineage)}"
    landed = _find_last_landed(store, folder)
    # A line that a crash cut short is no record; the next run seals it.
    sink.pass_over_torn()
    head = GENESIS
    for glance in _check_records(sink, anchor, landed):
        head = Head(glance.seq, glance.hash)
    # Shorter than what has landed: records were removed, or it is another log.
    if head.seq < landed.seq:
        raise StorageError(
            f"{sink.location} ends at record {head.seq}, but record {landed.seq} has landed",
            _ADVICE,
        )
    if head == landed:
        return ()
    keys = []
    # Read a second time: verifying comes first, so that a bad end keeps even the good start out.
    for first, lines in _split_pieces(_check_records(sink, anchor, landed), landed.seq, head.seq):
        # Twelve digits, so that names sort by number.
        key = f"{folder}/{first:012d}-{first + len(lines) - 1:012d}{ROWS}"
        write_new(store, key, b"".join(lines))
        keys.append(key)
    return tuple(keys)


_ADVICE = (
    "Somebody or something changed the log. Restore it from a backup, or compare it with the "
    "landed files, which are copies of it. Nothing of it has landed now."
)


def _find_last_landed(store: LandingPlace, folder: str) -> Head:
    """Return the last record that has landed."""
    entries = ((_NAME.fullmatch(e.key.rpartition("/")[2]), e.key) for e in store.names(folder))
    last = max(((int(match[2]), key) for match, key in entries if match), default=None)
    if last is None:
        return GENESIS
    file = store.read(last[1])
    lines = file.data.splitlines() if file else []
    if not lines:
        raise StorageError(f"{store.location}/{last[1]} is empty", _ADVICE)
    return parse_line_head(lines[-1], f"{store.location}/{last[1]}")


def _check_records(sink: Sink, anchor: Head | None, landed: Head) -> Iterator[Glance]:
    """Yield the records, each verified. Raises StorageError."""
    # Archived records cannot be read here, and need not be if they have landed.
    start = find_start(sink.sealed, anchor, landed) if landed != GENESIS else GENESIS
    for glance in read_glances(sink.lines(start.seq), sink.location, anchor, start):
        # The hash chain covers all earlier records: one equal hash proves that the whole start is
        # the same.
        if glance.seq == landed.seq and glance.hash != landed.hash:
            raise StorageError(
                f"{sink.location}: record {glance.seq} differs from the one that has landed",
                _ADVICE,
            )
        yield glance


def _split_pieces(
    records: Iterable[Glance], after: int, last: int
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the number of the first record, and lines with their newlines, for each file.

    after: the last record that has landed; last: the one up to which everything was verified.
    Others may be appending meanwhile.
    """
    lines: list[bytes] = []
    first, size = after + 1, 0
    for record in records:
        if not after < record.seq <= last:
            continue
        line = read_line(record.line) + b"\n"
        if lines and (len(lines) == MAX_RECORDS or size + len(line) > MAX_BYTES):
            yield first, lines
            first, lines, size = record.seq, [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield first, lines
