"""Open a configuration folder: files, variables, providers, state and log.

The disk, the environment and the clock are read here and nowhere below.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from ..apply.ledger import Binding, complete_index, find_bindings
from ..apply.recovery import read_rows
from ..apply.secrets import resolve_instance_secrets
from ..audit.checkpoint import (
    check_checkpoints,
    make_checkpointer,
    read_index,
    refuse_bad_checkpoints,
)
from ..audit.index import LogIndex, list_instances
from ..audit.journal import Journal
from ..audit.records import RecordKind, read_glances
from ..audit.sink import Sink, find_start, make_overtaken_error
from ..core.clock import Clock, SystemClock
from ..core.diagnostics import has_errors
from ..core.errors import ConfigurationError, ConnectError, OtherSystem, StorageError, UsageError
from ..core.head import GENESIS, Head
from ..core.resource import Desired, Fault, FaultClass, Identity, Parking, World
from ..core.secret import KnownSecrets, PartialRepr, keep_secrets, watched
from ..core.storage import read_named_file
from ..core.value import FrozenMap, find_references
from ..core.words import Vocabulary
from ..plan.build import select_instances
from ..plan.codec import read_instances
from ..plan.model import Mode, Options, Plan
from ..plan.observe import Configured, Look, LookBudget
from ..plan.parking import park_released
from ..provider.contract import Provider, ResourceType, Session, collect_types
from ..render.text import render_count
from ..state.codec import ADVICE
from ..state.model import Backend, Lease, LockInfo, Row, State
from .configuration.evaluation import Configuration, Inputs, read_configuration
from .configuration.instances import Opener, open_session
from .configuration.policies import NO_POLICIES, Policies, choose_policies
from .configuration.repository_place import LoadOutputs
from .stores import STATE_VARIABLE, find_anchor, load_outputs, open_folder_store

if TYPE_CHECKING:
    from .configuration.repository import RepositoryFolder

_ACTORS = ("GITHUB_ACTOR", "GITLAB_USER_LOGIN", "KAFKAFORM_ACTOR")
_PULL_REQUESTS = ("KAFKAFORM_PULL_REQUEST", "CI_MERGE_REQUEST_IID")
HIDDEN_SETTINGS = re.compile(r"password|secret|key|token|passphrase", re.IGNORECASE)
_REFERENCE_BYTES = 4096
"""The longest reference of Git that is read."""
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Records(Struct, frozen=True):
    """What state and log of a folder have."""

    stored: State | None
    """None if no state was ever saved."""
    state: State
    """That one, or else an empty one."""
    index: LogIndex

    @property
    def has_open_work(self) -> bool:
        """An earlier run has left something that the next run closes."""
        index = self.index
        return bool(
            index.open_run
            or index.open_intents
            or index.unsaved
            or index.obligations
            or index.unseen
        )


class Workspace(PartialRepr, frozen=True):
    """An opened folder, with everything that plans and applies need to know of it."""

    _unshown = frozenset({"known_secrets"})

    configuration: Configuration
    desired: Desired
    """Everything that the configuration declares."""
    providers: Mapping[str, Provider]
    """Provider instance -> its provider."""
    backend: Backend
    """Where the state is stored."""
    sink: Sink
    """Where the audit log is stored."""
    clock: Clock
    actor: str = field(default_factory=lambda: find_actor())
    """Who runs this, for the lock and the log."""
    known_secrets: KnownSecrets = field(default_factory=watched)
    """The secrets that were read so far."""
    policies: Policies = NO_POLICIES
    """What judges its plans."""
    pull_request: str | None = None
    """The pull request that the configuration came with, for the log, if the pipeline says so."""
    opener: Opener = open_session
    """Opens the sessions of its provider instances."""
    records: Records | None = None
    """State and log, if they were read for the next plan already."""
    look_budget: LookBudget | None = None
    """What its plans share with those of other folders; None for as much as a run has."""

    @property
    def types(self) -> dict[str, ResourceType]:
        """All resource types of these providers, also those that only commands change."""
        return collect_types(self.providers.values())

    @property
    def words(self) -> Vocabulary:
        """What the users of these providers call their things."""
        return {instance: provider.words for instance, provider in self.providers.items()}


def require_workspace(workspace: object) -> None:
    """Raises TypeError for anything else, such as a folder's path, which programs try first."""
    if not isinstance(workspace, Workspace):
        raise TypeError(
            f"a Workspace is needed, not {type(workspace).__name__}: open the folder first, with "
            f"workspace = kafkaform.open_workspace({str(workspace)!r})"
        )


