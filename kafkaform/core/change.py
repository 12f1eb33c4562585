"""What will be done: a change is what the user reads, a step is what is sent."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from .diagnostics import Range
from .resource import Fault, Identity
from .risk import Risk, RiskKind
from .value import EMPTY, FrozenMap, Value

Path = tuple[str, ...]
BOOKKEEPING = ("owner", "labels")
"""Where paths begin that live in the state alone."""


class Action(StrEnum):
    """There is no replace: an object is never deleted in order to change it."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    ADOPT = "adopt"
    FORGET = "forget"
    IMPORT = "import"
    NOOP = "noop"

    @property
    def symbol(self) -> str:
        return _SYMBOLS[self.value]


_SYMBOLS = {
    "create": "+",
    "update": "~",
    "delete": "-",
    "adopt": "=",
    "forget": ".",
    "import": "=",
    "noop": " ",
}


class Evidence(StrEnum):
    """What a dry run can prove of a step, strongest first."""

    REMOTE = "remote"  # the system validates the very request
    LOCAL = "local"  # rules, fresh reads and rights only
    NONE = "none"


class Repeat(StrEnum):
    SAFE = "safe"  # absolute and idempotent
    VERIFY = "verify"  # read first (create)
    NEVER = "never"  # changes hidden data, or starts a move


class PathChange(Struct, frozen=True):
    """One path before and after; None is "not set". effective: the value that takes effect
    where `after` is None, or `after` itself where nobody chose it; sensitive: values are not
    shown (and never secrets themselves)."""

    path: Path
    before: Value
    after: Value
    effective: Value = None
    sensitive: bool = False
    unit: str = ""
    """`ms`, `bytes`, … (`core/text/quantity.py`), so that people read an amount; empty for none."""


class Request(Struct, frozen=True):
    """What steps must share to travel in one batch. name: the provider's API; part: 1 (creates,
    updates, tasks) or 2 (deletes); phase: order inside a part among the requests of one provider,
    low first; node: the node that must get it, None for any; gated: a step leaves only if all
    steps of this name in earlier phases of its part are applied; ahead: the phase of part 1 in
    which a delete leaves where a step of part 1 has its group, None to stay in part 2."""

    name: str
    part: int
    phase: int
    max_items: int
    max_weight: int
    node: str | None = None
    gated: bool = False
    ahead: int | None = None


class Step(Struct, frozen=True):
    """One request's share of one change.

    id: unique in the plan, `KIND/KEY#N` with the instance in front; payload: provider data,
    JSON-able, secrets as references only; weight: metadata records it costs; after: step ids
    that must be applied first; paths: the change's paths that this step makes true (all paths
    of the change for create and delete); group: steps of one group travel in one batch where
    the caps allow; rank: order inside a batch, low first, and of groups by their lowest. Both
    follow from the change alone. owes: the ticket of what this step sets for the time of its
    task and what must be undone afterwards: on record before the request leaves.
    """

    id: str
    identity: Identity
    address: str
    request: Request
    payload: FrozenMap
    weight: int
    after: tuple[str, ...]
    repeat: Repeat
    evidence: Evidence
    paths: tuple[Path, ...] = ()
    group: str = ""
    rank: int = 0
    owes: str | None = None


class BlockerKind(StrEnum):
    """Why a change is not made. PROTECTED and UNMANAGED leave the rest of the plan alone, all
    others stop an apply (architecture §4.2)."""

    PROTECTED = "protected"
    UNMANAGED = "unmanaged"
    IMPOSSIBLE = "impossible"
    UNREADABLE = "unreadable"
    CONFLICT = "conflict"
    GUARD = "guard"
    POLICY = "policy"

    @property
    def stops(self) -> bool:
        return self not in (BlockerKind.PROTECTED, BlockerKind.UNMANAGED)


class Blocker(Struct, frozen=True):
    """kind, why in one sentence, and what the user can do; waiver: what the user may accept so
    that it no longer blocks (`open-access` for --accept-open-access), if anything; asked: somebody
    asks for this very change, so that a run without it did not do all that it was asked for."""

    kind: BlockerKind
    reason: str
    advice: str = ""
    waiver: str = ""
    asked: bool = False

    @property
    def unmet(self) -> bool:
        """True if a run goes on without the change and must say so in the end (exit code 8). What
        exists unmanaged is in the way of a declaration, always."""
        return not self.kind.stops and (self.asked or self.kind is BlockerKind.UNMANAGED)


class Impact(Struct, frozen=True):
    """What a destructive change would destroy: figures by name, each an int or text
    (`bytes`, `offsets`, `groups`), and one sentence."""

    text: str
    figures: FrozenMap = EMPTY


