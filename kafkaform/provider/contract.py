"""The contract between the engine and a provider.

A provider describes its types as data and pure functions (`ResourceType`) and reaches its system
through a `Session`. A real session and a simulated one serve the same types. The protocols at the
end are optional: a system in memory for `kafkaform test`, files of other tools for
`import --from` and `export`, and objects that others make for themselves, for `import --all`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from ..core.change import Batch, Change, Impact, Outcome, Path, RateLimit, Step, Verdict
from ..core.clock import Clock
from ..core.diagnostics import Diagnostic
from ..core.finding import Finding
from ..core.lazy import load
from ..core.resource import Declared, Depth, Facts, Identity, Observed, Reach, Reading, Sweep, Use
from ..core.rule import RuleBook
from ..core.schema import ObjectSchema
from ..core.secret import Secret
from ..core.value import EMPTY, FrozenMap, Value
from ..core.words import Words

Secrets = Mapping[str, Secret]
"""str(SecretRef) -> the secret. They exist only between approval and the last request."""


class Outlook(Struct, frozen=True):
    """What becomes of a declared object."""

    reading: Reading
    """How it was read."""
    after: FrozenMap
    """Its canonical attributes after the apply of a plan, as far as they can be foreseen."""
    changes: bool
    """A plan creates it, or changes what its system has of it."""


class BlockCompletion(Struct, frozen=True):
    """How blocks of a type are completed that leave something to what other objects of the same
    type become, such as the version of what they refer to. Pure."""

    follows: Callable[[FrozenMap], Collection[str]]
    """Attributes of a block -> the keys of the objects that complete it; none for a block that
    leaves nothing open."""
    list_needs: Callable[[Collection[str]], Mapping[str, Depth]]
    """Keys of objects that blocks follow -> the listings that say more about them."""
    complete: Callable[[FrozenMap, Mapping[str, Outlook], Mapping[str, Sweep]], FrozenMap]
    """Attributes of a block, key -> outlook of what is declared, listings -> the attributes with
    all that is known. What is not known stays open, and a rule has to block the change."""


class Closure(Struct, frozen=True):
    """An object that takes the access to another object away."""

    kind: str
    """Its resource type, of the same provider."""
    key: str
    """The key of its identity."""
    name: str
    """What tells it from the other closures of the same object, for its address."""
    attributes: FrozenMap
    """Its attributes, in the types of its schema."""


class ResourceType(Struct, frozen=True):
    """One kind of object, as data and pure functions."""

    name: str
    """The name of the type: `kafka_topic`."""
    schema: ObjectSchema
    """What its block can contain."""
    key: Callable[[FrozenMap], str]
    """Attributes -> the key of the identity. Raises ValueError if they do not name an object."""
    canonical: Callable[[FrozenMap, Facts], FrozenMap]
    """Attributes, facts -> one spelling for equal things: units, case, order of sets."""
    target: Callable[[FrozenMap, Observed | None, Facts, bool], FrozenMap]
    """Declared, observed, facts, keep -> the whole object as it is wanted, canonical.

    `declared` is spelled as in its block. What it leaves out takes the live value or the system's
    default. With `keep` (adoption) live extras stay.
    """
    # Equal inputs must give equal steps: an apply computes them again, and refuses a saved plan
    # whose steps differ.
    steps: Callable[[Change, Facts], tuple[Step, ...]]
    """Change, facts -> the requests that make it true, in order."""
    import_key: Callable[[str], str]
    """Import id -> the key of the identity that it names. Raises ValueError."""
    expand: Callable[[Declared], Sequence[Declared]] | None = None
    """A declared composite -> the objects that it stands for; None for a type that is none."""
    gather: Callable[[Sequence[tuple[str, FrozenMap]]], Sequence[FrozenMap]] | None = None
    """The opposite of `expand`: resource type and attributes of live objects -> the arguments of
    composites that stand for some of them, and for nothing else. None for a type that is none."""
    belongs_to: Callable[[FrozenMap, str], bool] | None = None
    """Attributes, principal -> whether the object is the login of this principal or one of its
    rights. `import --all` leaves those of its own principal out. None: no object is."""
    protect: bool = False
    """A new row starts protected ("default") unless `Facts.protect` is false."""
    ours: Callable[[FrozenMap, FrozenMap], FrozenMap] | None = None
    """Target, declared -> the part of the target that the state records.

    The rest is what others may have set and the declaration keeps (`config_mode = "additive"`, a
    null, ignore_changes). None: the state records all of it.
    """
    left: Callable[[FrozenMap, FrozenMap], FrozenMap | None] | None = None
    """Live, recorded -> what stays of a live object if only the recorded part is removed, None if
    nothing stays. Without this function the whole object is removed."""
    written: Callable[[FrozenMap], FrozenMap] | None = None
    """Attributes -> the arguments of a block that declares this live object. None: they are the
    attributes themselves."""
    part_of: str | None = None
    """The type of the objects that contain the objects of this type, under the same key. A block of
    either type manages both objects, and `import --all` lists the containers only."""
    named_by: tuple[str, ...] = ()
    """The attributes from which `import --all` makes a block's name, the most important first; a
    block is shared by objects with the same first one. Empty: the attributes that decide the key,
    in the order of the schema."""
    switched_off: frozenset[str] = frozenset()
    """Codes of a failed listing (`Fault.code`) that mean that the system has no objects of this
    type at all."""
    uses: Callable[[FrozenMap], Sequence[Use]] | None = None
    """Canonical attributes -> the objects that this one works with, of any provider. It is created
    after those that the same plan creates and deleted before those that it deletes, also without a
    reference; and a plan that deletes one of them names it. None: it uses nothing."""
    used_kinds: frozenset[str] = frozenset()
    """The types of objects that `uses` can name. A deletion of such an object waits while those
    that can use it cannot be listed. Empty: objects of any type."""
    completion: BlockCompletion | None = None
    """How blocks are completed that leave something to other objects of the plan. None: every block
    says all of it."""
    renewed: frozenset[str] = frozenset()
    """Computed attributes that get another value when the object changes."""
    reserves: Callable[[str, FrozenMap], tuple[str, str] | None] | None = None
    """Key, details of the live object (none if there is no object) -> why the system keeps the
    object for itself, and what the user can do. Such an object is neither created, taken over,
    changed nor deleted. Without this function no object is reserved."""
    repair: Callable[[Step, Mapping[Path, Value]], tuple[FrozenMap, FrozenMap] | None] | None = None
    """Step, path -> value that stayed although the step removed it -> payload of the request that
    sets these values as they are, and of the one that removes them again; None if the step cannot
    be repaired so. Without this function, removals without effect are only reported."""
    unit: Callable[[Path], str] | None = None
    """The unit of the value at a path (`core/text.py`), empty for none."""
    shareable: bool = False
    """Several configurations can declare the same object with `lifecycle { shared = true }`: it has
    no data, and equal blocks want the same of it. A composite says it for what it stands for."""
    closures: Callable[[FrozenMap, Facts, Sequence[FrozenMap]], Sequence[Closure]] | None = None
    """Recorded attributes, facts, the attributes of the other objects of this type that stay -> the
    objects that take access to it away, for `lifecycle { park }`. Raises ValueError with a clause
    that says why it cannot be taken away. None: an object of this type cannot be parked."""
    settings: bool = False
    """An object is nothing but settings of something that exists without it. Without the object,
    the fallbacks of its readings are in effect."""
    restorable: bool = False
    """Of a type that only commands change: an `undo` can set its former values again, and make a
    deleted object again."""


class Session(Protocol):
    """A connection to one system, opened for one provider instance.

    A session must limit its calls in flight, and must report an unauthorised, failed or partial
    read as such. It can block up to the operation timeout. It must not retry a write whose outcome
    is unknown, raise for one item of a batch, print, or keep secrets after `apply` returns.

    Every method can raise OtherSystem: the system that answers has another scope id than `facts`.
    A session compares the two on each connection before it sends anything else there, and on the
    connection that carries a batch right before it and right after its answer. After that every
    call raises it. Nothing is known about a batch in flight then: its intents stay open until the
    system of `facts` can be asked.
    """

    @property
    def facts(self) -> Facts:
        """What was known about the system when the session was opened."""

    @property
    def words(self) -> Words:
        """The words of its provider."""

    def live_nodes(self) -> Sequence[str]:
        """The live nodes as the system lists them now; `facts.nodes` are those of the beginning.

        A node that does not answer is among them as long as any node that answers lists it. If no
        node answers, the last known ones are returned. Never raises for a failed request.
        """

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        """List all objects of a kind. full: those that the caller needs in full; a session that can
        read them with fewer requests while it lists does so (`Sweep.full`), any other ignores it.

        Never raises for a failed listing: see its coverage.
        """

    def read(
        self, ids: Sequence[Identity], *, at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        """Read objects by name, in few requests. at: ask this node and no other; depth: with NAMES,
        attributes may be left out if that saves requests.

        Every id gets an answer; Absent only if the read could have seen the object. An object with
        a running task says where that leads and what its ticket is.
        """

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        """Answer a data source of `Provider.data`.

        arguments: every attribute of its schema that is not computed, None for one that was left
        out. The answer has every computed attribute, in the schema's types, None where the system
        does not say. A list contains what is visible; an attribute of the answer has to say whether
        that is everything. Raises KafkaformError with advice for a data source that the provider
        does not have, and for one object that is hidden (the message names the missing right) or
        could not be read; MissingObject for one that certainly does not exist. It never answers as
        if a hidden object were missing.
        """

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        """How much data each change would destroy or move: deletions, and changes with a risk of
        data loss or of a move."""

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        """A verdict with its fault for each step that is known to fail, for example because a right
        is missing.

        All steps of a plan are examined at once, before the first dry run, whatever comes before
        them. What the system does not say is left out. Never raises for a failed request.
        """

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        """Validate without executing: one verdict for each step, in order, with its evidence."""

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        """Send one batch once: one outcome for each step, in order; applied, failed, unknown or
        started."""

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        """The state of long work: one outcome for each ticket, which is its `step`; those of `owed`
        come last. Nothing is changed.

        applied: the target is reached; started: the work runs; failed: it is proven to have ended
        without reaching its target; unknown: nobody can say now. Work that has ended can be asked
        about again. Never raises for one ticket.

        owed: tickets of `Step.owes`, settings for the time of a task. They are applied once that
        task has ended, in whatever way. What they name counts as ours from then on, so the caller
        must have proof of each. All open tickets of an instance are asked about in one call.
        """

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        """Remove what these tickets of `Step.owes` name, and nothing that somebody else set.

        others: further open tickets; what they need stays. One outcome for each ticket, as from
        `progress`: applied once nothing is left that only this ticket needs, started while the task
        still runs, unknown if it could not be removed.
        """

    def prove(self) -> None:
        """Ask on every open connection which system it leads to. Raises OtherSystem.

        Whoever records what was read calls this first, because a proxy may lead an open connection
        to another system. A connection that does not answer proves nothing; what was read there
        stays valid.
        """

    def close(self) -> None:
        """End all connections. Calling it twice does no harm."""


class MissingRight(Struct, frozen=True):
    """What a principal has no right to."""

    use: Use
    """What it needs the right for."""
    right: str
    """What cannot be done, and on what, in the words of the provider."""
    doubt: str = ""
    """The condition under which the right would exist; empty if it is certainly missing."""


class Provider(Protocol):
    """A family of types and the way to open sessions for them."""

    @property
    def name(self) -> str:
        """The name that `provider` blocks use."""

    @property
    def words(self) -> Words:
        """What its users call systems, nodes and long work, for messages."""

    @property
    def config(self) -> ObjectSchema:
        """What a `provider` block can contain."""

    @property
    def types(self) -> Mapping[str, ResourceType]:
        """Resource types by name."""

    @property
    def commanded(self) -> Mapping[str, ResourceType]:
        """Types that only commands change (an election). They are planned, approved, logged and
        recovered like all others, but never declared, listed or recorded."""

    @property
    def data(self) -> Mapping[str, ObjectSchema]:
        """Data sources by name: computed attributes are the answer, the others are arguments."""

    def check(self, config: FrozenMap) -> Sequence[tuple[str, Diagnostic]]:
        """Pure: faults of a provider block that its schema cannot express, each with the name of an
        attribute. `open` refuses what is an error here; a warning changes nothing.

        config: as `open` gets it, with secrets still as references. The diagnostics have no place,
        and do not repeat the value of a secret or sensitive attribute.
        """

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> Session:
        """Connect. Raises ConnectError with the address, the cause and what to do."""

    def load_rules(self) -> RuleBook:
        """Pure: all that changes of these types are judged by."""

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        """Pure: the resource types that have to be listed for the surveys of `load_rules` to judge
        these changes, and at what depth."""

    # What follows has a default in `OptionalParts`. References are names, `module:attribute`,
    # because what they refer to is imported only by the commands that need it.

    @property
    def commands(self) -> Mapping[str, str]:
        """`describe`, `explain`, `alter`, `propose`, `look` -> reference of a `CommandGroup`."""

    @property
    def simulation(self) -> str:
        """The reference of a `Simulation`; empty if the system cannot be simulated."""

    @property
    def readers(self) -> Mapping[str, str]:
        """Name of another tool -> the reference of a `FileReader` of its files."""

    @property
    def exporters(self) -> Mapping[str, str]:
        """Name of another tool -> the reference of an `Exporter`."""

    @property
    def owners(self) -> str:
        """The reference of an `OwnerFinder`; empty if no object is recognised."""

    @property
    def consequences(self) -> str:
        """The reference of a `ConsequenceFinder`; empty if the system shows none."""

    @property
    def proves_listings(self) -> bool:
        """False: its systems can leave out what the user must not see, and nothing tells whether
        they do."""

    def needs_look(self, change: Change, facts: Facts) -> bool:
        """Pure: True for a change that no rule finds harmful and that can still do harm, as only a
        look at the system shows, such as one that may not fit on its disks."""

    @property
    def access_needs(self) -> Mapping[str, Depth]:
        """Resource types that have to be listed for `find_missing_rights`, and at what depth; empty
        if the system does not decide who may use its objects."""

    def find_missing_rights(
        self,
        principal: str,
        uses: Sequence[Use],
        changes: Sequence[Change],
        sweeps: Mapping[str, Sweep],
        facts: Facts,
    ) -> Sequence[MissingRight]:
        """Pure: the rights for these uses (`Use.rights`) that the principal does not have once
        these changes are made, in order. Nothing is missing if that cannot be decided."""

    def limit_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        """Pure: the resource types that have to be listed for `find_limit`, and at what depth."""

    def find_limit(
        self, changes: Sequence[Change], sweeps: Mapping[str, Sweep], facts: Facts
    ) -> RateLimit | None:
        """Pure: how many of these changes the system takes at a time; None if it has no limit, or
        none that is known. sweeps: those of `limit_needs`, and maybe more."""

    def read_rules(self) -> bytes:
        """Pure: `policy` blocks in HCL, which a `policy_set` block with the provider's name
        switches on; empty if there are none. Their `settings` are the usual values of what users
        can choose."""

    def list_reaches(self, kind: str, attributes: FrozenMap) -> Sequence[Reach] | None:
        """Pure: all names that an object of this type has or has an effect on, so that nothing of
        it is outside of a boundary that covers them. None if that is not known: a folder with a
        boundary cannot declare such an object.

        attributes: those of a block, or of a live object.
        """

    def move_block(self, config: FrozenMap, address: str) -> FrozenMap | None:
        """Pure: the provider block as it was when the system had another address, without a name of
        its own for it. None if systems of this provider say who they are, wherever they are."""

    def list_login_rights(
        self, principal: object, lists: Mapping[str, Sequence[str]]
    ) -> tuple[Sequence[tuple[str, Mapping[str, Any]]], Sequence[str]]:
        """Pure: the blocks (resource type, arguments) that permit a login to declare what is within
        a boundary, and sentences about what no block can permit alone.

        principal: what the blocks say for the login; lists: noun of a `Reach` -> patterns.
        """


class OptionalParts:
    """The defaults of what a provider does not have to offer; see `Provider`.

    Every provider inherits from it and overrides what it offers.
    """

    __slots__ = ()
    simulation = consequences = ""
    proves_listings = True

    @property
    def owners(self) -> str:
        return ""

    @property
    def commands(self) -> Mapping[str, str]:
        return {}

    @property
    def readers(self) -> Mapping[str, str]:
        return {}

    @property
    def exporters(self) -> Mapping[str, str]:
        return {}

    def needs_look(self, change: Change, facts: Facts) -> bool:
        return False

    @property
    def access_needs(self) -> Mapping[str, Depth]:
        return {}

    def find_missing_rights(
        self,
        principal: str,
        uses: Sequence[Use],
        changes: Sequence[Change],
        sweeps: Mapping[str, Sweep],
        facts: Facts,
    ) -> Sequence[MissingRight]:
        return ()

    def limit_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        return {}

    def find_limit(
        self, changes: Sequence[Change], sweeps: Mapping[str, Sweep], facts: Facts
    ) -> RateLimit | None:
        return None

    def read_rules(self) -> bytes:
        return b""

    def list_reaches(self, kind: str, attributes: FrozenMap) -> Sequence[Reach] | None:
        return None

    def move_block(self, config: FrozenMap, address: str) -> FrozenMap | None:
        return None

    def list_login_rights(
        self, principal: object, lists: Mapping[str, Sequence[str]]
    ) -> tuple[Sequence[tuple[str, Mapping[str, Any]]], Sequence[str]]:
        return (), ()


def collect_types(providers: Iterable[Provider]) -> dict[str, ResourceType]:
    """Every type that a change of these providers can have, including those of commands."""
    return {
        n: t for provider in providers for n, t in {**provider.types, **provider.commanded}.items()
    }


OwnerFinder: TypeAlias = Callable[[Session, str, Iterable[Observed]], Mapping[Identity, str]]
"""Session, resource type, live objects of it -> those that an application or a service makes for
itself, and who that is, as the end of a sentence: `made by WHO`. It can ask the system, and never
raises because something could not be asked."""


def load_owners(provider: Provider) -> OwnerFinder:
    """How this provider recognises such objects; one without a way recognises none."""
    if not provider.owners:
        return _find_none
    finder: OwnerFinder = load(provider.owners)
    return finder


def _find_none(_: Session, kind: str, items: Iterable[Observed]) -> Mapping[Identity, str]:
    return {}


class LookBounds(Struct, frozen=True):
    """How much may be asked to find out whom changes hit."""

    seconds: float | None
    """For all questions together; None for as long as they take."""
    objects: int | None
    """How many objects each kind of question is about at most; None for all."""
    sample: bool = False
    """Single records may be read, of which nothing is kept but what is said of all of them."""


ConsequenceFinder: TypeAlias = Callable[
    [Session, Sequence[Change], LookBounds], Sequence[tuple[Identity | None, Finding]]
]
"""Session, changes that can do harm, bounds -> what these changes do to those who use the system
now, each with the object that it is about; None: the system. What was not looked at is one, too.