def open_workspace(
    folder: Path | str = ".",
    *,
    variables: Mapping[str, object] | Sequence[str | Path] = (),
    variable_files: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    state: str | None = None,
    untrusted: bool = False,
    policies: Sequence[Path | str] = (),
) -> Workspace:
    """Read and evaluate the configuration of a folder. Only data sources connect to a system.

    variables: input variables by name, as strings, numbers, bools, lists and maps of these; or as
    on a command line, strings NAME=VALUE and files, the weakest first. variable_files: files of
    variables, weaker than `variables`. environment: where variables (KF_VAR_...), connections and
    secrets come from; by default that of the process. state: where state and log are stored,
    instead of what environment or configuration say. untrusted: anybody can have written the
    folder, so it can be planned but not applied. policies: folders with policies from outside the
    configuration, by default those that the environment names (KAFKAFORM_POLICY).

    Raises ConfigurationError with every fault that was found, and UsageError.
    """
    environment = os.environ if environment is None else environment
    typed_state = state or environment.get(STATE_VARIABLE)
    if untrusted and not typed_state:
        raise UsageError(
            "--untrusted needs --state, because a state that the configuration names, or that is "
            "beside it, can be forged",
            "Name the state that the last apply wrote, outside of the checkout, with --state or "
            f"{STATE_VARIABLE}.",
        )
    with keep_secrets(watched()):
        inputs = Inputs.read(
            variables, variable_files, untrusted=untrusted, environment=environment
        )
        return open_read_workspace(Path(folder), inputs, typed_state, policies)


def open_read_workspace(
    folder: Path,
    inputs: Inputs,
    state: str | None = None,
    policies: Sequence[Path | str] = (),
    *,
    repository_folder: RepositoryFolder | None = None,
    opener: Opener = open_session,
    load: LoadOutputs = load_outputs,
) -> Workspace:
    """Open a workspace as `open_workspace` does, with inputs that were read already.

    repository_folder: the settings of the folder in the repository file, if they have been read;
    opener: opens the sessions of its provider instances; load: reads the outputs of other folders.
    """
    secrets = watched()
    with keep_secrets(secrets):
        configuration = read_configuration(
            folder, inputs, repository_folder=repository_folder, load_outputs=load, opener=opener
        )
        repository_folder = configuration.repository_folder
        store = open_folder_store(
            configuration.folder, state, configuration.tree, repository_folder
        )
        try:
            built = configuration.evaluate(leaves_out=True)
        finally:
            configuration.asking.close()
        desired = built.desired
        if has_errors(desired.diagnostics):
            faults = desired.diagnostics
            raise ConfigurationError("the configuration has faults", diagnostics=faults)
        judging = choose_policies(configuration, built, policies)
    registry = configuration.registry
    providers = {i: registry.load(p.name) for i, p in desired.providers.items()}
    if not desired.settles:
        configuration = configuration.keep_variables()
    clock, actor = SystemClock(), find_actor(inputs.environment)
    backend, sink = store.backend, store.sink
    return Workspace(
        *(configuration, desired, providers, backend, sink, clock, actor, secrets, judging),
        find_pull_request(inputs.environment),
        opener,
    )


class Reached(Struct, frozen=True):
    """The systems that a command works with, and those that it does not reach."""

    sessions: Mapping[str, Session]
    """Provider instance -> its open session."""
    unread: Mapping[str, Fault] = field(default_factory=dict)
    """Provider instances that did not answer, or refused the login -> why."""
    unasked: frozenset[str] = frozenset()
    """Provider instances that nothing selected needs."""
    bindings: Mapping[str, Binding] = field(default_factory=dict)
    """Provider instances whose systems state and log know by half of their ids."""

    def look_further(self, space: Workspace, world: World) -> Look:
        """What a plan asks while it is made, after it has read this world."""
        configured = Configured(space.providers, partial(open_instance, space))
        elsewhere = space.desired.elsewhere
        budget = space.look_budget or LookBudget()
        return Look(self.sessions, world, configured, self.unread, self.unasked, elsewhere, budget)


