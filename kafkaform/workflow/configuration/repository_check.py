"""Check the configurations of many folders of a repository offline. A folder that cannot be
evaluated fails with its reasons, and the others go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os.path import normpath

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Severity
from ...core.errors import ConfigurationError, KafkaformError, exit_code
from ...language.declare.modules import is_git
from ...language.desired import Built
from .evaluation import Configuration, Inputs, read_configuration
from .judgement import judge_configuration
from .repository import Repository, RepositoryFolder


class CheckedFolder(Struct, frozen=True):
    """What was found in one folder."""

    folder: RepositoryFolder
    faults: Diagnostics
    """With paths seen from the top of the repository."""
    objects: int = 0
    """How many objects are declared."""
    code: int = 0
    """The exit code of this folder alone."""

    @property
    def errors(self) -> int:
        """How many of the faults are errors."""
        return sum(item.severity is Severity.ERROR for item in self.faults)


def find_faults(configuration: Configuration, built: Built) -> Diagnostics:
    """Everything that is wrong with an evaluated configuration, as far as no system is asked."""
    return (
        *built.desired.diagnostics,
        *judge_configuration(configuration, built),
        *configuration.list_unconnected(built),
    )


def check_folders(
    repository: Repository, folders: Sequence[RepositoryFolder], inputs: Inputs
) -> Iterator[CheckedFolder]:
    """Check each of these folders, in their order."""
    for folder in folders:
        yield _check_folder(repository, folder, inputs)


def _check_folder(
    repository: Repository, folder: RepositoryFolder, inputs: Inputs
) -> CheckedFolder:
    objects = 0
    try:
        if folder.faults:
            raise ConfigurationError(f"{folder.path} cannot be used", diagnostics=folder.faults)
        path = repository.path / folder.path
        configuration = read_configuration(path, inputs, place=folder)
        built = configuration.evaluate(offline=True)
        objects, faults, code = len(built.desired.declared), find_faults(configuration, built), 1
    except KafkaformError as error:
        faults, code = error.diagnostics, exit_code(error)
    located = tuple(place_fault(repository, folder, fault) for fault in faults)
    sound = not any(item.severity is Severity.ERROR for item in located)
    return CheckedFolder(folder, located, objects, 0 if sound else code)


def place_fault(repository: Repository, folder: RepositoryFolder, fault: Diagnostic) -> Diagnostic:
    """The fault with a path that is seen from the top of the repository."""
    location = fault.range
    if location is None or location.file == repository.file or is_git(location.file):
        return fault
    file = normpath(f"{folder.path}/{location.file}")
    return replace(fault, range=replace(location, file=file))
