"""The recorded world: the live objects that are ours, what we know about each, and edits of it; the
place that keeps it (its lock, its loads and its saves); and a place in memory for runs on simulated
systems.

Edits are pure functions: each takes a state and returns another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.address import Address, parse_address, rename_address
from ..core.change import Ownership
from ..core.clock import Clock
from ..core.diagnostics import suggest
from ..core.errors import Locked, UsageError
from ..core.head import Head
from ..core.resource import Identity
from ..core.value import EMPTY, FrozenMap

FORMAT, SEALED_FORMAT = 1, 2
"""The format of a state whose log has no segments, and of one whose log has some. A version that
knows no segments refuses the second, because it could not read that log."""

PROTECTIONS = ("no", "default", "explicit", "shared")
"""How well a row protects its object against deletion, weakest first. A shared object is not
blocked but forgotten. Versions that do not know the last one refuse the state."""


class _WithLine:
    """Slots that are not fields, so that they are not compared, copied or stored."""

    __slots__ = ("_line", "_sound")
    _line: str
    """The row in the file. An apply saves the state after each batch, and most rows stay."""
    _sound: bool
    """The row was read from a file, and so it breaks no rule."""


class Row(_WithLine, Struct, frozen=True):
    """One object, recorded once however many blocks own it."""

    identity: Identity
    """Which object."""
    owners: tuple[str, ...]
    """Addresses of the blocks that own it, as sorted text; at least one."""
    # The state can be edited by hand, the log cannot without breaking its chain. So a deletion
    # needs the record that this number names, not only the row (architecture §6).
    origin: int
    """Number of the audit record that created, adopted or imported the object."""
    attributes: FrozenMap
    """The attributes as they were applied; only what is set, and no secrets."""
    incarnation: str | None = None
    """The system's id of the object, None for kinds without one."""
    # Protection is kept here because a block that is deleted takes its own settings with it.
    protected: str = "no"
    """One of PROTECTIONS."""
    owner: str | None = None
    """The team that the block names; text for people."""
    labels: FrozenMap = EMPTY
    """The labels of the block."""
    depends_on: tuple[str, ...] = ()
    """Addresses that the block depends on, as text: the order of a later deletion."""
    secret_version: str | None = None
    """The version of the secret that was sent last."""
    # Without this, every plan would remove again what no removal changes.
    reported: FrozenMap = EMPTY
    """Path as text -> value, of what the system reports although nothing sets it: its removal was
    accepted and changed nothing, and the value would be in effect anyway."""
    park: int | None = None
    """For how many milliseconds the object is parked before it is deleted."""

    @property
    def ownership(self) -> Ownership:
        """The bookkeeping part of the row."""
        return Ownership(self.owners, self.protected, self.secret_version)


class State(Struct, frozen=True):
    """Everything that is recorded about one configuration."""

    lineage: str
    """The id of the state. It is made once and never changes; the log and plans carry it."""
    serial: int = 0
    """How often the state has changed."""
    objects: Mapping[Identity, Row] = field(default_factory=dict)
    """The recorded objects."""
    providers: FrozenMap = EMPTY
    """Provider instance -> the scope id of the system that it is bound to."""
    outputs: FrozenMap = EMPTY
    """Name of an output -> its `value`, `sensitive` and `deferred`."""
    audit_head: Head | None = None
    """The last audit record whose effects are in here."""
    kafkaform_version: str = ""
    """The version that wrote the state."""
    sealed: bool = False
    """The log has segments, so lines that are in them need not be anywhere else."""

    def find_owned(self, address: str) -> tuple[Row, ...]:
        """The rows that this address, one of its instances or one of its children owns.

        Raises ValueError if the text is not an address.
        """
        parsed = parse_address(address)
        return tuple(
            row
            for _, row in sorted(self.objects.items())
            if any(parsed.contains(parse_address(owner)) for owner in row.owners)
        )


class ListedObject(Struct, frozen=True, gc=False):
    """What an outline has of a row."""

    instance: str
    kind: str
    key: str = field(name="identity")
    """As in the identity of the object."""
    protected: str
    """As in the row."""


class StateOutline(Struct, frozen=True):
    """Which objects a state has. Whoever looks for a few objects in hundreds of states reads only
    this of most of them."""

    providers: Mapping[str, str]
    """Provider instance -> the scope id of its system."""
    objects: Sequence[ListedObject]
    decode: Callable[[], State]
    """The whole state. Raises StorageError for one that was never saved by kafkaform."""


__all__ = [
    "FORMAT",
    "PROTECTIONS",
    "SEALED_FORMAT",
    "Head",
    "ListedObject",
    "Row",
    "State",
    "StateOutline",
]


