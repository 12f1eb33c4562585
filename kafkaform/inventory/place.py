"""Where landing files go: a folder, a prefix in an object store, or a folder in HDFS.

A file is written once, completely or not at all, and never changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from ..core.errors import StorageError
from ..core.objects import Entry, Folder, Objects, StoredObject
from ..state.backends.obstores import is_remote, open_objects
from .hdfs import SCHEME, open_hdfs


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


def make_exists_error(place: LandingPlace, key: str) -> StorageError:
    """The error for a file that exists already."""
    return StorageError(
        f"{place.location}/{key} already exists; it was not changed",
        "Landing files are written once. Take the snapshot again: it will get another name.",
    )
