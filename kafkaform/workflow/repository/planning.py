"""Plan the folders of a repository, each after those whose outputs it reads. Each folder fails
alone, with its reason; two folders that have the same object both fail, before anything is
planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os.path import normpath
from pathlib import Path
from typing import NoReturn

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.address import matches
from ...core.change import Verdict
from ...core.diagnostics import Diagnostic, Diagnostics, Range, Severity, has_errors
from ...core.errors import (
    ConfigurationError,
    Interrupted,
    KafkaformError,
    UsageError,
    exit_code,
)
from ...core.parallel import map_parallel
from ...core.progress import Progress
from ...core.resource import ProviderConfig
from ...core.secret import keep_secrets
from ...core.value import EMPTY, FrozenMap
from ...language.declare.modules import is_git
from ...language.declare.settings import list_used_names
from ...language.evaluate.providers import OUTPUTS
from ...language.expressions.dependencies import order_names
from ...language.expressions.references import Unset
from ...plan.model import Mode, Options, Plan
from ...plan.observe import LookBudget
from ...provider.registry import Registry
from ...state.model import State
from ..configuration.evaluation import Configuration, DataAnswers, read_configuration
from ..configuration.repository import Repository, RepositoryFolder
from ..judgement import check_accepted, check_fail_on, refuse_unmatched
from ..model import DryRun, Note, PlanChosen, RunEvent
from ..planning import find_unmet, plan_changes, refuse_if_blocked
from ..stores import STORES_AT_ONCE
from ..workspace import Records, open_instance, read_records
from .checking import FolderClaim, RemainingFolders, list_claims, load_remainder
from .folders import OpenFolder, OpenRepository, open_again

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
    return read_configuration(path, repository.inputs, repository_folder=opened.folder)


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
        # Of very many circles not all are listed, so a folder of another one gets the first fault.
        {
            path: next((error for members, error in faults if path in members), faults[0][1])
            for path in sorted(looping)
        },
    )


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
    unfinished: bool = False
    """An earlier run has left something that the next run of the folder closes."""
    verdicts: Mapping[str, Verdict] | None = None
    """Step id -> what the dry run said; None without a dry run."""

    @property
    def code(self) -> int:
        """The exit code of this folder alone."""
        return 0 if self.error is None else exit_code(self.error)

    @property
    def hides_outputs(self) -> bool:
        """True if only an apply shows some of the folder's outputs."""
        changes = self.plan.outputs if self.plan is not None and self.applicable else ()
        deferred = (change.after is not None and change.after.deferred for change in changes)
        return bool(self.skipped) or any(deferred)

    @property
    def changed(self) -> bool:
        """True if the plan has changes, also those that are blocked, or outputs."""
        plan = self.plan
        return plan is not None and (bool(plan.outputs) or not plan.idle)


