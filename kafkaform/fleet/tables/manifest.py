"""Which builds exist, and which version of each table belongs to a build.

    builds/<build>.json       what a build computed, written after all of its tables
    builds/<build>.inputs.gz  the landing files that it knows, one per line
    builds/current            the name of the build that readers read
    builds/unfinished         the builds that died while they wrote tables, one per line, and the
                              one that is writing now

Delta Lake commits one table at a time, and a build changes many. So readers take all versions from
one manifest: a build that died has changed nothing that anybody reads.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping

from msgspec import Struct

from ...core.canonical import Misfit, from_data, parse_json
from ...core.errors import StorageError
from ...core.objects import ObjectChanged, ObjectExists, Objects
from ...core.value import FrozenMap
from .definitions import SCHEMA_VERSION

FOLDER = "builds"
CURRENT, UNFINISHED = f"{FOLDER}/current", f"{FOLDER}/unfinished"
ALL_CLUSTERS = None
"""In place of a set of clusters: every cluster."""
Clusters = frozenset[str] | None


class Written(Struct, frozen=True):
    """One table of a build."""

    version: int
    """Delta's version."""
    rows: int
    seconds: float
    """How long the build that wrote this version took for it."""


class Manifest(Struct, frozen=True):
    """What a build computed."""

    build: str
    tables: Mapping[str, Written]
    started: str
    """RFC 3339, as are `ended` and `as_of`."""
    ended: str
    as_of: str
    fingerprint: str
    """SHA-256 over all inputs."""
    code: str
    """The version of kafkaform."""
    owed: Mapping[str, Clusters]
    """Table -> clusters whose rows are out of date, because `--only` left the table out."""
    schema_version: int = SCHEMA_VERSION


def read_current(objects: Objects) -> Manifest | None:
    """Return the build that readers read; None: there is none yet.

    Raises StorageError: it cannot be read, or a later version wrote it.
    """
    pointer = objects.read(CURRENT)
    return (
        load_manifest(objects, _decode_text(objects, CURRENT, pointer.data).strip())
        if pointer
        else None
    )


def load_manifest(objects: Objects, build: str) -> Manifest:
    """Return the manifest of a build. Raises StorageError: it is missing, damaged or newer."""
    stored = objects.read(_key(build))
    if stored is None:
        raise StorageError(
            f"{objects.location}: the build {build} has no manifest",
            "Restore the folder `builds` from a backup, or remove it and run `fleet run` again.",
        )
    try:
        return _decode(stored.data, objects.location, build)
    except Misfit as error:
        raise _damaged_error(objects, _key(build), str(error)) from None


def _decode(data: bytes, location: str, build: str) -> Manifest:
    members = parse_json(data)
    version = members.get("schema_version") if isinstance(members, FrozenMap) else None
    if type(version) is int and version > SCHEMA_VERSION:
        raise StorageError(
            f"{location}: the build {build} has tables of version "
            f"{version}; this kafkaform knows up to {SCHEMA_VERSION}",
            "Use the version of kafkaform that wrote it, or a later one.",
        )
    manifest = from_data(Manifest, members)
    if manifest.build != build:
        raise Misfit(f"is not {build}").nest_in("build")
    return manifest


def _damaged_error(objects: Objects, key: str, cause: str) -> StorageError:
    return StorageError(
        f"{objects.location}/{key} cannot be used: {cause}",
        "Restore the folder `builds` from a backup, or remove it and run `fleet run` again.",
    )


def publish(objects: Objects, manifest: Manifest, inputs: Iterable[str]) -> None:
    """Make this build the current one. inputs: the landing files that it knows."""
    listed = gzip.compress("\n".join(sorted(inputs)).encode(), mtime=0)
    # The pointer moves last. Until then a crash leaves the previous build current and readable.
    _put(objects, _inputs(manifest.build), listed)
    _put(objects, _key(manifest.build), encode(manifest))
    _put(objects, CURRENT, manifest.build.encode())