@contextmanager
def open_sessions(
    space: Workspace,
    state: State,
    index: LogIndex,
    needed: Collection[str] | None = None,
    further: Collection[str] = (),
) -> Iterator[Reached]:
    """Open a session for every provider instance that is declared, recorded, or open in the log.

    needed: only these of them, and those of them that nothing declares or records, too; further:
    these as well. An instance that cannot be reached is left out with its reason. Raises
    ConnectError if none can be reached, and ConfigurationError, OtherSystem, StorageError.
    """
    if state.objects:
        _refuse_impossible_rows(space, space.backend.location, state.objects)
    # Edits that the log has and the state lacks are taken over next, so they are checked as well.
    for record in index.unsaved:
        if record.kind == RecordKind.STATE:
            position = f"{space.sink.location}: record {record.seq} ({record.kind})"
            _refuse_impossible_rows(space, position, read_rows(record))
    used = _list_used(space, state, index)
    chosen = frozenset(used if needed is None else needed) | frozenset(further)
    instances = chosen & space.desired.providers.keys()
    sessions: dict[str, Session] = {}
    errors: dict[str, ConnectError] = {}
    with ExitStack() as stack:
        # Sorted, so that the same fault is reported first in every run.
        for instance in sorted(instances):
            try:
                sessions[instance] = open_instance(space, instance)
            except ConnectError as error:
                errors[instance] = error
            else:
                stack.callback(sessions[instance].close)
        if errors and not sessions:
            raise next(iter(errors.values()))
        bindings = find_bindings(state, index, sessions)
        refuse_other_scope(complete_index(index, bindings), sessions)
        unread = {
            name: Fault("UNREACHABLE", error.message, FaultClass.NOT_APPLIED, advice=error.advice)
            for name, error in errors.items()
        }
        yield Reached(sessions, unread, used - instances, bindings)


def _list_used(space: Workspace, state: State, index: LogIndex) -> frozenset[str]:
    """The configured provider instances that are declared, recorded, or open in the log."""
    used = {d.identity.instance for d in space.desired.declared}
    used |= {identity.instance for identity in state.objects}
    intents = (*index.open_intents, *index.unsaved, *index.obligations)
    used |= {instance for record in intents for instance in list_instances(record)}
    used |= {item.deleted.instance for item in index.unseen if item.deleted is not None}
    if index.open_run and index.open_run.plan:
        used |= read_instances(index.open_run.plan, index.open_run.run)
    return frozenset(used & space.desired.providers.keys())


def open_selected(
    space: Workspace, state: State, index: LogIndex, options: Options
) -> AbstractContextManager[Reached]:
    """Open the sessions that a plan with these options needs. Raises as `open_sessions` does, and
    UsageError."""
    return open_sessions(space, state, index, choose_needed(space, state, options))


def choose_needed(
    space: Workspace, state: State, options: Options, plan: Plan | None = None
) -> Collection[str] | None:
    """The provider instances that a plan with these options needs, or those that a saved plan was
    made with; None for all that are used. Raises UsageError for a selection that names nothing."""
    if plan is not None:
        return plan.instances.keys()
    if not options.target and not options.exclude:
        return None
    providers = find_providers(space, (identity.instance for identity in state.objects))
    return select_instances(space.desired, state, providers, options)


def find_providers(space: Workspace, instances: Iterable[str]) -> Mapping[str, Provider]:
    """The configured provider instances, and those of these instances whose block is gone and whose
    provider is still installed."""
    providers = dict(space.providers)
    for instance in sorted({*instances} - providers.keys()):
        # The objects of a provider that is not installed any more are handled without their types.
        with suppress(ConfigurationError):
            providers[instance] = space.configuration.registry.load(instance.partition(".")[0])
    return providers


def find_parked_objects(
    space: Workspace,
    sessions: Mapping[str, Session],
    state: State,
    index: LogIndex,
    now: float,
    mode: Mode,
) -> dict[Identity, Parking]:
    """The objects that are parked before they are deleted. now: seconds since the epoch."""
    facts = {instance: session.facts for instance, session in sessions.items()}

    def find_time(identity: Identity) -> str | None:
        writes = index.writes.get(identity)
        return writes.last.time if writes is not None and writes.last is not None else None

    return park_released(space.desired, state, space.types, facts, find_time, now, mode)