class Ownership(Struct, frozen=True):
    """The bookkeeping that a change leaves in the state row."""

    owners: tuple[str, ...] = ()
    protected: str | None = None
    secret_version: str | None = None


class Change(Struct, frozen=True):
    """One object from before to after.

    address: what the user wrote (or the recorded owner); before/after: whole canonical
    attributes (None = not there); paths: what is written or removed, bookkeeping included
    (`owner`, `labels.*`); drift: recorded against observed; row_before/row_after: bookkeeping;
    depends_on: addresses whose steps come first; losses: what somebody may do now and not after
    it, one text each: an apply that would take more than a plan shows is refused; theirs: paths
    of `after` that are kept for others: the state does not record them, so nobody deletes them.
    """

    identity: Identity
    address: str
    action: Action
    before: FrozenMap | None = None
    after: FrozenMap | None = None
    paths: tuple[PathChange, ...] = ()
    drift: tuple[PathChange, ...] = ()
    adopts: bool = False
    incarnation: str | None = None
    row_before: Ownership = Ownership()
    row_after: Ownership = Ownership()
    owner: str | None = None
    labels: FrozenMap = EMPTY
    depends_on: tuple[str, ...] = ()
    reason: str = ""
    blocked: Blocker | None = None
    impact: Impact | None = None
    notes: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    risks: tuple[Risk, ...] = ()
    """What it could harm, the worst first. Shown, and never approved: it follows from the rest."""
    theirs: tuple[Path, ...] = ()
    range: Range | None = None
    steps: tuple[Step, ...] = ()

    @property
    def effective(self) -> bool:
        """True if an apply does something for it: neither noop nor blocked."""
        return self.action is not Action.NOOP and self.blocked is None

    @property
    def removed(self) -> tuple[Path, ...]:
        """The paths that are set now and not after it; of a deletion all that it lists."""
        if self.action not in (Action.UPDATE, Action.DELETE):
            return ()
        gone = (item.path for item in self.paths if item.after is None)
        return tuple(path for path in gone if path[0] not in BOOKKEEPING)

    @property
    def grave(self) -> bool:
        """True if it could destroy data or stop clients."""
        return any(risk.kind.grave for risk in self.risks)

    def has_risk(self, kind: RiskKind) -> bool:
        """True if it could do this harm."""
        return any(risk.kind is kind for risk in self.risks)

    @property
    def loses_data(self) -> bool:
        """True if it could destroy data: deletions, and changes with that risk."""
        return self.action is Action.DELETE or self.has_risk(RiskKind.DATA_LOSS)

    @property
    def released(self) -> bool:
        """True for an update after which nobody owns the object: what the state recorded of it
        goes, and what others have set stays."""
        owned, after = self.row_before.owners, self.row_after.owners
        return self.action is Action.UPDATE and bool(owned) and not after

    @property
    def takes_away(self) -> bool:
        """True if the system loses what nothing declares any more: a deletion, or a release that
        removes at least one path (architecture §4.3). What counts as a deletion is this."""
        if not self.effective:
            return False
        return self.action is Action.DELETE or (self.released and bool(self.removed))


class Batch(Struct, frozen=True):
    """Steps of one provider instance and one equal request that travel together."""

    id: str
    instance: str
    request: Request
    steps: tuple[Step, ...]


class OutcomeStatus(StrEnum):
    APPLIED = "applied"
    FAILED = "failed"
    UNKNOWN = "unknown"  # must be read before anything else is decided
    STARTED = "started"  # long work runs under `ticket`
    SKIPPED = "skipped"  # never sent; made by the executor, not by a provider


class Outcome(Struct, frozen=True):
    """One step's result. incarnation and attributes: what the system said it made, if it did;
    note: how far long work is, in words."""

    step: str
    status: OutcomeStatus
    fault: Fault | None = None
    ticket: str | None = None
    incarnation: str | None = None
    attributes: FrozenMap | None = None
    note: str = ""


class Verdict(Struct, frozen=True):
    """A dry run's answer for one step; fault: why it was refused (None = passed)."""

    step: str
    evidence: Evidence
    fault: Fault | None = None


class Review(Struct, frozen=True):
    """A provider's judgement of all changes of one instance together. blocks: what must not
    happen and why; unless: what must not happen unless the user accepts its waiver; notes: shown
    under the change; losses: see `Change`; warnings: shown once for the instance."""

    blocks: Mapping[Identity, Blocker] = field(default_factory=dict)
    unless: Mapping[Identity, tuple[Blocker, ...]] = field(default_factory=dict)
    notes: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)
    losses: Mapping[Identity, tuple[str, ...]] = field(default_factory=dict)
    risks: Mapping[Identity, tuple[Risk, ...]] = field(default_factory=dict)
    """What only all changes together show: who loses access."""
    warnings: tuple[str, ...] = ()
