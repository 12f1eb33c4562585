"""Plan the folders of a repository. Each folder fails alone, with its reason; two folders that have
the same object both fail, before anything is planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...core.address import matches
from ...core.change import Verdict
from ...core.diagnostics import Diagnostics, has_errors
from ...core.errors import (
    ConfigurationError,
    Interrupted,
    KafkaformError,
    UsageError,
    exit_code,
)
from ...core.progress import Progress
from ...core.secret import keep_secrets
from ...core.value import EMPTY
from ...plan.model import Mode, Options, Plan
from ...provider.registry import Registry
from ..configuration.repository import RepositoryFolder
from ..judgement import check_accepted, check_fail_on, refuse_unmatched
from ..model import DryRun, PlanChosen, RunEvent
from ..planning import find_unmet, plan_changes, refuse_if_blocked
from ..workspace import Workspace, open_instance
from .conflicts import FolderClaim, find_conflicts, list_claims
from .folders import OpenFolder, OpenRepository
from .order import FolderOrder, order_opened


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
    conflicting: bool = False
    """The error is that another folder has the same objects."""
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
    order: FolderOrder = FolderOrder()
    """In which order they are applied."""
    claims: tuple[FolderClaim, ...] = ()
    """The objects of all these folders."""

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
    opened = {item.folder.path: item for item in repository.folders}
    order, outcomes = order_opened(repository), dict[str, FolderOutcome]()
    claims = tuple(_list_all_claims(repository.folders))
    conflicts = find_conflicts(claims)
    task, label, total = "plan folders", "Planning folders", len(opened)
    for path in order.list_paths():
        progress("", Progress(task, label, len(outcomes), total, "folders"))
        outcome = _find_hindrance(opened[path], order, outcomes, options)
        if faults := conflicts.get(path):
            error = make_conflict_error(faults)
            outcome = FolderOutcome(opened[path].folder, error=error, conflicting=True)
        outcome = outcome or _plan_folder(opened[path], options, wishes, progress)
        progress(path, outcome)
        outcomes[path] = outcome
    progress("", Progress(task, label, total, total, "folders", finished=True))
    return RepositoryPlan(tuple(outcomes[path] for path in opened), order, claims)


def _find_hindrance(
    opened: OpenFolder,
    order: FolderOrder,
    outcomes: Mapping[str, FolderOutcome],
    options: Options,
) -> FolderOutcome | None:
    """Why a folder cannot be planned because of others; None if it can, or fails on its own."""
    folder, path = opened.folder, opened.folder.path
    if path in order.circles:
        return FolderOutcome(folder, error=order.circles[path])
    if path not in order.waiting or options.mode is Mode.DESTROY:
        return None
    awaited = [p for p in order.needs[path] if outcomes[p].applicable or outcomes[p].skipped]
    if not awaited:
        return None
    return FolderOutcome(folder, skipped=f"it can be planned when {', '.join(awaited)} is applied")


def _list_all_claims(folders: Sequence[OpenFolder]) -> Iterator[FolderClaim]:
    """The objects of these folders, if there are several. The systems are asked who they are."""
    if len(folders) < 2:
        return
    for item in folders:
        space = item.workspace
        if space is None:
            continue
        with keep_secrets(space.known):
            scopes = dict(_ask_scopes(item, space))
        yield from list_folder_claims(item, scopes)


def list_folder_claims(
    opened: OpenFolder, scopes: Mapping[str, str] = EMPTY
) -> Iterator[FolderClaim]:
    """The objects of an open folder. scopes: provider instance -> the id of its system."""
    space = opened.workspace
    assert space is not None, "only what is open has claims"
    location, state = space.backend.location, opened.state
    return list_claims(opened.folder, space.desired, space.providers, state, location, scopes)


def _ask_scopes(opened: OpenFolder, space: Workspace) -> Iterator[tuple[str, str]]:
    """Provider instance -> the id of the system that answers. One that does not answer is left out:
    its plan says why."""
    recorded = () if opened.state is None else opened.state.objects
    identities = (*(item.identity for item in space.desired.declared), *recorded)
    for instance in sorted({i.instance for i in identities} & space.desired.providers.keys()):
        try:
            scope_id = open_instance(space, instance).facts.scope_id
        except Interrupted:
            raise
        except KafkaformError:
            continue
        yield instance, scope_id


def make_conflict_error(faults: Diagnostics) -> ConfigurationError:
    """The error of a folder. faults: its objects that another folder has, too."""
    objects = f"{len(faults):,} object{'' if len(faults) == 1 else 's'}"
    return ConfigurationError(f"another folder has {objects} of it, too", diagnostics=faults)


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
        own_options = select_options(opened, options)
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
    return FolderOutcome(opened.folder, plan_made, error, applicable=applicable, verdicts=verdicts)


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


def select_options(opened: OpenFolder, options: Options) -> Options:
    """The options without the addresses that other folders have. The folder must be open."""
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
