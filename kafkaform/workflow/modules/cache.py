"""Modules of Git repositories in the user's cache, at the commits that the lock file names.

The lock file says which commit of each repository a configuration uses, and its content. It is JSON
with one member per line, sorted, so that a review shows what moves and merges rarely conflict
(docs/formats/modules.md).

Each file is stored under the SHA-256 of its bytes, and so is the list of all files: the lock file
pins the list, and the list pins each file. A receipt says which list a commit of a source has, so
that no content gets the name of another source. Everything is checked when it is read, so that
neither a changed nor a half-written cache is ever used, and several processes can write the same at
once. Names from a repository never become names on the disk.

Nothing here uses the network: that is for `kafkaform init` (`installation.py`).
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ...core.errors import StorageError, UsageError
from ...core.objects import Folder, ObjectChanged, ObjectExists
from ...language.declare.folder import is_read
from ...language.declare.modules import Package, UnreadableModule, is_git, split_git_folder
from ...language.functions.files import Glob, Read, make_confined_reader, parse_glob
from ...language.functions.string import Allowance
from ...language.values.faults import LIMITS
from ...sandbox.record import get_cache_folder
from ...syntax.nodes import FILE_BYTES

LOCK_FILE = "kafkaform.modules.json"
FORMAT = 1
_HEX = r"^[0-9a-f]{64}$"
_REPAIR = (
    "Take the file of the last good commit, or remove the entry that is wrong; then `kafkaform "
    "init` writes it again."
)

LINK, SUBMODULE = "120000", "160000"
"""Git's modes of entries that are no files."""
_FETCH = "Run `kafkaform init`, which fetches it."


class Lock(Struct, frozen=True, forbid_unknown_fields=True):
    """What a repository is pinned to."""

    source: str
    """Such as `git::https://git.example/modules.git`."""
    ref: str
    """As the configuration names it."""
    commit: Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
    """What the ref was when it was locked."""
    sha256: Annotated[str, Meta(pattern=_HEX)]
    """Of the list of all files with their modes and contents (`Snapshot`)."""


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
    # Sorted, so that a review shows what moves and merges rarely conflict.
    modules = [msgspec.to_builtins(locks[package]) for package in sorted(locks)]
    return (json.dumps({"format": FORMAT, "modules": modules}, indent=2) + "\n").encode()


class StoredFile(Struct, frozen=True, array_like=True):
    """An entry of a repository. The fields are in the order in which they are stored."""

    mode: str
    """As git has it: 100644, 100755, LINK or SUBMODULE."""
    sha256: str
    """Of the content; of a link's target; for a submodule its commit."""
    size: int
    """Bytes."""


