"""Run the test files of many folders. A folder whose configuration cannot be read counts as one
error, and the others go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ...core.diagnostics import Diagnostics
from ...core.errors import ConfigurationError, KafkaformError, UsageError
from ...render.suite_results import RunResult, SuiteResult, SuiteStart
from ..configuration.evaluation import Inputs, read_configuration
from ..configuration.repository import RepositoryFolder
from ..configuration.repository_choice import FolderChoice
from ..testing.files import SuiteFile, list_default_files, read_suite_files
from ..testing.suites import SuiteEvent, run_suites
from .checking import place_fault


def run_folder_suites(
    choice: FolderChoice, inputs: Inputs, names: Sequence[str] = ()
) -> Iterator[SuiteEvent]:
    """Run the test files of the chosen folders, folder by folder.

    inputs: simulated ones; names: globs of the runs that are wanted. Raises UsageError if none of
    the folders has a test file, and for globs that match no run of any folder.
    """
    tested = [folder for folder in choice.folders if _has_suites(choice, folder)]
    if not tested and choice.folders:
        raise UsageError(
            "none of these folders has a test file",
            "Write one, such as tests/main.kftest.hcl in a folder.",
        )
    ran = False
    for folder in tested:
        for event in _run_folder(choice, folder, inputs, names):
            ran = ran or not isinstance(event, SuiteStart)
            yield event
    if names and not ran:
        raise UsageError(
            f"--filter {' '.join(names)} matches no run of any folder", "Names are globs."
        )


def _has_suites(choice: FolderChoice, folder: RepositoryFolder) -> bool:
    return bool(list_default_files(choice.repository.path / folder.path))


def _run_folder(
    choice: FolderChoice, folder: RepositoryFolder, inputs: Inputs, names: Sequence[str]
) -> Iterator[SuiteEvent]:
    top = choice.repository.path
    path = top / folder.path
    try:
        if folder.faults:
            raise ConfigurationError(f"{folder.path} cannot be used", diagnostics=folder.faults)
        files = [
            replace(file, name=f"{folder.path}/{file.name}")
            for file in read_suite_files(folder=path)
        ]
        configuration = read_configuration(path, inputs, place=folder)
        for event in run_suites(configuration, files, names, requires_runs=False):
            yield _place_event(choice, folder, files, event)
    except KafkaformError as error:
        faults = _place_faults(choice, folder, (), error.diagnostics)
        yield SuiteResult(folder.path, diagnostics=faults)


def _place_event(
    choice: FolderChoice, folder: RepositoryFolder, files: Sequence[SuiteFile], event: SuiteEvent
) -> SuiteEvent:
    """The event with paths that are seen from the top of the repository."""
    if isinstance(event, RunResult):
        return replace(event, diagnostics=_place_faults(choice, folder, files, event.diagnostics))
    if isinstance(event, SuiteResult):
        faults = _place_faults(choice, folder, files, event.diagnostics)
        runs = (_place_event(choice, folder, files, run) for run in event.runs)
        return replace(event, diagnostics=faults, runs=tuple(runs))
    return event


def _place_faults(
    choice: FolderChoice,
    folder: RepositoryFolder,
    files: Sequence[SuiteFile],
    faults: Diagnostics,
) -> Diagnostics:
    # The names of test files are seen from the top already.
    own = {file.name for file in files}
    return tuple(
        fault
        if fault.range is not None and fault.range.file in own
        else place_fault(choice.repository, folder, fault)
        for fault in faults
    )
