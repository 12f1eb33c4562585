"""Plan the folders of a repository. Each folder fails alone, with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...core.address import matches
from ...core.change import Verdict
from ...core.diagnostics import has_errors
from ...core.errors import Interrupted, KafkaformError, UsageError, exit_code
from ...core.progress import Progress
from ...plan.model import Options, Plan
from ...provider.registry import Registry
from ..configuration.repository import RepositoryFolder
from ..judgement import check_accepted, check_fail_on, refuse_unmatched
from ..model import DryRun, PlanChosen, RunEvent
from ..planning import find_unmet, plan_changes, refuse_if_blocked
from .folders import OpenFolder, OpenRepository


class FolderOutcome(Struct, frozen=True):
    """What planning one folder led to."""

    folder: RepositoryFolder
    plan: Plan | None = None
    """None if there is no plan, because of the error or because the folder was skipped."""
    error: KafkaformError | None = None
    """Why there is no plan, or why it cannot be applied as it is."""
    skipped: str = ""
    """Why the folder was left out, empty if it was not."""
    applicable: bool = False
    """An apply of the plan has something to do, and nothing keeps it from that."""
    verdicts: Mapping[str, Verdict] | None = None
    """Step id -> what the dry run said; None without a dry run."""

    @property
    def code(self) -> int:
        """The exit code of this folder alone."""
        return 0 if self.error is None else exit_code(self.error)

    @property
    def changed(self) -> bool:
        """True if the plan has changes, also those that are blocked, or outputs."""
        plan = self.plan
        return plan is not None and (bool(plan.outputs) or not plan.idle)


class RepositoryPlan(Struct, frozen=True):
    """The plans of the chosen folders of a repository, in the order of their paths."""

    folders: tuple[FolderOutcome, ...]

    @property
    def code(self) -> int:
        """The gravest exit code of a folder."""
        return max((item.code for item in self.folders), default=0)

    @property
    def changed(self) -> bool:
        """True if a folder has changes."""
        return any(item.changed for item in self.folders)


class PlanWishes(Struct, frozen=True):
    """What each plan is checked for."""

    validate: bool = False
    verify_log: bool = False
    fail_on: tuple[str, ...] = ()
    """Conditions that block a folder."""


FolderListener = Callable[[str, RunEvent | FolderOutcome], None]
"""Called with the path of a folder and an event of its plan; at its end, with the outcome. Events
about all folders have an empty path."""


def ignore_folder_event(path: str, event: object) -> None:
    """A listener that tells nobody."""


def plan_repository(
    repository: OpenRepository,
    options: Options = Options(),
    *,
    validate: bool = False,
    verify_log: bool = False,
    fail_on: Sequence[str] = (),
    progress: FolderListener = ignore_folder_event,
) -> RepositoryPlan:
    """Find out what an apply of these folders would change. It only reads, and takes no lock.

    options, validate, verify_log: as in `plan_changes`, for each folder. An address of `adopt` or
    `accept` counts in the folders that have it. fail_on: conditions that block a folder. progress:
    called with the events of each folder.

    A folder without a plan has its error. Raises UsageError for what no folder can be planned with.
    """
    try:
        return _plan_folders(
            repository, options, PlanWishes(validate, verify_log, tuple(fail_on)), progress
        )
    finally:
        repository.close()


def _plan_folders(
    repository: OpenRepository, options: Options, wishes: PlanWishes, progress: FolderListener
) -> RepositoryPlan:
    check_options(options)
    spaces = [item.workspace for item in repository.folders if item.workspace is not None]
    registry = spaces[0].configuration.registry if spaces else Registry()
    options = replace(options, accept=check_accepted(options.accept, registry))
    policies = {id for space in spaces for id in space.policies.ids}
    if len(spaces) < len(repository.folders):
        # A folder that is not open can have any: its fault must not stop the others.
        policies.update(name for names in wishes.fail_on for name in names.split(","))
    conditions = check_fail_on(wishes.fail_on, registry, list_policies=lambda: policies)
    wishes = replace(wishes, fail_on=conditions)
    _refuse_idle_globs(repository, options)
    outcomes: list[FolderOutcome] = []
    task, label, total = "plan folders", "Planning folders", len(repository.folders)
    for item in repository.folders:
        progress("", Progress(task, label, len(outcomes), total, "folders"))
        outcome = _plan_folder(item, options, wishes, progress)
        progress(item.folder.path, outcome)
        outcomes.append(outcome)
    progress("", Progress(task, label, total, total, "folders", finished=True))
    return RepositoryPlan(tuple(outcomes))


def check_options(options: Options) -> None:
    """Raises UsageError for options that name objects of one folder."""
    for flag, globs in (("--target", options.target), ("--exclude", options.exclude)):
        if globs:
            raise UsageError(
                f"{flag} chooses objects of one folder, and the command is about several",
                f"Change to the folder, or choose folders with --folder instead of {flag}.",
            )


def _plan_folder(
    opened: OpenFolder, options: Options, wishes: PlanWishes, progress: FolderListener
) -> FolderOutcome:
    if opened.workspace is None:
        return FolderOutcome(opened.folder, error=opened.error)
    plans: list[Plan] = []
    dry_runs: list[DryRun] = []
    error: KafkaformError | None = None

    def listen(event: RunEvent) -> None:
        if isinstance(event, PlanChosen):
            plans.append(event.plan)
        if isinstance(event, DryRun):
            dry_runs.append(event)
        progress(opened.folder.path, event)

    applicable = False
    try:
        own_options = _select_options(opened, options)
        plan = plan_changes(
            opened.workspace,
            own_options,
            validate=wishes.validate,
            verify_log=wishes.verify_log,
            progress=listen,
        )
        refuse_if_blocked(plan, wishes.fail_on)
        changed = bool(plan.outputs) or not plan.idle
        applicable = changed and not has_errors(plan.diagnostics)
        error = find_unmet(plan)
    except Interrupted:
        raise
    except KafkaformError as fault:
        error = fault
    plan_made = plans[-1] if plans else None
    verdicts = dry_runs[-1].verdicts if dry_runs else None
    return FolderOutcome(opened.folder, plan_made, error, "", applicable, verdicts)


# ── options that name objects ───────────────────────────────────────────────────────────


def _list_addresses(opened: OpenFolder) -> set[str]:
    """The addresses that the folder declares or records."""
    addresses: set[str] = set()
    if opened.workspace is not None:
        addresses.update(str(item.address) for item in opened.workspace.desired.declared)
    if opened.state is not None:
        addresses.update(owner for row in opened.state.objects.values() for owner in row.owners)
    return addresses


def _refuse_idle_globs(repository: OpenRepository, options: Options) -> None:
    """Raises UsageError for an address that no folder has: that is a typing error."""
    if not (options.adopt or any("=" in name for name in options.accept)):
        return
    addresses = {name for opened in repository.folders for name in _list_addresses(opened)}
    refuse_unmatched(options.accept, addresses, "No folder declares or records this address.")
    for glob in options.adopt:
        if not any(matches(glob, address) for address in addresses):
            raise UsageError(
                f"--adopt {glob!r} matches no object of any folder",
                "Only what a configuration declares can be adopted.",
            )


def _select_options(opened: OpenFolder, options: Options) -> Options:
    """The options without the addresses that other folders have."""
    if not (options.adopt or any("=" in name for name in options.accept)):
        return options
    assert opened.workspace is not None, "a folder that is not open is not planned"
    declared = {str(item.address) for item in opened.workspace.desired.declared}
    addresses = _list_addresses(opened)

    def holds(name: str) -> bool:
        _, equals, glob = name.partition("=")
        return not equals or any(matches(glob, address) for address in addresses)

    return replace(
        options,
        adopt=tuple(g for g in options.adopt if any(matches(g, name) for name in declared)),
        accept=tuple(filter(holds, options.accept)),
    )