def outline_state(state: State) -> StateOutline:
    """The outline of a state that is decoded already."""
    objects = tuple(
        ListedObject(identity.instance, identity.kind, identity.key, row.protected)
        for identity, row in state.objects.items()
    )
    return StateOutline(state.providers, objects, lambda: state)


def put_row(state: State, row: Row) -> State:
    """The state with this row instead of the one that its object had."""
    return put_rows(state, (row,))


def drop_row(state: State, identity: Identity) -> State:
    """The state without this object."""
    return put_rows(state, (), (identity,))


def put_rows(state: State, rows: Iterable[Row] = (), drops: Iterable[Identity] = ()) -> State:
    """The state without `drops`, and then with `rows`."""
    objects = dict(state.objects)
    for identity in drops:
        objects.pop(identity, None)
    objects.update((row.identity, row) for row in rows)
    return replace(state, objects=objects)


def set_scope(state: State, instance: str, scope_id: str) -> State:
    """The state whose provider instance is bound to this system."""
    return replace(state, providers=state.providers.with_items({instance: scope_id}))


def drop_instance(state: State, instance: str) -> State:
    """The state without the objects of a provider instance and without the system behind it."""
    removed = [identity for identity in state.objects if identity.instance == instance]
    return replace(put_rows(state, (), removed), providers=state.providers.without([instance]))


def set_outputs(state: State, outputs: FrozenMap) -> State:
    """The state with these outputs: name -> {value, sensitive, deferred}."""
    return replace(state, outputs=outputs)


def set_head(state: State, head: Head) -> State:
    """The state anchored at this end of the audit log."""
    return replace(state, audit_head=head)


def count_change(before: State, after: State) -> State:
    """`after` as it is to be saved: with the next serial if what is recorded differs."""
    # Every run moves the anchor, and sealing the log changes nothing that is recorded.
    bookkeeping = {
        "audit_head": before.audit_head,
        "serial": before.serial,
        "sealed": before.sealed,
    }
    unchanged = replace(after, **bookkeeping) == before
    return replace(after, serial=before.serial if unchanged else before.serial + 1)


def drop_address(state: State, address: str) -> State:
    """The state in which the address, its instances and its children own nothing.

    An object without an owner leaves the state and stays live. Raises UsageError if the text is
    not an address, or the state has no object with it.
    """
    parsed = _parse_address(address)
    owners_by_identity = {
        row.identity: tuple(o for o in row.owners if not parsed.contains(parse_address(o)))
        for row in _find_owned(state, address)
    }
    return put_rows(
        state,
        (
            replace(state.objects[i], owners=owners)
            for i, owners in owners_by_identity.items()
            if owners
        ),
        (i for i, owners in owners_by_identity.items() if not owners),
    )


def move_address(state: State, source: str, target: str) -> State:
    """The state in which `target` owns what `source`, its instances and its children owned; rows
    that depend on them follow.

    Raises UsageError if the state has no object of source, or if target owns something already or
    has another type.
    """
    old, new = _parse_address(source), _parse_address(target)
    _find_owned(state, source)
    if old.type != new.type:
        raise UsageError(
            f"{source} cannot become {target}: the types differ",
            "An object keeps its type. To manage it as another type, remove and import it.",
        )
    conflicts = [
        o for row in state.objects.values() for o in row.owners if _is_in_the_way(new, o, old)
    ]
    if conflicts:
        raise UsageError(f"{conflicts[0]} is already in the state", "Move or remove that first.")

    def rename(text: str) -> str:
        return str(rename_address(parse_address(text), old, new) or text)

    return put_rows(state, _rename_owners(state.objects.values(), rename))


def _rename_owners(rows: Iterable[Row], rename: Callable[[str], str]) -> Iterable[Row]:
    """The rows that change."""
    for row in rows:
        owners = tuple(sorted({rename(owner) for owner in row.owners}))
        depends_on = tuple(rename(dependency) for dependency in row.depends_on)
        if set(owners) != set(row.owners) or depends_on != row.depends_on:
            yield replace(row, owners=owners, depends_on=depends_on)


def _is_in_the_way(target: Address, owner: str, source: Address) -> bool:
    """True if this owner is where the move would put something, and does not move itself."""
    address = parse_address(owner)
    return target.contains(address) and not source.contains(address)


def _find_owned(state: State, address: str) -> tuple[Row, ...]:
    rows = state.find_owned(address)
    if not rows:
        addresses = {owner for row in state.objects.values() for owner in row.owners}
        hint = suggest(address, addresses) or "`kafkaform state list` shows every address."
        raise UsageError(f"The state has no object with the address {address}", hint)
    return rows


