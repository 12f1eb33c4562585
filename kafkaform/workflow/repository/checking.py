"""Check the configurations of many folders of a repository offline, each alone and all together. A
folder that cannot be evaluated fails with its reasons, and the others go on."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import normpath

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Severity, has_errors
from ...core.errors import ConfigurationError, KafkaformError, exit_code
from ...language.declare.modules import is_git
from ..configuration.evaluation import Inputs, read_configuration
from ..configuration.judgement import find_faults, load_providers
from ..configuration.repository import Repository, RepositoryFolder
from .conflicts import FolderClaim, find_conflicts, list_claims


class CheckedFolder(Struct, frozen=True):
    """What was found in one folder."""

    folder: RepositoryFolder
    faults: Diagnostics
    """With paths seen from the top of the repository."""
    objects: int = 0
    """How many objects are declared."""
    code: int = 0
    """The exit code of this folder alone."""
    claims: tuple[FolderClaim, ...] = ()
    """What it declares."""

    @property
    def errors(self) -> int:
        """How many of the faults are errors."""
        return sum(item.severity is Severity.ERROR for item in self.faults)


def check_folders(
    repository: Repository, folders: Sequence[RepositoryFolder], inputs: Inputs
) -> tuple[CheckedFolder, ...]:
    """Check these folders, and whether several of them declare the same object."""
    checked = [_check_folder(repository, folder, inputs) for folder in folders]
    conflicts = find_conflicts(claim for item in checked for claim in item.claims)
    return tuple(
        _add_faults(repository, item, conflicts.get(item.folder.path, ())) for item in checked
    )


def _check_folder(
    repository: Repository, folder: RepositoryFolder, inputs: Inputs
) -> CheckedFolder:
    empty = CheckedFolder(folder, ())
    try:
        if folder.faults:
            raise ConfigurationError(f"{folder.path} cannot be used", diagnostics=folder.faults)
        path = repository.path / folder.path
        configuration = read_configuration(path, inputs, place=folder)
        built = configuration.evaluate(offline=True)
    except KafkaformError as error:
        return replace(_add_faults(repository, empty, error.diagnostics), code=exit_code(error))
    providers = load_providers(configuration, built)
    return replace(
        _add_faults(repository, empty, find_faults(configuration, built)),
        objects=len(built.desired.declared),
        claims=tuple(list_claims(folder, built.desired, providers)),
    )


def _add_faults(
    repository: Repository, checked: CheckedFolder, faults: Diagnostics
) -> CheckedFolder:
    located = (place_fault(repository, checked.folder, fault) for fault in faults)
    code = max(checked.code, int(has_errors(faults)))
    return replace(checked, faults=(*checked.faults, *located), code=code)


def place_fault(repository: Repository, folder: RepositoryFolder, fault: Diagnostic) -> Diagnostic:
    """The fault with a path that is seen from the top of the repository."""
    location = fault.range
    if location is None or location.file == repository.file or is_git(location.file):
        return fault
    file = normpath(f"{folder.path}/{location.file}")
    return replace(fault, range=replace(location, file=file))