def refuse_other_scope(index: LogIndex, sessions: Mapping[str, Session]) -> None:
    """Raises OtherSystem if another system answers than the one that the log names."""
    # The log survives a state that was lost or moved, so it is the better witness.
    for instance, session in sessions.items():
        scope = session.facts.scope_id
        recorded_scope = index.scopes.get(instance, scope)
        if recorded_scope != scope:
            words = session.words
            raise OtherSystem(
                f'"{instance}" is {words.system} {scope}, but all that was applied from here went '
                f"to {words.system} {recorded_scope}",
                f"{words.check_address[:-1]} and the folder. A new {words.system} needs a state "
                "and a log of its own: another folder, or another --state."
                f"{words.advise_move(instance, recorded_scope)}",
            )


def open_instance(space: Workspace, instance: str) -> Session:
    """Open a session of this provider instance. Raises ConnectError; ConfigurationError if another
    instance of the configuration reaches the same system."""
    block = space.desired.providers[instance]
    secrets = resolve_instance_secrets(block, space.configuration.find_secrets)
    session = space.opener(space.providers[instance], block, secrets)
    return space.configuration.asking.systems.enter(block, session)


def _refuse_impossible_rows(
    space: Workspace, source: str, rows: Mapping[Identity, Row | None]
) -> None:
    """Raises StorageError for a row whose identity no object of its kind can have.

    where: the file that contains these rows.
    """
    # A damaged or forged row: reading it would fail or find nothing, and "nothing" would look like
    # a deleted object.
    types = space.types
    for identity, row in rows.items():
        kind = types.get(identity.kind)
        wrong = _find_wrong_member(kind, row) if kind is not None and row is not None else ""
        if wrong:
            raise StorageError(
                f"{source} cannot be used: `{wrong}` of object {identity} is impossible "
                f"for a {identity.kind}",
                ADVICE,
            )


def _find_wrong_member(kind: ResourceType, row: Row) -> str:
    """The path of the member that no object of this kind can have, "" if there is none."""
    if not _is_key(kind, row.identity.key):
        return "identity"
    for name, attribute in kind.schema.attributes.items():
        value = row.attributes.get(name)
        if attribute.type.kind == "map" and not isinstance(value, FrozenMap | None):
            return f"attributes.{name}"
    return ""


def _is_key(kind: ResourceType, key: str) -> bool:
    try:
        return kind.import_key(key) == key
    except ValueError:
        return False


def list_display_settings(space: Workspace) -> FrozenMap:
    """The connection settings of each instance for people, without secret and unset ones."""
    return FrozenMap(
        {
            instance: FrozenMap(
                {
                    name: value
                    for name, value in provider.config.items()
                    if value is not None
                    and not any(find_references(value))
                    and not HIDDEN_SETTINGS.search(name)
                }
            )
            for instance, provider in space.desired.providers.items()
        }
    )


def read_log(sink: Sink, state: State | None, *, whole: bool = False) -> LogIndex:
    """The index of the log, which is read and checked from its last checkpoint on.

    whole: check every record that is not archived, and that the checkpoints say the same. Raises
    StorageError if a record or such a checkpoint was altered, or if the log lacks the record that
    the state is anchored at.
    """
    sink.pass_over_torn()
    head = find_anchor(sink, state)
    try:
        if not whole:
            return read_index(sink, head)
        # What is in an archive cannot be read here; `audit verify --archive` checks it.
        start = find_start(sink.sealed, head)
        refuse_bad_checkpoints(check_checkpoints(sink, head, start=start))
        return read_index(sink, head, whole=start == GENESIS)
    except StorageError:
        _refuse_missing(sink, head)
        raise


def read_records(stored: State | None, sink: Sink, *, whole: bool = False) -> Records:
    """What the log says beside a state that was loaded. whole, and what it raises: as in
    `read_log`."""
    state = stored or make_first_state(sink)
    return Records(stored, state, read_log(sink, stored, whole=whole))


