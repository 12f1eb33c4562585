"""The three worlds that a plan compares: declared (HCL), observed (live) and pending (the log)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr

from .address import Address
from .diagnostics import Diagnostics, Range
from .value import EMPTY, FrozenMap, Value, freeze

T = TypeVar("T")


class Identity(Struct, frozen=True, order=True):
    """One real object."""

    instance: str
    """Provider instance: `kafka` or `kafka.eu`."""
    kind: str
    """Resource type: `kafka_topic`."""
    key: str
    """The provider's text for the object, such as its name."""

    def __str__(self) -> str:
        return f"{self.kind} {self.key} ({self.instance})"

    @property
    def provider(self) -> str:
        """The name of the provider that the instance belongs to."""
        return self.instance.partition(".")[0]


# ── declared ────────────────────────────────────────────────────────────────────────────


class Lifecycle(Struct, frozen=True):
    """The `lifecycle` block of a resource."""

    prevent_destroy: bool | None = None
    """Whether the object is protected; None if the block does not say."""
    adopt: bool = False
    """A live object that is not managed is taken over."""
    ignore_changes: tuple[str, ...] = ()
    """Globs over paths that are left to others: `config["retention.*"]` is written
    `config.retention.*`, ("*",) stands for all."""
    ignore_changes_except: tuple[str, ...] | None = None
    """The opposite: globs over the only paths that are not left to others; None if not given."""
    shared: bool = False
    """Other configurations declare the same object, so it is never deleted, only forgotten."""
    park: int | None = None
    """Before it is deleted, access to it is taken away for so many milliseconds; None if it is
    deleted at once."""


class Declared(Struct, frozen=True):
    """One object that the configuration declares."""

    identity: Identity
    """Which object."""
    address: Address
    """What the user calls it."""
    attributes: FrozenMap
    """The attributes in the schema's types, None for what was left out."""
    range: Range | None
    """The place of the block; None if the engine declares it itself."""
    lifecycle: Lifecycle = Lifecycle()
    """How changes and deletions are handled."""
    depends_on: tuple[Address, ...] = ()
    """What has to exist first, by reference or by `depends_on`."""
    owner: str | None = None
    """The team that the block names; text for people."""
    labels: FrozenMap = EMPTY
    """The labels of the block; text for people."""
    secret_version: str | None = None
    """Text whose change sends the secret again."""


class Use(Struct, frozen=True, order=True):
    """An object of any provider that another object works with, whether or not the configuration
    refers to it: a reader and what it reads."""

    kind: str
    """The resource type of the used object: `kafka_topic`."""
    key: str
    """Its import id."""
    verb: str = "uses"
    """What the user does with it, in the third person, for "ADDRESS reads it"."""
    needed: bool = True
    """The user stops working without it, so deleting it is a risk. Otherwise, the plan has a
    note."""
    rights: tuple[str, ...] = ()
    """What the user has to be permitted on it, in the words of its provider: `Read`."""
    pattern: bool = False
    """The key is a regular expression, and stands for all objects of this kind whose whole key
    fits."""
    ends_with: bool = False
    """The system deletes it together with its user, so its own deletion has to come first."""


class Reach(Struct, frozen=True):
    """Names that an object has or has an effect on, for the boundary of its folder."""

    noun: str
    """The list of a boundary that has to cover the names; empty if no list can."""
    pattern: str
    """The names: `*` stands for any text, so that a prefix is written `shop*`."""
    text: str
    """What people call them, with the kind of thing."""
    path: tuple[str, ...] = ()
    """The attribute that says it."""


class Fence(Struct, frozen=True):
    """The boundary of one folder."""

    folder: str
    """The path of the folder in its repository, for messages."""
    lists: Mapping[str, tuple[str, ...]]
    """Noun of a `Reach` -> the patterns that it must be within. `*` is any text."""
    denied: frozenset[str]
    """Resource types that the folder must not declare."""
    place: str
    """Where the boundary is written, for messages."""
    owner: str
    """Who can change it, for messages."""


class Removed(Struct, frozen=True):
    """A `removed` block: its source and all instances of that leave the state."""

    source: Address
    """What is removed."""
    destroy: bool
    """The object is deleted, too, once it has no owner left."""
    range: Range
    """The place of the block."""


class Moved(Struct, frozen=True):
    """A `moved` block: what its source owns, its target owns from now on."""

    source: Address
    """The old address."""
    target: Address
    """The new address."""
    range: Range
    """The place of the block."""


class Import(Struct, frozen=True):
    """An `import` block: a live object becomes that of an address."""

    target: Address
    """The address."""
    id: str
    """The provider's import id of the object."""
    range: Range
    """The place of the block."""


