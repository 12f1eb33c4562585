"""The seam to a store of whole objects whose writes can be made conditional: S3, GCS, Azure."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class StoredObject(Struct, frozen=True):
    """An object as it stands. version: opaque, what a `replace` must name; modified: seconds
    since the epoch by the store's clock."""

    data: bytes
    version: str
    modified: float


class Entry(Struct, frozen=True):
    """An object as a listing shows it. size: bytes; modified: as in `StoredObject`."""

    key: str
    size: int
    modified: float


class ObjectExists(Exception):
    """A `create` was refused: somebody else's object is there. found: that object."""

    def __init__(self, found: StoredObject) -> None:
        super().__init__("the object exists")
        self.found = found


class ObjectChanged(Exception):
    """A `replace` was refused: another version is there. found: it, None if it is gone."""

    def __init__(self, found: StoredObject | None) -> None:
        super().__init__("the object has changed")
        self.found = found


class Objects(Protocol):
    """Objects under one prefix of one store; safe to use from several threads.

    Must: answer a conditional write for certain, also when the store's own answer is lost. For
    that it may look at the object and compare bytes, so nobody may write the same bytes twice
    under one key and mean different things: put a write id into them.
    Every method raises StorageError if the store cannot be reached or refuses.
    """

    @property
    def location(self) -> str:
        """How messages name the place, such as `s3://bucket/prefix`."""

    def read(self, key: str) -> StoredObject | None:
        """The object, None only if the store says that there is none."""

    def create(self, key: str, data: bytes) -> str:
        """Write an object where there is none; its version. Raises Exists."""

    def replace(self, key: str, data: bytes, version: str) -> str:
        """Write an object over this version; the new version. Raises Changed."""

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        """What is below the folder `prefix` (all pages), sorted by key; only keys > `after`. A
        listing may lag behind: only `read` tells that an object is not there."""

    def delete(self, key: str) -> None:
        """Remove an object, if there is one."""
