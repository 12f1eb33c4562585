"""A plan is data: everything that is shown, approved and applied is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from ..core.change import Action, Batch, Change
from ..core.diagnostics import Diagnostics
from ..core.resource import Facts, Identity, Output, Pending
from ..core.value import EMPTY, FrozenMap

FORMAT = 1


class Mode(StrEnum):
    NORMAL = "normal"
    DESTROY = "destroy"


class Options(Struct, frozen=True):
    """What the user asked of this plan. target, exclude, adopt: address globs; max_deletes:
    None = the built-in guard; accept: waivers of blocks (see `Block`)."""

    mode: Mode = Mode.NORMAL
    target: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    adopt: tuple[str, ...] = ()
    max_deletes: int | None = None
    accept: tuple[str, ...] = ()
    max_data_loss: int | None = None
    """How many changes besides deletions may destroy data; None for the built-in guard."""


class Unmanaged(Struct, frozen=True):
    """Live objects of one kind that neither configuration nor state knows; names: the first
    few, sorted."""

    kind: str
    count: int
    names: tuple[str, ...]


class PlanInstance(Struct, frozen=True):
    """One provider instance as it was read. display: connection settings without secrets, for
    people only (an apply takes them from its own folder); warnings: shown once."""

    facts: Facts
    display: FrozenMap = EMPTY
    unmanaged: tuple[Unmanaged, ...] = ()
    warnings: tuple[str, ...] = ()


class OutputChange(Struct, frozen=True):
    """before: recorded, after: evaluated; an output with deferred=True is known after apply."""

    before: Output | None
    after: Output | None


class Removal(Struct, frozen=True):
    """What a step of an earlier run set for the time of a move (`Step.owes`), and this apply
    removes once that move has ended. address, run: of that step; ticket: the provider's name for
    what goes."""

    identity: Identity
    address: str
    run: str
    ticket: str


class Plan(Struct, frozen=True):
    """changes: sorted by address; unchanged: how many objects need nothing; configuration:
    digest of the configuration; removals: what earlier runs owe; approval: digest of what will
    be done (architecture §4.4); rule: by which rules that digest was made."""

    lineage: str
    serial: int
    configuration: str
    instances: Mapping[str, PlanInstance]
    changes: tuple[Change, ...]
    unchanged: int = 0
    options: Options = Options()
    outputs: tuple[OutputChange, ...] = ()
    diagnostics: Diagnostics = ()
    pending: tuple[Pending, ...] = ()
    audit_head: str = ""
    created: str = ""
    kafkaform_version: str = ""
    removals: tuple[Removal, ...] = ()
    approval: str = ""
    rule: int = 1

    @property
    def token(self) -> str:
        """What a reviewer hands to `apply --expect`: approval and configuration together."""
        return f"{self.approval}.{self.configuration}"

    @property
    def effective(self) -> tuple[Change, ...]:
        """The changes that an apply makes."""
        return tuple(change for change in self.changes if change.effective)

    @property
    def idle(self) -> bool:
        """True if an apply has nothing to send and nothing to record."""
        return not self.effective and not self.removals

    @property
    def scopes(self) -> FrozenMap:
        """provider instance -> scope id, as read."""
        return FrozenMap({name: one.facts.scope_id for name, one in self.instances.items()})

    @property
    def taking(self) -> tuple[Change, ...]:
        """The changes that take something away: what counts as deletions."""
        return tuple(change for change in self.changes if change.takes_away)

    @property
    def drifted(self) -> tuple[Change, ...]:
        """The objects that were changed outside since they were recorded."""
        return tuple(change for change in self.changes if change.drift)

    def list_blocked(self, *, stopping: bool) -> Iterator[Change]:
        """The blocked changes that stop an apply, or those that do not."""
        for change in self.changes:
            if change.blocked is not None and change.blocked.kind.stops is stopping:
                yield change

    def list_unmet(self) -> tuple[Change, ...]:
        """The blocked changes that an apply leaves out although somebody asks for them."""
        return tuple(change for change in self.changes if change.blocked and change.blocked.unmet)

    def count(self, *actions: Action) -> int:
        return sum(1 for change in self.effective if change.action in actions)


class Wave(Struct, frozen=True):
    """Batches that may run one after another without looking again at the world. Waves run in
    order of (part, round, provider, phase)."""

    part: int
    round: int
    provider: str
    phase: int
    batches: tuple[Batch, ...]


__all__ = [
    "FORMAT",
    "Mode",
    "Options",
    "OutputChange",
    "Plan",
    "PlanInstance",
    "Removal",
    "Unmanaged",
    "Wave",
]
