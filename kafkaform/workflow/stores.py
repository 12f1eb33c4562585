"""Find and open state and log. A flag says where they are, or the environment, or the `backend`
block; without any of them they are files beside the configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from msgspec import Struct

from ..audit import sinks
from ..audit.sink import Sink
from ..audit.sinks.local import LocalSink
from ..core import storage
from ..core.diagnostics import has_errors
from ..core.errors import ConfigurationError, KafkaformError, StorageError, UsageError
from ..core.head import Head
from ..core.parallel import map_parallel
from ..core.value import FrozenMap
from ..language import declare
from ..state import backends
from ..state.backends.local import LocalBackend
from ..state.codec import ADVICE
from ..state.model import Backend, State, StateOutline
from . import configuration
from .configuration.places import (
    KEEP,
    KEEP_ADVICE,
    LEASE,
    find_backend_faults,
    parse_age,
    read_place,
)

if TYPE_CHECKING:
    from ..language.declare.folder import Tree
    from .configuration.repository import Repository, RepositoryFolder

STATE_FILE = "kafkaform.state.json"
AUDIT_FILE = "kafkaform.audit.jsonl"
STATE_VARIABLE = "KAFKAFORM_STATE"
FILES = (".kf.hcl", ".kf.json")
"""The names of files that can contain a backend block end so."""
STORES_AT_ONCE = 32
"""How many states or logs are read at the same time: a store answers after tens of milliseconds."""
S = TypeVar("S", State, StateOutline)
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(s|m|h)?", re.ASCII)
_UNITS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class Store(Struct, frozen=True):
    """The state and the log of a folder, without its configuration."""

    folder: Path
    backend: Backend
    sink: Sink


def open_store(named: str | None = None, tree: Tree | None = None) -> Store:
    """Open the store of the current folder.

    named: a file or a URL of the command line; tree: the files of the folder, if they were read
    already. Raises UsageError, ConfigurationError for an impossible place.
    """
    return open_folder_store(Path.cwd(), named or os.environ.get(STATE_VARIABLE), tree)


def open_folder_store(
    folder: Path,
    named: str | None,
    tree: Tree | None,
    repository_folder: RepositoryFolder | None = None,
) -> Store:
    """Open the store of any folder, without regard to the environment. repository_folder: the
    settings of the folder in the repository file, if they have been read."""
    # The options of the block belong to the place that the block names, and to no other one.
    if named:
        return _open_place(folder, named, {})
    backend = _find_backend(folder, tree)
    return (
        _open_default(folder, repository_folder)
        if backend is None
        else _open_place(folder, *backend)
    )


def open_listed_store(folder: Path, repository_folder: RepositoryFolder) -> Store:
    """Open the store of a folder of a repository to read it: no folder is made for it, and neither
    a flag nor the environment says where it is.

    repository_folder: what the repository says about the folder. Raises ConfigurationError as
    `open_folder_store` does.
    """
    backend = _find_backend(folder, None)
    location, options = backend or (repository_folder.state or STATE_FILE, {})
    return _open_place(folder, location, options)


class FolderState(NamedTuple, Generic[S]):
    """What one folder of a repository records, whole or in outline."""

    folder: RepositoryFolder
    state: S | None = None
    """None if nothing was ever recorded, or if it cannot be read."""
    error: KafkaformError | None = None
    """Why it cannot be read."""
    location: str = ""
    """Where it is; empty if that is not known."""


def load_listed_states(
    repository: Repository, folders: Sequence[RepositoryFolder]
) -> tuple[FolderState[State], ...]:
    """The states of these folders, in their order, as `open_listed_store` finds them. They are read
    side by side; one that cannot be read has its error."""
    return _read_each(repository, folders, lambda backend: backend.load().state)


def outline_listed_states(
    repository: Repository, folders: Sequence[RepositoryFolder], *, untrusted: bool = False
) -> tuple[FolderState[StateOutline], ...]:
    """The outlines of the states of these folders, as `load_listed_states` reads them.

    untrusted: anybody can have written the folders, so only the repository file says where the
    states are.
    """
    return _read_each(repository, folders, lambda backend: backend.outline(), untrusted)


def _read_each(
    repository: Repository,
    folders: Sequence[RepositoryFolder],
    read: Callable[[Backend], S | None],
    untrusted: bool = False,
) -> tuple[FolderState[S], ...]:
    def read_state(folder: RepositoryFolder) -> FolderState[S]:
        path = repository.path / folder.path
        try:
            if folder.faults:
                raise ConfigurationError(f"{folder.path} cannot be used", diagnostics=folder.faults)
            if untrusted:
                named = configuration.untrusted.choose_trusted_state(path, folder)
                backend = _open_place(path, named, {}).backend
            else:
                backend = open_listed_store(path, folder).backend
            return FolderState(folder, read(backend), location=backend.location)
        except KafkaformError as error:
            return FolderState(folder, error=error)

    return map_parallel(read_state, folders, STORES_AT_ONCE)


def _find_backend(folder: Path, tree: Tree | None) -> tuple[str, Mapping[str, str]] | None:
    """The place that the backend block of a folder names, and its options; None without a block."""
    tree = tree or _read_tree(folder)
    settings = None if tree is None else declare.settings.read_settings(tree)[0]
    if settings is None or settings.backend is None:
        return None
    faults = tuple(find_backend_faults(settings))
    if has_errors(faults):
        raise ConfigurationError("the backend block has faults", diagnostics=faults)
    return read_place(settings)


def load_outputs(folder: Path, named: str | None) -> FrozenMap | None:
    """The outputs that the state of a folder records; None if it has no state. Raises as
    `open_folder_store` does, and StorageError.

    named: where the state is, instead of what the folder says.
    """
    state = open_folder_store(folder, named, None).backend.load().state
    return None if state is None else state.outputs


def find_anchor(sink: Sink, state: State | None) -> Head | None:
    """The record that a saved state follows from, None if there is none yet.

    Raises StorageError for a state with objects that names none although the log has records.
    """
    head = state.audit_head if state else None
    # A state that has never been saved by a run has no objects either, and the log tells the rest.
    if state is not None and state.objects and head is None and sink.last() is not None:
        # Every save names its record. Without it, an older state or another log would pass.
        raise StorageError(
            f"the state follows from no record (`audit_head` is null), although {sink.location} "
            "has records: it was edited by hand, or the log is of another state",
            ADVICE,
        )
    return head


def parse_duration(text: str, flag: str) -> float:
    """Parse a duration such as `90`, `60s` or `5m` to seconds. Raises UsageError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{flag} {text!r} is not a duration", "Write it as 30s, 5m or 1h.")
    return float(match[1]) * _UNITS[match[2]]


