"""Where landing files are put: a folder, or a prefix of an object store. Nothing is changed there:
a file is made once, wholly or not at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from ..core.errors import StorageError
from ..core.folder import Folder
from ..core.objects import Entry, Objects, StoredObject
from ..state.backends.obstores import is_remote, open_objects
from .hdfs import SCHEME, open_hdfs


class LandingPlace(Protocol):
    """The part of `core.objects.Objects` that landing needs. Keys have `/` between their parts.
    Every method raises StorageError."""

    @property
    def location(self) -> str:
        """How messages name the place."""

    def read(self, key: str) -> StoredObject | None:
        """The file, None if there is none."""

    def create(self, key: str, data: bytes) -> str:
        """Write a file where there is none, wholly or not at all. Raises Exists."""

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        """The files below a folder, sorted by key; only keys > `after`."""


def open_place(root: str) -> LandingPlace:
    """root: a folder, or a URL such as `s3://bucket/fleet`. Raises UsageError."""
    return open_remote(root) if is_remote(root) else Folder(Path(root))


def open_remote(url: str) -> Objects:
    """A root in a store, or in HDFS, which is none for a state. Raises UsageError."""
    return open_hdfs(url) if urlsplit(url).scheme == SCHEME else open_objects(url, {})


def make_exists_error(place: LandingPlace, key: str) -> StorageError:
    """The error for a file that is there already."""
    return StorageError(
        f"{place.location}/{key} is there already; it was not changed",
        "Landing files are written once. Take the snapshot again: it gets a name of its own.",
    )