class ProviderConfig(Struct, frozen=True):
    """One `provider` block."""

    name: str
    """The provider: `kafka`."""
    instance: str
    """The name and the alias: `kafka` or `kafka.ALIAS`."""
    config: FrozenMap
    """The arguments; secrets are references."""
    range: Range
    """The place of the block."""


class Parking(Struct, frozen=True):
    """An object that nothing declares any more, and that is parked before it is deleted."""

    closures: tuple[Declared, ...] = ()
    """The objects that take access to it away; none if it cannot be parked."""
    since: str = ""
    """Since when all of them are there, RFC 3339, UTC; empty if one of them is missing."""
    until: str = ""
    """When the deletion is due, RFC 3339, UTC; empty if one of the closures is missing."""
    due: bool = False
    """It was parked for as long as its block said, or the user wants it to be deleted at once."""
    accepted: bool = False
    """The user wants it to be deleted at once."""
    obstacle: str = ""
    """Why it cannot be parked; empty if it can."""
    closing: bool = True
    """The closures are wanted, because the object waits for its deletion."""


class Output(Struct, frozen=True):
    """One output of the configuration."""

    name: str
    """What it is called."""
    value: Value
    """Its value; None while it is deferred."""
    sensitive: bool = False
    """The value is neither shown nor recorded."""
    deferred: bool = False
    """The value refers to a computed attribute and is evaluated after the apply."""


class Unread(Struct, frozen=True):
    """A resource block whose value needs a data source of a system that could not be reached."""

    source: Address
    """The block in all instances of its module."""
    reason: str
    """Which data source could not be read, and why."""


class FolderObjects(Struct, frozen=True, eq=False):
    """What the folders of a repository declare or record in some systems. Folders share it. It is
    equal only to itself, so that `Sweep.derive` finds its methods again fast."""

    identities: frozenset[Identity] = frozenset()

    def list_unclaimed(self, sweep: Sweep) -> Mapping[Identity, None]:
        """The live objects that are neither here nor the system's own, by key, in a form that is
        searched fast."""
        unclaimed = (
            item.identity
            for item in sweep.items
            if not item.details.get("internal", False) and item.identity not in self.identities
        )
        return dict.fromkeys(sorted(unclaimed, key=attrgetter("key")))


NO_OBJECTS = FolderObjects()


class Desired(Struct, frozen=True):
    """Everything that a configuration says."""

    declared: tuple[Declared, ...]
    """The declared objects."""
    providers: Mapping[str, ProviderConfig]
    """Provider instance -> its block."""
    removed: tuple[Removed, ...] = ()
    """The `removed` blocks."""
    moved: tuple[Moved, ...] = ()
    """The `moved` blocks."""
    imports: tuple[Import, ...] = ()
    """The `import` blocks."""
    outputs: tuple[Output, ...] = ()
    """The outputs."""
    diagnostics: Diagnostics = ()
    """Faults and warnings."""
    digest: str = ""
    """SHA-256 over the files and variables, never over the value of a secret."""
    unread: tuple[Unread, ...] = ()
    """Blocks that may declare objects which nobody knows: a data source could not be read."""
    settles: bool = False
    """Evaluated again with what the server sets, the configuration may say more: outputs,
    postconditions, checks."""
    sources: Mapping[str, str] = EMPTY
    """What the digest covers: files and `var.NAME` -> the first digits of a digest of each, to tell
    which of them differ between two plans."""
    fence: Fence | None = None
    """The boundary of the folder; None if it has none."""
    elsewhere: FolderObjects = NO_OBJECTS
    """What the folders of the repository declare or record in the same systems, as far as the
    command knows them."""
    parked: Mapping[Identity, Parking] = field(default_factory=dict)
    """Objects that are parked before they are deleted, as state and log say (`plan/parking.py`)."""

    def list_closures(self) -> Iterator[Declared]:
        """The objects that take access to parked ones away."""
        for parking in self.parked.values():
            if parking.closing:
                yield from parking.closures


# ── observed ────────────────────────────────────────────────────────────────────────────


class FaultClass(StrEnum):
    """What an error says about the effect of a request."""

    DEFINITE = "definite"
    """It was refused. Nothing happened, and sending it again will not help."""
    NOT_APPLIED = "not_applied"
    """Nothing happened, and sending it again later may help."""
    # Every timeout, every broken connection after the first byte and every answer of a node that
    # only forwarded the request belongs here: the request may be executed any time later.
    AMBIGUOUS = "ambiguous"
    """It may have happened. The object must be read before anything is decided."""
    PERMISSION = "permission"
    """It was refused because a right is missing."""
    CONVERGED = "converged"
    """The object may already be as wanted. It must be read before anything is decided."""