def _refuse_missing(sink: Sink, head: Head | None) -> None:
    """Raises StorageError for a log that is missing, although the state follows from a record of
    it."""
    # It must not pass for an empty one: open intents would be forgotten.
    if head is not None and sink.last() is None:
        raise StorageError(
            f"{sink.location} is gone, but the state follows from record {head.seq} of it",
            "Restore it from a backup, because nothing else shows what earlier runs left open. If "
            "it is lost, move the state away as well, and adopt the objects with `kafkaform apply "
            "--adopt '*'`, which does not change them.",
        )


def open_journal(
    sink: Sink,
    clock: Clock,
    run: str,
    state: State,
    index: LogIndex,
    lease: Lease,
    actor: str | None = None,
) -> Journal:
    """Open the log to append to it. Raises Locked if it has grown since it was read, StorageError.

    index: what was read of it, which becomes a checkpoint if much was read; actor: who runs this,
    found out if not given.
    """
    actor = find_actor() if actor is None else actor
    checkpointer = make_checkpointer(sink, index, state.lineage)
    journal = Journal(sink, clock, run, actor, state.lineage, lease.ensure, checkpointer)
    refuse_moved_on(journal, index)
    return journal


def has_grown(sink: Sink, index: LogIndex) -> bool:
    """Whether the log has records that were not there when it was read."""
    sink.pass_over_torn()
    return next(sink.lines(index.head.seq), None) is not None


def refuse_moved_on(journal: Journal, index: LogIndex) -> None:
    """Raises Locked if the log has grown since it was read, which only another run can do."""
    if journal.head != index.head:
        raise make_overtaken_error(journal.sink.location)


def refuse_lost_state(state: State | None, index: LogIndex, space: Workspace) -> None:
    """Raises StorageError for a lost state that cannot be restored from the log."""
    # Records of edits by early versions do not contain the rows that they left behind.
    if state is None and index.vague:
        raise StorageError(
            f"there is no state, and {space.sink.location} contains "
            f"{render_count(index.vague, 'edit')} of it (`state rm`, `state mv`, ...) by an "
            "earlier version, which cannot be repeated without it",
            f"Restore the state from a backup, or the newest one of {space.backend.earlier}; apply "
            "takes everything after it from the log. If there is none, move the log away as well, "
            "and adopt the objects with `kafkaform apply --adopt '*'`.",
        )


def make_first_state(sink: Sink) -> State:
    """Make the state of a folder in which none was ever saved."""
    sink.pass_over_torn()
    # A run that ended before its first save has begun a lineage in the log. Otherwise it stays
    # empty, because only an apply begins one.
    first = next(read_glances(sink.lines(), sink.location), None)
    return State(str(first.body.get("lineage", "")) if first else "")


def make_run_id() -> str:
    """A new random id."""
    return uuid.uuid4().hex[:12]


def find_actor(environment: Mapping[str, str] | None = None) -> str:
    """The user who runs this, by the name that CI or the system has for them."""
    environment = os.environ if environment is None else environment
    for variable in _ACTORS:
        if environment.get(variable):
            return environment[variable]
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # containers often run as a user without a name
        return f"uid {os.getuid()}"


def find_pull_request(environment: Mapping[str, str] | None = None) -> str | None:
    """The number of the pull request or merge request, if the pipeline says it."""
    environment = os.environ if environment is None else environment
    return next((environment[name] for name in _PULL_REQUESTS if environment.get(name)), None)


def find_commit(folder: Path) -> str | None:
    """The git commit that is checked out around this folder, None if it cannot be found out."""
    # Read from git's files: running git would execute hooks and settings of a foreign folder.
    git = next((p / ".git" for p in (folder, *folder.parents) if (p / ".git").is_dir()), None)
    try:
        head = _read_reference(git / "HEAD") if git else ""
        if git and head.startswith("ref: "):
            head = _read_reference(git / head[5:])
    except OSError:
        return None
    return head if _COMMIT.fullmatch(head) else None


def _read_reference(path: Path) -> str:
    return read_named_file(path, _REFERENCE_BYTES).decode("utf-8", "replace").strip()


def make_lock_info(run: str, command: str, started: str, actor: str | None = None) -> LockInfo:
    """What a lock tells others about its owner."""
    actor = find_actor() if actor is None else actor
    return LockInfo(run, actor, socket.gethostname(), os.getpid(), started, command)
