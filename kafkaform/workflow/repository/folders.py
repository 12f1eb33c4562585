"""Open the folders of a repository that a command is about. Each has its own configuration and
state; one that cannot be opened has the reason, and the others go on. So it is with states that are
read without a configuration.

Folders that need the same have one login and one look at each system, while they are planned. A
login is the same if provider instance, evaluated settings and secrets are. What was read is kept in
memory only, and only for plans: whoever sends something opens sessions of its own.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import chdir, nullcontext
from pathlib import Path
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from ...core.canonical import digest
from ...core.change import Batch, Change, Impact, Outcome, Step, Verdict
from ...core.errors import ConfigurationError, Interrupted, KafkaformError, UsageError
from ...core.parallel import map_parallel
from ...core.progress import Progress, Reporter, ignore_event
from ...core.resource import Depth, Facts, FolderObjects, Identity, ProviderConfig, Reading, Sweep
from ...core.secret import keep_secrets, watched
from ...core.value import FrozenMap
from ...core.words import Words
from ...provider.contract import Provider, Secrets, Session
from ...state.model import Backend, State
from ..configuration.evaluation import Inputs
from ..configuration.instances import Opener, open_session
from ..configuration.repository import FILES, Repository, RepositoryFolder
from ..configuration.repository_choice import FolderChoice, choose_folders
from ..configuration.repository_place import LoadOutputs
from ..configuration.untrusted import choose_trusted_state
from ..stores import STATE_VARIABLE, STORES_AT_ONCE, open_folder_store
from ..workspace import Workspace, open_read_workspace

BlockKey = tuple[str, str, FrozenMap, tuple[Path, ...]]
"""Provider, instance, settings, and the files in the folder that the settings name."""


class SharedLook:
    """One session, and what was read through it."""

    def __init__(self, session: Session, wanted: Collection[Identity]) -> None:
        """wanted: all objects that the folders of this login declare or record."""
        self.session = session
        self._wanted: dict[str, list[Identity]] = defaultdict(list)
        for identity in sorted(wanted):
            self._wanted[identity.kind].append(identity)
        self._sweeps: dict[tuple[str, Depth], Sweep] = {}
        self._readings: dict[Identity, Reading] = {}
        """In full, from listings and by name."""
        self._listed: set[Identity] = set()
        """What listings showed in full."""
        self._names: dict[Identity, Reading] = {}
        """What is known without attributes."""
        self._answers: dict[tuple[str, str], FrozenMap] = {}
        self._nodes: Sequence[str] | None = None
        self._unproven = False

    def live_nodes(self) -> Sequence[str]:
        if self._nodes is None:
            self._nodes = self.session.live_nodes()
        return self._nodes

    def sweep(self, kind: str, depth: Depth) -> Sweep:
        """The listing, in which all wanted objects of the kind are read in full if that saves
        requests."""
        if (kind, depth) not in self._sweeps:
            self._unproven = True
            # A deeper listing shows all objects in full anyway.
            wanted = self._wanted[kind] if depth is Depth.NAMES else ()
            sweep = self.session.sweep(kind, depth, full=wanted)
            self._sweeps[kind, depth] = sweep
            for item in sweep.items:
                if sweep.whole or item.identity in sweep.full:
                    self._listed.add(item.identity)
                    self._readings.setdefault(item.identity, item)
                else:
                    self._names.setdefault(item.identity, item)
        return self._sweeps[kind, depth]

    def is_listed(self, identity: Identity) -> bool:
        """Whether a listing showed the object in full."""
        return identity in self._listed

    def read(self, ids: Sequence[Identity]) -> Mapping[Identity, Reading]:
        """The first reading of each object. What other folders want of the kinds that were listed
        is read with it."""
        missing = [i for i in ids if i not in self._readings]
        if missing:
            kinds = {kind for kind, _ in self._sweeps} | {i.kind for i in missing}
            ahead = (i for kind in kinds for i in self._wanted[kind] if i not in self._readings)
            self.read_again(sorted({*missing, *ahead}))
        return {i: self._readings[i] for i in ids}

    def read_again(self, ids: Sequence[Identity]) -> Mapping[Identity, Reading]:
        """A new reading of each object."""
        self._unproven = True
        readings = self.session.read(ids)
        self._readings.update(readings)
        return readings

    def read_names(self, ids: Sequence[Identity]) -> Mapping[Identity, Reading]:
        """Readings that can lack attributes."""
        missing = [i for i in ids if i not in self._readings and i not in self._names]
        if missing:
            self._unproven = True
            self._names.update(self.session.read(missing, depth=Depth.NAMES))
        return {i: self._readings.get(i) or self._names[i] for i in ids}

    def read_at(self, ids: Sequence[Identity], node: str) -> Mapping[Identity, Reading]:
        self._unproven = True
        return self.session.read(ids, at=node)

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        question = (data, digest(arguments))
        if question not in self._answers:
            self._answers[question] = self.session.query(data, arguments)
        return self._answers[question]

    @property
    def context(self) -> object:
        """What the provider asks its system with, past everything that was read for all."""
        self._unproven = True
        return getattr(self.session, "context", None)

    def prove(self) -> None:
        if self._unproven:
            self.session.prove()
            self._unproven = False


class FolderSession:
    """What one folder sees of a shared login: a `Session` that sends nothing and never closes."""

    def __init__(self, look: SharedLook, end: Callable[[], None] = lambda: None) -> None:
        """end: called when a session is closed whose readings were proven."""
        self._look, self._end = look, end
        self._read: set[Identity] = set()
        """What the folder has read by name."""
        self._listed: set[str] = set()
        """The kinds that it has listed."""
        self._proven = False

    @property
    def facts(self) -> Facts:
        return self._look.session.facts

    @property
    def words(self) -> Words:
        return self._look.session.words

    @property
    def context(self) -> object:
        """What the provider asks its system with, beyond the contract; None for one without."""
        return self._look.context

    def live_nodes(self) -> Sequence[str]:
        return self._look.live_nodes()

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        sweep = self._look.sweep(kind, depth)
        self._listed.add(kind)
        return sweep

    def read(
        self, ids: Sequence[Identity], *, at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        if at is not None:
            return self._look.read_at(ids, at)
        if depth is Depth.NAMES:
            return self._look.read_names(ids)
        # Before anything is proven, whoever reads an object again doubts the first reading.
        if not self._proven and any(map(self._has_read, ids)):
            return self._look.read_again(ids)
        self._read.update(ids)
        return self._look.read(ids)

    def _has_read(self, identity: Identity) -> bool:
        listed = identity.kind in self._listed and self._look.is_listed(identity)
        return listed or identity in self._read

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        return self._look.query(data, arguments)

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        return self._look.session.assess(changes)

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        return self._look.session.examine(steps)

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        return self._look.session.preflight(batch)

    def apply(self, batch: Batch, secrets: Secrets) -> NoReturn:
        raise AssertionError("a session for plans sends nothing")

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> NoReturn:
        raise AssertionError("a session for plans sends nothing")

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        return self._look.session.progress(tickets, owed)

    def prove(self) -> None:
        self._look.prove()
        self._proven = True

    def close(self) -> None:
        if self._proven:
            self._end()


class SharedSystems:
    """The logins of the folders of a repository."""

    # A plain class: the repr of a Struct would show the settings.
    def __init__(self) -> None:
        self._wanted: dict[BlockKey, set[Identity]] = defaultdict(set)
        self._logins: dict[BlockKey, list[tuple[Secrets, SharedLook | KafkaformError]]] = (
            defaultdict(list)
        )
        self._collected: dict[frozenset[BlockKey], FolderObjects] = {}
        self._planned: set[tuple[Path, str]] = set()
        """Folder and instance that were planned once."""
        self._sessions: list[Session] = []

    def want(self, folder: Path, block: ProviderConfig, ids: Collection[Identity]) -> None:
        """Note objects that a folder reads through this provider block, before it does."""
        self._wanted[_make_key(folder, block)].update(ids)
        # What was collected before lacks these objects.
        self._collected.clear()

    def collect_wanted(self, folder: Path, blocks: Collection[ProviderConfig]) -> FolderObjects:
        """What all folders read through the same provider blocks, once everything is noted."""
        keys = frozenset(_make_key(folder, block) for block in blocks)
        if keys not in self._collected:
            wanted = frozenset[Identity]().union(*(self._wanted[key] for key in keys))
            self._collected[keys] = FolderObjects(wanted)
        return self._collected[keys]

    def make_opener(self, folder: Path) -> Opener:
        """What opens the sessions of a folder. A login that failed fails for each folder in the
        same way, and is not tried again."""

        def open_shared(provider: Provider, block: ProviderConfig, secrets: Secrets) -> Session:
            # Only then is a plan made once more: what was read is older than what it waits for.
            if (folder, block.instance) in self._planned:
                return self._open(folder, provider, block, secrets)
            look = self._find_login(folder, provider, block, secrets)
            return FolderSession(look, lambda: self._planned.add((folder, block.instance)))

        return open_shared

    def _find_login(
        self, folder: Path, provider: Provider, block: ProviderConfig, secrets: Secrets
    ) -> SharedLook:
        key = _make_key(folder, block)
        # Equal blocks can have different secrets, and then they have different rights.
        login = next((item for known, item in self._logins[key] if known == secrets), None)
        if login is None:
            try:
                session = self._open(folder, provider, block, secrets)
                login = SharedLook(session, self._wanted[key])
                self._sessions.append(session)
            except KafkaformError as error:
                login = error
            self._logins[key].append((secrets, login))
        if isinstance(login, KafkaformError):
            raise login.with_traceback(None)
        return login

    def _open(
        self, folder: Path, provider: Provider, block: ProviderConfig, secrets: Secrets
    ) -> Session:
        # Providers read files from the current folder, which is that of the configuration.
        files = any(_list_files(folder, block.config))
        with chdir(folder) if files else nullcontext():
            return provider.open(block.instance, block.config, secrets)

    def close(self) -> None:
        """End all logins, and forget what was read. Opening a session connects again."""
        while self._sessions:
            self._sessions.pop().close()
        self._logins.clear()
        self._planned.clear()


def _make_key(folder: Path, block: ProviderConfig) -> BlockKey:
    # Two folders can mean different files by one relative path, such as that of a certificate.
    return block.name, block.instance, block.config, tuple(_list_files(folder, block.config))


def _list_files(folder: Path, config: FrozenMap) -> Iterator[Path]:
    """The files that the settings name by a path that is seen from the folder."""
    for value in config.values():
        if isinstance(value, str) and value and not Path(value).is_absolute():
            try:
                file = (folder / value).resolve()
                if file.is_file():
                    yield file
            except (OSError, ValueError):  # too long for a path, or with a zero byte
                continue


def refuse_state_variable(environment: Mapping[str, str]) -> None:
    """Raises UsageError if the environment names a state, which would be that of every folder."""
    if environment.get(STATE_VARIABLE):
        raise UsageError(
            f"{STATE_VARIABLE} names one state, and each folder of a repository has its own",
            f"Unset it. The folders blocks of {FILES[0]} say where the states are.",
        )


class LoadedStates:
    """The states of folders, each of which is loaded once, also by those that read its outputs."""

    # A plain class: it fills while folders are opened.
    def __init__(self) -> None:
        self._states: dict[Path, State | None | KafkaformError] = {}

    def load(self, folder: Path, open_backend: Callable[[], Backend]) -> State | None:
        """The state of a folder. Raises StorageError, the same one each time."""
        if folder not in self._states:
            try:
                self._states[folder] = open_backend().load().state
            except Interrupted:
                raise
            except KafkaformError as error:
                self._states[folder] = error
        state = self._states[folder]
        if isinstance(state, KafkaformError):
            raise state.with_traceback(None)
        return state

    def load_outputs(self, folder: Path, named: str | None) -> FrozenMap | None:
        """As `stores.load_outputs`. named: the same for a folder each time."""
        state = self.load(folder, lambda: open_folder_store(folder, named, None).backend)
        return None if state is None else state.outputs

    def forget(self) -> None:
        """Load them again from now on."""
        self._states.clear()


class OpenFolder(Struct, frozen=True):
    """A folder of the repository, opened, or the reason why it cannot be."""

    folder: RepositoryFolder
    workspace: Workspace | None = None
    """None if it cannot be opened."""
    state: State | None = None
    """What its state recorded then; None if there is none."""
    error: KafkaformError | None = None
    """Why it cannot be opened."""


class OpenRepository(Struct, frozen=True):
    """The chosen folders of a repository, in the order of their paths."""

    choice: FolderChoice
    folders: tuple[OpenFolder, ...]
    systems: SharedSystems
    """What the folders connect through."""
    states: LoadedStates
    """What was loaded for them."""
    inputs: Inputs = Inputs()
    """What all of them are evaluated with."""
    policies: Sequence[Path | str] = ()
    """The folders of policies that judge all of them."""

    @property
    def repository(self) -> Repository:
        """What the repository file says."""
        return self.choice.repository

    def close(self) -> None:
        """End the shared connections, and forget what was read; a plan connects and reads again."""
        self.systems.close()
        self.states.forget()


def open_repository(
    path: Path | str = ".",
    *,
    all: bool = True,
    folders: Sequence[str] = (),
    changed_since: str | None = None,
    variables: Mapping[str, object] | Sequence[str | Path] = (),
    variable_files: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    untrusted: bool = False,
    policies: Sequence[Path | str] = (),
    reviewed: Collection[str] = (),
    progress: Reporter = ignore_event,
) -> OpenRepository:
    """Open folders of the repository that `path` is in. Only data sources connect to a system.

    folders: globs of paths, instead of all folders. changed_since: a branch or commit of git; only
    those of the folders that changed since the checkout left it. reviewed: paths that
    `changed_since` does not leave out, because their plans were approved with the others. The
    others are as in `open_workspace`, and the same for every folder. progress: called with events
    while the folders are opened.

    A folder that cannot be opened has its error. Raises UsageError, and ConfigurationError with
    all faults of the repository file.
    """
    environment = os.environ if environment is None else environment
    refuse_state_variable(environment)
    # One set of secrets for all: what one folder reads must not be shown by another one either.
    with keep_secrets(watched()):
        inputs = Inputs.read(
            variables, variable_files, untrusted=untrusted, environment=environment
        )
        outside = environment if untrusted else None
        choice = choose_folders(
            Path(path), all and not folders, folders, changed_since, outside, reviewed
        )
        top, systems, states = choice.repository.path, SharedSystems(), LoadedStates()

        def open_one(folder: RepositoryFolder) -> OpenFolder:
            path = top / folder.path
            opener = systems.make_opener(path)
            return _open_folder(path, folder, inputs, policies, opener, states.load_outputs)

        opened = _open_each(choice.folders, open_one, progress)
        # Before any system is asked: what a state has must not be newer than what is read there.
        opened = map_parallel(lambda item: _add_state(item, states), opened, STORES_AT_ONCE)
        for item in opened:
            _note_wanted(item, systems)
        opened = tuple(_add_elsewhere(item, systems) for item in opened)
        return OpenRepository(choice, opened, systems, states, inputs, policies)


def open_again(
    repository: OpenRepository,
    folder: RepositoryFolder,
    outputs: Mapping[Path, FrozenMap] | None = None,
    *,
    sends: bool = False,
) -> OpenFolder:
    """Evaluate a folder again, with new outputs of the folders that it reads.

    outputs: folder -> what counts instead of what its state records, in the same form; sends: with
    sessions of its own, and not for a plan only.
    """
    path, systems = repository.repository.path / folder.path, repository.systems
    opener = open_session if sends else systems.make_opener(path)
    # Since the plans were made, the run itself has saved states.
    states = LoadedStates() if sends else repository.states

    def load(target: Path, state: str | None) -> FrozenMap | None:
        planned = (outputs or {}).get(target)
        return states.load_outputs(target, state) if planned is None else planned

    opened = _open_folder(path, folder, repository.inputs, repository.policies, opener, load)
    opened = _add_state(opened, states)
    _note_wanted(opened, systems)
    return _add_elsewhere(opened, systems)


def _open_each(
    folders: Sequence[RepositoryFolder],
    open_one: Callable[[RepositoryFolder], OpenFolder],
    progress: Reporter,
) -> tuple[OpenFolder, ...]:
    """Open the folders one after the other, and say how far that is."""
    opened: list[OpenFolder] = []
    task, label, total = "open folders", "Opening folders", len(folders)
    for folder in folders:
        progress(Progress(task, label, len(opened), total, "folders"))
        opened.append(open_one(folder))
    progress(Progress(task, label, total, total, "folders", finished=True))
    return tuple(opened)


def _note_wanted(opened: OpenFolder, systems: SharedSystems) -> None:
    """Tell the shared logins which objects the folder declares or records."""
    space, wanted = opened.workspace, defaultdict[str, set[Identity]](set)
    if space is None:
        return
    recorded = opened.state.objects if opened.state is not None else ()
    for identity in (*(item.identity for item in space.desired.declared), *recorded):
        wanted[identity.instance].add(identity)
    for instance, ids in wanted.items():
        block = space.desired.providers.get(instance)
        if block is not None:
            systems.want(space.configuration.folder, block, ids)


def _add_elsewhere(opened: OpenFolder, systems: SharedSystems) -> OpenFolder:
    """The folder, which knows what the others declare or record in its systems."""
    space = opened.workspace
    if space is None:
        return opened
    blocks, folder = space.desired.providers.values(), space.configuration.folder
    desired = replace(space.desired, elsewhere=systems.collect_wanted(folder, blocks))
    return replace(opened, workspace=replace(space, desired=desired))


def _open_folder(
    path: Path,
    folder: RepositoryFolder,
    inputs: Inputs,
    policies: Sequence[Path | str],
    opener: Opener,
    load: LoadOutputs,
) -> OpenFolder:
    """Evaluate the folder, and do not load its state yet."""
    try:
        if folder.faults:
            raise ConfigurationError(f"{folder.path} cannot be used", diagnostics=folder.faults)
        state = choose_trusted_state(path, folder) if inputs.untrusted else None
        workspace = open_read_workspace(
            path, inputs, state, policies, repository_folder=folder, opener=opener, load=load
        )
        return OpenFolder(folder, workspace)
    except Interrupted:
        raise
    except KafkaformError as error:
        return OpenFolder(folder, error=error)


def _add_state(opened: OpenFolder, states: LoadedStates) -> OpenFolder:
    space = opened.workspace
    if space is None:
        return opened
    try:
        state = states.load(space.configuration.folder, lambda: space.backend)
        return replace(opened, state=state)
    except Interrupted:
        raise
    except KafkaformError as error:
        return OpenFolder(opened.folder, error=error)
