"""Changes and steps: a change is what the user reads, a step is one request's share of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from .diagnostics import Range
from .finding import AccessRow, Block, Finding, Harm, Level
from .resource import Fault, Identity
from .value import EMPTY, FrozenMap, Value

Path = tuple[str, ...]
"""The place of one value in an object: an attribute, or an attribute and a key of its map."""
PARK = "park"
BOOKKEEPING = ("owner", "labels", PARK)
"""First parts of the paths that exist in the state only, and never on a system."""


class Action(StrEnum):
    """What becomes of one object. There is no replace: no object is ever deleted to change it."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    ADOPT = "adopt"
    FORGET = "forget"
    IMPORT = "import"
    REFRESH = "refresh"
    """Only the state changes: it takes in the live values."""
    NOOP = "noop"

    @property
    def symbol(self) -> str:
        """The character that stands for the action in front of a line."""
        return _SYMBOLS[self.value]


_SYMBOLS = {
    "create": "+",
    "update": "~",
    "delete": "-",
    "adopt": "=",
    "forget": ".",
    "import": "=",
    "refresh": "=",
    "noop": " ",
}


class Evidence(StrEnum):
    """What a dry run can prove about a step, strongest first."""

    # A system validates some kinds of requests without executing them (`validate_only`) and
    # others not at all. A plan must not claim a check that nobody can make.
    REMOTE = "remote"
    """The system validates the very request."""
    LOCAL = "local"
    """Only rules, fresh reads and rights are checked."""
    NONE = "none"
    """Nothing can be checked before the request is sent."""


class Repeat(StrEnum):
    """Whether a step may be sent again after its answer was lost."""

    SAFE = "safe"
    """The request is absolute and idempotent, such as setting a value."""
    # A repeated create is refused with "already exists", which cannot tell our object from one
    # that somebody else made in between. So the object is read first.
    VERIFY = "verify"
    """The object must be read first, such as after a create."""
    # A second write of a password stores another salt, a second task replaces the one that runs.
    NEVER = "never"
    """The request changes hidden data or starts long work."""


class PathChange(Struct, frozen=True):
    """The value at one path before and after a change; None means that it is not set."""

    path: Path
    """Where the value is."""
    before: Value
    """The live value, None if it is not set."""
    after: Value
    """The wanted value, None if the change removes it."""
    effective: Value = None
    """The value that takes effect where `after` is None, or `after` where nobody chose it."""
    sensitive: bool = False
    """The values are never shown. They are no secrets, which are references everywhere."""
    unit: str = ""
    """The unit of the values (`ms`, `bytes`, see `core/text.py`), empty for none."""
    effective_before: Value = None
    """The value that is in effect before the change where `before` is None, as far as known."""


class Request(Struct, frozen=True):
    """What steps must have in common to travel in one batch."""

    name: str
    """The provider's name of the API."""
    part: int
    """1 for creates, updates and long work, 2 for deletes."""
    phase: int
    """Order within a part among the requests of one provider; low phases go first."""
    max_items: int
    """The largest number of steps in a batch."""
    # A system may commit a request as one atomic batch of records and refuse all of it above a
    # limit, so batches are cut by what their steps cost, too.
    max_weight: int
    """The largest sum of step weights in a batch."""
    node: str | None = None
    """The node that must receive the request, None for any."""
    gated: bool = False
    """A step leaves only after all steps of this name in earlier phases of its part succeeded."""
    ahead: int | None = None
    """The phase of part 1 in which a delete leaves if its group has a step in part 1. None keeps
    the delete in part 2."""


class SideEffect(Struct, frozen=True):
    """A value of one object that a step about another object changes."""

    identity: Identity
    """The object whose value it is."""
    path: Path
    """The place of the value."""


class Step(Struct, frozen=True):
    """One request's share of one change."""

    id: str
    """Unique in the plan: `INSTANCE/KIND/KEY#N`."""
    identity: Identity
    """The object that the step changes."""
    address: str
    """What the user calls the object."""
    request: Request
    """The request in which the step travels."""
    payload: FrozenMap
    """The provider's own data for the request, JSON-able; secrets are references."""
    weight: int
    """How many records of the system the step costs."""
    after: tuple[str, ...]
    """Ids of the steps that must succeed first."""
    repeat: Repeat
    """Whether the step may be sent again after a lost answer."""
    evidence: Evidence
    """What a dry run can prove about it."""
    paths: tuple[Path, ...] = ()
    """The paths of the change that this step makes true: all of them for creates and deletes."""
    alters: tuple[SideEffect, ...] = ()
    """What this step changes on its way of other objects, for which the plan can have changes of
    their own."""
    # Group and rank follow from the change alone, so that equal plans have equal batches.
    group: str = ""
    """Steps of one group travel in one batch where the limits allow it."""
    rank: int = 0
    """Order within a batch, low first; groups are ordered by their lowest rank."""
    # A setting that nobody knows about would stay for ever. Its ticket is durable before the
    # request leaves, so that a crash cannot leave one behind unseen.
    owes: str | None = None
    """The ticket of a setting that this step makes for the time of its task, and that must be
    removed afterwards."""


