"""The seam to stores of whole objects with conditional writes: S3, GCS, Azure."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class StoredObject(Struct, frozen=True):
    """An object as the store has it now."""

    data: bytes
    """Its bytes."""
    version: str
    """Opaque text that a `replace` has to name."""
    modified: float
    """When it was written, in seconds since the epoch by the store's clock."""


class Entry(Struct, frozen=True):
    """An object as a listing shows it."""

    key: str
    """Its name below the prefix."""
    size: int
    """Bytes."""
    modified: float
    """When it was written, in seconds since the epoch by the store's clock."""


class ObjectExists(Exception):
    """A `create` was refused, because somebody else's object is there."""

    def __init__(self, stored: StoredObject) -> None:
        """found: that object."""
        super().__init__("the object exists")
        self.found = stored


class ObjectChanged(Exception):
    """A `replace` was refused, because another version is there."""

    def __init__(self, stored: StoredObject | None) -> None:
        """found: that version, None if the object is gone."""
        super().__init__("the object has changed")
        self.found = stored


class Objects(Protocol):
    """Objects under one prefix of one store; safe to use from several threads.

    An implementation must say for certain how a conditional write ended, even when the store's own
    answer was lost. To find out it reads the object and compares bytes, so callers must never mean
    two things by equal bytes under one key: they put a write id into them. Every method raises
    StorageError if the store cannot be reached or refuses the request.
    """

    @property
    def location(self) -> str:
        """The name of the place in messages, such as `s3://bucket/prefix`."""

    def read(self, key: str) -> StoredObject | None:
        """The object; None only if the store says that there is none."""

    def create(self, key: str, data: bytes) -> str:
        """Write an object where there is none, and return its version. Raises ObjectExists."""

    def replace(self, key: str, data: bytes, version: str) -> str:
        """Write an object over this version, and return the new one. Raises ObjectChanged."""

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        """What is below the folder `prefix`, sorted by key; only keys greater than `after`.

        A listing may lag behind. Only `read` can say that an object does not exist.
        """

    def delete(self, key: str) -> None:
        """Remove an object; nothing happens if there is none."""