def encode(manifest: Manifest) -> bytes:
    """Return the manifest as JSON."""
    members = {name: getattr(manifest, name) for name in Manifest.__struct_fields__}
    members["tables"] = {
        name: {"version": w.version, "rows": w.rows, "seconds": w.seconds}
        for name, w in manifest.tables.items()
    }
    members["owed"] = {
        name: ALL_CLUSTERS if c is None else sorted(c) for name, c in sorted(manifest.owed.items())
    }
    return json.dumps(members, indent=1).encode()


def read_inputs(objects: Objects, build: str) -> frozenset[str]:
    """Return the landing files that a build knows. Raises StorageError."""
    stored = objects.read(_inputs(build))
    if stored is None:
        raise StorageError(
            f"{objects.location}: the list of inputs of build {build} is missing",
            "Restore the folder `builds` from a backup, or remove it and run `fleet run` again.",
        )
    try:
        data = gzip.decompress(stored.data)
    except (OSError, EOFError, zlib.error):
        raise _damaged_error(
            objects, _inputs(build), "it is not a gzip file, or not all of it"
        ) from None
    return frozenset(_decode_text(objects, _inputs(build), data).splitlines())


def list_died(objects: Objects, current: str | None) -> tuple[str, ...]:
    """Return the builds that wrote tables after the current one and died before they were
    published, the oldest first."""
    names = _read_unfinished(objects)
    # A build that is current was published and died just afterwards: only younger names are dead.
    return names[names.index(current) + 1 :] if current in names else names


def begin_build(objects: Objects, build: str) -> bool:
    """Record that tables are about to be written. True: an earlier build died while it wrote
    some."""
    names = _read_unfinished(objects)
    # The name comes last even if it died before: `list_died` relies on the order.
    unfinished = (*(name for name in names if name != build), build)
    _put(objects, UNFINISHED, "\n".join(unfinished).encode())
    return bool(names)


def end_build(objects: Objects) -> None:
    """Record that no table is being written."""
    objects.delete(UNFINISHED)


def list_builds(objects: Objects) -> tuple[Manifest, ...]:
    """Return all builds, the oldest first."""
    names = (entry.key for entry in objects.names(f"{FOLDER}/"))
    manifests = (
        load_manifest(objects, name.removeprefix(f"{FOLDER}/").removesuffix(".json"))
        for name in names
        if name.endswith(".json")
    )
    return tuple(sorted(manifests, key=lambda manifest: (manifest.started, manifest.build)))


def forget_build(objects: Objects, build: str) -> None:
    """Remove a build's manifest. The versions of its tables stay until they are vacuumed."""
    # The manifest goes first: a list of inputs without a manifest is harmless, the reverse is not.
    objects.delete(_key(build))
    objects.delete(_inputs(build))


def _read_unfinished(objects: Objects) -> tuple[str, ...]:
    stored = objects.read(UNFINISHED)
    return tuple(_decode_text(objects, UNFINISHED, stored.data).split()) if stored else ()


def _decode_text(objects: Objects, key: str, data: bytes) -> str:
    """Raises StorageError for bytes that are no text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _damaged_error(objects, key, "it is not UTF-8 text") from None


def _key(build: str) -> str:
    return f"{FOLDER}/{build}.json"


def _inputs(build: str) -> str:
    return f"{FOLDER}/{build}.inputs.gz"


def _put(objects: Objects, key: str, data: bytes) -> None:
    """Write the object, whatever it was before. Raises StorageError: somebody else writes it,
    too."""
    stored = objects.read(key)
    # A repeated write after a crash is not a conflict.
    if stored is not None and stored.data == data:
        return
    try:
        if stored is None:
            objects.create(key, data)
        else:
            objects.replace(key, data, stored.version)
    except (ObjectExists, ObjectChanged) as error:
        raise StorageError(
            f"{objects.location}/{key}: somebody else has written it meanwhile",
            "Only one `fleet run` at a time may write a root; run it again.",
        ) from error