class Impact(Struct, frozen=True):
    """What a destructive change would destroy."""

    text: str
    """One sentence for people."""
    figures: FrozenMap = EMPTY
    """Name (`bytes`, `offsets`, `groups`) -> number or text."""
    unasked: str = ""
    """Why nobody knows who uses the object, because those that can use it could not be asked. A
    deletion waits then."""


class Ownership(Struct, frozen=True):
    """The bookkeeping part of a state row, which decides who may change and delete the object."""

    owners: tuple[str, ...] = ()
    """Addresses of the blocks that own the object; none if nobody does."""
    protected: str | None = None
    """`no`, `default`, `explicit` or `shared`; None without a row."""
    secret_version: str | None = None
    """The version of the secret that was sent last."""

    @property
    def is_shared(self) -> bool:
        """Other configurations own the object, too."""
        return self.protected == "shared"


class _WithDigest:
    """A slot that is not a field, so that it is not compared, copied or stored."""

    __slots__ = ("_digest",)
    _digest: tuple[str, str, str]
    """System, lineage and the digest there, which an apply needs twice (`plan/model.py`)."""


class Change(_WithDigest, Struct, frozen=True):
    """One object from before to after, as the user reads it."""

    identity: Identity
    """Which object."""
    address: str
    """What the user calls it: the declared address, or the recorded owner."""
    action: Action
    """What becomes of it."""
    before: FrozenMap | None = None
    """The live attributes that are managed, canonical; None if the object does not exist."""
    after: FrozenMap | None = None
    """All attributes after the change, canonical; None if the object is gone then."""
    paths: tuple[PathChange, ...] = ()
    """What is written or removed, including the bookkeeping (`owner`, `labels.*`)."""
    drift: tuple[PathChange, ...] = ()
    """How the live object differs from what the state recorded."""
    last_set: str = ""
    """Of a drifted object: when, by whom and in which run this state's log last set it, and who
    changed it since, as far as that is known. Text for people."""
    adopts: bool = False
    """A live object that kafkaform did not manage is taken over."""
    incarnation: str | None = None
    """The id of the live object that the change was planned for, if its kind has ids."""
    row_before: Ownership = Ownership()
    """The bookkeeping of the state row today."""
    row_after: Ownership = Ownership()
    """The bookkeeping of the state row after the change."""
    owner: str | None = None
    """The team that the block names; text for people."""
    labels: FrozenMap = EMPTY
    """The labels of the block."""
    park: int | None = None
    """For how many milliseconds the object is parked before it is deleted."""
    expectations: FrozenMap = EMPTY
    """What the block expects of the object: attribute -> value, of those that only estimates use
    (`AttributeSchema.expected`)."""
    depends_on: tuple[str, ...] = ()
    """Addresses whose steps come first."""
    reason: str = ""
    """Why the change is planned, where the action alone does not say."""
    impact: Impact | None = None
    """What a deletion would destroy, if the provider could tell."""
    # An apply that would take more from anybody than the reviewed plan shows is refused.
    findings: tuple[Finding, ...] = ()
    """What rules found about it, in the order of `Finding.order`: blocks first."""
    # The state does not record these paths, so that no later plan deletes what others set.
    theirs: tuple[Path, ...] = ()
    """Paths of `after` that are kept for others."""
    range: Range | None = None
    """The place of the block in the configuration."""
    steps: tuple[Step, ...] = ()
    """The requests that make the change true, in order."""

    @property
    def effective(self) -> bool:
        """True if an apply does something for it: it is neither a noop nor blocked."""
        return self.action is not Action.NOOP and self.blocked is None

    @property
    def is_listed(self) -> bool:
        """False for an object that needs nothing, has not drifted, and of which no rule found more
        than notes."""
        if self.action is not Action.NOOP or self.drift:
            return True
        return bool(self.findings) and self.findings[0].level is not Level.NOTE

    @property
    def removed(self) -> tuple[Path, ...]:
        """The paths that are set now and not after the change; all that a deletion lists."""
        if self.action not in (Action.UPDATE, Action.DELETE):
            return ()
        gone = (item.path for item in self.paths if item.after is None)
        return tuple(path for path in gone if path[0] not in BOOKKEEPING)

    @property
    def blocked(self) -> Finding | None:
        """The first reason why the change is not made; None if it is made."""
        first = self.findings[0] if self.findings else None
        return first if first is not None and first.level is Level.BLOCK else None

    @property
    def block(self) -> Block | None:
        """Why the change is not made, None if it is made."""
        return None if self.blocked is None else self.blocked.block

    @property
    def grave(self) -> bool:
        """True if it could destroy data, stop clients, or give or take much access."""
        return any(finding.level is Level.DANGER for finding in self.findings)

    def has_harm(self, *harms: Harm) -> bool:
        """True if it could do one of these harms."""
        return any(
            finding.harm in harms and finding.level is not Level.NOTE for finding in self.findings
        )

    @property
    def gains(self) -> tuple[AccessRow, ...]:
        """Who can do more after the change."""
        return self._collect_access(Harm.ACCESS_GAINED)

    @property
    def losses(self) -> tuple[AccessRow, ...]:
        """Who can do less after the change."""
        return self._collect_access(Harm.ACCESS_LOST)

    def _collect_access(self, harm: Harm) -> tuple[AccessRow, ...]:
        return tuple(
            row for finding in self.findings if finding.harm is harm for row in finding.access
        )

    @property
    def released(self) -> bool:
        """True for an update after which nobody owns the object: what the state recorded of it is
        removed, and what others have set stays."""
        owned, after = self.row_before.owners, self.row_after.owners
        return self.action is Action.UPDATE and bool(owned) and not after

    @property
    def moves(self) -> bool:
        """True if only the address of the object changes: its block got another name, a key or a
        module. Nothing is sent."""
        owners, before = self.row_after.owners, self.row_before
        if self.action is not Action.UPDATE or self.paths or self.adopts or self.blocked:
            return False
        renamed = len(owners) == len(before.owners) > 0 and owners != before.owners
        return renamed and replace(before, owners=owners) == self.row_after

    @property
    def takes_away(self) -> bool:
        """True if the system loses something that nothing declares any more (architecture §4.3).

        That is a deletion, or a release that removes at least one path. Guards, limits and counts
        of deletions all use this.
        """
        if not self.effective:
            return False
        return self.action is Action.DELETE or (self.released and bool(self.removed))