class _List(Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored for a commit."""

    files: dict[str, StoredFile]
    """Path -> entry. The paths are those of the repository; nothing on the disk has such a name."""


class Snapshot(Struct, frozen=True):
    """The files of a repository at a commit."""

    store: Folder
    files: Mapping[str, StoredFile]


def open_store() -> Folder:
    """The folder with the contents of all repositories that this user has fetched."""
    return Folder(get_cache_folder() / "modules")


def store_snapshot(
    store: Folder, source: str, commit: str, entries: Iterable[tuple[str, str, bytes]]
) -> str:
    """Store the files of a commit of a repository. entries: path, mode, content. Returns the digest
    of the list. Raises StorageError."""
    files = {}
    for path, mode, content in entries:
        if mode == SUBMODULE:
            files[path] = StoredFile(mode, content.decode("ascii"), 0)
            continue
        digest = sha256(content).hexdigest() if mode == LINK else _store(store, content)
        files[path] = StoredFile(mode, digest, len(content))
    digest = _store(store, msgspec.json.encode(_List(files), order="sorted"))
    # It comes last: whoever finds it finds the list and all files.
    _write(store, _make_receipt_key(source, commit), digest.encode())
    return digest


def load_snapshot(store: Folder, lock: Lock) -> Snapshot:
    """The files that a lock pins, if they were fetched from its source on this computer. Raises
    UnreadableModule."""
    # Without the receipt, an edited lock file could give any stored content a trusted name.
    receipt = _read_stored(store, _make_receipt_key(lock.source, lock.commit))
    if receipt is None:
        raise UnreadableModule("It is not on this computer yet.", _FETCH)
    if receipt != lock.sha256.encode():
        raise make_content_fault(lock.commit)
    try:
        entries = msgspec.json.decode(_load(store, lock.sha256), type=_List)
    except msgspec.DecodeError:
        raise _make_changed_fault() from None
    return Snapshot(store, entries.files)


def make_content_fault(commit: str) -> UnreadableModule:
    """The error for a lock whose hash is not that of its commit."""
    return UnreadableModule(
        f"Commit {commit} does not have the content that {LOCK_FILE} pins.",
        "A commit cannot change, so somebody has edited the lock file or the cache, or forged the "
        "repository. Take the lock file of the last good commit, find out who changed it, and run "
        "`kafkaform init`.",
    )


def is_complete(snapshot: Snapshot) -> bool:
    """Whether every file is there and unchanged."""
    try:
        for entry in snapshot.files.values():
            if entry.mode not in (LINK, SUBMODULE):
                _load(snapshot.store, entry.sha256)
    except UnreadableModule:
        return False
    return True


def read_file(snapshot: Snapshot, path: str) -> bytes:
    """The content of a file. Raises OSError that says why it cannot be read."""
    entry = snapshot.files.get(_normalise(path))
    name = posixpath.basename(path)
    if entry is None:
        raise FileNotFoundError(2, "No such file or directory")
    if entry.mode in (LINK, SUBMODULE):
        noun = "a link" if entry.mode == LINK else "a submodule"
        raise PermissionError(f'"{name}" is {noun}, which modules from Git cannot use')
    if entry.size > FILE_BYTES:
        raise PermissionError(f'"{name}" is larger than {FILE_BYTES:,} bytes')
    return _load(snapshot.store, entry.sha256)


def list_files(snapshot: Snapshot, folder: str) -> list[str]:
    """The paths of everything below a folder, seen from there. Raises FileNotFoundError."""
    inside = _normalise(folder)
    prefix = f"{inside}/" if inside else ""
    names = [path.removeprefix(prefix) for path in snapshot.files if path.startswith(prefix)]
    if names:
        return names
    if inside in snapshot.files and snapshot.files[inside].mode == SUBMODULE:
        raise PermissionError("it is a submodule, which modules from Git cannot use")
    raise FileNotFoundError(2, "No such folder in the repository")


def _normalise(path: str) -> str:
    """The path as the list has it; "" is the top folder."""
    normal = posixpath.normpath(path or ".")
    if normal.split("/")[0] in ("..", ""):
        raise PermissionError("the path leads out of the repository")
    return "" if normal == "." else normal


def _store(store: Folder, content: bytes) -> str:
    digest = sha256(content).hexdigest()
    _write(store, _make_key(digest), content)
    return digest


def _write(store: Folder, key: str, content: bytes) -> None:
    try:
        store.create(key, content)
    except ObjectExists as found:
        # It was stored before, or somebody has changed it. Whoever replaces it meanwhile does so
        # for the same reason.
        if found.found.data != content:
            with suppress(ObjectChanged):
                store.replace(key, content, found.found.version)


def _load(store: Folder, digest: str) -> bytes:
    """What has this digest. Raises UnreadableModule."""
    stored = _read_stored(store, _make_key(digest))
    if stored is None:
        raise UnreadableModule("It is not on this computer any more.", _FETCH)
    if sha256(stored).hexdigest() != digest:
        raise _make_changed_fault()
    return stored


def _read_stored(store: Folder, key: str) -> bytes | None:
    """What is stored there; None for nothing. Raises UnreadableModule."""
    try:
        stored = store.read(key)
    except StorageError as error:
        raise UnreadableModule(error.message, error.advice) from None
    return None if stored is None else stored.data


def _make_changed_fault() -> UnreadableModule:
    return UnreadableModule("Its files on this computer were changed.", _FETCH)


def _make_receipt_key(source: str, commit: str) -> str:
    """Where the digest of a commit's list is stored."""
    return f"commits/{sha256(f'{source} {commit}'.encode()).hexdigest()}"


def _make_key(digest: str) -> str:
    # File systems are slow with many files in one folder.
    return f"{digest[:2]}/{digest}"


def read_own_locks(root: Path, folder: Path, *, links: bool) -> Mapping[Package, Lock]:
    """The lock file of a configuration. links: it may be a link. Raises UsageError."""
    read = make_confined_reader(root, folder)

    def content(name: str) -> bytes:
        if not links and (folder / name).is_symlink():
            raise PermissionError("it is a link, and --untrusted follows none")
        return read.content(name)

    return read_locks(content)


def open_package(locks: Mapping[Package, Lock], package: Package, *, untrusted: bool) -> Snapshot:
    """The files of a repository at its locked commit. Raises UnreadableModule."""
    lock = locks.get(package)
    if lock is None and untrusted:
        raise UnreadableModule(
            f"{LOCK_FILE} has no entry for it, and --untrusted reads locked modules only.",
            f"Run `kafkaform init` where you trust the files, and commit {LOCK_FILE} with them.",
        )
    if lock is None:
        raise UnreadableModule(
            f"{LOCK_FILE} has no entry for it.",
            f"Run `kafkaform init`, which fetches it, and commit {LOCK_FILE}.",
        )
    return load_snapshot(open_store(), lock)


def read_package_folder(snapshot: Snapshot, folder: str) -> dict[str, bytes]:
    """The configuration files of a folder of a repository, by name. Raises OSError that says why it
    cannot be read."""
    names = [name for name in list_files(snapshot, folder) if "/" not in name and is_read(name)]
    if len(names) > LIMITS.files:
        raise PermissionError(f"a folder can contain at most {LIMITS.files:,} configuration files")
    return {name: read_file(snapshot, posixpath.join(folder, name)) for name in names}


def add_packages(read: Read, opened: Mapping[Package, Snapshot]) -> Read:
    """A reader for functions that reads these repositories too: `file("${path.module}/a.yaml")`."""
    allowance = Allowance()

    def content(path: str) -> bytes:
        return read_file(*_find_file(opened, path)) if is_git(path) else read.content(path)

    def names(folder: str, pattern: str) -> tuple[str, ...]:
        if not is_git(folder):
            return read.names(folder, pattern)
        snapshot, inside = _find_file(opened, folder)
        glob, paths = parse_glob(pattern), list[str]()
        for path in list_files(snapshot, inside):
            entry = snapshot.files[posixpath.normpath(posixpath.join(inside, path))]
            match = partial(_is_match, glob, path)
            if entry.mode not in (LINK, SUBMODULE) and allowance.spend_time(match):
                paths.append(path)
        return tuple(sorted(paths))

    return Read(content, names)


def _is_match(glob: Glob, path: str, seconds: float) -> bool:
    return glob.expression.fullmatch(path, timeout=seconds) is not None


def _find_file(opened: Mapping[Package, Snapshot], path: str) -> tuple[Snapshot, str]:
    package, inside = split_git_folder(path)
    if package not in opened:
        raise PermissionError("no module of this configuration comes from that repository")
    return opened[package], inside
