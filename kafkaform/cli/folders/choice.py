"""The folders that typed flags choose, for commands that make no plan. On its own, so that these do
not load what plans need."""

from __future__ import annotations

from pathlib import Path

from ... import workflow
from ...workflow.configuration.repository_choice import FolderChoice
from ..options.flags import FolderFlags


def choose_folders(chosen: FolderFlags) -> FolderChoice:
    """The chosen folders of the repository that the current folder is in. Raises UsageError, and
    ConfigurationError with all faults of the repository file."""
    choose = workflow.configuration.repository_choice.choose_folders
    return choose(Path(), chosen.all, chosen.globs, chosen.since)
