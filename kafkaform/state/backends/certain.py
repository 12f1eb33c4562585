"""Object stores through obstore: each request is sent once, and each doubt is settled by a read.

obstore would repeat requests by itself. A conditional write whose answer was lost would then be
refused because of its own first attempt. So obstore repeats nothing here: after every refusal and
every lost answer the object is read, and the bytes that are there decide.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import obstore
from msgspec import Struct

from ...core.clock import Clock
from ...core.errors import StorageError
from ...core.objects import Entry, ObjectChanged, ObjectExists, StoredObject
from .storefaults import ConditionFailed, NoSuchObject, Unclear, translate_errors

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode, PutResult, UpdateVersion
    from obstore.store import ObjectStore

PAUSES = (0.0, 0.1, 0.3, 1.0, 2.0, 4.0)
"""Seconds before each attempt."""
PAGE = 1000
LARGE = 1 << 20
"""Bytes from which on the duration of a write depends on its size."""
SLOW_SECONDS = 600.0
"""Seconds that a large write can take."""

T = TypeVar("T")


class Obstore(Struct, frozen=True):
    """`core.objects.Objects` below one prefix of an object store."""

    location: str
    """The name of the place in messages."""
    prefix: str
    """What all keys begin with: empty, or ending with a slash."""
    opened: Callable[[float], ObjectStore]
    """Seconds -> the store whose requests can take that long."""
    timeout: float
    """Seconds for a request without much data."""
    clock: Clock
    """Waits between attempts."""

    def read(self, key: str) -> StoredObject | None:
        return self._repeat_request(f"cannot read {self._render_key(key)}", lambda: self._get(key))

    def create(self, key: str, data: bytes) -> str:
        return self._put(key, data, None)

    def replace(self, key: str, data: bytes, version: str) -> str:
        return self._put(key, data, version)

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        task = f"cannot list {self._render_key(prefix)}"
        entries = self._repeat_request(task, lambda: list(self._list(prefix, after)))
        return tuple(sorted(entries, key=lambda entry: entry.key))

    def delete(self, key: str) -> None:
        self._repeat_request(f"cannot delete {self._render_key(key)}", lambda: self._delete(key))

    def _render_key(self, key: str) -> str:
        return f"{self.location.rstrip('/')}/{key}"

    # ── attempts ────────────────────────────────────────────────────────────────────────

    def _put(self, key: str, data: bytes, version: str | None) -> str:
        """Write, and find out for certain whether it happened. Raises ObjectExists, ObjectChanged,
        StorageError."""
        task, trouble = f"cannot write {self._render_key(key)}", Unclear("")
        for _ in self._pause_between_attempts():
            try:
                return self._send(task, key, data, version)
            except Unclear as error:
                trouble = error
            stored = self.read(key)
            if stored is not None and stored.data == data:
                return stored.version
            if version is None and stored is not None:
                raise ObjectExists(stored)
            if version is not None and (stored is None or stored.version != version):
                raise ObjectChanged(stored)
        raise trouble.make_error(task)

    def _repeat_request(self, task: str, request: Callable[[], T]) -> T:
        """The answer of a request that can be repeated. Raises StorageError."""
        trouble = Unclear("")
        for _ in self._pause_between_attempts():
            try:
                with translate_errors(task):
                    return request()
            except Unclear as error:
                trouble = error
        raise trouble.make_error(task)

    def _pause_between_attempts(self) -> Iterator[None]:
        for pause in PAUSES:
            # Many runs that the store turned away must not all come back at the same time.
            self.clock.sleep(pause * random.uniform(0.5, 1.5))
            yield

    # ── single requests ─────────────────────────────────────────────────────────────────

    def _send(self, task: str, key: str, data: bytes, version: str | None) -> str:
        mode: PutMode = "create" if version is None else _parse_version(version)
        seconds = self.timeout if len(data) < LARGE else max(self.timeout, SLOW_SECONDS)
        try:
            with translate_errors(task):
                answer = obstore.put(
                    self.opened(seconds), self.prefix + key, data, mode=mode, use_multipart=False
                )
        except NoSuchObject:  # how some stores say that there is nothing to replace
            raise ConditionFailed("it is gone") from None
        return _make_version(self.location, answer)

    def _get(self, key: str) -> StoredObject | None:
        try:
            with translate_errors(f"cannot read {self._render_key(key)}"):
                answer = obstore.get(self.opened(self.timeout), self.prefix + key)
                meta, data = answer.meta, bytes(answer.bytes())
        except NoSuchObject:
            return None
        return StoredObject(
            data, _make_version(self.location, meta), meta["last_modified"].timestamp()
        )

    def _list(self, prefix: str, after: str | None) -> Iterator[Entry]:
        pages = obstore.list(
            self.opened(self.timeout),
            self.prefix + prefix,
            offset=None if after is None else self.prefix + after,
            chunk_size=PAGE,
        )
        for page in pages:
            for meta in page:
                key = meta["path"].removeprefix(self.prefix)
                yield Entry(key, meta["size"], meta["last_modified"].timestamp())

    def _delete(self, key: str) -> None:
        with (
            contextlib.suppress(NoSuchObject),
            translate_errors(f"cannot delete {self._render_key(key)}"),
        ):
            obstore.delete(self.opened(self.timeout), self.prefix + key)


def _make_version(location: str, meta: ObjectMeta | PutResult) -> str:
    """ETag and version of the store in one text; obstore knows which of them counts."""
    tag, number = meta.get("e_tag") or "", meta.get("version") or ""
    if not tag and not number:
        raise StorageError(
            f"{location}: the store gives objects no version (ETag)",
            "Use a store that does; without it two runs could overwrite each other's state.",
        )
    return f"{tag}\n{number}"


def _parse_version(version: str) -> UpdateVersion:
    tag, _, number = version.partition("\n")
    condition: UpdateVersion = {}
    if tag:
        condition["e_tag"] = tag
    if number:
        condition["version"] = number
    return condition