def _parse_address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise UsageError(str(error), "`kafkaform state list` shows every address.") from None


class LockInfo(Struct, frozen=True):
    """The run that has a lock."""

    run: str
    """Its id."""
    who: str
    """Who runs it."""
    host: str
    """The computer on which it runs."""
    pid: int
    """Its process there."""
    started: str
    """When it began, RFC 3339, UTC."""
    command: str
    """The command as it was typed."""

    def __str__(self) -> str:
        return (
            f"{self.who} on {self.host} (`{self.command}`, run {self.run}, process {self.pid}, "
            f"since {self.started})"
        )


class Loaded(Struct, frozen=True):
    """A state as it was loaded."""

    state: State | None
    """The state, None if there is none yet."""
    version: str | None
    """Opaque: the version that a save must still find there."""


class Lease(Protocol):
    """The lock, while a run has it."""

    # The last request of a run that lost the lock may still take effect, so nothing is recovered
    # before that is over (architecture §4.7).
    @property
    def taken_over(self) -> float | None:
        """When the lease of a run that never gave it back had ended at the latest, in seconds on
        `Clock.monotonic`; None if the lock was free."""

    # Asked between intent and request. A process may sleep for any time between two lines of code,
    # so a lock that was ours a moment ago proves nothing (decisions/018).
    def ensure(self, seconds: float) -> None:
        """Raises Locked unless the lock is certain to stay ours for that long, whatever others do.
        After that nothing must be sent."""


class Held(Struct, frozen=True):
    """A lock that is ours until the kernel or the process itself frees it."""

    taken_over: float | None = None
    """Nobody had it before."""

    def ensure(self, seconds: float) -> None:
        """Nothing to do: it cannot end while this process runs."""


class Backend(Protocol):
    """The place of one state.

    An implementation must write atomically and durably, only over the version that was loaded, and
    must keep earlier versions. It must not write through links, or over a state that it cannot
    read.
    """

    @property
    def location(self) -> str:
        """The name of the state in messages."""

    @property
    def earlier(self) -> str:
        """The name of the place of earlier versions in messages."""

    def lock(self, info: LockInfo, timeout: float, clock: Clock) -> AbstractContextManager[Lease]:
        """Take the lock for the time of the context. timeout: seconds to wait for it. Raises Locked
        naming the run that has it."""

    def holder(self) -> LockInfo | None:
        """The run that has the lock now, None if nobody has it."""

    def break_lock(self, run: str) -> LockInfo:
        """End the lock of a run that died before it could give it back, and return whose it was.
        Raises Locked if that run does not have it, or if its process has to be ended instead."""

    def probe(self) -> None:
        """Prove that the place keeps the promises above. Raises StorageError."""

    def load(self) -> Loaded:
        """The current state. Raises StorageError if it cannot be read or trusted."""

    def outline(self) -> StateOutline | None:
        """Which objects the current state has, None if there is none yet. Raises as `load` does."""

    def save(self, state: State, version: str | None) -> str:
        """Write a state over `version`, and return the new version. Raises Locked if another
        version is there, StorageError if it cannot be written; the old one is intact then."""

    def check_writable(self, size: int = 0) -> None:
        """Raises StorageError if a save of `size` bytes could not succeed. Called before anything
        is sent."""

    def rescue(self, state: State) -> str:
        """Write the state elsewhere after a failed save, and return where. Raises StorageError."""


class MemoryBackend:
    """One state, which nobody else can reach."""

    location = "the state in memory"
    earlier = "the state in memory"

    def __init__(self) -> None:
        self._loaded = Loaded(None, None)
        self._saves = 0

    @contextmanager
    def lock(self, info: LockInfo, timeout: float, clock: Clock) -> Iterator[Lease]:
        yield Held()

    def holder(self) -> LockInfo | None:
        return None

    def break_lock(self, run: str) -> LockInfo:
        raise Locked(f"run {run} does not have a lock of {self.location}")

    def probe(self) -> None:
        """Memory keeps what is stored there."""

    def load(self) -> Loaded:
        return self._loaded

    def outline(self) -> StateOutline | None:
        state = self._loaded.state
        return None if state is None else outline_state(state)

    def save(self, state: State, version: str | None) -> str:
        if version != self._loaded.version:
            raise Locked(f"{self.location} has changed since it was loaded")
        self._saves += 1
        self._loaded = Loaded(state, str(self._saves))
        return str(self._saves)

    def check_writable(self, size: int = 0) -> None:
        """There is always room."""

    def rescue(self, state: State) -> str:
        return self.location
