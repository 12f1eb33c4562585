"""Findings: what is known about a change, found once by a rule and told everywhere in its words.

A finding always belongs to a change (`Change.findings`) or to a whole system
(`PlanInstance.findings`), which say what object it is about. `rule.py` has the rows that make
findings.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum

from msgspec import Struct

from .diagnostics import Range
from .resource import Identity
from .value import EMPTY, FrozenMap
from .words import Words

Path = tuple[str, ...]
POLICY = "policy/"
"""The beginning of the ids of policies."""


class Level(StrEnum):
    """How much a finding matters, the most first: this is the order in which findings are shown."""

    BLOCK = "block"
    """The change is not made."""
    DANGER = "danger"
    """Data can be lost, clients can stop, or somebody gains or loses much access."""
    CAUTION = "caution"
    """Something can go wrong that is worth a look."""
    NOTE = "note"
    """Worth knowing; nothing goes wrong."""

    @property
    def rank(self) -> int:
        """0 for the most important."""
        return _LEVEL_RANKS[self]


_LEVEL_RANKS = {level: rank for rank, level in enumerate(Level)}


class Harm(StrEnum):
    """The kinds of harm, the worst first."""

    DATA_LOSS = "data-loss"
    DURABILITY = "durability"
    """Acknowledged data can be lost if something fails."""
    ACCESS_LOST = "access-lost"
    ACCESS_GAINED = "access-gained"
    AVAILABILITY = "availability"
    REFUSED_WRITES = "refused-writes"
    ORDERING = "ordering"
    THROUGHPUT = "throughput"
    MOVE = "move"
    ONE_WAY = "one-way"
    """It cannot be undone."""
    CAPACITY = "capacity"
    """More disk, memory or objects are needed."""
    NONE = "none"

    @property
    def label(self) -> str:
        """What people call it: `data loss`. Empty for none."""
        return _HARM_LABELS[self]

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return _HARM_RANKS[self]


_HARM_LABELS = {
    Harm.DATA_LOSS: "data loss",
    Harm.DURABILITY: "durability",
    Harm.ACCESS_LOST: "access lost",
    Harm.ACCESS_GAINED: "access gained",
    Harm.AVAILABILITY: "availability",
    Harm.REFUSED_WRITES: "writes refused",
    Harm.ORDERING: "order of data",
    Harm.THROUGHPUT: "clients slowed down",
    Harm.MOVE: "data moves",
    Harm.ONE_WAY: "cannot be undone",
    Harm.CAPACITY: "capacity",
    Harm.NONE: "",
}
_HARM_RANKS = {harm: rank for rank, harm in enumerate(Harm)}


class Block(StrEnum):
    """Why a change is not made, which decides what becomes of the rest (architecture §4.2)."""

    PROTECTED = "protected"
    UNMANAGED = "unmanaged"
    IMPOSSIBLE = "impossible"
    UNREADABLE = "unreadable"
    WAITING = "waiting"
    """It depends on an object that could not be read, or it takes away what such an object uses."""
    CONFLICT = "conflict"
    GUARD = "guard"
    POLICY = "policy"

    @property
    def stops(self) -> bool:
        """True if it stops the whole apply. Otherwise only this change is left out."""
        return self not in (Block.PROTECTED, Block.UNMANAGED, *UNREAD)


UNREAD = (Block.UNREADABLE, Block.WAITING)
"""What is left out because something could not be read."""


class Breadth(StrEnum):
    """How much of a system an access change concerns, the widest first."""

    EVERYBODY = "everybody"
    """Every principal, on whatever."""
    SYSTEM = "system"
    """The whole system."""
    EVERY = "every"
    """Every object of a type."""
    PREFIX = "prefix"
    """All objects whose names begin alike."""
    ONE = "one"
    """One object."""

    @property
    def rank(self) -> int:
        """0 for the widest."""
        return _BREADTH_RANKS[self]


_BREADTH_RANKS = {breadth: rank for rank, breadth in enumerate(Breadth)}


class AccessRow(Struct, frozen=True):
    """What one principal gains or loses on one pattern of objects."""

    principal: str
    """Who, as the system names it: `User:app`; `User:*` for everybody."""
    resource_type: str
    """The type of the objects, in the words of the provider."""
    name: str
    """The name, the beginning of names, or `*` for every object."""
    pattern: str
    """`literal` or `prefixed`."""
    operations: tuple[str, ...]
    """What it gains or loses; ("All",) stands for everything."""
    breadth: Breadth
    """How much of the system that is."""
    host: str = "*"
    """From where; `*` for anywhere."""
    before: tuple[str, ...] = ()
    """The operations of this type that it could do on it before the plan."""
    after: tuple[str, ...] = ()
    """Those that it can do after the plan."""

    def covers(self, right: str) -> bool:
        """True if this right is among those of the row. right: in the words of a provider, an
        operation, a type and a name: `Read on Table orders`."""
        operation, _, resource = right.partition(" on ")
        resource_type, _, name = resource.partition(" ")
        if resource_type != self.resource_type:
            return False
        if not {operation, "All"}.intersection(self.operations):
            return False
        if self.pattern == "prefixed":
            return name.startswith(self.name)
        return self.name in ("*", name) or not name


class Waiver(Struct, frozen=True):
    """An exception from a policy."""

    reason: str
    """Why, as its author says it."""
    until: date
    """Its last day, in UTC."""
    holds: bool
    """It still counts."""

    @property
    def text(self) -> str:
        """What people read about it."""
        if self.holds:
            return f"waived until {self.until}: {self.reason}"
        return f"the waiver ended on {self.until}: {self.reason}"


class Finding(Struct, frozen=True):
    """One thing that a rule found about a change. It is shown and never approved, because it
    follows from the change, except for the access that somebody loses (`plan/model.py`)."""

    rule: str
    """The id of the rule: `object-protected`; `policy/NAME` for a policy."""
    level: Level
    """How much it matters."""
    harm: Harm
    """What kind of harm it is."""
    text: str
    """One sentence without its final stop, with values in people's units."""
    path: Path = ()
    """The attribute or key that causes it; empty for the change as a whole."""
    figures: FrozenMap = EMPTY
    """How much: integers, or lists of texts, by documented names such as `bytes` and `records`."""
    fix: str = ""
    """What the user can do, one sentence; empty if nothing needs to be done."""
    block: Block | None = None
    """Of a finding that blocks: why, which decides what becomes of the rest of the plan."""
    accept: bool = False
    """`--accept RULE` lifts the block."""
    accepted: bool = False
    """The user has accepted it, so that it blocks no more."""
    asked: bool = False
    """Of a block: somebody asks for this very change, so a run without it is not complete."""
    access: tuple[AccessRow, ...] = ()
    """Of harm access-gained and access-lost: who gains or loses what."""
    waiver: Waiver | None = None
    """Of a policy: the exception that covers the object, or covered it."""
    range: Range | None = None
    """Where the cause is, if that is not the block: the policy, or a line of a schema's file."""

    @property
    def stops(self) -> bool:
        """True if it stops the whole apply."""
        return self.block is not None and self.block.stops

    @property
    def unmet(self) -> bool:
        """True if a run goes on without the change and has to report that (exit code 8). Only a
        protected object can be left alone as expected: nobody asks for its deletion then."""
        if self.block is None or self.stops:
            return False
        return self.asked or self.block is not Block.PROTECTED

    @property
    def order(self) -> tuple[int, bool, int]:
        """The key by which findings are sorted: level, then what stops the apply, then harm."""
        return self.level.rank, not self.stops, self.harm.rank


class StandingFinding(Struct, frozen=True):
    """One thing that a rule found about a live object."""

    identity: Identity | None
    """None: it is about the system."""
    finding: Finding


class CheckedSystem(Struct, frozen=True):
    """One system, and what the rules find in it."""

    instance: str
    """The provider instance."""
    scope_id: str
    """The id of the system."""
    words: Words
    """What its users call it and its objects."""
    counts: tuple[tuple[str, int], ...]
    """Resource type -> how many objects were judged."""
    rows: tuple[StandingFinding, ...]
    """Cautions and dangers, dangers first."""
    gaps: tuple[str, ...] = ()
    """What was not judged or may exist in addition, and why: sentences."""
    failed: bool = False
    """Something that exists could not be read."""