It only reads. Findings differ from one second to the next, so none has the level BLOCK or the harm
access-lost, which an approval covers. Raises KafkaformError if nothing can be found out."""


class Simulation(Struct, frozen=True):
    """How a provider simulates a system."""

    settings: ObjectSchema
    """What a `simulate` block of a test file can contain. No setting is required."""
    make: Callable[[FrozenMap, str, Clock], Provider]
    """Settings, scope id, clock -> the provider of one new system, in which nothing exists yet. All
    its sessions lead there, without a network, and wait on this clock only."""


class ForeignObject(Struct, frozen=True):
    """An object that files of another tool declare."""

    kind: str
    """Its resource type."""
    arguments: FrozenMap
    """The arguments of its block, without secrets. Arguments that equal a default may be left in.
    A required secret is not among them: the engine writes a reference for it."""
    place: str
    """Where it stands: `teams/orders.yaml:12`."""
    system: str = ""
    """The system that it is in, as the files name it; empty if they do not say."""
    places: FrozenMap = EMPTY
    """The places of single arguments, where the files have them: by NAME, and for an entry of a map
    by NAME.KEY."""


class Omission(Struct, frozen=True):
    """Something in files of another tool that is not taken over."""

    place: str
    """Where it stands: `teams/orders.yaml:12`."""
    reason: str
    """What it is and why it is left out, one line, without values that could be secrets."""


class ForeignFiles(Struct, frozen=True):
    """What files of another tool say."""

    objects: tuple[ForeignObject, ...] = ()
    """In the order of the files. One object can stand there several times."""
    omissions: tuple[Omission, ...] = ()
    """Everything else in the files that could mean something."""
    notes: tuple[str, ...] = ()
    """What was assumed about all of them, such as which file the settings are from; sentences."""


FileReader: TypeAlias = Callable[[Sequence[pathlib.Path]], ForeignFiles]
"""Reads files and folders, and connects to nothing. Raises UsageError if one of them is not
something of this tool."""


class ForeignResource(Struct, frozen=True):
    """A live object as Terraform's provider for the same system declares it."""

    type: str
    """The resource type there."""
    arguments: FrozenMap
    """The arguments of the block; a secret is a SecretRef, for which a variable is written."""
    id: str | None
    """The id for its import block; None if that provider cannot import it."""


class Exporter(Struct, frozen=True):
    """How objects are declared in the files of another tool."""

    requirements: FrozenMap
    """Name of a provider there -> its source and version."""
    write: Callable[[str, FrozenMap], ForeignResource | str]
    """Resource type and live attributes -> the resource there, or why there is none."""
