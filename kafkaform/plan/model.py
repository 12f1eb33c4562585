"""The plan as data: everything that is shown, approved and applied is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from ..core.change import Action, Batch, Change
from ..core.diagnostics import Diagnostics
from ..core.finding import UNREAD, Finding
from ..core.resource import Facts, Identity, Output, Pending
from ..core.value import EMPTY, FrozenMap

FORMAT = 2
"""Of saved plan files; any other is refused."""


class Mode(StrEnum):
    """What a plan is made for."""

    NORMAL = "normal"
    DESTROY = "destroy"
    REFRESH = "refresh"


class Options(Struct, frozen=True):
    """What the user asked of a plan."""

    mode: Mode = Mode.NORMAL
    """Bring the world to the configuration, destroy all that the state records, or only record the
    live values in the state."""
    target: tuple[str, ...] = ()
    """Address globs of --target."""
    exclude: tuple[str, ...] = ()
    """Address globs of --exclude."""
    adopt: tuple[str, ...] = ()
    """Address globs of --adopt."""
    max_deletes: int | None = None
    """The limit of --max-deletes; None for the built-in guard."""
    accept: tuple[str, ...] = ()
    """The rules whose blocks the user lifts: `RULE` or `RULE=ADDRESS` with a glob."""
    max_data_loss: int | None = None
    """The limit of --max-data-loss for changes other than deletions; None for the built-in
    guard."""


class Unmanaged(Struct, frozen=True):
    """Live objects of one kind that neither the configuration nor the state knows."""

    kind: str
    """Their resource type."""
    count: int
    """How many there are."""
    names: tuple[str, ...]
    """The keys of the first few, sorted."""


class PlanInstance(Struct, frozen=True):
    """One provider instance as it was read."""

    facts: Facts
    """The system, as far as a plan records it."""
    # For people only. An apply takes its connection from its own folder, so that a saved plan
    # cannot lead it elsewhere.
    display: FrozenMap = EMPTY
    """Connection settings without secrets."""
    unmanaged: tuple[Unmanaged, ...] = ()
    """What else exists there, by kind."""
    findings: tuple[Finding, ...] = ()
    """What rules found about the system, shown once."""
    unread: str = ""
    """Why the system could not be asked, so that all its objects are left out; empty if it
    answered."""


class OutputChange(Struct, frozen=True):
    """One output that differs from what the state recorded."""

    before: Output | None
    """As recorded, None if it is new."""
    after: Output | None
    """As evaluated, None if it is gone; a deferred one gets its value after the apply."""


class Removal(Struct, frozen=True):
    """A setting of an earlier run (`Step.owes`) that this apply removes once its task has ended."""

    identity: Identity
    """The object of the step that set it."""
    address: str
    """What the user calls that object."""
    run: str
    """The run that set it."""
    ticket: str
    """The provider's name for the setting."""


class PolicyFolders(Struct, frozen=True):
    """The policies from outside the configuration that judged a plan."""

    folders: tuple[str, ...] = ()
    """The folders of --policy, as they were named."""
    # Not the paths: the same policies can be elsewhere on the computer that applies.
    digest: str = ""
    """Digest of the names and contents of their files; empty without any."""


class Plan(Struct, frozen=True):
    """What an apply would do, and everything that a reviewer needs to know about it."""

    lineage: str
    """The state that the plan was made for."""
    serial: int
    """Its serial at that time; shown, not approved."""
    configuration: str
    """Digest of the files and variables."""
    instances: Mapping[str, PlanInstance]
    """Provider instance -> the system behind it."""
    changes: tuple[Change, ...]
    """Every change, sorted by address; objects that need nothing are counted only."""
    unchanged: int = 0
    """How many objects need nothing."""
    options: Options = Options()
    """What the user asked for."""
    outputs: tuple[OutputChange, ...] = ()
    """Outputs that differ from the recorded ones."""
    unevaluated: tuple[str, ...] = ()
    """Addresses of resource blocks that are left out, because a data source could not be read."""
    diagnostics: Diagnostics = ()
    """Warnings of the configuration."""
    pending: tuple[Pending, ...] = ()
    """What earlier runs left open."""
    audit_head: str = ""
    """The end of the log that the plan follows from."""
    created: str = ""
    """When the plan was made, RFC 3339, UTC."""
    kafkaform_version: str = ""
    """The version that made it."""
    removals: tuple[Removal, ...] = ()
    """Settings of earlier runs that this apply removes."""
    policies: PolicyFolders = PolicyFolders()
    """The policies from outside the configuration that judged it."""
    approval: str = ""
    """Digest of what will be done (architecture §4.4)."""
    rule: int = 1
    """The rules by which that digest was made (`approval.RULE`)."""
    sources: Mapping[str, str] = EMPTY
    """File or `var.NAME` -> the first digits of its digest (`Desired.sources`); shown, not
    approved, because `configuration` covers them."""

    @property
    def token(self) -> str:
        """What a reviewer gives to `apply --expect`: approval and configuration together."""
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
        """Provider instance -> scope id, as read."""
        return FrozenMap({name: one.facts.scope_id for name, one in self.instances.items()})

    @property
    def taking(self) -> tuple[Change, ...]:
        """The changes that take something away: what counts as deletions."""
        return tuple(change for change in self.changes if change.takes_away)

    @property
    def left_out(self) -> tuple[Change, ...]:
        """The objects that could not be read, and the changes that wait for them."""
        return tuple(change for change in self.changes if change.block in UNREAD)

    @property
    def drifted(self) -> tuple[Change, ...]:
        """The objects that were changed outside kafkaform since they were recorded."""
        return tuple(change for change in self.changes if change.drift)

    def list_blocked(self, *, stopping: bool) -> Iterator[Change]:
        """The blocked changes that stop an apply, or those that do not."""
        for change in self.changes:
            if change.block is not None and change.block.stops is stopping:
                yield change

    def list_unmet(self) -> tuple[Change, ...]:
        """The blocked changes that an apply leaves out although somebody asks for them."""
        return tuple(change for change in self.changes if change.blocked and change.blocked.unmet)

    def count(self, *actions: Action) -> int:
        """How many changes with one of these actions an apply makes."""
        return sum(1 for change in self.effective if change.action in actions)


class Wave(Struct, frozen=True):
    """Batches that may be sent one after another without looking at the world again.

    Waves run in the order of (part, round, provider, phase).
    """

    part: int
    """1 for creates, updates and long work, 2 for deletes."""
    round: int
    """How many waits for other steps come before, counted within the part."""
    provider: str
    """The provider whose phases these are."""
    phase: int
    """The order within the round among the requests of that provider."""
    batches: tuple[Batch, ...]
    """The batches, in order."""


__all__ = [
    "FORMAT",
    "Mode",
    "Options",
    "OutputChange",
    "Plan",
    "PlanInstance",
    "PolicyFolders",
    "Removal",
    "Unmanaged",
    "Wave",
]