class Batch(Struct, frozen=True):
    """Steps that travel together in one request."""

    id: str
    """Unique in the plan."""
    instance: str
    """The provider instance that gets the request."""
    request: Request
    """What all the steps have in common."""
    steps: tuple[Step, ...]
    """The steps, in the order of their outcomes."""


class OutcomeStatus(StrEnum):
    """How one attempt of a step ended."""

    APPLIED = "applied"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Nobody knows yet. The object must be read before anything else is decided."""
    STARTED = "started"
    """Long work runs under a ticket."""
    SKIPPED = "skipped"
    """The step was never sent. The executor says so, never a provider."""


class Outcome(Struct, frozen=True):
    """The result of one step."""

    step: str
    """The id of the step."""
    status: OutcomeStatus
    """How it ended."""
    fault: Fault | None = None
    """Why it was not applied."""
    ticket: str | None = None
    """The provider's name for the long work that the step started."""
    incarnation: str | None = None
    """The id of the object that the system made, if it said so."""
    attributes: FrozenMap | None = None
    """The attributes of the object that the system made, if it said so."""
    note: str = ""
    """How far long work is, in words."""


class Verdict(Struct, frozen=True):
    """A dry run's answer for one step."""

    step: str
    """The id of the step."""
    evidence: Evidence
    """What the answer proves."""
    fault: Fault | None = None
    """Why the step was refused; None if it passed."""


class RateLimit(Struct, frozen=True):
    """How many changes a system takes, as far as it says so: a bucket that fills at a rate, and a
    step is taken as long as it is not below empty."""

    requests: frozenset[str]
    """Names of the requests that spend from it, together."""
    rate: float
    """What comes into it in a second."""
    burst: float
    """What it holds."""
    costs: Mapping[Identity, int]
    """What the requests of each object spend."""


def add_findings(change: Change, *findings: Finding) -> Change:
    """The change with these findings in addition. What was found first comes first among equals."""
    if not findings:
        return change
    return replace(change, findings=tuple(sorted((*change.findings, *findings), key=_ORDER)))


_ORDER = attrgetter("order")