# ── the configuration ───────────────────────────────────────────────────────────────────


def _read_tree(folder: Path) -> Tree | None:
    """Parse the configuration; None if no file can contain a backend block."""
    # `output` and `state list` answer sooner if they need not parse ten thousand blocks for this.
    if not any(_may_hold(path) for path in folder.iterdir() if path.name.endswith(FILES)):
        return None
    files = configuration.files.read_folder(configuration.files.find_root(folder), folder)
    return declare.folder.load_folder(files)


def _may_hold(path: Path) -> bool:
    """Whether a file can contain a backend block."""
    # A file that cannot be read, such as a broken link, gets its error when it is parsed.
    try:
        text = storage.read(path)
    except OSError:
        return True
    # JSON can write the letters of the word as numbers: "\\u0062ackend".
    return b"backend" in text or b"\\u" in text


# ── places ──────────────────────────────────────────────────────────────────────────────


def _open_default(folder: Path, repository_folder: RepositoryFolder | None) -> Store:
    """The place that the repository above says, or a file beside the configuration."""
    from .configuration.repository_place import find_place  # noqa: PLC0415  # a folder with a backend block needs no repository

    repository_folder = repository_folder or find_place(folder)
    if repository_folder is None or repository_folder.state is None:
        return _open_place(folder, STATE_FILE, {})
    if "://" not in repository_folder.state:
        # The path has the name of the folder, so nobody has made it for a new one. Where it cannot
        # be made, the lock says why.
        with suppress(OSError):
            Path(repository_folder.state).parent.mkdir(parents=True, exist_ok=True)
    return _open_place(folder, repository_folder.state, {})


def _open_place(folder: Path, location: str, options: Mapping[str, str]) -> Store:
    if "://" in location:
        return _open_remote(folder, location, dict(options))
    path = folder / location
    # Each state has a log of its own, so that two states in one folder do not share a chain.
    log = path.parent / (AUDIT_FILE if path.name == STATE_FILE else f"{path.stem}.audit.jsonl")
    return Store(folder, LocalBackend(path, _read_age(options.get(KEEP))), LocalSink(log))


def _open_remote(folder: Path, url: str, options: dict[str, str]) -> Store:
    # The command line has no block, so its options stand in the query: s3://bucket/p?region=eu-1.
    url, _, query = url.partition("?")
    options |= parse_qsl(query)
    text = options.pop(LEASE, None)
    lease = backends.objects.LEASE_SECONDS if text is None else parse_duration(text, LEASE)
    age = _read_age(options.pop(KEEP, None))
    objects = backends.obstores.open_objects(url, options)
    backend = backends.objects.ObjectBackend(objects, lease, keep_seconds=age)
    return Store(folder, backend, sinks.objects.ObjectSink(objects))


def _read_age(text: str | None) -> float:
    """How old earlier versions of a state can become, in seconds. Raises UsageError."""
    seconds = 0.0 if text is None else parse_age(text)
    if seconds is None:
        raise UsageError(f"{KEEP} {text!r} is not a number of days", KEEP_ADVICE)
    return seconds
