"""The order of the folders of a repository: a folder comes after those whose outputs it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os.path import normpath
from pathlib import Path
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Range, Severity, has_errors
from ...core.errors import ConfigurationError, KafkaformError
from ...core.resource import ProviderConfig
from ...core.value import EMPTY
from ...language.declare.modules import is_git
from ...language.declare.skipped_blocks import list_used_names
from ...language.evaluate.providers import OUTPUTS
from ...language.expressions.dependencies import order_names
from ...language.expressions.references import Unset
from ..configuration.evaluation import Configuration, DataAnswers, read_configuration
from ..configuration.repository import Repository, RepositoryFolder
from .folders import OpenFolder, OpenRepository

Needs = Mapping[str, Range]
"""Path of each folder whose outputs are read -> the place of the data block, as seen from the top
of the repository."""


class FolderOrder(Struct, frozen=True):
    """In which order folders are applied. All folders are named by their paths."""

    layers: tuple[tuple[str, ...], ...] = ()
    """Each folder needs only folders of earlier layers. Those of one layer are sorted."""
    needs: Mapping[str, Needs] = EMPTY
    """What each folder needs."""
    circles: Mapping[str, ConfigurationError] = EMPTY
    """The folders that need themselves, through others -> the fault. They are in no layer."""

    def list_paths(self, *, backwards: bool = False) -> Iterator[str]:
        """All folders: those of circles first, then layer by layer."""
        yield from self.circles
        for layer in reversed(self.layers) if backwards else self.layers:
            yield from layer

    def list_users(self, path: str) -> tuple[str, ...]:
        """The folders that read outputs of this one."""
        return tuple(user for user, needs in self.needs.items() if path in needs)


def order_opened(repository: OpenRepository) -> FolderOrder:
    """The order of folders that were opened, or could not be."""
    needs = {
        item.folder.path: name_needs(repository.repository, item.folder, needed)
        for item in repository.folders
        for needed in [_find_needed(repository, item)]
    }
    return order_folders(needs)


def _find_needed(repository: OpenRepository, opened: OpenFolder) -> Mapping[Path, Range]:
    if opened.workspace is not None:
        return opened.workspace.configuration.asking.outputs.read
    # Often it cannot be opened because what it needs was never applied: then its text tells.
    try:
        return find_needed_folders(_read_again(repository, opened))
    except KafkaformError:
        return {}


def is_sound_without_outputs(repository: OpenRepository, opened: OpenFolder) -> bool:
    """Whether nothing but what it reads can keep a folder from being opened."""
    try:
        built = _read_again(repository, opened).evaluate(ask=False)
    except KafkaformError:
        return False
    return not has_errors(built.desired.diagnostics)


def _read_again(repository: OpenRepository, opened: OpenFolder) -> Configuration:
    path = repository.repository.path / opened.folder.path
    return read_configuration(path, repository.inputs, place=opened.folder)


def find_needed_folders(configuration: Configuration) -> Mapping[Path, Range]:
    """The folders whose outputs a configuration reads, with the places of the data blocks. No state
    is read and no system is asked, so blocks whose folder depends on data are left out."""
    if OUTPUTS not in list_used_names(configuration.tree):
        return {}
    # A folder without outputs: unlike a fault, that does not end a loop over several folders.
    outputs = replace(configuration.asking.outputs, load=lambda _, __: EMPTY, read={})
    asking = DataAnswers(_leave_unset, outputs=outputs)
    replace(configuration, asking=asking).evaluate()
    return outputs.read


def _leave_unset(_: ProviderConfig) -> NoReturn:
    raise Unset


def name_needs(
    repository: Repository, folder: RepositoryFolder, needed: Mapping[Path, Range]
) -> Needs:
    """The needs of a folder, by path. Folders outside of the repository are left out."""
    top = repository.path
    return {
        path.relative_to(top).as_posix(): _place_range(folder, location)
        for path, location in needed.items()
        if path.is_relative_to(top)
    }


def _place_range(folder: RepositoryFolder, location: Range) -> Range:
    """The range as seen from the top of the repository."""
    if is_git(location.file):
        return location
    return replace(location, file=normpath(f"{folder.path}/{location.file}"))


def order_folders(needs: Mapping[str, Needs]) -> FolderOrder:
    """Put folders in order. needs: path of each folder -> what it needs; needs that are not among
    these folders are ignored."""
    needs = {
        path: {other: place for other, place in needed.items() if other in needs}
        for path, needed in sorted(needs.items())
    }
    names, cycles, looping = order_names(needs)
    depths: dict[str, int] = {}
    layers: list[list[str]] = []
    for path in names:
        if path in looping:
            continue
        depth = max((depths[other] + 1 for other in needs[path] if other in depths), default=0)
        depths[path] = depth
        if depth == len(layers):
            layers.append([])
        layers[depth].append(path)
    faults = [(frozenset(cycle), _make_circle_error(cycle, needs)) for cycle in cycles]
    return FolderOrder(
        tuple(tuple(sorted(layer)) for layer in layers),
        needs,
        {path: _find_fault(path, faults) for path in sorted(looping)},
    )


def _find_fault(
    path: str, faults: Sequence[tuple[frozenset[str], ConfigurationError]]
) -> ConfigurationError:
    """The fault of a circle that the folder is part of. Of very many circles not all are listed."""
    return next((error for members, error in faults if path in members), faults[0][1])


def _make_circle_error(cycle: list[str], needs: Mapping[str, Needs]) -> ConfigurationError:
    """The error for a closed chain of folders, the last of which is the first one again."""
    places = [needs[user][needed] for user, needed in zip(cycle, cycle[1:], strict=False)]
    chain = [f"{user} ({place})" for user, place in zip(cycle, places, strict=False)]
    fault = Diagnostic(
        Severity.ERROR,
        f"{cycle[0]} needs its own outputs, through other folders",
        " → ".join((*chain, cycle[-1])),
        places[0],
        advice="Break the circle: move what both need to a folder that neither reads, or write one "
        "of the values as a constant.",
    )
    return ConfigurationError(fault.summary, fault.advice, (fault,))
