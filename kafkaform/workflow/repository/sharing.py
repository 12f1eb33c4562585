"""One login and one look at each system for all folders that need the same, while they are planned.

A login is the same if provider instance, evaluated settings and secrets are. What was read is kept
in memory only, and only for plans: whoever sends something opens sessions of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import chdir, nullcontext
from pathlib import Path
from typing import NoReturn

from ...core.canonical import digest
from ...core.change import Batch, Change, Impact, Outcome, Step, Verdict
from ...core.errors import KafkaformError
from ...core.resource import Depth, Facts, FolderObjects, Identity, ProviderConfig, Reading, Sweep
from ...core.value import FrozenMap
from ...core.words import Words
from ...provider.contract import Provider, Secrets, Session
from ..configuration.instances import Opener

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