class Fault(Struct, frozen=True):
    """Why a request failed."""

    code: str
    """The protocol's name of the error, such as `INVALID_REQUEST`."""
    message: str
    """What happened."""
    kind: FaultClass
    """What the error says about the effect of the request."""
    where: str = ""
    """The node and the API."""
    advice: str = ""
    """What the user can do."""
    retry_after: float | None = None
    """Seconds after which the system takes the same request, if it refused it only for now; 0 if it
    named no time. None: it asks nobody to come back."""
    quota: bool = False
    """A quota of the system is used up, which fills again with time. Otherwise the system is not
    ready, and may then take everything at once."""

    @property
    def is_for_now(self) -> bool:
        """True if nothing happened, and the system only asks to send the same request later."""
        return self.kind is FaultClass.NOT_APPLIED and self.retry_after is not None


class Remark(Struct, frozen=True):
    """A condition of a live object that no attribute shows."""

    text: str
    """What it is, one sentence without the name of the object."""
    path: tuple[str, ...] = ()
    """The value that it is about: a remark on what the configuration declares is not made. None of
    them: it is made in any case."""


class Observed(Struct, frozen=True):
    """A live object as it was read."""

    identity: Identity
    """Which object."""
    attributes: FrozenMap
    """What the object itself has, canonical, in the schema's types; nothing inherited."""
    incarnation: str | None = None
    """The system's id of the object, None for kinds without one."""
    moving: FrozenMap | None = None
    """The attributes that a running task leads to, None if no task runs."""
    fallbacks: FrozenMap = EMPTY
    """Path as text (`config.retention.ms`) -> the value that is in effect where the object sets
    none: now, or once it is removed. What nobody knows is left out."""
    details: FrozenMap = EMPTY
    """Further facts, which are shown and never compared."""
    ticket: str | None = None
    """The provider's name for the running task, equal to that of the outcome that started it."""
    foreign: frozenset[tuple[str, ...]] = frozenset()
    """Paths that belong to others unless they are declared."""
    remarks: tuple[Remark, ...] = ()
    """What a plan has to say about its condition, whether it changes the object or not."""


class Absent(Struct, frozen=True):
    """The object does not exist: a read that could have seen it did not."""

    identity: Identity
    """Which object."""
    others: Observed | None = None
    """What others have set on it, if anything. That alone makes no object, unless some of it is
    what somebody declares."""
    lacks: str = ""
    """Kind and name of what does not exist either, and without which nobody can create the object.
    Empty if nothing is known to be missing."""
    fallbacks: FrozenMap = EMPTY
    """As in `Observed`, for objects that are settings of something that exists without them."""


class Hidden(Struct, frozen=True):
    """Nobody knows whether the object exists, because a right is missing."""

    identity: Identity
    """Which object."""
    right: str
    """The missing right: `Describe on orders`."""


class Failed(Struct, frozen=True):
    """The read failed, so nothing is known."""

    identity: Identity
    """Which object."""
    fault: Fault
    """Why the read failed."""


Reading = Observed | Absent | Hidden | Failed


class Depth(StrEnum):
    """How much a listing has to show."""

    NAMES = "names"
    """Identity, incarnation, and what the listing gives without further requests."""
    FULL = "full"
    """All attributes."""


class CoverageKind(StrEnum):
    """How far a listing can be trusted."""

    COMPLETE = "complete"
    """Every object of the kind is listed."""
    VISIBLE_ONLY = "visible_only"
    """Objects that we must not see may be left out without any error."""
    FAILED = "failed"
    """Nothing follows from what is missing."""


class Coverage(Struct, frozen=True):
    """How far one listing can be trusted."""

    kind: CoverageKind
    """The verdict."""
    fault: Fault | None = None
    """Why the listing failed, if it did."""


class _WithDerived:
    """A slot that is not a field, so that it is not compared, copied or stored."""

    __slots__ = ("_derived",)
    _derived: dict[object, Any]
    """Function -> what it made of the listing."""


class Sweep(_WithDerived, Struct, frozen=True):
    """All objects of a kind that one listing showed."""

    kind: str
    """The resource type."""
    depth: Depth
    """How much the items say."""
    items: tuple[Observed, ...]
    """The objects."""
    coverage: Coverage
    """How far the listing can be trusted."""
    whole: bool = False
    """The items are as `read` would show them, so that nobody needs to read them again."""
    full: frozenset[Identity] = frozenset()
    """The items of which that is true although the listing is not whole."""

    def derive(self, make: Callable[[Sweep], T]) -> T:
        """What a pure function makes of this listing. It is called once for each listing, because
        the plans of many folders can share one."""
        try:
            derived = self._derived
        except AttributeError:
            derived = {}
            force_setattr(self, "_derived", derived)
        if make not in derived:
            derived[make] = make(self)
        result: T = derived[make]
        return result