class RepositoryPlan(Struct, frozen=True):
    """The plans of the chosen folders of a repository, in the order of their paths."""

    folders: tuple[FolderOutcome, ...]
    remainder: RemainingFolders
    """What folders record that were not chosen."""
    order: FolderOrder = FolderOrder()
    """In which order they are applied."""
    claims: tuple[FolderClaim, ...] = ()
    """The objects of all these folders."""
    scopes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Path of a folder -> provider instance -> the id of its system, of those that answered."""

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
    look_budget: LookBudget = field(default_factory=LookBudget)
    """What all plans together may ask about those whom they hit."""


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
    order, outcomes = order_opened(repository), dict[str, FolderOutcome]()
    records = _read_all_records(repository, wishes.verify_log)
    remainder = load_remainder(repository)
    if unread := remainder.describe_unread():
        progress("", Note(unread))
    scopes = {item.folder.path: _ask_scopes(item) for item in repository.folders}
    opened = {
        item.folder.path: remainder.add_objects(item, scopes[item.folder.path])
        for item in repository.folders
    }
    claims = list(_list_all_claims(opened.values(), scopes))
    conflicts = remainder.find_conflicts(claims)
    task, label, total = "plan folders", "Planning folders", len(opened)
    for path in order.list_paths():
        progress("", Progress(task, label, len(outcomes), total, "folders"))
        folder = opened[path].folder
        if outputs := _predict_needed(order.needs.get(path, ()), opened, outcomes, options):
            top = repository.repository.path
            planned = {top / name: values for name, values in outputs.items()}
            opened[path] = open_again(repository, folder, planned)
            scopes[path] = _ask_scopes(opened[path])
            opened[path] = remainder.add_objects(opened[path], scopes[path])
            claims = [item for item in claims if item.folder != path]
            claims.extend(_list_all_claims([opened[path]], scopes))
            conflicts = remainder.find_conflicts(claims)
        if path in order.circles:
            outcome = FolderOutcome(folder, error=order.circles[path])
        elif path in conflicts:
            outcome = _make_conflict(folder, conflicts[path])
        elif awaited := _list_awaited(repository, opened[path], order, outcomes, options):
            reason = f"it can be planned when {', '.join(awaited)} is applied"
            outcome = FolderOutcome(folder, skipped=reason)
        else:
            outcome = _plan_folder(opened[path], records.pop(path), options, wishes, progress)
        progress(path, outcome)
        outcomes[path] = outcome
    # New outputs of one folder can give its object to one that was planned before.
    for path in conflicts.keys() - order.circles.keys():
        if not outcomes[path].conflicting:
            outcomes[path] = _make_conflict(opened[path].folder, conflicts[path])
            progress(path, outcomes[path])
    progress("", Progress(task, label, total, total, "folders", finished=True))
    ends = tuple(outcomes[path] for path in opened)
    return RepositoryPlan(ends, remainder, order, tuple(claims), scopes)


def _read_all_records(
    repository: OpenRepository, verify_log: bool
) -> dict[str, Records | KafkaformError | None]:
    """Path -> state and log, or why these cannot be read; None for a folder that is not open."""

    def read(item: OpenFolder) -> Records | KafkaformError | None:
        space = item.workspace
        if space is None:
            return None
        try:
            state = repository.states.load(space.configuration.folder, lambda: space.backend)
            return read_records(state, space.sink, whole=verify_log)
        except Interrupted:
            raise
        except KafkaformError as error:
            return error

    folders = repository.folders
    # Before any system is asked, as in `open_repository`.
    records = map_parallel(read, folders, STORES_AT_ONCE)
    return {item.folder.path: entry for item, entry in zip(folders, records, strict=True)}


def _make_conflict(folder: RepositoryFolder, faults: Diagnostics) -> FolderOutcome:
    return FolderOutcome(folder, error=make_conflict_error(faults), conflicting=True)


def _predict_needed(
    needs: Iterable[str],
    opened: Mapping[str, OpenFolder],
    outcomes: Mapping[str, FolderOutcome],
    options: Options,
) -> dict[str, FrozenMap]:
    """The outputs after the apply, in the form of the state, of each of these folders that will
    have others than are recorded."""
    if options.mode is Mode.DESTROY:
        return {}  # a folder is destroyed before those whose outputs it reads
    return {
        path: predict_outputs(opened[path].state, plan)
        for path in needs
        if path in outcomes
        and outcomes[path].applicable
        and (plan := outcomes[path].plan) is not None
        and plan.outputs
    }


def predict_outputs(state: State | None, plan: Plan) -> FrozenMap:
    """The outputs of a folder after an apply of its plan, in the form of the state. Those whose
    values only the apply shows are left out."""
    outputs = dict(EMPTY if state is None else state.outputs)
    for change in plan.outputs:
        name = (change.before or change.after).name  # type: ignore[union-attr]  # one of them is there
        outputs.pop(name, None)
        if change.after is not None and not change.after.deferred:
            outputs[name] = FrozenMap(value=change.after.value, sensitive=change.after.sensitive)
    return FrozenMap(outputs)


def _list_awaited(
    repository: OpenRepository,
    opened: OpenFolder,
    order: FolderOrder,
    outcomes: Mapping[str, FolderOutcome],
    options: Options,
) -> list[str]:
    """The folders that must be applied before this one can be planned: it cannot be opened, and
    for no other reason than that it reads outputs that nobody knows yet."""
    if opened.workspace is not None or options.mode is Mode.DESTROY:
        return []
    awaited = [path for path in order.needs[opened.folder.path] if outcomes[path].hides_outputs]
    return awaited if awaited and is_sound_without_outputs(repository, opened) else []


def _list_all_claims(
    folders: Iterable[OpenFolder], scopes: Mapping[str, Mapping[str, str]]
) -> Iterator[FolderClaim]:
    """The objects of these folders. scopes: as in `RepositoryPlan`."""
    for item in folders:
        if item.workspace is not None:
            yield from list_folder_claims(item, scopes[item.folder.path])


def list_folder_claims(
    opened: OpenFolder, scopes: Mapping[str, str] = EMPTY
) -> Iterator[FolderClaim]:
    """The objects of an open folder. scopes: provider instance -> the id of its system."""
    space = opened.workspace
    assert space is not None, "only what is open has claims"
    location, state = space.backend.location, opened.state
    return list_claims(opened.folder, space.desired, space.providers, state, location, scopes)


def _ask_scopes(opened: OpenFolder) -> dict[str, str]:
    """Provider instance -> the id of the system that answers. One that does not answer is left out:
    its plan says why."""
    space, scopes = opened.workspace, dict[str, str]()
    if space is None:
        return scopes
    recorded = () if opened.state is None else opened.state.objects
    identities = (*(item.identity for item in space.desired.declared), *recorded)
    for instance in sorted({i.instance for i in identities} & space.desired.providers.keys()):
        try:
            with keep_secrets(space.known_secrets):
                scopes[instance] = open_instance(space, instance).facts.scope_id
        except Interrupted:
            raise
        except KafkaformError:
            continue
    return scopes


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
    opened: OpenFolder,
    records: Records | KafkaformError | None,
    options: Options,
    wishes: PlanWishes,
    progress: FolderListener,
) -> FolderOutcome:
    if opened.workspace is None:
        return FolderOutcome(opened.folder, error=opened.error)
    if isinstance(records, KafkaformError):
        return FolderOutcome(opened.folder, error=records)
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
            replace(opened.workspace, records=records, look_budget=wishes.look_budget),
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
    unfinished = records is not None and records.has_open_work
    return FolderOutcome(
        opened.folder,
        plan_made,
        error,
        applicable=applicable,
        unfinished=unfinished,
        verdicts=verdicts,
    )


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
