"""Nouns of judges that are no rules yet. `plan/judge.py` makes findings of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from .change import Path
from .finding import Block
from .resource import Identity
from .value import EMPTY, FrozenMap

BlockerKind = Block


class RiskKind(StrEnum):
    """The kinds of harm, the worst first: this is the order in which they are shown."""

    DATA_LOSS = "data-loss"
    ACCESS = "access"
    AVAILABILITY = "availability"
    REFUSED_WRITES = "refused-writes"
    ORDERING = "ordering"
    THROUGHPUT = "throughput"
    MOVE = "move"

    @property
    def label(self) -> str:
        """What people call it: `data loss`."""
        return _LABELS[self]

    @property
    def grave(self) -> bool:
        """True if it destroys data or stops clients. Such changes lead every form of a plan."""
        return self in (RiskKind.DATA_LOSS, RiskKind.ACCESS, RiskKind.AVAILABILITY)

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return _RANKS[self]


_LABELS = {
    RiskKind.DATA_LOSS: "data loss",
    RiskKind.ACCESS: "clients cut off",
    RiskKind.AVAILABILITY: "availability",
    RiskKind.REFUSED_WRITES: "writes refused",
    RiskKind.ORDERING: "order of data",
    RiskKind.THROUGHPUT: "clients slowed down",
    RiskKind.MOVE: "data moves",
}
_RANKS = {kind: rank for rank, kind in enumerate(RiskKind)}


class Risk(Struct, frozen=True):
    """One harm that a change could do."""

    kind: RiskKind
    """The kind of harm."""
    text: str
    """One sentence without its final stop, with values in people's units."""
    path: Path = ()
    """The attribute or key that causes it; empty for the change as a whole."""
    figures: FrozenMap = EMPTY
    """How much, as integers by name, such as `bytes`."""


class Blocker(Struct, frozen=True):
    """Why a change is not made, and what the user can do about it."""

    kind: BlockerKind
    """The class of the reason, which decides whether the rest of the plan can be applied."""
    reason: str
    """Why, in one sentence."""
    advice: str = ""
    """What the user can do."""
    waiver: str = ""
    """The flag that lifts the block: `open-access` for --accept-open-access. Empty: no flag."""
    asked: bool = False
    """Somebody asks for this very change, so a run without it is not complete."""

    @property
    def unmet(self) -> bool:
        """True if a run goes on without the change and has to report that (exit code 8). Only a
        protected object can be left alone as expected: nobody asks for its deletion then."""
        return not self.kind.stops and (self.asked or self.kind is not BlockerKind.PROTECTED)


class Review(Struct, frozen=True):
    """A provider's judgement of all changes of one instance together."""

    blocks: Mapping[Identity, Blocker] = field(default_factory=dict)
    """Changes that must not be made."""
    unless: Mapping[Identity, tuple[Blocker, ...]] = field(default_factory=dict)
    """Changes that must not be made unless the user accepts the waiver of each block."""
    notes: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)
    """Sentences that are shown under the change."""
    losses: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)
    """What somebody can do now and not after the change."""
    risks: Mapping[Identity, tuple[Risk, ...]] = field(default_factory=dict)
    """What only all changes together show: who loses access."""
    warnings: tuple[str, ...] = ()
    """Sentences that are shown once for the instance."""