class ProviderFacts(Struct, frozen=True):
    """Base of what one provider knows about its system: defaults, limits, versions, settings.

    Each fact is a field. Its default counts where the fact is unknown: for a block without a
    system, and in a plan that an older version recorded. A fact that is UNSET is not recorded.
    """

    @classmethod
    def of(cls, facts: Facts) -> Self:
        """The facts of a system or a plan. Raises msgspec.ValidationError for a forged plan."""
        values = facts.values
        return values if isinstance(values, cls) else cast(Self, _read_values(cls, values))


# Steps ask for the facts of the same plan at each change.
@lru_cache(maxsize=64)
def _read_values(cls: type[ProviderFacts], values: Hashable) -> Any:
    return msgspec.convert(values, cls)


if TYPE_CHECKING:
    ProviderValues = ProviderFacts | FrozenMap
else:
    # Files have plain values, and the type hints are how a plan is read (`canonical.from_data`).
    ProviderValues = FrozenMap


class Facts(Struct, frozen=True):
    """What a session knows about its system.

    A plan records the first five fields; the others are valid only for the session.
    """

    scope_id: str
    """The id of the system, which no other one has."""
    nodes: tuple[str, ...] = ()
    """The live nodes, if the system has several that can be asked one by one."""
    principal: str | None = None
    """Whom the session acts as, if that can be known."""
    values: ProviderValues = EMPTY
    """What the provider alone knows about its system; plain values in a plan."""
    profile: str = ""
    """Which product the provider takes the system for, and why: text for people. Empty if there is
    nothing to say."""
    operation_timeout: float = 30.0
    """Seconds that the system may take for one request, and that a write may take to be visible."""
    request_timeout: float = 0.0
    """Seconds for which a node keeps a request before it forwards it, in addition to the operation
    timeout that the request carries."""
    protect: bool = True
    """New rows of types with `ResourceType.protect` start protected."""
    partners: FrozenMap = EMPTY
    """Name of another provider -> the scope id of the system of that provider that this system
    works with, if it says so. What its objects use (`Use`) is there and on no other system."""
    acts_as: str | None = None
    """The principal as which this system works with its partners, if that is declared."""
    lists_nodes: bool = True
    """The system says which nodes are live. False: the nodes are those of the provider block, and
    nobody knows whether one that does not answer is in service."""

    @property
    def recorded(self) -> Facts:
        """The facts as a plan records them."""
        values = self.recorded_values
        return Facts(self.scope_id, self.nodes, self.principal, values, self.profile)

    @property
    def recorded_values(self) -> FrozenMap:
        """The `values` as plans record them and policies see them."""
        if isinstance(self.values, FrozenMap):
            return self.values
        values = msgspec.to_builtins(self.values, builtin_types=(Decimal,))
        return FrozenMap({name: freeze(value) for name, value in values.items()})


class InstanceWorld(Struct, frozen=True):
    """What was read through one provider instance."""

    facts: Facts
    """The system."""
    readings: Mapping[Identity, Reading]
    """Every declared or recorded object -> how it was read."""
    sweeps: Mapping[str, Sweep] = field(default_factory=dict)
    """Resource type -> its listing."""
    disputed: Mapping[Identity, Mapping[str, Reading]] = field(default_factory=dict)
    """Object of which nodes still show different values after a wait -> node -> its reading."""


World = Mapping[str, InstanceWorld]
"""Provider instance -> what was read through it."""


# ── pending ─────────────────────────────────────────────────────────────────────────────

# Both words are the log's. Its format is older than the providers that call such work something
# else, and a log that was written once is never rewritten.
TASK = "move"
"""The action of long work that is pending."""
SETTING = "throttle"
"""The action of a setting for the time of a task, which must be removed after it."""


class Pending(Struct, frozen=True):
    """What an earlier run left open: an intent without an outcome, a task whose end nobody saw, or
    a setting for its time."""

    identity: Identity
    """Which object."""
    run: str
    """The run that left it open."""
    step: str
    """The id of the step, or the ticket of a task or setting."""
    action: str
    """The action of the change, TASK or SETTING."""
    target: FrozenMap
    """The attributes that the intent would have made; none for a task or setting."""
    time: float
    """Seconds since the epoch when the record became durable."""
    incarnation: str | None = None
    """The id of the object that the intent was made for."""
    note: str = ""
    """How far a task is, in words."""
