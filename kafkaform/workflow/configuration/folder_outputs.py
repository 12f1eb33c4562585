"""Answer `data "kafkaform_outputs"`: find the other folder, and read what its state records.
Nothing else of that folder is read, and its system is not asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct, field

from ...core.diagnostics import Range
from ...core.errors import KafkaformError, StorageError, UsageError
from ...core.resource import ProviderConfig
from ...core.value import EMPTY, FrozenMap
from .places import find_links
from .repository import FILES
from .repository_place import find_base_repository, find_place
from .untrusted import is_forgeable

LoadOutputs = Callable[[Path, str | None], FrozenMap | None]
"""Reads the outputs that the state of a folder records, in the form of the state; None if there is
none yet: (folder, where its state is, None for what the folder says itself). Raises
KafkaformError."""
_NAMED_FOLDER = "Write the path from this configuration's folder to the other one: ../platform."


class FolderOutputs(Struct, frozen=True):
    """Reads outputs for the data sources of one configuration, and remembers of which folders."""

    folder: Path = Path()
    """The folder of the configuration, absolute."""
    environment: Mapping[str, str] | None = None
    """For untrusted files, whose repository file is that of the branch that it names."""
    load: LoadOutputs | None = None
    """None: no state is read, as in a test."""
    values: Mapping[str, FrozenMap] = EMPTY
    """In a test, folder -> the values that it puts out."""
    read: dict[Path, Range] = field(default_factory=dict)
    """The folders that were asked for, with the place of the first data block that did so."""

    def answer(self, config: ProviderConfig, arguments: FrozenMap) -> FrozenMap:
        """The answer to a data block. Raises KafkaformError."""
        text = str(arguments["folder"])
        if self.load is None:
            return self._find_given(text)
        target = Path(os.path.normpath(self.folder / text))
        if target == self.folder or (target.exists() and target.samefile(self.folder)):
            raise UsageError(
                f"{text} is the folder of this configuration itself",
                "Refer to its resources, locals and variables directly.",
            )
        state = None if self.environment is None else self._find_reviewed_state(text, target)
        if not target.is_dir():
            raise UsageError(f"there is no folder {text}", _NAMED_FOLDER)
        self.read.setdefault(target, config.range)
        try:
            recorded = self.load(target, state)
        except KafkaformError as error:
            # The reader does not know the folder, and the fault is at the data block.
            raise type(error)(
                f"the state of {text} cannot be read: {error.diagnostics[0].summary}",
                error.diagnostics[0].advice,
            ) from None
        if recorded is None:
            raise StorageError(
                f"{text} has no state yet",
                "Its first apply records its outputs: run `kafkaform apply` there, or `kafkaform "
                "apply --all`, which applies that folder first.",
            )
        return FrozenMap(
            outputs=FrozenMap({n: o["value"] for n, o in recorded.items() if not o["sensitive"]}),
            sensitive=tuple(sorted(n for n, o in recorded.items() if o["sensitive"])),
        )

    def _find_given(self, text: str) -> FrozenMap:
        """What a test says that the folder puts out. Raises UsageError."""
        outputs = {os.path.normpath(name): values for name, values in self.values.items()}
        if os.path.normpath(text) not in outputs:
            raise UsageError(
                "a test reads no state of another folder",
                f'Add outputs "NAME" {{ … }} with folder = "{text}" and values = {{ … }} to the '
                "test file.",
            )
        return FrozenMap(outputs=outputs[os.path.normpath(text)], sensitive=())

    def _find_reviewed_state(self, text: str, target: Path) -> str:
        """Where the state of a folder is, as a file says that a pull request cannot change. Raises
        UsageError."""
        assert self.environment is not None
        repository = find_base_repository(self.folder, self.environment)
        if repository is None or not target.is_relative_to(repository.path.parent):
            raise UsageError(
                f"--untrusted: {text} is not below a {FILES[0]} that was reviewed",
                "Untrusted files could name any folder of this computer. Only the outputs of "
                f"folders of the same repository can be read, whose states {FILES[0]} names.",
            )
        for link in find_links(target):
            raise UsageError(f"--untrusted: {link} is a link", "Name the folder itself.")
        repository_folder = find_place(target, environment=self.environment)
        state = None if repository_folder is None else repository_folder.state
        if state is None or is_forgeable(state, self.folder):
            raise UsageError(
                f"--untrusted: the state of {text} can be forged",
                f"Let {FILES[0]} name a state for it that is outside of the checkout.",
            )
        return state
