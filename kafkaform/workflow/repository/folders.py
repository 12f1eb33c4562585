"""Open the folders of a repository that a command is about. Each has its own configuration and
state; one that cannot be opened has the reason, and the others go on."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ...core.errors import ConfigurationError, Interrupted, KafkaformError, UsageError
from ...core.progress import Progress, Reporter, ignore_event
from ...core.resource import Identity
from ...core.secret import keep_secrets, watched
from ...state.model import State
from ..configuration.evaluation import Inputs
from ..configuration.files import find_root
from ..configuration.instances import Opener, open_session
from ..configuration.repository import FILES, Repository, RepositoryFolder
from ..configuration.repository_choice import FolderChoice, choose_folders
from ..workspace import Workspace, open_read_workspace
from .sharing import SharedSystems
from .states import refuse_state_variable


class OpenFolder(Struct, frozen=True):
    """A folder of the repository, opened, or the reason why it cannot be."""

    folder: RepositoryFolder
    workspace: Workspace | None = None
    """None if it cannot be opened."""
    state: State | None = None
    """What its state recorded then; None if there is none."""
    error: KafkaformError | None = None
    """Why it cannot be opened."""


class OpenRepository(Struct, frozen=True):
    """The chosen folders of a repository, in the order of their paths."""

    choice: FolderChoice
    folders: tuple[OpenFolder, ...]
    systems: SharedSystems
    """What the folders connect through."""
    inputs: Inputs = Inputs()
    """What all of them are evaluated with."""
    policies: Sequence[Path | str] = ()
    """The folders of policies that judge all of them."""

    @property
    def repository(self) -> Repository:
        """What the repository file says."""
        return self.choice.repository

    def close(self) -> None:
        """End the shared connections; a plan connects again."""
        self.systems.close()


def open_repository(
    path: Path | str = ".",
    *,
    all: bool = True,
    folders: Sequence[str] = (),
    changed_since: str | None = None,
    variables: Mapping[str, object] | Sequence[str | Path] = (),
    variable_files: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    untrusted: bool = False,
    policies: Sequence[Path | str] = (),
    progress: Reporter = ignore_event,
) -> OpenRepository:
    """Open folders of the repository that `path` is in. Only data sources connect to a system.

    folders: globs of paths, instead of all folders. changed_since: a branch or commit of git; only
    those of the folders that changed since the checkout left it. The others are as in
    `open_workspace`, and the same for every folder. progress: called with events while the folders
    are opened.

    A folder that cannot be opened has its error. Raises UsageError, and ConfigurationError with
    all faults of the repository file.
    """
    environment = os.environ if environment is None else environment
    refuse_state_variable(environment)
    # One set of secrets for all: what one folder reads must not be shown by another one either.
    with keep_secrets(watched()):
        inputs = Inputs.read(
            variables, variable_files, untrusted=untrusted, environment=environment
        )
        outside = environment if untrusted else None
        choice = choose_folders(Path(path), all and not folders, folders, changed_since, outside)
        top, systems = choice.repository.path, SharedSystems()

        def open_one(folder: RepositoryFolder) -> OpenFolder:
            opener = systems.make_opener(top / folder.path)
            return _open_folder(top / folder.path, folder, inputs, policies, opener)

        opened = _open_each(choice.folders, open_one, progress)
        for item in opened:
            _note_wanted(item, systems)
        return OpenRepository(choice, opened, systems, inputs, policies)


def open_again(repository: OpenRepository, folder: RepositoryFolder) -> OpenFolder:
    """Evaluate a folder again, such as with new outputs of the folders that it reads, and with
    sessions of its own."""
    path = repository.repository.path / folder.path
    return _open_folder(path, folder, repository.inputs, repository.policies, open_session)


def _open_each(
    folders: Sequence[RepositoryFolder],
    open_one: Callable[[RepositoryFolder], OpenFolder],
    progress: Reporter,
) -> tuple[OpenFolder, ...]:
    """Open the folders one after the other, and say how far that is."""
    opened: list[OpenFolder] = []
    task, label, total = "open folders", "Opening folders", len(folders)
    for folder in folders:
        progress(Progress(task, label, len(opened), total, "folders"))
        opened.append(open_one(folder))
    progress(Progress(task, label, total, total, "folders", finished=True))
    return tuple(opened)


def _note_wanted(opened: OpenFolder, systems: SharedSystems) -> None:
    """Tell the shared logins which objects the folder declares or records."""
    space, wanted = opened.workspace, defaultdict[str, set[Identity]](set)
    if space is None:
        return
    recorded = opened.state.objects if opened.state is not None else ()
    for identity in (*(item.identity for item in space.desired.declared), *recorded):
        wanted[identity.instance].add(identity)
    for instance, ids in wanted.items():
        block = space.desired.providers.get(instance)
        if block is not None:
            systems.want(space.configuration.folder, block, ids)


def _open_folder(
    path: Path,
    folder: RepositoryFolder,
    inputs: Inputs,
    policies: Sequence[Path | str],
    opener: Opener,
) -> OpenFolder:
    try:
        if folder.faults:
            raise ConfigurationError(f"{folder.path} cannot be used", diagnostics=folder.faults)
        state = _find_trusted_state(path, folder) if inputs.untrusted else None
        workspace = open_read_workspace(path, inputs, state, policies, place=folder, opener=opener)
        return OpenFolder(folder, workspace, workspace.backend.load().state)
    except Interrupted:
        raise
    except KafkaformError as error:
        return OpenFolder(folder, error=error)


def _find_trusted_state(path: Path, folder: RepositoryFolder) -> str:
    """The state of a folder that anybody can have written, as the base branch names it. Raises
    UsageError for one that they can have written, too."""
    state = folder.state
    if state and ("://" in state or not Path(state).is_relative_to(find_root(path))):
        return state
    raise UsageError(
        f"the state of {folder.path} can be forged: it is part of the untrusted files",
        f"Let `state` of its folders block in {FILES[0]} name an object store, or a path outside "
        "of the checkout.",
    )
