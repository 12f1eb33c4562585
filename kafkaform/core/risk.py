"""Risks: what a change could harm. Reviewers read these before anything else."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from .value import EMPTY, FrozenMap

Path = tuple[str, ...]


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
