"""Read the states of many folders, without their configurations. A state that cannot be read fails
alone: commands that list what is recorded go on with the others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from msgspec import Struct

from ...core.errors import ConfigurationError, KafkaformError, UsageError
from ...state.model import State
from ..configuration.repository import FILES, RepositoryFolder
from ..configuration.repository_choice import FolderChoice
from ..stores import STATE_VARIABLE, Store, open_folder_store


class FolderState(Struct, frozen=True):
    """What one folder records."""

    folder: RepositoryFolder
    state: State | None = None
    """None if nothing was ever recorded, or if it cannot be read."""
    error: KafkaformError | None = None
    """Why it cannot be read."""


def refuse_state_variable(environment: Mapping[str, str]) -> None:
    """Raises UsageError if the environment names a state, which would be that of every folder."""
    if environment.get(STATE_VARIABLE):
        raise UsageError(
            f"{STATE_VARIABLE} names one state, and each folder of a repository has its own",
            f"Unset it. The folders blocks of {FILES[0]} say where the states are.",
        )


def open_store_of(choice: FolderChoice, folder: RepositoryFolder) -> Store:
    """The store of a folder of a repository. Raises ConfigurationError for a folder or a place that
    cannot be used."""
    if folder.faults:
        raise ConfigurationError(f"{folder.path} cannot be used", diagnostics=folder.faults)
    return open_folder_store(choice.repository.path / folder.path, None, None, folder)


def load_states(choice: FolderChoice) -> Iterator[FolderState]:
    """The states of the chosen folders, in their order. Raises UsageError."""
    refuse_state_variable(os.environ)
    for folder in choice.folders:
        try:
            state = open_store_of(choice, folder).backend.load().state
        except KafkaformError as error:
            yield FolderState(folder, error=error)
        else:
            yield FolderState(folder, state)
