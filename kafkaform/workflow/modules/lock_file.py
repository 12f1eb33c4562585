"""The lock file of modules: which commit of each repository a configuration uses, and its content.

JSON with one member per line, sorted, so that a review shows what moves and merges rarely conflict.
The format is described in docs/formats/modules.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ...core.errors import UsageError
from ...language.declare.module_sources import Package

LOCK_FILE = "kafkaform.modules.json"
FORMAT = 1
_HEX = r"^[0-9a-f]{64}$"
_REPAIR = (
    "Take the file of the last good commit, or remove the entry that is wrong; then `kafkaform "
    "init` writes it again."
)


class Lock(Struct, frozen=True, forbid_unknown_fields=True):
    """What a repository is pinned to."""

    source: str
    """Such as `git::https://git.example/modules.git`."""
    ref: str
    """As the configuration names it."""
    commit: Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
    """What the ref was when it was locked."""
    sha256: Annotated[str, Meta(pattern=_HEX)]
    """Of the list of all files with their modes and contents (`snapshots.py`)."""


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    modules: list[Lock]


def read_locks(read: Callable[[str], bytes]) -> dict[Package, Lock]:
    """The entries of the lock file; none if there is no file. read: reads a file of the
    configuration's folder. Raises UsageError for a file that cannot be used."""
    try:
        content = read(LOCK_FILE)
    except FileNotFoundError:
        return {}
    except OSError as fault:
        raise UsageError(f"the lock file of modules cannot be read: {fault}") from None
    if b"\n<<<<<<< " in content:
        raise UsageError(
            f"{LOCK_FILE} has conflict markers of git",
            "Keep the entries of both sides. Where both have one of the same source and ref, keep "
            "the one whose commit is wanted.",
        )
    try:
        document = msgspec.json.decode(content, type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise UsageError(f"{LOCK_FILE} is not a lock file of modules: {fault}", _REPAIR) from None
    if document.format != FORMAT:
        raise UsageError(
            f"{LOCK_FILE} has format {document.format}, this version reads {FORMAT}",
            "Use the version of kafkaform that wrote it, or a newer one.",
        )
    locks = {Package(module.source, module.ref): module for module in document.modules}
    if len(locks) < len(document.modules):
        raise UsageError(f"{LOCK_FILE} has two entries for one source and ref", _REPAIR)
    return locks


def render_locks(locks: Mapping[Package, Lock]) -> bytes:
    """The content of the lock file."""
    return (
        json.dumps(_list_members(locks[package] for package in sorted(locks)), indent=2) + "\n"
    ).encode()


def _list_members(locks: Iterable[Lock]) -> dict[str, object]:
    return {"format": FORMAT, "modules": [msgspec.to_builtins(lock) for lock in locks]}
