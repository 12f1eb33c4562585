"""The contract between the engine and a provider.

A provider describes its types as data and pure functions (`ResourceType`) and reaches its
system through a `Session`. The same types serve a real session and a simulated one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from ..core.change import Batch, Change, Impact, Outcome, Review, Step, Verdict
from ..core.diagnostics import Diagnostic, Diagnostics
from ..core.resource import Declared, Depth, Facts, Identity, Observed, Reading, Sweep
from ..core.schema import ObjectSchema
from ..core.secret import Secret
from ..core.value import FrozenMap
from ..core.words import Words

Secrets = Mapping[str, Secret]
"""str(SecretRef) -> the secret; lives only between approval and the last request."""


class ResourceType(Struct, frozen=True):
    """One kind of object, as data and pure functions.

    key(attributes): the identity's key. Raises ValueError if the attributes cannot name one.
    canonical(attributes, facts): one spelling for equal things (units, case, order of sets).
    target(declared, observed, facts, keep): the whole object as it shall be, canonical, though
        `declared` is spelled as in its block: what was left out takes the live value or the
        system's default; with `keep` live extras stay (adoption).
    check(change, facts): faults of the change that need no system; errors block it.
    steps(change, facts): the requests that make it true, in order. Same inputs, same steps.
    import_key(id): the identity key that an import id names. Raises ValueError.
    expand(declared): the objects that a composite stands for, or None.
    protect: a row starts protected ("default") unless `Facts.protect` is false.
    ours(target, declared): the target without what others may have set and the declaration keeps
        (`config_mode = "additive"`, a null, ignore_changes): what the state records. None: all.
    left(live, recorded): what stays of a live object of which only what was recorded goes; None
        if nothing does. Without this function all of it goes.
    written(attributes): the arguments of a block that declares this live object; None where they
        are its attributes as they are.
    """

    name: str
    schema: ObjectSchema
    key: Callable[[FrozenMap], str]
    canonical: Callable[[FrozenMap, Facts], FrozenMap]
    target: Callable[[FrozenMap, Observed | None, Facts, bool], FrozenMap]
    check: Callable[[Change, Facts], Diagnostics]
    steps: Callable[[Change, Facts], tuple[Step, ...]]
    import_key: Callable[[str], str]
    expand: Callable[[Declared], Sequence[Declared]] | None = None
    protect: bool = False
    ours: Callable[[FrozenMap, FrozenMap], FrozenMap] | None = None
    left: Callable[[FrozenMap, FrozenMap], FrozenMap | None] | None = None
    written: Callable[[FrozenMap], FrozenMap] | None = None
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


class Session(Protocol):
    """A connection to one system, opened for one provider instance.

    Must: bound the calls in flight; report an unauthorised, failed or partial read as such.
    May: block up to the operation timeout. Must not: retry a write whose outcome is unknown,
    raise for one item of a batch, print, or keep secrets after `apply` returns.

    Every method may raise OtherSystem, and no other error ends a run like it: whoever answers has
    another scope id than `facts`. A session compares the two on each connection before it sends
    anything else there, and once more on the connection that carries a batch, right before it
    and right after its answer. From then on every call raises it. Of a batch in flight nothing is
    known then: its intents stay open until the system of `facts` can be asked.
    """

    @property
    def facts(self) -> Facts: ...

    @property
    def words(self) -> Words:
        """Those of its provider."""

    def live_nodes(self) -> Sequence[str]:
        """The live nodes as the system lists them now; `facts.nodes` are those of the connection's
        begin. One that does not answer is among them for as long as any node that answers lists
        it. Those that were last known if nobody tells. Never raises for a failed request."""

    def sweep(self, kind: str, depth: Depth) -> Sweep:
        """List all objects of a kind. Never raises for a failed listing: see its coverage."""

    def read(self, ids: Sequence[Identity], *, at: str | None = None) -> Mapping[Identity, Reading]:
        """Read objects whole, by name, in few requests. at: ask this node and no other.
        Every id gets an answer; Absent only if the read could have seen the object. One that
        moves says where to, and under which ticket."""

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        """Answer a data source of `Provider.data`.

        arguments: every attribute of its schema that is not computed, None for one that was left
        out. The answer holds every computed attribute, in the schema's types, None where the
        system does not tell. A list holds what may be seen; whether that is all is for an
        attribute of the answer to say.
        Raises KafkaformError with advice: for a data source that the provider does not have, for
        one object that is not there, that may not be seen (the message names the missing right),
        or that could not be read. It never answers as if a hidden object were missing.
        """

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        """What destructive changes would destroy."""

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        """All steps of a plan at once, before the first dry run: a verdict with its fault for
        each that is known to fail (a missing right), whatever comes before it. What the system
        does not tell is left out. Never raises for a failed request."""

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        """Validate without doing, one verdict a step in order, each with its evidence."""

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        """Send one batch once; one outcome a step in order: applied, failed, unknown, started."""

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        """How long-running work stands, one outcome for each ticket, which is its `step`; those
        of `owed` come last. Nothing is changed.

        applied: what was asked is there; started: it runs; failed: it is proven that it runs no
        more and did not reach its target; unknown: cannot be told now. Work that has ended may
        be asked for again. Never raises for one ticket.

        owed: tickets of `Step.owes`, of what was set for the time of a move: applied once that
        move has ended, in whatever way. What they name counts as ours from then on, so the
        caller has proof of each. All open tickets of an instance are asked about in one call.
        """

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        """Remove what these tickets of `Step.owes` name, and nothing that somebody else set.

        others: the further ones that are open; what they need stays. One outcome for each ticket,
        as of `progress`: applied once nothing is left that the ticket alone needs, started while
        the move still runs, unknown if it could not be removed.
        """

    def prove(self) -> None:
        """Ask on every open connection whose it is. Raises OtherSystem.

        Who records what was read calls this first: a proxy may lead an open connection elsewhere.
        One that does not answer proves nothing; what was read there stands.
        """

    def close(self) -> None: ...


class Provider(Protocol):
    """A family of types and the way to open sessions for them."""

    @property
    def name(self) -> str: ...

    @property
    def words(self) -> Words:
        """What its users call systems, nodes and long work, for messages."""

    @property
    def config(self) -> ObjectSchema: ...

    @property
    def types(self) -> Mapping[str, ResourceType]: ...

    @property
    def commanded(self) -> Mapping[str, ResourceType]:
        """Types of what only commands change (an election): planned, approved, logged and
        recovered like all others, but never declared, listed or recorded."""

    @property
    def data(self) -> Mapping[str, ObjectSchema]:
        """Data sources by name: attributes that are not computed are arguments of the query,
        computed ones are its answer."""

    def check(self, config: FrozenMap) -> Sequence[tuple[str, Diagnostic]]:
        """Pure: what the schema cannot say of a provider block, each with the attribute to
        blame; `open` refuses what is an error here, a warning changes nothing.

        config: as `open` gets it, secrets still as references. The diagnostics have no place
        and repeat no value of a secret or sensitive attribute.
        """

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> Session:
        """Connect. Raises ConnectError with the address, the cause and what to do."""

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        """The kinds that must be swept, and how deep, to review these changes."""

    def review(
        self, changes: Sequence[Change], sweeps: Mapping[str, Sweep], facts: Facts
    ) -> Review:
        """Pure: judge all changes of one instance together (collisions, lock-outs)."""


def collect_types(providers: Iterable[Provider]) -> dict[str, ResourceType]:
    """Every type that a change of these providers may have, those of commands too."""
    return {n: t for one in providers for n, t in {**one.types, **one.commanded}.items()}
